"""Ranges of activations and scales of weights."""

from __future__ import annotations

import numpy as np
import pytest

from aot.passes.weights.rounding import round_channels, round_groups
from aot.tools.quantizing.choices import Ranges
from aot.tools.quantizing.ranges import LEVELS, Seen, limits

RNG = np.random.default_rng(0)


def seen(values: np.ndarray) -> Seen:
    found = Seen()
    found.widen(values.min(), values.max(), "x")
    found.count(values)
    return found


@pytest.mark.parametrize(
    ("low", "high"), [(0, 6), (-1, 3), (-0.001, 5), (-3, 0), (0, 0), (2, 3), (-3, -2), (-1e-9, 1e9)]
)
def test_zero_is_on_a_level(low: float, high: float) -> None:
    first, last = limits(low, high)
    step = (float(last) - float(first)) / (LEVELS - 1)
    assert step > 0 and first <= 0 <= last
    assert abs(first / step - round(first / step)) < 1e-3
    assert first <= low + step and last >= high - step


def test_ranges_leave_outliers_out() -> None:
    values = RNG.standard_normal(100_000).astype(np.float32)
    values[:2] = -100, 300
    assert seen(values).range(Ranges.MINMAX, 99.99) == (-100, 300)
    low, high = seen(values).range(Ranges.PERCENTILE, 99.9)
    assert -10 < low < 0 < high < 10
    low, high = seen(values).range(Ranges.ENTROPY, 99.99)
    assert low < -2 and 2 < high < 100


@pytest.mark.parametrize("how", list(Ranges))
def test_ranges_of_plain_values(how: Ranges) -> None:
    """Entropy keeps the whole range of values that are spread evenly."""
    low, high = seen(np.linspace(0, 4, 10_000, dtype=np.float32)).range(how, 100)
    assert low == 0 and high == pytest.approx(4, rel=0.01)
    assert seen(np.zeros(10)).range(how, 99.99) == (0, 0)


def test_channels_have_scales_of_their_own() -> None:
    weights = RNG.standard_normal((4, 8, 3)).astype(np.float32) * np.array([1, 1e-3, 0, 50], np.float32)[:, None, None]
    found = round_channels(weights, (1, 2))
    assert found.scales.shape == (4, 1, 1)
    assert (np.abs(found.floats - weights) <= found.scales / 2 * 1.001).all()
    assert found.integers.min() >= -127


def test_scales_of_groups_have_least_errors() -> None:
    weights = RNG.standard_normal((64, 4, 64)).astype(np.float32)
    low, high = (f(weights, -1, keepdims=True) for f in (np.min, np.max))
    step = (high - low) / 15
    zero = np.rint(-low / step)
    plain = ((np.rint(weights / step) + zero).clip(0, 15) - zero) * step
    found = round_groups(weights, 4)
    assert found.integers.max() <= 15
    assert np.square(found.floats - weights).mean() < 0.97 * np.square(plain - weights).mean()


def test_important_columns_have_smaller_errors() -> None:
    weights = RNG.standard_normal((64, 4, 64)).astype(np.float32)
    importance = np.where(np.arange(64) < 8, 100.0, 1.0).reshape(1, 1, 64)
    weighed = np.square(round_groups(weights, 4, importance).floats - weights) * importance
    plain = np.square(round_groups(weights, 4).floats - weights) * importance
    assert weighed.mean() < 0.9 * plain.mean()


def test_groups_of_equal_and_of_no_numbers() -> None:
    for value in (0.0, 3.0, -2.0):
        found = round_groups(np.full((1, 1, 32), value, np.float32), 4).floats
        np.testing.assert_allclose(found, value, rtol=1e-3)
