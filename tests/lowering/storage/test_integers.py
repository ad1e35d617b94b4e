"""Weights that are whole numbers times a factor are told from all others, whatever rounding has done to them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aot.ir.types import Array
from aot.lowering.storage.integers import whole_numbers

BYTE = 127
ROUNDED = 2.0**-20  # of its size, what three products have moved a weight by
SEEDS = st.integers(0, 2**32 - 1)


def multiples(seed: int, rows: int, terms: int, most: int, products: int) -> tuple[Array, Array]:
    """Whole numbers up to `most`, and these times a factor a row, rounded after each of several products."""
    r = np.random.default_rng(seed)
    whole = r.integers(-most, most + 1, (rows, terms)).astype(np.int32)
    w = whole.astype(np.float32)
    for _ in range(products):
        w = w * (2.0 ** r.uniform(-8, 8, (rows, 1))).astype(np.float32)
    return whole, w


def same(found: tuple[Array, Array] | None, w: Array) -> bool:
    """True if the product of numbers and factors is the weights."""
    assert found is not None
    whole, scale = found
    assert (whole.dtype, scale.dtype) == (np.int16, np.float32)
    return bool((np.abs(whole * scale.astype(np.float64) - w) <= ROUNDED * np.abs(w)).all())


@given(SEEDS, st.integers(1, 9), st.integers(1, 60), st.integers(1, 255), st.integers(1, 3))
def test_multiples_are_found(seed: int, rows: int, terms: int, most: int, products: int) -> None:
    _, w = multiples(seed, rows, terms, most, products)
    found = whole_numbers(w, (1,), most)
    assert same(found, w)
    assert found is not None and np.abs(found[0]).max() <= most


@given(SEEDS, st.integers(1, 3))
def test_the_same_numbers_where_the_largest_is_there(seed: int, products: int) -> None:
    whole, _ = multiples(seed, 5, 40, 127, products)
    whole[:, :2] = 127, 1
    r = np.random.default_rng(seed)
    w = whole.astype(np.float32)
    for _ in range(products):
        w = w * r.uniform(0.001, 1, (5, 1)).astype(np.float32)
    found = whole_numbers(w, (1,), BYTE)
    assert found is not None and np.array_equal(found[0], whole)


@given(SEEDS, st.integers(1, 9), st.integers(8, 60))
def test_random_numbers_are_no_multiples(seed: int, rows: int, terms: int) -> None:
    w = np.random.default_rng(seed).normal(size=(rows, terms)).astype(np.float32)
    assert whole_numbers(w, (1,), BYTE) is None


@given(SEEDS, st.integers(1, 3), st.integers(0, 39))
def test_one_other_number_is_enough(seed: int, products: int, at: int) -> None:
    """Also behind the terms that are tried first."""
    whole, _ = multiples(seed, 3, 40, 127, products)
    whole[:, -2:] = 127, 1
    w = whole.astype(np.float32) * np.float32(0.013)
    w[1, at if at < 38 else 0] = 3.4567 * 0.013
    assert whole_numbers(w, (1,), BYTE) is None


def test_numbers_larger_than_the_most() -> None:
    w = np.array([[-128, 127, 1, 0]], np.float32) * np.float32(0.3)
    found = whole_numbers(w, (1,), 128)
    assert found is not None and found[0].tolist() == [[-128, 127, 1, 0]]
    assert whole_numbers(w, (1,), 127) is None


def test_the_largest_factor_is_the_one() -> None:
    found = whole_numbers(np.array([[6, -4, 2, 0], [5, 5, 5, 5]], np.float32), (1,), BYTE)
    assert found is not None and found[0].tolist() == [[3, -2, 1, 0], [1, 1, 1, 1]]


def test_rows_of_zeros() -> None:
    w = np.zeros((3, 7), np.float32)
    w[1, 2] = 0.7
    found = whole_numbers(w, (1,), BYTE)
    assert same(found, w)
    assert found is not None and not found[0][::2].any()


def test_many_rows_of_which_the_last_is_other() -> None:
    w = np.tile(np.array([1, 127, -5, 0], np.float32), (100, 1))
    assert same(whole_numbers(w, (1,), BYTE), w)
    w[99, 2] = 1.2345
    assert whole_numbers(w, (1,), BYTE) is None


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_numbers_without_a_size(wrong: float) -> None:
    w = np.ones((3, 7), np.float32)
    w[1, 2] = wrong
    assert whole_numbers(w, (1,), BYTE) is None


@pytest.mark.parametrize("size", [1e-44, 1e-40, 1e-37, 1e-30, 1e30, 3e38])
def test_very_small_and_very_large_numbers(size: float) -> None:
    """Scales are recovered exactly or not at all."""
    w = (np.array([[1, -3, 127, 0, 60]]) / 127 * size).astype(np.float32)
    found = whole_numbers(w, (1,), BYTE)
    assert found is None or same(found, w)


@pytest.mark.parametrize(
    ("shape", "sums"), [((6, 9), (0,)), ((4, 3, 5, 5), (1, 2, 3)), ((2, 4, 3, 2, 2), (2, 3, 4)), ((5, 7, 3), (0, 2))]
)
def test_factors_of_all_that_is_not_summed(shape: tuple[int, ...], sums: tuple[int, ...]) -> None:
    r = np.random.default_rng(0)
    outer = tuple(1 if k in sums else n for k, n in enumerate(shape))
    w = r.integers(-127, 128, shape).astype(np.float32) * r.uniform(0.01, 1, outer).astype(np.float32)
    found = whole_numbers(w, sums, BYTE)
    assert same(found, w)
    assert found is not None and (found[0].shape, found[1].shape) == (shape, outer)


def test_whole_numbers() -> None:
    w = np.array([[-127, 126], [0, 5]], np.int32)
    found = whole_numbers(w, (1,), BYTE)
    assert found is not None and np.array_equal(found[0], w) and (found[1] == 1).all()
    assert whole_numbers(w * 2, (1,), BYTE) is None
    assert whole_numbers(w - 1, (1,), BYTE) is None
    lowest = np.array([[-(2**31), 1]], np.int32)  # has no absolute value
    assert whole_numbers(lowest, (1,), BYTE) is None


def test_factors_too_small_for_f32_are_none() -> None:
    w = (np.array([[1, -3, 127, 0, 60]]) * 2.0**-149).astype(np.float32)
    assert whole_numbers(w, (1,), BYTE) is None
