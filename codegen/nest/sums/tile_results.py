"""Results of a tile of sums: written out for each point, or by a loop over its rows or its vectors.

acc[6, 64] is summed                       total[p.t, c.t] = acc[p.t, c.t]         in memory, for all points
unrolled p.t in 6:                         for p.t in 6:
  y[p, c] = exp(acc[p.t, c.t])               y[p, c] = exp(total[p.t, c.t])

A function is 10 to 30 instructions, which tiles of 24 vectors would have 24 times: a quarter of YOLOv8n's code. Results
that lie across the lanes are transposed, as many instructions, and results of long sums cost little beside these.
"""

from __future__ import annotations

from dataclasses import replace

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import access, volume
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import calls_functions, loads, rewrite, walk
from aot.codegen.ir.loops import Alloc, Buffer, Const, Expr, For, Load, Prim, Reduce, Space, Store, Var
from aot.codegen.nest.points import Points, Stmts, size_of
from aot.codegen.nest.stored import at_point, unused_name

MIN_OPERATIONS = 2  # of a result: a sum to which a number is added is as much code as its copy


def tile_results(definition: Definition, reduction: Reduce, points: Points, acc: Buffer) -> Stmts:
    """Return the stores of all points of a tile; the accumulators `acc` have their sums."""
    looped, lane = _looped(definition, reduction, points), points.vector
    if looped is None or lane is None:
        return _stores(definition, reduction, points, Load(acc, points.cell))
    total = replace(acc, name=unused_name("total", definition), space=Space.STACK)
    stores = points.each((Store(total, points.cell, Load(acc, points.cell)),))
    if looped is not lane:
        return (Alloc(total, (*stores, *_stores(definition, reduction, points, Load(total, points.cell), looped))),)

    def some(first: Expr, lanes: int) -> Stmts:
        part = points.lanes_from(first, lanes)
        *rows, column = part.cell
        return _stores(definition, reduction, part, Load(total, (*rows, column + first)))

    count, lanes_left = divmod(points.extent(lane), points.lanes)
    block = Var(f"{lane.name}.v", count)
    stores += (For(block, some(block * points.lanes, points.lanes)),)
    stores += some(Const(count * points.lanes), lanes_left) if lanes_left else ()
    return (Alloc(total, stores),)


def _stores(definition: Definition, reduction: Reduce, points: Points, total: Load, row: Var | None = None) -> Stmts:
    value = rewrite(definition.value, {reduction: total})
    return points.each((at_point(definition, value, points),), looped=row)


def _looped(definition: Definition, reduction: Reduce, points: Points) -> Var | None:
    """Return the axis of a loop over results; None if all are written out.

    It runs over rows, so that the functions of a row's vectors hide each other's latency; over vectors without rows.
    Lanes that lie apart in memory are transposed together with the lanes of the other rows, which are written out; how
    the sum is read does not matter. Bytes of several vectors are stored at once.
    """
    lane, rows = points.vector, [a for a in points.axes if a is not points.vector]
    if lane is None or len(rows) > 1:
        return None
    cells = [(definition.out, definition.target), *((r.out, r.index) for r in definition.results)]
    stored = {access(*place, definition.axes).strides[lane] for place in cells}
    value = rewrite(definition.value, {reduction: Const(0, reduction.dtype)})
    read = {access(x.buffer, x.index, definition.axes).strides[lane] for x in loads(value)}
    is_beside = stored == {1} and read <= {0, 1}
    is_wide = points.extent(lane) >= 2 * points.lanes and all(out.dtype.stored_bytes > 1 for out, _ in cells)
    if not is_beside:
        return lane if is_wide and None not in stored | read else None
    vectors = points.extent(lane) // points.lanes * (points.extent(rows[0]) if rows else 1)
    if vectors < COSTS.min_looped_results or not _pays(definition, reduction):
        return None
    return rows[0] if rows else lane if is_wide else None


def _pays(definition: Definition, reduction: Reduce) -> bool:
    """True if results are more code than a copy of their sums, and the sums take much longer than the copies.

    Sums of integers are left alone: with the copies, LLVM makes a constant of their inner loop anew in each iteration.
    """
    value = rewrite(definition.value, {reduction: Const(0, reduction.dtype)})
    if calls_functions(value):
        return True
    steps = volume(size_of(a.extent) for a in reduction.axes)
    is_long = isinstance(steps, int) and steps >= COSTS.min_looped_steps and reduction.dtype.is_float
    return is_long and sum(isinstance(e, Prim) for e in walk(value)) >= MIN_OPERATIONS
