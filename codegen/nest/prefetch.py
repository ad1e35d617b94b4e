"""Prefetches of a sum: packed weights ahead of their use, and the operands of its epilogue."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import volume
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loads, rewrite, variables
from aot.codegen.ir.loops import Const, Expr, For, Load, Prefetch, Reduce, Size, Var, as_expr, prim, select
from aot.codegen.ir.schedule import Schedule
from aot.codegen.nest.points import Points, Span, Spans, Stmts, depending, size_of
from aot.runtime.abi import DType


def prefetch_ahead(
    reduction: Reduce, schedule: Schedule, points: Points, block_spans: Spans, spans: Spans, inner: Spans
) -> Stmts:
    """Prefetch the packed operand's next block, spread evenly over the work on this one; `spans` of the sum."""
    read = next((x for x in loads(reduction.body) if x.buffer.name == schedule.prefetch), None)
    block_dim = next((p.place for p in schedule.pack if p.operand == schedule.prefetch), None)
    if read is None or points.vector is None or (block_dim is not None and schedule.dots is not None):
        return ()  # panels of dots: `prefetch_panels`
    if block_dim is None:
        return _across(read, schedule, points, points.vector, inner)
    if schedule.prefetch_within is not None:
        return _further(read, schedule, points, inner)
    rank = {name: n for n, name in enumerate(schedule.order)}
    later = (a for a in points.spans if rank.get(a.name, -1) > rank.get(points.vector.name, -1))
    rows = {a: points.spans[a] for a in sorted(later, key=lambda a: rank[a.name])}
    row_spans = {a: block_spans.get(a, Span(Const(0), size_of(a.extent))) for a in rows}
    steps, count = volume(s.extent for s in spans.values()), volume(s.extent for s in row_spans.values())
    share = (steps * read.buffer.shape[-1] + count - 1) // count  # elements for each row
    line = COSTS.line_bytes // read.buffer.dtype.stored_bytes
    height = volume(s.extent for s in rows.values())
    each = (height * share + steps - 1) // steps  # elements for each step of this tile
    at = _linear([(s.start - row_spans[a].start, row_spans[a].extent) for a, s in rows.items()]) * share
    at = at + _linear([(inner[a].start - s.start, s.extent) for a, s in spans.items()]) * each
    lines = (each * volume(s.extent for s in inner.values()) + line - 1) // line
    index = _following(read, block_dim, points, block_spans, spans)
    if isinstance(lines, int):
        level = schedule.prefetch_level
        return tuple(Prefetch(read.buffer, (*index, at + line * n), level=level) for n in range(lines))
    n = Var("f", lines)
    return (For(n, (Prefetch(read.buffer, (*index, at + n * line), level=schedule.prefetch_level),)),)


