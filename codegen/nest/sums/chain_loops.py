"""Sums of bf16 products by chains, with multiply-adds: see `aot.codegen.ir.numbers.bf16_chains`.

even[tile] = odd[tile] = 0
for k.c in 16:                                     fewer in the last block of a sum of dynamic length
  even[tile] += x[i, 2 k.c] * w[2 k.c, j]          words of two elements are loaded at once where they lie together
  odd[tile] += x[i, 2 k.c + 1] * w[2 k.c + 1, j]
acc[tile] += even[tile] + odd[tile]
"""

from __future__ import annotations

from collections.abc import Callable

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import rewrite, variables, walk
from aot.codegen.ir.loops import Alloc, Buffer, Const, Expr, For, Load, Prim, Reduce, Store, Var
from aot.codegen.ir.numbers.bf16_chains import chain_axis, is_contiguous
from aot.codegen.ir.schedule import ScheduleError
from aot.codegen.nest.points import Points, Span, Spans, Stmts
from aot.codegen.nest.stored import unused_name
from aot.runtime.abi import DType


def chain_loops(
    definition: Definition,
    reduction: Reduce,
    points: Points,
    acc: Buffer,
    cell: tuple[Expr, ...],
    inner: Spans,
    ahead: Callable[[Spans], Stmts],
) -> Stmts:
    """Add a block of terms to the accumulators of a tile; `inner`: the block. `ahead`: prefetches for some terms."""
    axis = chain_axis(reduction)
    start, extent = inner[axis].start, inner[axis].extent
    if isinstance(extent, int) and extent % 2:
        raise ScheduleError(f"{definition.out.name}: blocks of chains have an even number of terms, got {extent}")
    pair = Var(f"{axis.name}.c", extent // 2)
    spans = {**inner, axis: Span(start + pair * 2, 1)}
    buffers = tuple(points.accumulator(unused_name(name, definition), acc.dtype) for name in ("even", "odd"))
    steps: Stmts = ahead({**inner, axis: Span(start + pair * 2, 2)})
    for part, buffer in enumerate(buffers):
        steps += points.each((Store(buffer, cell, _part(reduction, axis, part), "add"),), spans)
    last: Stmts = ()
    if not isinstance(extent, int):  # a word that is not full: elements after its last term are not loaded
        alone = points.each((Store(buffers[0], cell, reduction.body, "add"),), {axis: Span(start + extent - 1, 1)})
        last = (For(Var(f"{axis.name}.l", extent % 2), alone),)
    stmts: Stmts = (
        *(s for b in buffers for s in points.each((Store(b, cell, Const(0.0, acc.dtype)),))),
        For(pair, steps),
        *last,
        *points.each((Store(acc, cell, Load(buffers[0], cell) + Load(buffers[1], cell), "add"),)),
    )
    for b in buffers:
        stmts = (Alloc(b, stmts),)
    return stmts


def _part(reduction: Reduce, axis: Var, part: int) -> Expr:
    """Return the term of a word: 0 is the first, 1 the second one. Bounds-checked terms are loaded one by one."""
    is_guarded = any(
        isinstance(e, Prim) and e.fn == "within" and axis in variables(e.args[0]) for e in walk(reduction.body)
    )

    def change(e: Expr) -> Expr | None:
        if e == axis:
            return axis + part
        if isinstance(e, Load) and e.buffer.dtype is DType.BF16 and not is_guarded and is_contiguous(e, axis, 2):
            return Prim("odd" if part else "even", (e,), DType.F32)
        return None

    return rewrite(reduction.body, change)
