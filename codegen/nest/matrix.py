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

from collections.abc import Iterator
from dataclasses import dataclass, replace

from codegen.ir.access import coefficient, offset
from codegen.ir.definition import Definition
from codegen.ir.expressions import rewrite
from codegen.ir.loops import (
    Alloc,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Let,
    Load,
    LoopKind,
    Prim,
    Reduce,
    Size,
    Space,
    Store,
    TileOp,
    Var,
    While,
    dense,
    prim,
)
from codegen.ir.matrix_form import COLUMN_BYTES, ROWS, MatrixForm, matrix_form
from codegen.ir.schedule import Schedule, ScheduleError, Tail, Tile, segments
from codegen.nest.padding_terms import asking_no_longer, padding_terms, passed_over
from codegen.nest.points import Points, Span, Spans, Stmts, bound, depending
from codegen.nest.reduction import fresh, guarded
from runtime.abi import DType

ROWS_AT, COLUMNS_AT = 4, 6  # numbers of the first tile of the rows' operand and of the columns'; results begin at 0
RELEASE = TileOp("release")
NESTED = (For, While, Let, Alloc)


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Rows of each tile of the output, tiles side by side, and the axes of rows and columns.

    `line`: the axis along which the second tile follows the first, where rows are too few to fill both.
    """

    heights: tuple[int, ...]
    columns: int
    row: Var
    lane: Var
    line: Var | None

    @property
    def cells(self) -> list[tuple[int, int]]:
        return [(n, m) for n in range(len(self.heights)) for m in range(self.columns)]


def in_tile_registers(d: Definition, reduction: Reduce, schedule: Schedule, points: Points, part: Spans) -> Stmts:
    """Return the statements of one tile of the output; of all rows of some columns if these are no constants.

    The columns of data are arranged in words first, in a panel that all rows use.
    """
    outside = [b for b in padding_terms(d) if b.axis.name in schedule.skip_padding]
    form = matrix_form(asking_no_longer(reduction, outside, points), points.vector, _block_axis(reduction, schedule))
    row = next((a for a in points.spans if a.name == schedule.matrix), None)
    if form is None or row is None or points.vector is None or reduction.init is not None:
        raise ScheduleError(f"{d.out.name}: tile registers sum products of rows and columns, got {reduction.fn}")
    if any(p.operand == form.w.buffer.name for p in schedule.pack):
        return _tile(d, reduction, schedule, points, part, form)
    panel = _panel(d, form, points)
    words = replace(form, w=Load(panel, _place(form, points.spans[points.vector].start, points.vector)))
    span, stmts = points.spans[row], _arranged(form, panel, points)
    for segment in segments(span.extent, Tile(row.name, 2 * ROWS, Tail.LAP)):
        loop = Var(f"{row.name}.n", segment.count)
        at = loop * segment.size if segment.latest is None else prim("min", loop * segment.size, segment.latest)
        here = Span(span.start + at, segment.size)
        inner = Points(tuple(points.spans), points.spans | {row: here}, points.lets, schedule)
        stmts += (For(loop, _tile(d, reduction, schedule, inner, part, words)),)
    return (Alloc(panel, stmts),)


def _tile(d: Definition, reduction: Reduce, schedule: Schedule, points: Points, part: Spans, form: MatrixForm) -> Stmts:
    """Return the statements of up to 32 rows and columns."""
    outside = [b for b in padding_terms(d) if b.axis.name in schedule.skip_padding]
    tiles = _tiles_of(d, schedule, points)
    rows = sum(tiles.heights)
    result = dense(fresh("c", d), rows, tiles.columns * ROWS, space=Space.STACK, dtype=reduction.dtype)

    def terms(axes: tuple[Var, ...], inner: Spans) -> Stmts:
        if not axes:
            return (*_loads(form, tiles, points, inner), *_dots(form, tiles))
        axis, *rest = axes
        size = form.terms if axis == form.axis else 1
        assert isinstance(axis.extent, int)
        step = Var(f"{axis.name}.o", axis.extent // size)
        here = inner | {axis: Span(step * size, size)}
        stmts = terms(tuple(rest), here)
        for border in (b for b in outside if b.axis == axis):
            stmts = passed_over(border, points, here, stmts)
        return (For(step, stmts),)

    sums = (*(a for a in reduction.axes if a != form.axis), form.axis)
    ends = (_stored(n, m, tiles, result) for n, m in tiles.cells)
    zeros = (TileOp("zero", (2 * n + m,)) for n, m in tiles.cells)
    epilogue = _epilogue(d, reduction, points, tiles, result)
    return TileOp("configure", shape=_shape(form, tiles)), Alloc(
        result, (*zeros, *terms(sums, dict(part)), *ends, *epilogue)
    )


def _block_axis(r: Reduce, schedule: Schedule) -> Var | None:
    """Return the axis of the sum that has a tile: its terms form blocks."""
    return next((a for a in r.axes if schedule.size(a.name).size > 1), None)


def _panel(d: Definition, form: MatrixForm, points: Points) -> Buffer:
    """Return the buffer of words of some columns: [columns / 16, pairs of terms, 16]."""
    assert points.vector is not None and isinstance(form.axis.extent, int)
    columns = -(-points.extent(points.vector) // ROWS)
    shape = columns, form.axis.extent // form.word, ROWS
    return dense(fresh("panel", d), *shape, space=Space.STACK, dtype=DType.U32)


def _place(form: MatrixForm, start: Expr, lane: Var) -> tuple[Expr, ...]:
    column = lane - start
    return column // ROWS, form.axis // form.word, column % ROWS


def _arranged(form: MatrixForm, panel: Buffer, points: Points) -> Stmts:
    """Write the words: each holds a term and the one after it, of one column."""
    lane, pair = points.vector, Var(f"{form.axis.name}.p", panel.shape[1])
    assert lane is not None
    column = points.point(lane)

    def bits(part: int) -> Expr:
        known: dict[Expr, Expr] = {a: s.start for a, s in points.spans.items()}
        known |= {form.axis: pair * form.word + part, lane: points.spans[lane].start + column}
        known |= {axis: rewrite(value, known) for axis, value in points.lets}
        load = Load(form.w.buffer, tuple(rewrite(i, known) for i in form.w.index))
        return Prim("bits", (load,), DType.U32)

    word = prim("or", bits(1), prim("shr", bits(0), Const(16, DType.U32)))
    store = Store(panel, (column // ROWS, pair, column % ROWS), word)
    return (For(pair, (For(column, (store,), LoopKind.VECTOR, points.lanes),)),)


def _tiles_of(d: Definition, schedule: Schedule, points: Points) -> _Tiles:
    row = next((a for a in points.spans if a.name == schedule.matrix), None)
    lane = points.vector
    line = next((a for a in points.axes if a not in (row, lane)), None)
    if row is None or lane is None or not set(points.axes) <= {row, lane, line} or _are_many(points, row, line):
        raise ScheduleError(f"{d.out.name}: tile registers hold points of two axes, got {points.shape}")
    rows, columns = points.extent(row), points.extent(lane)
    if rows > 2 * ROWS or columns > 2 * ROWS:
        raise ScheduleError(f"{d.out.name}: tiles have at most {2 * ROWS} rows and columns, got {rows} and {columns}")
    heights = (rows,) if rows <= ROWS else ((rows + 1) // 2, rows // 2)
    return _Tiles(heights if line is None else (rows, rows), -(-columns // ROWS), row, lane, line)


def _are_many(points: Points, row: Var, line: Var | None) -> bool:
    return line is not None and (points.extent(line) != 2 or points.extent(row) > ROWS)


def _shape(form: MatrixForm, tiles: _Tiles) -> tuple[tuple[int, int], ...]:
    size = form.terms * form.x.buffer.dtype.stored_bytes
    low, high = tiles.heights[0], tiles.heights[-1]
    results = (low, COLUMN_BYTES), (low, COLUMN_BYTES), (high, COLUMN_BYTES), (high, COLUMN_BYTES)
    return (*results, (low, size), (high, size), (size // 4, COLUMN_BYTES), (size // 4, COLUMN_BYTES))


def _loads(form: MatrixForm, tiles: _Tiles, points: Points, inner: Spans) -> Stmts:
    """Load a block of terms of the rows and of the columns."""
    row, lane = tiles.row, tiles.lane
    stmts: Stmts = ()
    for n in range(len(tiles.heights)):
        axis, step = (row, n * tiles.heights[0]) if tiles.line is None else (tiles.line, n)
        here = {**inner, row: points.spans[row], axis: Span(points.spans[axis].start + step, 1)}
        stmts += (_load(ROWS_AT + n, form.x, points, here, row, 1),)
    for m in range(tiles.columns):
        first = points.spans[lane].start + m * ROWS
        stmts += (_load(COLUMNS_AT + m, form.w, points, {**inner, lane: Span(first, 1)}, form.axis, form.word),)
    return stmts


def _load(tile: int, x: Load, points: Points, spans: Spans, along: Var, step: int) -> TileOp:
    """Load a tile whose rows lie at every `step` points of the axis `along`."""

    def index(at: Expr) -> tuple[Expr, ...]:
        known: dict[Expr, Expr] = {a: s.start for a, s in (points.spans | spans).items()}
        known[along] = (points.spans | spans)[along].start + at
        known |= {axis: rewrite(value, known) for axis, value in points.lets}
        return tuple(rewrite(i, known) for i in x.index)

    row = Var("row", ROWS)
    stride = coefficient(offset(x.buffer, index(row * step)), row)
    if stride is None:
        raise ScheduleError(f"matrix: rows of a tile lie at equal distances, got {x.buffer.name} along {along.name}")
    moved: Size = stride.const if stride.is_const else stride.expr()
    return TileOp("load", (tile,), x.buffer, index(Const(0)), moved)


def _dots(form: MatrixForm, tiles: _Tiles) -> Stmts:
    return tuple(TileOp("dot", (2 * n + m, ROWS_AT + n, COLUMNS_AT + m), kind=form.kind) for n, m in tiles.cells)


def _stored(n: int, m: int, tiles: _Tiles, result: Buffer) -> TileOp:
    index = Const(n * tiles.heights[0]), Const(m * ROWS)
    return TileOp("store", (2 * n + m,), result, index, result.strides[0])


def _epilogue(d: Definition, reduction: Reduce, points: Points, tiles: _Tiles, result: Buffer) -> Stmts:
    """Compute the value of each point from its sum, a row at a time."""
    row, lane = tiles.row, tiles.lane
    line = Var(f"{row.name}.r", points.extent(row))
    column = Var(f"{lane.name}.t", points.extent(lane))
    inside = {row: line, lane: column}
    place: Expr = line
    if tiles.line is not None:
        inside[tiles.line] = Var(f"{tiles.line.name}.r", 2)
        place = inside[tiles.line] * tiles.heights[0] + line
    lets = [*points.lets, *((a, s.start + inside[a] if a in inside else s.start) for a, s in points.spans.items())]
    lets = [(a, value) for a, value in lets if value != a]
    stmts: Stmts = (guarded(d, rewrite(d.value, {reduction: Load(result, (place, column))})),)
    over = coefficient(offset(d.out, tuple(rewrite(i, {**dict(lets)}) for i in d.target)), line)
    across = over is not None and over.is_const and over.const == 1
    down = LoopKind.UNROLLED if across else LoopKind.SERIAL  # columns of a tile are transposed in registers
    outside = [(inside[tiles.line], LoopKind.SERIAL, 1)] if tiles.line is not None else []
    for loop, kind, lanes in ((column, LoopKind.VECTOR, points.lanes), (line, down, 1), *outside):
        ready = depending(lets, loop)
        stmts = (For(loop, bound(stmts, ready), kind, lanes),)
        lets = [x for x in lets if x not in ready]
    return bound(stmts, lets)


# ---- configurations


def with_tiles(stmts: Stmts) -> Stmts:
    """Move configurations of tiles out of loops, as far as these need no other one; release the tiles at the end."""
    found = set(_configurations(stmts))
    return (*_configured(stmts), RELEASE) if found else stmts


def _configured(stmts: Stmts) -> Stmts:
    found = dict.fromkeys(_configurations(stmts))
    if len(found) == 1:
        return (*found, *_without(stmts))
    made: Stmts = ()
    for s in stmts:
        mine = dict.fromkeys(_configurations((s,)))
        if isinstance(s, TileOp) or not mine:
            made += (s,)
        elif len(mine) == 1:
            made += (*mine, *_without((s,)))
        elif isinstance(s, If):
            made += (replace(s, body=_configured(s.body), otherwise=_configured(s.otherwise)),)
        elif not isinstance(s, NESTED):
            made += (s,)
        else:
            made += (replace(s, body=_configured(s.body)),)
    return made


def _configurations(stmts: Stmts) -> Iterator[TileOp]:
    for s in stmts:
        if isinstance(s, TileOp):
            if s.op == "configure":
                yield s
        elif isinstance(s, If):
            yield from _configurations((*s.body, *s.otherwise))
        elif isinstance(s, NESTED):
            yield from _configurations(s.body)


def _without(stmts: Stmts) -> Stmts:
    made: Stmts = ()
    for s in stmts:
        if isinstance(s, TileOp) and s.op == "configure":
            continue
        if isinstance(s, If):
            made += (replace(s, body=_without(s.body), otherwise=_without(s.otherwise)),)
        elif isinstance(s, NESTED):
            made += (replace(s, body=_without(s.body)),)
        else:
            made += (s,)
    return made
