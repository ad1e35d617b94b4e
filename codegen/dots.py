"""Sums of products of bytes, four terms at a time, as processors add them to numbers of 32 bits.

    add[k](i32(x[i, k]) * i32(w[k, j]))   ->   acc[i, j] += dot(x[i, k], w[k, j], 4)     for every fourth k
"""

from __future__ import annotations

from codegen.access import access, all_axes
from codegen.define import Definition
from codegen.loops import Const, Expr, Load, Prim, Reduce, Var
from codegen.schedule import Pack
from runtime.abi import DType

FOUR = 4
LONGEST = 16  # lanes of the instruction


def byte_factors(reduction: Reduce) -> tuple[Load, Load] | None:
    """What a sum of i32(u8) * i32(i8) multiplies."""
    body = reduction.body
    if reduction.fn != "add" or reduction.dtype is not DType.I32 or not isinstance(body, Prim) or body.fn != "mul":
        return None
    x, w = map(_byte, body.args)
    if x is None or w is None:
        return None
    if x.dtype is DType.I8:
        x, w = w, x
    return (x, w) if (x.dtype, w.dtype) == (DType.U8, DType.I8) else None


def takes_fours(d: Definition, parts: tuple[Var, ...], plan: Pack) -> bool:
    """Do the terms along some axes, the outermost first, lie side by side: the data's now, the weights' packed so?"""
    factors = byte_factors(d.reduction) if d.reduction is not None else None
    if factors is None or not parts or factors[1].buffer.name != plan.operand:
        return False
    x, w = factors
    data, step = access(x.buffer, x.index, all_axes(d)), 1
    for a in reversed(parts):
        if data.steps.get(a) != step or not isinstance(a.extent, int):
            return False
        step *= a.extent
    return tuple(w.index[k] for k in plan.order[plan.place + 1 :][-len(parts) :]) == parts


def packs_lanes(d: Definition, plan: Pack, lane: str) -> bool:
    """Is `lane` the axis along which the weights are packed?"""
    factors = byte_factors(d.reduction) if d.reduction is not None else None
    at = factors[1].index[plan.axis] if factors is not None else None
    return isinstance(at, Var) and at.name == lane


def _byte(e: Expr) -> Load | None:
    inner = e.args[0] if isinstance(e, Prim) and e.fn == "cast" else None
    return inner if isinstance(inner, Load) and inner.dtype in (DType.U8, DType.I8) else None


def dot(x: Load, w: Load, n: int) -> Expr:
    """`n` terms from these on."""
    return Prim("dot", (x, w, Const(n)), DType.I32)
