"""The constant matrices of F(m, r): m sums of r terms each from m + r - 1 products (Winograd 1980; Lavin, Gray 2015).

    y = A ((G g) * (B d))      B d: `into`      A: `back`      G g: of the weights, at compile time

Each transform is two matrices, so that the even and odd parts are shared by being definitions themselves:
v = Combine (Split d). A zero in a matrix is structural: the term does not exist. The points of 6 products are 0, +-3/4,
+-3/2 and infinity, exact in binary, and twice the error of a plain convolution where 0, +-1, +-2 have four times; 5
products do without -3/2, 4 have 0, +-1 and infinity, and 3 have 0, 1 and infinity.

With a stride of 2, even and odd taps meet even and odd elements: two such sums, side by side, whose results are added.
One tap needs no transform.

Whole numbers have the points 0, +-1, +-2 and infinity. Columns of A are multiplied by whole numbers, so that G is whole
numbers over `whole_factor`: 24 for 6 products of 3 taps.

In windows of three taps over a finite signal, zeros before and after it, the outermost inputs of F(m, 3) are zero.
One element takes one product then, and two take three (Karatsuba): (d0 + d1) g1, d1 (g2 - g1) and d0 (g0 - g1).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass

Matrix = tuple[tuple[float, ...], ...]
PAIRS = (0.75, 1.5)  # two pairs of points
WHOLE_PAIRS = (1.0, 2.0)  # the same, of whole numbers
# Factors of the columns of A, of whole numbers, for 0, the near pair, the far ones and infinity.
WHOLE_COLUMNS = {5: (3.0, -1.0, 1.0, 6.0), 6: (6.0, -4.0, 1.0, 24.0)}
_DENOMINATORS = 1 << 14  # largest denominator of an element of G
TABLES = (3, 4, 5, 6)  # products of which there are matrices
FINITE = {1: 1, 2: 3, 3: 5, 4: 6}  # elements of a finite signal, and products for its windows of three taps


@dataclass(frozen=True, slots=True)
class Transform:
    """Combine @ Split."""

    split: Matrix
    combine: Matrix

    @property
    def inputs(self) -> int:
        """Return the number of elements that the transform reads."""
        return len(self.split[0])


@dataclass(frozen=True, slots=True)
class Kind:
    """A transform in one direction: `points` products for windows of `taps` terms, `stride` apart.

    `finite`: its inputs are all of a signal, and there are as many outputs as inputs. `whole`: of whole numbers.
    """

    points: int
    taps: int
    stride: int = 1
    finite: bool = False
    whole: bool = False

    @property
    def sums(self) -> int:
        """Return the number of outputs; 0 if there is no transform."""
        if self.finite:
            return next(m for m, points in FINITE.items() if points == self.points)
        return sums(self.points, self.taps, self.stride)


FEW = {  # B and A of finite signals of one element and of two
    1: (Transform(((1.0,),), ((1.0,),)), Transform(((1.0,),), ((1.0,),))),
    2: (
        Transform(((1.0, 0.0), (0.0, 1.0)), ((1.0, 1.0), (0.0, 1.0), (1.0, 0.0))),
        Transform(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), ((1.0, 1.0, 0.0), (1.0, 0.0, 1.0))),
    ),
}


@lru_cache
def sums(points: int, taps: int, stride: int) -> int:
    """Return the outputs of a transform with that number of products; 0 if there is none."""
    m, rest = divmod(points - taps + stride, stride)
    known = all(r == 1 or m + r - 1 in TABLES for r in _phases(taps, stride))
    return m if m > 0 and not rest and known else 0


@lru_cache
def into(kind: Kind) -> Transform:
    """Return B as a transform that takes the elements of each phase separately."""
    m, taps, stride = kind.sums, kind.taps, kind.stride
    if kind.finite and m in FEW:
        return FEW[m][0]
    transform = _strided([_into(m, r, kind.whole) for r in _phases(taps, stride)], stride)
    return Transform(tuple(row[1:-1] for row in transform.split), transform.combine) if kind.finite else transform


@lru_cache
def back(kind: Kind) -> Transform:
    """Return A, which adds the results of the phases."""
    m, taps, stride = kind.sums, kind.taps, kind.stride
    if kind.finite and m in FEW:
        return FEW[m][1]
    ends = [_back(m, r, kind.whole) for r in _phases(taps, stride)]
    combine = tuple(tuple(v for e in ends for v in e.combine[i]) for i in range(m))
    return Transform(_diagonal([e.split for e in ends]), combine)


@lru_cache
def weight_matrix(kind: Kind) -> NDArray[np.float64]:
    """Return G [points, taps], solved from A and B so that the three compute a convolution.

    Its elements are fractions, rounded once: errors of LAPACK depend on the machine that compiles.
    """
    b, a = (np.array(t.combine) @ np.array(t.split) for t in (into(kind), back(kind)))
    system: NDArray[np.float64] = np.einsum("kx,xi->kix", a, b).reshape(-1, kind.points)
    equations = [(k, i + kind.finite) for k in range(kind.sums) for i in range(b.shape[1])]
    expected = np.array([[float(i == k * kind.stride + j) for j in range(kind.taps)] for k, i in equations])
    solved: NDArray[np.float64] = np.matmul(np.linalg.pinv(system), expected)
    fractions = [Fraction(v).limit_denominator(_DENOMINATORS) for v in solved.flat]
    return np.array([float(f) for f in fractions]).reshape(solved.shape)


@lru_cache
def growth(kind: Kind) -> tuple[int, int]:
    """Return the greatest factors of growth: of data by B, and of weights by `whole_factor` * G."""
    b = np.matmul(np.array(into(kind).combine), np.array(into(kind).split))
    factors = (np.abs(m).sum(axis=1).max() for m in (b, whole_factor(kind) * weight_matrix(kind)))
    data, weights = (round(float(n)) for n in factors)
    return data, weights


@lru_cache
def whole_factor(kind: Kind) -> int:
    """Return the least factor that makes G whole numbers, as A and B are; 0 if there is none."""
    if not kind.sums:
        return 0
    tables = [np.array(m) for t in (into(kind), back(kind)) for m in (t.split, t.combine)]
    if not all((table == np.rint(table)).all() for table in tables):
        return 0
    g = weight_matrix(kind)
    return next((n for n in (1, 2, 4, 6, 24) if np.allclose(n * g, np.rint(n * g), rtol=0, atol=1e-9)), 0)


def _phases(taps: int, stride: int) -> list[int]:
    """Return the number of taps of each phase: of every `stride`-th tap from the first, from the second, … on."""
    return [-(-(taps - first) // stride) for first in range(stride)]


def _strided(parts: list[Transform], stride: int) -> Transform:
    """Return one transform for `stride` phases: `parts[i]` transforms every `stride`-th element from the i-th on."""
    count = sum(len(t.split) for t in parts)
    rows: list[tuple[float, ...]] = []
    for first, t in enumerate(parts):
        for row in t.split:
            spread = [0.0] * count
            spread[first::stride] = row
            rows.append(tuple(spread))
    return Transform(tuple(rows), _diagonal([t.combine for t in parts]))


def _diagonal(blocks: list[Matrix]) -> Matrix:
    width = sum(len(b[0]) for b in blocks)
    rows: list[tuple[float, ...]] = []
    start = 0
    for b in blocks:
        rows += [(0.0,) * start + row + (0.0,) * (width - start - len(row)) for row in b]
        start += len(b[0])
    return tuple(rows)


@lru_cache
def _into(m: int, taps: int, integers: bool = False) -> Transform:
    """Return B of 3 to 6 products: for each point, the product of all (x - point) but its own."""
    points = m + taps - 1
    if taps == 1:
        return Transform(_identity(points), _identity(points))
    if points == 3:
        return Transform(_identity(3), ((1.0, -1.0, 0.0), (0.0, 1.0, 0.0), (0.0, -1.0, 1.0)))
    if points == 4:
        return Transform(_identity(4), (
            (1.0, 0.0, -1.0, 0.0), (0.0, 1.0, 1.0, 0.0), (0.0, -1.0, 1.0, 0.0), (0.0, -1.0, 0.0, 1.0),
        ))  # fmt: skip
    a, b = WHOLE_PAIRS if integers else PAIRS
    p, q = a * a, b * b
    if points == 5:
        split = (
            (p * b, -p, -b, 1.0, 0.0),
            (0.0, 0.0, -b, 1.0, 0.0),
            (0.0, -b, 1.0, 0.0, 0.0),
            (0.0, -p, 0.0, 1.0, 0.0),
            (0.0, p * b, -p, -b, 1.0),
        )
        combine = (
            (1.0, 0.0, 0.0, 0.0, 0.0),
            (0.0, 1.0, a, 0.0, 0.0), (0.0, 1.0, -a, 0.0, 0.0),
            (0.0, 0.0, 0.0, 1.0, 0.0),
            (0.0, 0.0, 0.0, 0.0, 1.0),
        )  # fmt: skip
        return Transform(split, combine)
    split = (
        (p * q, 0.0, -(p + q), 0.0, 1.0, 0.0),
        (0.0, 0.0, -q, 0.0, 1.0, 0.0),
        (0.0, -q, 0.0, 1.0, 0.0, 0.0),
        (0.0, 0.0, -p, 0.0, 1.0, 0.0),
        (0.0, -p, 0.0, 1.0, 0.0, 0.0),
        (0.0, p * q, 0.0, -(p + q), 0.0, 1.0),
    )
    combine = (
        (1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        (0.0, 1.0, a, 0.0, 0.0, 0.0), (0.0, 1.0, -a, 0.0, 0.0, 0.0),
        (0.0, 0.0, 0.0, 1.0, b, 0.0), (0.0, 0.0, 0.0, 1.0, -b, 0.0),
        (0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
    )  # fmt: skip
    return Transform(split, combine)


@lru_cache
def _back(m: int, taps: int, whole: bool = False) -> Transform:
    """Return A of 3 to 6 products, for m sums: row i has the i-th powers of the points, its last one infinity."""
    points = m + taps - 1
    if taps == 1:
        return Transform(_identity(points), _identity(points))
    if points < 5:
        powers = [(1.0,) if points == 3 else (1.0, (-1.0) ** i) for i in range(m)]
        return Transform(_identity(points), tuple((float(i == 0), *powers[i], float(i == m - 1)) for i in range(m)))
    a, b = WHOLE_PAIRS if whole else PAIRS
    at_zero, by_near, by_far, at_infinity = WHOLE_COLUMNS[points] if whole else (1.0, 1.0, 1.0, 1.0)
    powers = [(by_near * a**i, by_far * b**i) for i in range(m)]
    ends = [(at_zero * (i == 0), at_infinity * (i == m - 1)) for i in range(m)]
    if points == 5:
        split = (
            (1.0, 0.0, 0.0, 0.0, 0.0),
            (0.0, 1.0, 1.0, 0.0, 0.0), (0.0, 1.0, -1.0, 0.0, 0.0),
            (0.0, 0.0, 0.0, 1.0, 0.0),
            (0.0, 0.0, 0.0, 0.0, 1.0),
        )  # fmt: skip
        middle = [(near, 0.0, far) if i % 2 == 0 else (0.0, near, far) for i, (near, far) in enumerate(powers)]
        return Transform(split, tuple((first, *middle[i], last) for i, (first, last) in enumerate(ends)))
    split = (
        (1.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        (0.0, 1.0, 1.0, 0.0, 0.0, 0.0), (0.0, 1.0, -1.0, 0.0, 0.0, 0.0),
        (0.0, 0.0, 0.0, 1.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0, -1.0, 0.0),
        (0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
    )  # fmt: skip
    pairs = [(n, 0.0, f, 0.0) if i % 2 == 0 else (0.0, n, 0.0, f) for i, (n, f) in enumerate(powers)]
    return Transform(split, tuple((first, *pairs[i], last) for i, (first, last) in enumerate(ends)))


def _identity(n: int) -> Matrix:
    return tuple(tuple(float(i == j) for j in range(n)) for i in range(n))
