"""Functions with results rounded to bf16 or to bytes: forms of few digits, which need no division.

    exp_normal(x)   erf(x)   tanh(x)          exp_short(x)   erf_short(x)   tanh_short(x)
    x * 0.5 * (erf(x * sqrt(0.5)) + 1)        gelu_short(x)
    x * 0.5 * (tanh(..) + 1)                  gelu_tanh_short(x)
    x * (n / (n + 2)), n = e^x (e^x + 2)      mish_short(x)
    y / (exp_normal(-x) + 1)                  y * sigmoid_short(x)

Each is one formula of multiply-adds for all targets, so that their bits are equal.
"""

from __future__ import annotations

from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import Const, Expr, Prim, prim
from aot.codegen.ir.traverse import Work, rewrite_work
from aot.opset.elementwise.activation import Approximation, Gelu, Mish
from aot.runtime.abi import DType

SHORT = {"exp_normal": "exp_short", "erf": "erf_short", "tanh": "tanh_short"}
OPERATIONS = {
    "gelu_short": Gelu(Approximation.ERF),
    "gelu_tanh_short": Gelu(Approximation.TANH),
    "mish_short": Mish(),
}

ERROR = 4e-4  # largest error of all but Gelu, relative to the result
GELU_ERROR = 2.6e-4  # absolute
LEVEL_ERROR = 5e-6  # error of `sigmoid_level`, relative to the result


def shorten_functions(work: Work, divides: bool = False) -> Work:
    """Compute functions with few digits if a work rounds their results; `divides`: quotients stay."""

    def shorter(e: Expr) -> Expr | None:
        value = short_form(e, divides)
        return None if value is None else prim(value.fn, *(rewrite(a, shorter) for a in value.args))

    return rewrite_work(work, shorter)


def short_form(e: Expr, divides: bool = False, sigmoid: str = "sigmoid_short") -> Prim | None:
    """Return the short form of a function of f32; None for expressions without one.

    `divides`: quotients stay; `sigmoid`: the form of 1 / (1 + e^-x).
    """
    if not isinstance(e, Prim) or e.dtype is not DType.F32:
        return None
    function = _operation(e, divides) or (None if divides else _share(e, sigmoid))
    if function is None and e.fn in SHORT:
        function = prim(SHORT[e.fn], *e.args)
    return function if isinstance(function, Prim) else None


def _operation(e: Prim, divides: bool) -> Expr | None:
    """Return Gelu or Mish of x if the expression is their expansion."""
    match e:
        case Prim("mul", (Prim("mul", (x, Const(0.5))), Prim("add"))):
            pass
        case Prim("mul", (x, Prim("div"))) if not divides:
            pass
        case _:
            return None
    return next((prim(fn, x) for fn, op in OPERATIONS.items() if op.scalar(x) == e), None)


def _share(e: Prim, sigmoid: str) -> Expr | None:
    """Return y / (e^-x + 1), which Sigmoid and Swish are, as a product."""
    match e:
        case Prim("div", (y, Prim("add", (Prim("exp_normal", (power,)), Const(1.0))))):
            x = power.args[0] if isinstance(power, Prim) and power.fn == "neg" else prim("neg", power)
            share = prim(sigmoid, x)
            return share if y == Const(1.0, e.dtype) else prim("mul", y, share)
        case _:
            return None
