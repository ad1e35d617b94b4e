"""The constant matrices of F(m, r): m sums of r terms each from m + r - 1 products (Winograd 1980; Lavin, Gray 2015).

    y = A ((G g) * (B d))      B d: `into`      A: `back`      G g: of the weights, at compile time

Each transform is two matrices, so that the even and odd parts are shared by being definitions themselves:
v = Combine (Split d). A zero in a matrix is structural: the term does not exist. The points of 6 products are 0, +-3/4,
+-3/2 and infinity, exact in binary, and twice the error of a plain convolution where 0, +-1, +-2 have four times; 5
products do without -3/2, and 4 have 0, +-1 and infinity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Matrix = tuple[tuple[float, ...], ...]
NEAR, FAR = 0.75, 1.5  # two pairs of points


@dataclass(frozen=True, slots=True)
class Transform:
    """Combine @ Split."""

    split: Matrix
    combine: Matrix


@lru_cache
def into(points: int) -> Transform:
    """B of 4 to 6 products: of each point, what is left of the product of all (x - point) without its own."""
    if points == 4:
        return Transform(_identity(4), (
            (1.0, 0.0, -1.0, 0.0), (0.0, 1.0, 1.0, 0.0), (0.0, -1.0, 1.0, 0.0), (0.0, -1.0, 0.0, 1.0),
        ))  # fmt: skip
    a, b = NEAR, FAR
    p, q = a * a, b * b
    if points == 5:
        split = (
            (p * b, -p, -b, 1.0, 0.0),
            (0.0, 0.0, -b, 1.0, 0.0), (0.0, -b, 1.0, 0.0, 0.0),
            (0.0, -p, 0.0, 1.0, 0.0),
            (0.0, p * b, -p, -b, 1.0),
        )  # fmt: skip
        combine = (
            (1.0, 0.0, 0.0, 0.0, 0.0),
            (0.0, 1.0, a, 0.0, 0.0), (0.0, 1.0, -a, 0.0, 0.0),
            (0.0, 0.0, 0.0, 1.0, 0.0),
            (0.0, 0.0, 0.0, 0.0, 1.0),
        )  # fmt: skip
        return Transform(split, combine)
    split = (
        (p * q, 0.0, -(p + q), 0.0, 1.0, 0.0),
        (0.0, 0.0, -q, 0.0, 1.0, 0.0), (0.0, -q, 0.0, 1.0, 0.0, 0.0),
        (0.0, 0.0, -p, 0.0, 1.0, 0.0), (0.0, -p, 0.0, 1.0, 0.0, 0.0),
        (0.0, p * q, 0.0, -(p + q), 0.0, 1.0),
    )  # fmt: skip
    combine = (
        (1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        (0.0, 1.0, a, 0.0, 0.0, 0.0), (0.0, 1.0, -a, 0.0, 0.0, 0.0),
        (0.0, 0.0, 0.0, 1.0, b, 0.0), (0.0, 0.0, 0.0, 1.0, -b, 0.0),
        (0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
    )  # fmt: skip
    return Transform(split, combine)


@lru_cache
def back(points: int, m: int) -> Transform:
    """A of 4 to 6 products, for m sums: row i has the i-th powers of the points, its last one infinity."""
    if points == 4:
        return Transform(_identity(4), ((1.0, 1.0, 1.0, 0.0), (0.0, 1.0, -1.0, 1.0)))
    if points == 5:
        split = (
            (1.0, 0.0, 0.0, 0.0, 0.0),
            (0.0, 1.0, 1.0, 0.0, 0.0), (0.0, 1.0, -1.0, 0.0, 0.0),
            (0.0, 0.0, 0.0, 1.0, 0.0),
            (0.0, 0.0, 0.0, 0.0, 1.0),
        )  # fmt: skip
        near = [(NEAR**i, 0.0) if i % 2 == 0 else (0.0, NEAR**i) for i in range(m)]
        return Transform(split, tuple((float(i == 0), *near[i], FAR**i, float(i == m - 1)) for i in range(m)))
    split = (
        (1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        (0.0, 1.0, 1.0, 0.0, 0.0, 0.0), (0.0, 1.0, -1.0, 0.0, 0.0, 0.0),
        (0.0, 0.0, 0.0, 1.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0, -1.0, 0.0),
        (0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
    )  # fmt: skip
    rows: list[tuple[float, ...]] = []
    for i in range(m):
        near, far = NEAR**i, FAR**i
        middle = (near, 0.0, far, 0.0) if i % 2 == 0 else (0.0, near, 0.0, far)
        rows.append((float(i == 0), *middle, float(i == m - 1)))
    return Transform(split, tuple(rows))


@lru_cache
def weight_matrix(points: int, r: int) -> NDArray[np.float64]:
    """G [points, r]: what makes the other two a convolution, solved from them."""
    m = points + 1 - r
    b = np.array(into(points).combine) @ np.array(into(points).split)
    a = np.array(back(points, m).combine) @ np.array(back(points, m).split)
    system: NDArray[np.float64] = np.einsum("kx,xi->kix", a, b).reshape(m * points, points)
    wanted = np.array([[float(i == k + j) for j in range(r)] for k in range(m) for i in range(points)])
    return np.matmul(np.linalg.pinv(system), wanted)


def _identity(n: int) -> Matrix:
    return tuple(tuple(float(i == j) for j in range(n)) for i in range(n))
