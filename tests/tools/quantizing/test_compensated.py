"""Rounding in which later columns make up for earlier ones: its errors, and moments of all kinds."""

from __future__ import annotations

import numpy as np
import pytest

from aot.passes.weights.rounding import Rounded, round_groups
from aot.tools.quantizing.compensated import Compensation

ROWS, COLUMNS = 48, 256
RNG = np.random.default_rng(0)
WEIGHTS = RNG.standard_normal((ROWS, COLUMNS)).astype(np.float32)
MIXED = RNG.standard_normal((4 * COLUMNS, 40)) @ RNG.standard_normal((40, COLUMNS))
DATA = MIXED + 0.5 * RNG.standard_normal(MIXED.shape)


def error(rounded: Rounded, x: np.ndarray) -> float:
    """The root of the mean square error of products with `x`."""
    difference = rounded.floats.reshape(WEIGHTS.shape).astype(np.float64) - WEIGHTS
    return float(np.sqrt(np.square(x @ difference.T).mean()))


def moments(x: np.ndarray) -> np.ndarray:
    return x.T @ x / len(x)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("group", [32, 64, COLUMNS])
def test_products_with_the_data_err_less(group: int, bits: int) -> None:
    squares = np.square(DATA).mean(0).reshape(1, -1, group)
    alone = round_groups(WEIGHTS.reshape(ROWS, -1, group), bits, squares)
    found = Compensation(moments(DATA)).round(WEIGHTS, bits, group)
    assert found.integers.shape == (ROWS, COLUMNS // group, group) and found.integers.max() < 2**bits
    assert error(found, DATA) < 0.7 * error(alone, DATA)


@pytest.mark.parametrize(
    "data",
    [np.zeros_like(DATA), MIXED[:3], DATA * (np.arange(COLUMNS) % 3 > 0), DATA * 1e-20, np.ones_like(DATA)],
    ids=["none", "three samples", "columns without data", "small", "equal"],
)
def test_moments_without_an_inverse(data: np.ndarray) -> None:
    found = Compensation(moments(data)).round(WEIGHTS, 4, 64)
    alone = round_groups(WEIGHTS.reshape(ROWS, -1, 64), 4, np.square(data).mean(0).reshape(1, -1, 64))
    assert np.isfinite(found.floats).all()
    assert error(found, data) <= error(alone, data)


def test_compensation_without_data_is_rounding() -> None:
    found = Compensation(np.zeros((COLUMNS, COLUMNS))).round(WEIGHTS, 4, 64)
    alone = round_groups(WEIGHTS.reshape(ROWS, -1, 64), 4, np.zeros((1, 4, 64)))
    assert np.array_equal(found.integers, alone.integers)
