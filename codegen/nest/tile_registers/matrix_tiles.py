"""A tile of the output in tile registers: its rows and columns, what is loaded for them, and their points.

tile 4, 5 = x[i, k] by rows           rows: 16 of 32 terms each
tile 6, 7 = w[j // 16, k // 2, ..]    columns: 16 words of each pair of terms
tile 0..3 += tile 4, 5 * tile 6, 7    results
"""

from __future__ import annotations

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import coefficient, offset
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import Buffer, Const, Expr, For, Load, LoopKind, Reduce, Size, Stmt, TileOp, Var
from aot.codegen.ir.numbers.matrix_form import COLUMN_BYTES, ROWS, MatrixForm
from aot.codegen.ir.schedule import Schedule, ScheduleError
from aot.codegen.nest.points import Lets, Points, Span, Spans, Stmts, bound, depending
from aot.codegen.nest.stored import at_point

ROWS_AT, COLUMNS_AT = 4, 6  # numbers of the first tile of the rows' operand and of the columns'; results begin at 0


@dataclass(frozen=True, slots=True)
class Tiles:
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


def tiles_of(d: Definition, schedule: Schedule, points: Points) -> Tiles:
    """Return the tiles of the output's points; ScheduleError if they are not up to 32 rows and columns."""
    row = next((a for a in points.spans if a.name == schedule.matrix), None)
    lane = points.vector
    line = next((a for a in points.axes if a not in (row, lane)), None)
    if row is None or lane is None or not set(points.axes) <= {row, lane, line} or _are_many(points, row, line):
        raise ScheduleError(f"{d.out.name}: tile registers hold points of two axes, got {points.shape}")
    rows, columns = points.extent(row), points.extent(lane)
    if rows > 2 * ROWS or columns > 2 * ROWS:
        raise ScheduleError(f"{d.out.name}: tiles have at most {2 * ROWS} rows and columns, got {rows} and {columns}")
    heights = (rows,) if rows <= ROWS else ((rows + 1) // 2, rows // 2)
    return Tiles(heights if line is None else (rows, rows), -(-columns // ROWS), row, lane, line)


def _are_many(points: Points, row: Var, line: Var | None) -> bool:
    return line is not None and (points.extent(line) != 2 or points.extent(row) > ROWS)


def column_place(form: MatrixForm, points: Points) -> tuple[Expr, ...]:
    """Return the place of a term of the columns in a panel of words: [columns / 16, words, 16]."""
    assert points.vector is not None
    column = points.vector - points.spans[points.vector].start
    return column // ROWS, form.axis // form.word, column % ROWS


def shape_of(form: MatrixForm, tiles: Tiles) -> tuple[tuple[int, int], ...]:
    """Return the rows, and the bytes of a row, of each tile register."""
    size = form.terms * form.x.buffer.dtype.stored_bytes
    low, high = tiles.heights[0], tiles.heights[-1]
    accumulators = (low, COLUMN_BYTES), (low, COLUMN_BYTES), (high, COLUMN_BYTES), (high, COLUMN_BYTES)
    return (*accumulators, (low, size), (high, size), (size // 4, COLUMN_BYTES), (size // 4, COLUMN_BYTES))


def loaded(form: MatrixForm, tiles: Tiles, points: Points, inner: Spans) -> Stmts:
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
    """Load a tile; its rows lie at every `step` points of the axis `along`."""

    def index(at: Expr) -> tuple[Expr, ...]:
        known: dict[Expr, Expr] = {a: s.start for a, s in (points.spans | spans).items()}
        known[along] = (points.spans | spans)[along].start + at
        known |= {axis: rewrite(value, known) for axis, value in points.lets}
        return tuple(rewrite(i, known) for i in x.index)

    row = Var("row", ROWS)
    stride = coefficient(offset(x.buffer, index(row * step)), row)
    if stride is None:
        raise ScheduleError(f"matrix: rows of a tile lie at equal distances, got {x.buffer.name} along {along.name}")
    row_stride: Size = stride.const if stride.is_const else stride.expr()
    return TileOp("load", (tile,), x.buffer, index(Const(0)), row_stride)


def dots(form: MatrixForm, tiles: Tiles) -> Stmts:
    """Add the products of a block of terms to the results."""
    return tuple(TileOp("dot", (2 * n + m, ROWS_AT + n, COLUMNS_AT + m), kind=form.kind) for n, m in tiles.cells)


def zeroed(tiles: Tiles) -> Stmts:
    """Set the results to zero."""
    return tuple(TileOp("zero", (2 * n + m,)) for n, m in tiles.cells)


def stored(tiles: Tiles, memory: Buffer) -> Stmts:
    """Write the results to memory: [rows, columns]."""

    def one(n: int, m: int) -> TileOp:
        return TileOp("store", (2 * n + m,), memory, (Const(n * tiles.heights[0]), Const(m * ROWS)), memory.strides[0])

    return tuple(one(n, m) for n, m in tiles.cells)


def cell(points: Points, tiles: Tiles) -> tuple[Expr, Expr]:
    """Return the place of a point in the buffer of results: it moves along the loops of `each_row`."""
    line, column = _inside(points, tiles)[tiles.row], _inside(points, tiles)[tiles.lane]
    if tiles.line is None:
        return line, column
    return _inside(points, tiles)[tiles.line] * tiles.heights[0] + line, column


def each_row(
    stmt: Stmt, points: Points, tiles: Tiles, inner: Spans | None = None, down: LoopKind = LoopKind.SERIAL
) -> Stmts:
    """Run a statement for each point of a tile, a row at a time. `inner`: the current points of axes of the sum."""
    inside = _inside(points, tiles)
    lets = placed(points, tiles, inner)
    stmts: Stmts = (stmt,)
    outside = [(inside[tiles.line], LoopKind.SERIAL, 1)] if tiles.line is not None else []
    for loop, kind, lanes in (
        (inside[tiles.lane], LoopKind.VECTOR, points.lanes),
        (inside[tiles.row], down, 1),
        *outside,
    ):
        ready = depending(lets, loop)
        stmts = (For(loop, bound(stmts, ready), kind, lanes),)
        lets = [x for x in lets if x not in ready]
    return bound(stmts, lets)


def epilogue(d: Definition, reduction: Reduce, points: Points, tiles: Tiles, result: Buffer) -> Stmts:
    """Compute the value of each point from its sum, a row at a time."""
    stmt = at_point(d, rewrite(d.value, {reduction: Load(result, cell(points, tiles))}), points)
    target = tuple(rewrite(i, {**dict(placed(points, tiles))}) for i in d.target)
    over = coefficient(offset(d.out, target), _inside(points, tiles)[tiles.row])
    across = over is not None and over.is_const and over.const == 1  # columns of a tile are transposed in registers
    return each_row(stmt, points, tiles, down=LoopKind.UNROLLED if across else LoopKind.SERIAL)


def placed(points: Points, tiles: Tiles, inner: Spans | None = None) -> Lets:
    """Return the value of each axis at a point of the loops of `each_row`; axes that depend on others come first."""
    inside, spans = _inside(points, tiles), points.spans | (inner or {})
    lets = [*points.lets, *((a, s.start + inside[a] if a in inside else s.start) for a, s in spans.items())]
    return [(a, value) for a, value in lets if value != a]


def _inside(points: Points, tiles: Tiles) -> dict[Var, Var]:
    """Return the loop variables of the axes of a tile."""
    row, lane = tiles.row, tiles.lane
    axes = {row: Var(f"{row.name}.r", points.extent(row)), lane: points.point(lane)}
    return axes if tiles.line is None else axes | {tiles.line: Var(f"{tiles.line.name}.r", 2)}
