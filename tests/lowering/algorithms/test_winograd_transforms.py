"""Winograd transforms: exact convolutions of short signals in double precision."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from aot.lowering.algorithms.winograd_matrices import FINITE, Kind, back, into, sums, weight_matrix


def transform(kind: Kind, d: NDArray[np.float64], g: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of `d` in windows of `g`."""
    start, end = into(kind), back(kind)
    v = np.array(start.combine) @ (np.array(start.split) @ d)
    return np.array(end.combine) @ (np.array(end.split) @ (v * (weight_matrix(kind) @ g)))


@pytest.mark.parametrize(
    ("points", "r", "stride"),
    [
        (4, 3, 1),
        (5, 3, 1),
        (5, 4, 1),
        (6, 3, 1),
        (6, 4, 1),
        (6, 5, 1),
        (5, 3, 2),
        (7, 3, 2),
        (9, 3, 2),
        (11, 3, 2),
        (6, 4, 2),
        (8, 4, 2),
        (10, 4, 2),
        (7, 5, 2),
        (9, 5, 2),
        (11, 5, 2),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_transforms_are_a_convolution(points: int, r: int, stride: int, whole: bool) -> None:
    kind = Kind(points, r, stride, whole=whole)
    rng = np.random.default_rng(0)
    d, g = rng.normal(size=points), rng.normal(size=r)
    wanted = [d[k * stride : k * stride + r] @ g for k in range(kind.sums)]
    np.testing.assert_allclose(transform(kind, d, g), wanted, rtol=0, atol=1e-12)


def test_weights_have_the_same_bytes_on_all_machines() -> None:
    """Elements of G are fractions, rounded once: not as far as LAPACK of this machine found them."""
    found = weight_matrix(Kind(6, 3)).ravel().tolist()
    assert found == [float(Fraction(v).limit_denominator(243)) for v in found]


@pytest.mark.parametrize(("length", "points"), FINITE.items())
def test_transforms_of_finite_signals(length: int, points: int) -> None:
    kind = Kind(points, 3, finite=True)
    rng = np.random.default_rng(0)
    d, g = rng.normal(size=length), rng.normal(size=3)
    wanted = [np.pad(d, 1)[k : k + 3] @ g for k in range(length)]
    np.testing.assert_allclose(transform(kind, d, g), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("points", "r", "stride"), [(7, 3, 1), (6, 3, 2), (13, 3, 2), (3, 5, 1), (2, 3, 2)])
def test_other_numbers_of_products_have_no_transform(points: int, r: int, stride: int) -> None:
    assert sums(points, r, stride) == 0
