"""Dot products of small integers: one instruction adds several products to each 32-bit accumulator.

    add[k](i32(x[i, k]) * i32(w[k, j]))   ->   acc[i, j] += dot(x[i, k], w[k, j], 4)     for every fourth k

A word is the elements that fill 32 bits, and the terms of one dot: four bytes (u8 data, i8 weights) or two i16.
"""

from __future__ import annotations

from codegen.ir.access import access, all_axes
from codegen.ir.definition import Definition
from codegen.ir.loops import Const, Expr, Load, Prim, Reduce, Var
from codegen.ir.schedule import Pack
from runtime.abi import DType

DOT_LANES = 16  # lanes of a dot instruction at most
FACTOR_TYPES = ((DType.U8, DType.I8), (DType.I16, DType.I16))


def word(dtype: DType) -> int:
    """Return the number of elements that fill 32 bits."""
    return 4 // dtype.stored_bytes


def small_factors(reduction: Reduce) -> tuple[Load, Load] | None:
    """Return the data and the weights of a sum of i32(u8) * i32(i8), or of i32(i16) * i32(i16), else None."""
    body = reduction.body
    if reduction.fn != "add" or reduction.dtype is not DType.I32 or not isinstance(body, Prim) or body.fn != "mul":
        return None
    x, w = map(_small, body.args)
    if x is None or w is None:
        return None
    if x.dtype is DType.I8:
        x, w = w, x
    return (x, w) if (x.dtype, w.dtype) in FACTOR_TYPES else None


def takes_words(d: Definition, parts: tuple[Var, ...], plan: Pack) -> bool:
    """True if terms along `parts`, outermost first, are contiguous: in the data now, in the weights by `plan`."""
    factors = small_factors(d.reduction) if d.reduction is not None else None
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
    """True if `lane` is the axis along which the weights are packed."""
    factors = small_factors(d.reduction) if d.reduction is not None else None
    at = factors[1].index[plan.axis] if factors is not None else None
    return isinstance(at, Var) and at.name == lane


def _small(e: Expr) -> Load | None:
    inner = e.args[0] if isinstance(e, Prim) and e.fn == "cast" else None
    return inner if isinstance(inner, Load) and inner.dtype in (DType.U8, DType.I8, DType.I16) else None


def dot(x: Load, w: Load, n: int) -> Expr:
    """Return the sum of `n` products of consecutive elements, from `x` and `w` on."""
    return Prim("dot", (x, w, Const(n)), DType.I32)
