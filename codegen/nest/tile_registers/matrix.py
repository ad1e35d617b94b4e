"""Products in tile registers: up to 32 rows and 32 columns in four of them, and the epilogue of each point.

parallel i.o in 4:                          a tile of the output: 32 rows, or fewer
  for j.o in 16:
    alloc c: f32[32, 32] @stack
    tile 0..3 = 0
    for k.o in 24:                          a block of the sum
      tile 4, 5 = x[i, k] by rows           rows: 16 of 32 terms each
      tile 6, 7 = w[j // 16, k // 2, ..]    columns: 16 words of each pair of terms
      tile 0..3 += tile 4, 5 * tile 6, 7
    c = tile 0..3
    for i.r in 32: y[i, j] = value(c[i.r, j.t])
"""

from __future__ import annotations

from dataclasses import replace

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import (
    Alloc,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Prim,
    Reduce,
    Space,
    Store,
    TileOp,
    Var,
    as_expr,
    dense,
    prim,
)
from aot.codegen.ir.numbers.dot_forms import is_arranged
from aot.codegen.ir.numbers.matrix_form import ROWS, MatrixForm, matrix_form
from aot.codegen.ir.schedule import Schedule, ScheduleError, Tail, Tile, segments
from aot.codegen.nest.points import Points, Span, Spans, Stmts, size_of
from aot.codegen.nest.prefetch import prefetch_panels
from aot.codegen.nest.stored import unused_name
from aot.codegen.nest.sums.padding_terms import padding_terms, skip_padding_terms, without_hoisted_tests
from aot.codegen.nest.tile_registers.matrix_tiles import (
    Tiles,
    column_place,
    dots,
    epilogue,
    loaded,
    shape_of,
    stored,
    tiles_of,
    zeroed,
)
from aot.codegen.nest.tile_registers.scaled_matrix import scaled_tile
from aot.runtime.abi import DType


def in_tile_registers(
    d: Definition, reduction: Reduce, schedule: Schedule, points: Points, block_spans: Spans
) -> Stmts:
    """Return the statements of one tile of the output, or, where columns are data, of some columns and all rows.

    The columns of data are arranged in words first, in a panel that all rows use.
    """
    if schedule.scaled_steps is not None:
        return scaled_tile(d, reduction, schedule, points)
    outside = [b for b in padding_terms(d) if b.axis.name in schedule.skip_padding]
    form = matrix_form(
        without_hoisted_tests(reduction, outside, points), points.vector, _block_axis(reduction, schedule)
    )
    row = next((a for a in points.spans if a.name == schedule.matrix), None)
    if form is None or row is None or points.vector is None or reduction.init is not None:
        raise ScheduleError(f"{d.out.name}: tile registers sum products of rows and columns, got {reduction.fn}")
    if any(p.operand == form.w.buffer.name for p in schedule.pack) or is_arranged(form.w, reduction.axes) is not None:
        return _tile(d, reduction, schedule, points, block_spans, form)
    panel = _panel(d, form, points)
    words = replace(form, w=Load(panel, column_place(form, points)))
    span, stmts = points.spans[row], _arranged(form, panel, points)
    for segment in segments(span.extent, Tile(row.name, 2 * ROWS, Tail.LAP)):
        loop = Var(f"{row.name}.n", segment.count)
        at = loop * segment.size if segment.latest is None else prim("min", loop * segment.size, segment.latest)
        here = Span(span.start + at, segment.size)
        inner = Points(tuple(points.spans), points.spans | {row: here}, points.lets, schedule)
        stmts += (For(loop, _tile(d, reduction, schedule, inner, block_spans, words)),)
    return (Alloc(panel, stmts),)


