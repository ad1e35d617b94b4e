"""Hyperbolic functions and their inverses, of exponentials and logarithms."""

from __future__ import annotations

from math import factorial, nan

from aot.codegen.ir.loops import Expr, prim, select
from aot.codegen.llvm.mathlib.exponential import exp, exp_less_1, log, log_of_1_plus
from aot.codegen.llvm.mathlib.float_parts import F32, absolute, number, poly, with_sign

SINH64 = tuple(1 / factorial(2 * n + 1) for n in range(9, -1, -1))


def tanh(x: Expr) -> Expr:
    """(e^2|x| - 1) / (e^2|x| + 1), the sign put back."""
    a = prim("min", absolute(x), 10.0 if x.dtype is F32 else 20.0)
    e = exp_less_1(prim("exact_add", a, a))
    return with_sign(prim("div", e, prim("exact_add", e, 2.0)), x)


def sinh(x: Expr) -> Expr:
    """Odd series below 1, exponentials above: e^|x|/2 in two halves, so that only the result overflows."""
    a = absolute(x)
    small = prim("exact_mul", a, poly(prim("exact_mul", a, a), SINH64))
    h = exp(prim("exact_mul", a, 0.5))
    half = prim("exact_mul", h, 0.5)
    large = prim("exact_sub", prim("exact_mul", half, h), prim("div", prim("div", 0.5, h), h))
    return with_sign(select(prim("lt", a, 1.0), small, large), x)


def cosh(x: Expr) -> Expr:
    """(e^|x| + e^-|x|) / 2"""
    h = exp(prim("exact_mul", absolute(x), 0.5))
    half = prim("exact_mul", h, 0.5)
    return prim("exact_add", prim("exact_mul", half, h), prim("div", prim("div", 0.5, h), h))


def asinh(x: Expr) -> Expr:
    """ln(|x| + sqrt(x^2 + 1)), the sign put back."""
    a = absolute(x)
    square = prim("exact_mul", a, a)
    root = prim("exact_add", prim("sqrt", prim("exact_add", square, 1.0)), 1.0)
    small = log_of_1_plus(prim("exact_add", a, prim("div", square, root)))
    large = prim("exact_add", log(a), 0.6931471805599453)
    return with_sign(select(prim("lt", a, 1e9), small, large), x)


def acosh(x: Expr) -> Expr:
    """ln(x + sqrt(x^2 - 1))"""
    t = prim("exact_sub", x, 1.0)
    root = prim("sqrt", prim("exact_fma", t, t, prim("exact_add", t, t)))
    large = prim("exact_add", log(x), 0.6931471805599453)
    inside = select(prim("lt", x, 1e9), log_of_1_plus(prim("exact_add", t, root)), large)
    return select(prim("lt", x, 1.0), number(nan, x), inside)


def atanh(x: Expr) -> Expr:
    """ln((1 + |x|) / (1 - |x|)) / 2, the sign put back."""
    a = absolute(x)
    value = prim("exact_mul", log_of_1_plus(prim("div", prim("exact_add", a, a), prim("exact_sub", 1.0, a))), 0.5)
    return with_sign(select(prim("gt", a, 1.0), number(nan, x), value), x)
