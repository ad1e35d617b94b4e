"""Functions whose results are rounded to bf16 or to bytes: the forms of few digits, which divide nothing.

    exp_normal(x)   erf(x)   tanh(x)          exp_short(x)   erf_short(x)   tanh_short(x)
    x * 0.5 * (erf(x * sqrt(0.5)) + 1)        gelu_short(x)
    x * 0.5 * (tanh(..) + 1)                  gelu_tanh_short(x)
    x * (n / (n + 2)), n = e^x (e^x + 2)      mish_short(x)
    y / (exp_normal(-x) + 1)                  y * sigmoid_short(x)

Each is one formula of multiply-adds for all targets, so that their bits are equal.
"""

from __future__ import annotations

from aot.opset.elementwise.activation import Approximation, Gelu, Mish
from codegen.ir.expressions import rewrite
from codegen.ir.loops import Const, Expr, Prim, prim
from codegen.ir.traverse import Work, rewrite_work
from runtime.abi import DType

SHORT = {"exp_normal": "exp_short", "erf": "erf_short", "tanh": "tanh_short"}
OPERATIONS = {
    "gelu_short": Gelu(Approximation.ERF),
    "gelu_tanh_short": Gelu(Approximation.TANH),
    "mish_short": Mish(),
}


def shorten_functions(work: Work, divides: bool = False) -> Work:
    """Compute the functions of a work whose results are rounded with few digits; `divides`: quotients stay."""

    def shorter(e: Expr) -> Expr | None:
        if not isinstance(e, Prim) or e.dtype is not DType.F32:
            return None
        found = _operation(e, divides) or (None if divides else _share(e))
        if found is None and e.fn in SHORT:
            found = prim(SHORT[e.fn], *e.args)
        return prim(found.fn, *(rewrite(a, shorter) for a in found.args)) if isinstance(found, Prim) else None

    return rewrite_work(work, shorter)


def _operation(e: Prim, divides: bool) -> Expr | None:
    """Return Gelu or Mish of x if it is written out as the operation writes it."""
    match e:
        case Prim("mul", (Prim("mul", (x, Const(0.5))), Prim("add"))):
            pass
        case Prim("mul", (x, Prim("div"))) if not divides:
            pass
        case _:
            return None
    return next((prim(fn, x) for fn, op in OPERATIONS.items() if op.scalar(x) == e), None)


def _share(e: Prim) -> Expr | None:
    """Return y / (e^-x + 1), which Sigmoid and Swish are, as a product."""
    match e:
        case Prim("div", (y, Prim("add", (Prim("exp_normal", (power,)), Const(1.0))))):
            x = power.args[0] if isinstance(power, Prim) and power.fn == "neg" else prim("neg", power)
            share = prim("sigmoid_short", x)
            return share if y == Const(1.0, e.dtype) else prim("mul", y, share)
        case _:
            return None
