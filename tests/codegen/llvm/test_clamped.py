"""Floats cast to small integers between bounds that these hold: one conversion, and the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.loops import Const, Expr, Prim, Var, cast, dense, prim
from aot.codegen.ir.numbers.clamps import clamp_of, without_inner_bounds
from aot.runtime.abi import DType
from tests.codegen.llvm.test_dtypes import NUMPY, run, saturated

AT = Var("i", 4)
X = dense("x", 4)[AT]
SMALL = (DType.U8, DType.I8, DType.U16, DType.I16)
SPECIAL = (0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 0.5, -0.5, 0.99, -0.99, 1e-40, 3e38, -3e38, 2.0**31, -(2.0**31))


def clamp(x: Expr, low: float, high: float) -> Expr:
    return prim("min", prim("max", x, Const(low, x.dtype)), Const(high, x.dtype))


def limits(t: DType) -> tuple[int, int]:
    info = np.iinfo(NUMPY[t])
    return int(info.min), int(info.max)


def floats(t: DType, dtype: str) -> np.ndarray:
    """Special ones, those around the bounds, and others."""
    low, high = limits(t)
    near = [b + d for b in (low, high) for d in (-1.5, -1, -0.5, -0.25, 0, 0.25, 0.5, 1, 1.5)]
    some = np.random.default_rng(0).uniform(2 * low - 10, 2 * high + 10, 40)
    return np.array([*SPECIAL, *near, *some]).astype(dtype)


def expected(x: np.ndarray, low: float, high: float, t: DType) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return saturated(np.minimum(np.maximum(x, low), high), t)


# ---- which casts these are


@pytest.mark.parametrize("t", SMALL)
def test_bounds_that_the_type_holds(t: DType) -> None:
    low, high = limits(t)
    assert clamp_of(cast(clamp(X, low, high), t)) == (X, low, high)
    assert clamp_of(cast(clamp(X, max(low, -3), 3), t)) == (X, max(low, -3), 3)
    assert clamp_of(cast(clamp(X, low - 1, high), t)) is None
    assert clamp_of(cast(clamp(X, low, high + 1), t)) is None


def test_other_casts() -> None:
    inside = clamp(X, 0, 7)
    whole = clamp(dense("x", 4, dtype=DType.I32)[AT], 0, 7)
    swapped = prim("max", prim("min", X, 7.0), 0.0)
    lone = (cast(X, DType.U8), cast(prim("min", X, 7.0), DType.U8), cast(prim("max", X, 0.0), DType.U8))
    wide = (cast(inside, DType.I32), cast(inside, DType.I64), cast(inside, DType.BOOL), cast(inside, DType.F64))
    for e in (X, inside, cast(whole, DType.U8), cast(swapped, DType.U8), *lone, *wide):
        assert clamp_of(e) is None


@pytest.mark.parametrize("lanes", [1, 8])
def test_booleans_are_what_is_not_zero(lanes: int) -> None:
    x = np.array([0.0, -0.0, 0.5, -3.0, 1e-30, 9.0], np.float32)
    found = run(lambda e: cast(clamp(e, 0, 1), DType.BOOL), DType.BOOL, (DType.F32, x), lanes=lanes)
    assert found.tolist() == [False, False, True, False, True, True]


def test_bounds_out_of_order_are_none() -> None:
    assert clamp_of(cast(clamp(X, 7, 0), DType.U8)) is None


def test_bounds_that_move_are_none() -> None:
    bound = dense("b", 4)[AT]
    assert clamp_of(Prim("cast", (prim("min", prim("max", X, bound), 7.0),), DType.U8)) is None


# ---- what they give


@pytest.mark.parametrize("lanes", [1, 4, 8, 16])
@pytest.mark.parametrize("t", SMALL)
@pytest.mark.parametrize("source", [DType.F32, DType.F64, DType.F16])
def test_clamped_conversions_saturate(t: DType, source: DType, lanes: int) -> None:
    with np.errstate(over="ignore"):
        x = floats(t, NUMPY[source])
    low, high = limits(t)
    found = run(lambda e: cast(clamp(e, low, high), t), t, (source, x), lanes=lanes)
    np.testing.assert_array_equal(found, expected(x.astype("f8"), low, high, t))


@pytest.mark.parametrize("target", ["native", "x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize(
    ("t", "low", "high"),
    [
        (DType.U8, 3, 200),
        (DType.I8, -127, 127),
        (DType.I8, 5, 7),
        (DType.I8, -9, -2),
        (DType.U8, 0.5, 9.5),
        (DType.I16, -0.5, 0.5),
        (DType.U8, -0.0, 1.0),
        (DType.U16, 9, 9),
    ],
)
def test_bounds_inside(t: DType, low: float, high: float, target: str) -> None:
    """NaN gives 0, wherever the bounds are."""
    x = floats(t, "f4")
    found = run(lambda e: cast(clamp(e, low, high), t), t, (DType.F32, x), target=target)
    np.testing.assert_array_equal(found, expected(x, low, high, t))


@pytest.mark.parametrize("rounding", ["round_even", "floor", "trunc"])
def test_rounded_numbers(rounding: str) -> None:
    x = floats(DType.U8, "f4")
    found = run(lambda e: cast(clamp(prim(rounding, e), 0, 255), DType.U8), DType.U8, (DType.F32, x))
    whole = {"round_even": np.rint, "floor": np.floor, "trunc": np.trunc}[rounding](x)
    np.testing.assert_array_equal(found, expected(whole, 0, 255, DType.U8))


def level(x: Expr, step: float, zero: float = 0.0) -> Expr:
    return prim("round_even", x / step) + zero if zero else prim("round_even", x / step)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("target", ["native", "x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize(
    ("t", "low", "high", "zero"),
    [
        (DType.U8, 0, 255, 0),
        (DType.U8, 0, 255, 121),
        (DType.U8, 3, 200, 300),
        (DType.I8, -128, 127, -7),
        (DType.I8, 1, 127, 0),
        (DType.I16, -128, 127, 3),
        (DType.U8, 0, 255, 0.5),
        (DType.U8, 0, 255, 1e9),
    ],
)
def test_quantized_levels_round_in_the_conversion(
    t: DType, low: int, high: int, zero: float, target: str, lanes: int
) -> None:
    """Rounded numbers plus a zero point: the conversion rounds, and NaN gives 0, wherever the bounds are."""
    x = np.concatenate([floats(t, "f4"), np.arange(-300, 300, dtype="f4") + np.float32(0.5)])

    def made(e: Expr) -> Expr:
        return cast(clamp(level(e, 1.0, zero), low, high), t)

    found = run(made, t, (DType.F32, x), lanes=lanes, target=target)
    np.testing.assert_array_equal(found, expected(np.rint(x) + np.float32(zero), low, high, t))


# ---- bounds before the rounding


def test_bounds_that_the_outer_ones_imply_vanish() -> None:
    six = 6 / 255
    assert without_inner_bounds(level(clamp(X, 0, 6), six), 0, 255) == level(X, six)
    assert without_inner_bounds(level(clamp(X, -3.02, 3), six, 128.0), 0, 255) == level(X, six, 128.0)
    assert without_inner_bounds(level(prim("max", X, 0.0), 0.3), 0, 255) == level(X, 0.3)
    assert without_inner_bounds(level(clamp(X, 0, 9), six), 0, 255) == level(X, six)


def test_bounds_that_are_narrower_stay() -> None:
    six, other = 6 / 255, dense("b", 4)[AT]
    for e in (
        level(clamp(X, 0, 5.98), six),
        level(prim("max", X, 0.02), six),
        level(prim("max", X, 0.0), six, 128.0),
        level(prim("max", X, 0.0), -six),
        level(prim("max", X, other), six),
        clamp(X, 0, 300),
        prim("abs", prim("max", X, 0.0)),
    ):
        assert without_inner_bounds(e, 0, 255) == e
    assert without_inner_bounds(level(clamp(X, 0, 5), six), 0, 255) == level(clamp(X, 0, 5), six)


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize(("low", "high", "zero"), [(0, 6, 0), (0, 5.9, 0), (-3, 3, 128), (0, 3, 128), (-9, 9, 128)])
def test_bytes_of_clamped_numbers(low: float, high: float, zero: int, lanes: int) -> None:
    step = np.float32(6 / 255)
    middle = ((np.arange(-160, 300) + 0.5) * np.float64(step)).astype(np.float32)
    x = np.concatenate([np.float32(SPECIAL), middle, np.nextafter(middle, np.float32(9)), np.float32([low, high])])
    found = run(
        lambda e: cast(clamp(level(clamp(e, low, high), float(step), zero), 0, 255), DType.U8),
        DType.U8,
        (DType.F32, x),
        lanes=lanes,
    )
    with np.errstate(invalid="ignore"):
        whole = np.rint(np.minimum(np.maximum(x, np.float32(low)), np.float32(high)) / step) + np.float32(zero)
    np.testing.assert_array_equal(found, expected(whole, 0, 255, DType.U8))


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("out", [DType.I32, DType.F32, DType.I64, DType.U8, DType.I8, DType.BOOL])
@pytest.mark.parametrize("t", SMALL)
def test_casts_of_casts(t: DType, out: DType, lanes: int) -> None:
    """The value between two casts wraps to its type, although it is not stored."""
    x = floats(t, "f4")
    low, high = limits(t)
    found = run(lambda e: cast(cast(clamp(e, low, high), t), out), out, (DType.F32, x), lanes=lanes)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, expected(x, low, high, t).astype(NUMPY[out]))


def test_back_to_floats() -> None:
    x = floats(DType.U8, "f4")

    def value(e: Expr) -> Expr:
        byte = cast(clamp(prim("round_even", e), 0, 255), DType.U8)
        return cast(cast(byte, DType.I32) - 128, DType.F32) * 0.25

    found = run(value, DType.F32, (DType.F32, x))
    np.testing.assert_array_equal(found, (expected(np.rint(x), 0, 255, DType.U8).astype("f4") - 128) * np.float32(0.25))
