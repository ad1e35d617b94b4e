"""Functions for results in bf16, against NumPy in f64 at all numbers of 16 bits, and equal bits on all targets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from aot.codegen.llvm.host import parse_target
from aot.runtime.abi import DType
from tests.codegen.emulated_tiles import runs
from tests.codegen.llvm.test_mathlib import run

TARGETS = [name for name in ("x86-64-v2", "x86-64-v3", "x86-64-v4") if runs(parse_target(name))]
TINY = 2e-38  # results of this size may be zero
erf = np.vectorize(math.erf, otypes=[float])


def exp(x: np.ndarray) -> np.ndarray:
    return np.where(x > 127.5 * math.log(2), np.inf, np.exp(x))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-np.abs(x)))


def gelu(x: np.ndarray) -> np.ndarray:
    return x * (1 + erf(x / math.sqrt(2))) / 2


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def mish(x: np.ndarray) -> np.ndarray:
    return x * np.tanh(np.logaddexp(x, 0))


REFERENCE = {
    "exp_short": (exp, 1e-4),
    "erf_short": (erf, 2e-4),
    "tanh_short": (np.tanh, 2.5e-4),
    "sigmoid_short": (sigmoid, 2.5e-4),
    "sigmoid_level": (sigmoid, 5e-6),
}
GELUS = {"gelu_short": (gelu, 2.3e-4), "gelu_tanh_short": (gelu_tanh, 2.6e-4)}


def numbers() -> np.ndarray:
    """All numbers of bf16 and f16 as f32: infinite and denormal ones, and those that are none."""
    patterns = np.arange(1 << 16, dtype=np.uint32)
    halves = patterns.astype(np.uint16).view(np.float16).astype(np.float32)
    return np.concatenate([(patterns << 16).view(np.float32), halves])


X = numbers()


@pytest.mark.parametrize("fn", REFERENCE)
def test_errors_are_a_fraction_of_what_rounding_loses(fn: str) -> None:
    """Relative errors: bf16 rounds by up to 3.9e-3."""
    reference, bound = REFERENCE[fn]
    found = run(fn, DType.F32, X).astype("f8")
    with np.errstate(all="ignore"):
        expected = reference(X.astype("f8")).astype("f4").astype("f8")
        near = np.abs(found - expected) <= bound * np.abs(expected) + TINY
    assert (near | (found == expected) | (np.isnan(found) & np.isnan(expected))).all()


def test_errors_of_mish() -> None:
    """Relative ones, too; far below zero its factor is 3.2e-38, not zero."""
    x = X[np.isfinite(X)]
    found, expected = run("mish_short", DType.F32, x).astype("f8"), mish(x.astype("f8"))
    assert (np.abs(found - expected) <= 4e-4 * np.abs(expected) + 2 * TINY * np.maximum(np.abs(x), 1)).all()


@pytest.mark.parametrize("fn", GELUS)
def test_errors_of_gelu_are_below_those_of_results_near_one(fn: str) -> None:
    reference, bound = GELUS[fn]
    x = X[np.isfinite(X)]
    found = run(fn, DType.F32, x).astype("f8")
    with np.errstate(all="ignore"):
        expected = reference(x.astype("f8"))
    assert (np.abs(found - expected) <= bound * np.minimum(np.abs(x), 1) + TINY).all()
    far = np.abs(x) >= 4
    np.testing.assert_array_equal(found[far], np.maximum(x[far], 0))


@pytest.mark.parametrize("fn", GELUS)
def test_gelu_of_no_number_is_none(fn: str) -> None:
    found = run(fn, DType.F32, np.array([np.nan, np.inf, -np.inf]))
    np.testing.assert_array_equal(found, [np.nan, np.inf, np.nan])  # as x (1 + erf) / 2 is


def test_sigmoid_is_exact_where_it_ends() -> None:
    found = run("sigmoid_short", DType.F32, np.array([20.0, 1e5, np.inf, -1e5, -np.inf, np.nan]))
    np.testing.assert_array_equal(found[:3], 1)
    assert (found[3:5] > 0).all() and (found[3:5] < TINY).all() and np.isnan(found[5])


@pytest.mark.parametrize("fn", [*REFERENCE, *GELUS, "mish_short"])
def test_all_targets_compute_the_same_bits(fn: str) -> None:
    """Targets with fused multiply-adds agree exactly; x86-64-v2, which has none, is near."""
    found = {name: run(fn, DType.F32, X, target=name) for name in TARGETS}
    plain = found.pop("x86-64-v2")
    for y in found.values():
        np.testing.assert_array_equal(y, found["x86-64-v3"])
        np.testing.assert_allclose(plain, y, rtol=1e-5, atol=1e-5)
