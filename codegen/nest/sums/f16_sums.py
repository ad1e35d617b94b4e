"""Sums of products of f16 by multiply-adds of f16: the terms of a tile of the sum in f16, the tiles in f32.

half[tile] = 0
for k.c in 8:
  rows[i.t, 0:8] = x[i, k:k + 8]
  half[tile] += rows[i.t, k.u] * w[k + k.u, j]     rounded to f16
acc[tile] += f32(half[tile])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Alloc, Buffer, Const, Expr, For, Load, Reduce, Store, Var
from aot.codegen.ir.schedule import Schedule, ScheduleError, Tile
from aot.codegen.nest.points import Points, Span, Spans, Stmts, unrolled
from aot.codegen.nest.stored import unused_name
from aot.codegen.nest.sums.row_vectors import row_vectors
from aot.codegen.nest.sums.scaled_steps import with_register_values
from aot.runtime.abi import DType

ROW_TERMS = 8  # terms of a row that a vector of 128 bits holds


def in_f16(
    definition: Definition,
    reduction: Reduce,
    schedule: Schedule,
    points: Points,
    acc: Buffer,
    inner: Spans,
    ahead: Callable[[Spans], Stmts],
) -> Stmts:
    """Add a tile of terms to the accumulators `acc`; `inner`: the tile. `ahead`: prefetches for some terms."""
    axis = next(a for a in inner if a.name == schedule.f16_sums)
    start, extent = inner[axis].start, inner[axis].extent
    if not isinstance(extent, int):
        raise ScheduleError(f"{definition.out.name}: f16_sums are tiles of a static size, got {extent}")
    half, cell, prefix = points.accumulator(unused_name("half", definition), DType.F16), points.cell, "half"

    def terms(first: Expr, count: int) -> Stmts:
        spans = {**inner, axis: Span(first, count)}
        row_schedule = replace(
            schedule, tile=(Tile(axis.name, ROW_TERMS),)
        )  # fewer terms at the end are loaded one by one
        rows, body = row_vectors(reduction.body, row_schedule, points, spans, unused_name(prefix, definition))
        stmts = unrolled(points.each((Store(half, cell, body, "add"),), spans), reduction.axes, spans)
        return (*ahead(spans), *with_register_values(rows, {a: s for a, s in spans.items() if a is not axis}, stmts))

    step = ROW_TERMS if schedule.row_vectors == axis.name else 1
    turn, tail = Var(f"{axis.name}.c", extent // step), extent % step
    stmts: Stmts = (For(turn, terms(start + turn * step, step)),) if extent >= step else ()
    stmts += terms(start + (extent - tail), tail) if tail else ()
    begin = points.each((Store(half, cell, Const(0.0, acc.dtype)),))
    return (Alloc(half, (*begin, *stmts, *points.each((Store(acc, cell, Load(half, cell), "add"),)))),)