def _tile(
    d: Definition, reduction: Reduce, schedule: Schedule, points: Points, block_spans: Spans, form: MatrixForm
) -> Stmts:
    """Return the statements of up to 32 rows and columns."""
    outside = [b for b in padding_terms(d) if b.axis.name in schedule.skip_padding]
    tiles = tiles_of(d, schedule, points)
    rows = sum(tiles.heights)
    result = dense(unused_name("c", d), rows, tiles.columns * ROWS, space=Space.STACK, dtype=reduction.dtype)

    def terms(axes: tuple[Var, ...], inner: Spans) -> Stmts:
        if not axes:
            ahead = prefetch_panels(form.w, schedule, points, block_spans, sums, inner)
            return (*loaded(form, tiles, points, inner), *ahead, *dots(form, tiles))
        axis, *rest = axes
        size, extent = form.terms if axis == form.axis else 1, size_of(axis.extent)
        step = Var(f"{axis.name}.o", extent // size)
        here = inner | {axis: Span(step * size, size)}
        stmts = terms(tuple(rest), here)
        for border in (b for b in outside if b.axis == axis):
            stmts = skip_padding_terms(border, points, here, stmts)
        return (For(step, stmts), *(() if isinstance(extent, int) else _last_block(d, form, tiles, points, inner)))

    sums = (*(a for a in reduction.axes if a != form.axis), form.axis)
    total = *zeroed(tiles), *terms(sums, dict(block_spans)), *stored(tiles, result)
    ends = epilogue(d, reduction, points, tiles, result)
    return TileOp("configure", shape=shape_of(form, tiles)), Alloc(result, (*total, *ends))


def _last_block(d: Definition, form: MatrixForm, tiles: Tiles, points: Points, inner: Spans) -> Stmts:
    """Add the terms of a dynamic number that fill no block: rows are copied, with zeros behind; words end in zeros."""
    axis, extent = form.axis, as_expr(size_of(form.axis.extent), DType.I64)
    row, term = Var(f"{tiles.row.name}.r", sum(tiles.heights)), Var(f"{axis.name}.t", form.terms)
    copy = dense(unused_name("last", d), row.extent or 1, form.terms, space=Space.STACK, dtype=DType.BF16)
    begin = extent - extent % form.terms
    here = inner | {axis: Span(begin, form.terms)}
    known: dict[Expr, Expr] = {a: s.start for a, s in (points.spans | inner).items()}
    known |= {tiles.row: points.spans[tiles.row].start + row, axis: begin + term}
    known |= {a: rewrite(value, known) for a, value in points.lets}
    x = Load(form.x.buffer, tuple(rewrite(i, known) for i in form.x.index))
    store = Store(copy, (row, term), prim("within", begin + term, extent, x, 0.0))
    copied = For(row, (For(term, (store,), LoopKind.VECTOR, points.lanes),))
    rows = replace(form, x=Load(copy, (tiles.row - points.spans[tiles.row].start, axis - begin)))
    stmts = copied, *loaded(rows, tiles, points, here), *dots(form, tiles)
    return (If(prim("ne", extent % form.terms, 0), (Alloc(copy, stmts),)),)


def _block_axis(r: Reduce, schedule: Schedule) -> Var | None:
    """Return the axis of the sum that has a tile: its terms form blocks."""
    return next((a for a in r.axes if schedule.size(a.name).size > 1), None)


def _panel(d: Definition, form: MatrixForm, points: Points) -> Buffer:
    """Return the buffer of words of some columns: [columns / 16, pairs of terms, 16]."""
    assert points.vector is not None and isinstance(form.axis.extent, int)
    columns = -(-points.extent(points.vector) // ROWS)
    shape = columns, form.axis.extent // form.word, ROWS
    return dense(unused_name("panel", d), *shape, space=Space.STACK, dtype=DType.U32)


def _arranged(form: MatrixForm, panel: Buffer, points: Points) -> Stmts:
    """Write the words: each holds a term and the one after it, of one column."""
    lane, pair = points.vector, Var(f"{form.axis.name}.p", panel.shape[1])
    assert lane is not None
    column = points.point(lane)

    def bits(element: int) -> Expr:
        known: dict[Expr, Expr] = {a: s.start for a, s in points.spans.items()}
        known |= {form.axis: pair * form.word + element, lane: points.spans[lane].start + column}
        known |= {axis: rewrite(value, known) for axis, value in points.lets}
        load = Load(form.w.buffer, tuple(rewrite(i, known) for i in form.w.index))
        return Prim("bits", (load,), DType.U32)

    word = prim("or", bits(1), prim("shr", bits(0), Const(16, DType.U32)))
    store = Store(panel, (column // ROWS, pair, column % ROWS), word)
    return (For(pair, (For(column, (store,), LoopKind.VECTOR, points.lanes),)),)