def prefetch_panels(
    w: Load, schedule: Schedule, points: Points, block_spans: Spans, sums: tuple[Var, ...], inner: Spans
) -> Stmts:
    """Prefetch the panels of words after a tile's own, spread evenly over the tiles of rows that use these.

    `w`: the packed operand; `block_spans`: the block of rows that use them; `inner`: the current block of the sum, over
    the axes `sums`.
    """
    packing = next((p for p in schedule.pack if p.operand == schedule.prefetch == w.buffer.name), None)
    lane, stride = points.vector, None if packing is None else w.buffer.strides[packing.place]
    if packing is None or lane is None or not isinstance(stride, int):
        return ()
    rank = {name: n for n, name in enumerate(schedule.order)}
    column = rank.get(lane.name, -1)
    rows = sorted((a for a in points.spans if rank.get(a.name, -1) > column), key=lambda a: rank[a.name])
    panels = -(-points.extent(lane) // packing.width)
    spans = {a: block_spans.get(a, Span(Const(0), size_of(a.extent))) for a in rows}
    whole, here = volume(s.extent for s in spans.values()), volume(points.spans[a].extent for a in rows)
    terms, block = volume(size_of(a.extent) for a in sums), volume(inner[a].extent for a in sums)
    if not (isinstance(whole, int) and isinstance(here, int) and isinstance(terms, int) and isinstance(block, int)):
        return ()
    share = -(-panels * stride // whole)  # elements for each row
    each = -(-here * share // terms)  # elements for each term of the sum
    at = _linear([(points.spans[a].start - s.start, s.extent) for a, s in spans.items()]) * share
    at = at + _linear([(inner[a].start, a.extent) for a in sums]) * each
    line = COSTS.line_bytes // w.buffer.dtype.stored_bytes
    known: dict[Expr, Expr] = {a: s.start for a, s in points.spans.items()}
    outer = (rewrite(i, known) for i in w.index[: packing.place])
    following = points.spans[lane].start // packing.width + panels
    first = *outer, following, *(Const(0) for _ in w.buffer.shape[packing.place + 2 :])
    fetched = range(-(-each * block // line))
    return tuple(Prefetch(w.buffer, (*first, at + n * line), level=schedule.prefetch_level) for n in fetched)


def _further(read: Load, schedule: Schedule, points: Points, inner: Spans) -> Stmts:
    """Prefetch the lines of the packed operand that lie `stream_distance_bytes` after those in use."""
    known: dict[Expr, Expr] = {a: s.start for a, s in (points.spans | inner).items()}
    known |= {axis: rewrite(value, known) for axis, value in points.lets}
    index, size = [rewrite(i, known) for i in read.index[:-1]], read.buffer.dtype.stored_bytes
    lines = -(-volume(s.extent for s in inner.values()) * read.buffer.shape[-1] * size // COSTS.line_bytes)
    assert isinstance(lines, int) and schedule.prefetch_within is not None
    ahead = COSTS.stream_distance_bytes // size
    first = Prefetch(read.buffer, (*index, Const(0)), ahead, schedule.prefetch_within, schedule.prefetch_level)
    return tuple(replace(first, index=(*index, Const(n * COSTS.line_bytes // size))) for n in range(lines))


def _across(read: Load, schedule: Schedule, points: Points, lane: Var, inner: Spans) -> Stmts:
    """Prefetch the same terms of the sum of the tile that comes `COSTS.tiles_ahead` later along the vector axis.

    After the last tile nothing follows: its own lines are prefetched once more. `inner`: the current terms.
    """
    tile, size = points.spans[lane], read.buffer.dtype.stored_bytes
    width, extents = points.extent(lane), [s.extent for s in inner.values()]
    outside: dict[Expr, Expr] = {a: s.start for a, s in points.spans.items()}
    if width < schedule.size(lane.name).size:
        return ()
    last = as_expr(size_of(lane.extent), DType.I64) - width
    begin = prim("min", tile.start + COSTS.tiles_ahead * width, last)
    stmts: Stmts = ()
    for steps in product(*(range(n) for n in extents if isinstance(n, int))):
        known = outside | {a: s.start + n for (a, s), n in zip(inner.items(), steps, strict=True)}
        for n in range(-(-width * size // COSTS.line_bytes)):
            here = known | {lane: begin + n * COSTS.line_bytes // size}
            here |= {axis: rewrite(value, here) for axis, value in points.lets}
            at = tuple(rewrite(i, here) for i in read.index)
            stmts += (Prefetch(read.buffer, at, level=schedule.prefetch_level),)
    return stmts


def _following(read: Load, block_dim: int, points: Points, block_spans: Spans, sums: Spans) -> tuple[Expr, ...]:
    """Return the index of the start of the next packed block; dimension `block_dim` counts blocks.

    If the vector axis is cut into blocks, their last packed block is followed by their first at the next piece of the
    sum.
    """

    def indices(starts: dict[Expr, Expr]) -> list[Expr]:
        known: dict[Expr, Expr] = {**{a: s.start for a, s in points.spans.items()}, **starts}
        known |= {axis: rewrite(value, known) for axis, value in points.lets}
        return [rewrite(i, known) for i in read.index[:-1]]

    index = indices({a: s.start for a, s in sums.items()})
    following = index[block_dim] + 1
    columns, width = block_spans.get(points.vector) if points.vector else None, read.buffer.shape[-1]
    if columns is None:
        return (*index[:block_dim], following, *index[block_dim + 1 :])
    last = prim("eq", following, (columns.start + columns.extent) // width)
    further = indices({a: s.start + s.extent for a, s in sums.items()})
    index = [select(last, after, here) for after, here in zip(further, index, strict=True)]
    return (*index[:block_dim], select(last, columns.start // width, following), *index[block_dim + 1 :])


def prefetch_epilogue(
    definition: Definition, reduction: Reduce, schedule: Schedule, points: Points, spans: Spans, inner: Spans
) -> Stmts:
    """Prefetch operands and results of the tile's epilogue, line by line, spread over the sum and its `spans`."""
    lane, rows = points.vector, [a for a in points.axes if a is not points.vector]
    sum_points, block_points = volume(s.extent for s in spans.values()), volume(s.extent for s in inner.values())
    if lane is None or len(rows) != 1 or not isinstance(sum_points, int) or not isinstance(block_points, int):
        return ()
    now = _linear([(inner[a].start - s.start, s.extent) for a, s in spans.items()]) // block_points
    moving = {rows[0], *(a for a, _ in depending(points.values({}), points.point(rows[0])))}
    stmts: Stmts = ()
    value = rewrite(definition.value, {reduction: Const(0, reduction.dtype)})
    read = ((x.buffer, x.index) for x in loads(value))
    for buffer, index in dict.fromkeys((*read, (definition.out, definition.target))):
        dense_lane = any(s == 1 and lane in variables(i) for s, i in zip(buffer.strides, index, strict=True))
        if not dense_lane or moving.isdisjoint(variables(*index)):
            continue
        line = COSTS.line_bytes // buffer.dtype.stored_bytes
        across = -(-points.extent(lane) // line)
        count = across * points.extent(rows[0])
        each = -(-count * block_points // sum_points)
        for n in range(each):
            at = prim("min", now * each + n, count - 1)
            row, column = at // across, at % across * line
            known: dict[Expr, Expr] = {a: s.start for a, s in points.spans.items()}
            known |= {rows[0]: points.spans[rows[0]].start + row, lane: points.spans[lane].start + column}
            known |= {axis: rewrite(e, known) for axis, e in points.lets}
            stmts += (Prefetch(buffer, tuple(rewrite(i, known) for i in index), level=schedule.prefetch_level),)
    return stmts


def _linear(index: list[tuple[Expr, Size | None]]) -> Expr:
    """Return the position of `index`, as (index, extent) pairs, in row-major order."""
    total: Expr = Const(0)
    for i, extent in index:
        total = total * as_expr(extent or 1, DType.I64) + i
    return total
