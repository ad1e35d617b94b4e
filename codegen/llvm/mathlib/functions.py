"""Transcendental functions as expressions. A loop nest has `exp(x)`; the emitter replaces it by the polynomial.

f32 exp, log, tanh and erf have forms of their own; the other f32 functions are those of f64, rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from aot.codegen.ir.loops import Expr, Space, cast, dense
from aot.codegen.llvm.mathlib.exponential import erf, exp, exp_normal, integer_power, log, power
from aot.codegen.llvm.mathlib.float_parts import F32, F64
from aot.codegen.llvm.mathlib.hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from aot.codegen.llvm.mathlib.short_functions import (
    erf_short,
    exp_short,
    gelu_short,
    gelu_tanh_short,
    mish_short,
    sigmoid_level,
    sigmoid_short,
    tanh_short,
)
from aot.codegen.llvm.mathlib.trigonometric import acos, asin, atan, atan2, cos, sin, tan
from aot.runtime.abi import DType


def _rounded(f: Callable[..., Expr]) -> Callable[..., Expr]:
    """Return the f32 function that rounds the result of the f64 one."""

    def rounded(*args: Expr) -> Expr:
        return cast(f(*(cast(a, F64) for a in args)), F32)

    return rounded


_BOTH: dict[str, Callable[..., Expr]] = {"exp": exp, "exp_normal": exp_normal, "log": log, "tanh": tanh, "erf": erf}
_ROUNDED = (sin, cos, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, atan2)
_DOUBLE: dict[str, Callable[..., Expr]] = {**{f.__name__: f for f in _ROUNDED}, "pow": power}
_SHORT = (exp_short, erf_short, tanh_short, sigmoid_short, sigmoid_level, mish_short, gelu_short, gelu_tanh_short)
_INTEGERS = (DType.I8, DType.I16, DType.I32, DType.I64, DType.U8, DType.U16, DType.U32, DType.U64)

MATHLIB: dict[tuple[str, DType], Callable[..., Expr]] = {
    **{(fn, t): f for fn, f in _BOTH.items() for t in (F32, F64)},
    **{(fn, F64): f for fn, f in _DOUBLE.items()},
    **{(fn, F32): _rounded(f) for fn, f in _DOUBLE.items()},
    **{(f.__name__, F32): f for f in _SHORT},
    **{("pow", t): integer_power for t in _INTEGERS},
}


@cache
def template(fn: str, dtype: DType) -> tuple[tuple[Expr, ...], Expr]:
    """Return the parameters of a function and its expression over them."""
    count = 2 if fn in ("pow", "atan2") else 1
    params = tuple(dense(f"{fn}.{i}", 1, space=Space.REGISTERS, dtype=dtype)[0] for i in range(count))
    return params, MATHLIB[fn, dtype](*params)
