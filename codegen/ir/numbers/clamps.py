"""Floats that are clamped and cast to small integers, as quantised networks make bytes.

u8(min(max(round_even(min(max(x, 0), 6) / 0.0235), 0), 255))  =  u8(min(max(round_even(x / 0.0235), 0), 255))
"""

from __future__ import annotations

from aot.codegen.ir.expressions import functions_in, rewrite
from aot.codegen.ir.loops import Const, Expr, Prim
from aot.runtime.abi import DType

_CLAMPING = frozenset(("cast", "min", "max"))
MAX_ZERO = 1 << 16  # magnitude of a zero point that f32 adds to any level exactly
MARGIN = 0.25  # distance from an integer: far above the rounding errors of f32, below the distance of two integers


def may_clamp(e: Expr) -> bool:
    """True if an expression has the primitives of a clamp that is cast."""
    return functions_in(e) >= _CLAMPING


def clamp_of(e: Expr) -> tuple[Expr, float, float] | None:
    """Match a clamp that is cast to a small integer type with its bounds: return value and bounds."""
    match e:
        case Prim("cast", (Prim("min", (Prim("max", (value, Const(low))), Const(high))),), dtype) if (
            value.dtype.is_float and not dtype.is_float and dtype is not DType.BOOL and dtype.bits <= 16
        ):
            least = -(1 << dtype.bits - 1) if dtype.is_signed else 0
            fits = least <= low <= high < least + (1 << dtype.bits)
            return (value, float(low), float(high)) if fits else None
        case _:
            return None


def rounded_of(value: Expr) -> tuple[Expr, int] | None:
    """Match a number that is rounded to the nearest one, plus a whole number: return both."""
    match value:
        case Prim("round_even", (x,), DType.F32):
            return x, 0
        case Prim("add", (Prim("round_even", (x,), DType.F32), Const(zero))) if float(zero).is_integer():
            return (x, int(zero)) if abs(zero) <= MAX_ZERO else None
        case _:
            return None


def without_inner_bounds(value: Expr, low: float, high: float) -> Expr:
    """Remove bounds inside of `value` that are no narrower than the outer ones, `low` and `high`.

    Between them and the outer ones lie operations that keep the order of numbers, one of which rounds.
    """
    while (inner := _inner(value)) is not None:
        bound, x, level = inner
        if not (level <= low + MARGIN if bound.fn == "max" else level >= high - MARGIN):
            break
        value = rewrite(value, {bound: x})
    return value


def _inner(e: Expr) -> tuple[Prim, Expr, float] | None:
    """Return the outermost bound in `e`, its operand, and the value of `e` there before rounding; None without one."""
    path: list[Prim] = []
    while isinstance(e, Prim) and e.dtype is DType.F32 and (x := _ordered(e)) is not None:
        path.append(e)
        e = x
    match e:
        case Prim("min" | "max", (x, Const(at)), DType.F32) if any(p.fn == "round_even" for p in path):
            for p in reversed(path):
                at = _value(p, at)
            return e, x, at
        case _:
            return None


def _ordered(e: Prim) -> Expr | None:
    """Return the operand, if the operation keeps the order of numbers."""
    match e:
        case Prim("round_even", (x,)) | Prim("add" | "sub", (x, Const())):
            return x
        case Prim("mul" | "div", (x, Const(factor))) if factor > 0:
            return x
        case _:
            return None


def _value(e: Prim, x: float) -> float:
    match e.fn, e.args:
        case "add", (_, Const(c)):
            return x + c
        case "sub", (_, Const(c)):
            return x - c
        case "mul", (_, Const(c)):
            return x * c
        case "div", (_, Const(c)):
            return x / c
        case _:
            return x
