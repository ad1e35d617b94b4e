"""Parts of functions: polynomials, bits and signs of floats."""

from __future__ import annotations

from aot.codegen.ir.loops import Const, Expr, prim
from aot.runtime.abi import DType

LOG2_E = 1.4426950408889634
F32, F64, I32, I64 = DType.F32, DType.F64, DType.I32, DType.I64


def number(x: float, like: Expr) -> Const:
    """Return a constant of the type of `like`."""
    return Const(x, like.dtype)


def poly(x: Expr, coefficients: tuple[float, ...]) -> Expr:
    """Evaluate a polynomial by Horner's rule; never reordered."""
    total: Expr = number(coefficients[0], x)
    for c in coefficients[1:]:
        total = prim("exact_fma", total, x, c)
    return total


def bits_of(x: Expr) -> Expr:
    """Return the bits of a float as an integer of its size."""
    return prim("bits", x, dtype=I32 if x.dtype is F32 else I64)


def float_of(x: Expr) -> Expr:
    """Return the float with the bits of an integer."""
    return prim("bits", x, dtype=F32 if x.dtype is I32 else F64)


def clamp(x: Expr, low: float, high: float) -> Expr:
    return prim("min", prim("max", x, low), high)


def absolute(x: Expr) -> Expr:
    return prim("abs", x)


def with_sign(magnitude: Expr, sign: Expr) -> Expr:
    """Return `magnitude`, which is not negative, with the sign of `sign`."""
    top = Const(-(1 << 31), I32) if sign.dtype is F32 else Const(-(1 << 63), I64)
    return float_of(prim("or", bits_of(magnitude), prim("and", bits_of(sign), top)))
