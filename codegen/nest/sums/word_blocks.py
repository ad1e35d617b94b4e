"""Sums of products of bytes with data loaded 16 at a time, once for all columns of a tile, into registers.

    words[i.t, 0:4] = 16 bytes of row i, from x[i, k] on
    acc[i.t, j.t] += dot(words[i.t, n], w[k + 4 n, j])

Instructions that multiply blocks take two rows of eight bytes and two columns of eight:

    rows[p, b, 0:4] = block b of rows 2 p and 2 p + 1
    blocks[2 p + h, j.t] += block_dot(rows[p, b], w[k + 8 b, j] of half h)

During the sum, accumulator row 2p holds the block of columns 0–1 and row 2p+1 that of columns 2–3. Rows are converted
to blocks before the sum and back after it. Both conversions interleave the lower halves of two vectors, and the higher
ones.
"""

from __future__ import annotations

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import access
from aot.codegen.ir.loops import (
    Alloc,
    Buffer,
    Const,
    Expr,
    For,
    Load,
    LoopKind,
    Reduce,
    Space,
    Stmt,
    Store,
    Var,
    dense,
    prim,
)
from aot.codegen.ir.numbers.dot_forms import (
    BLOCK_BYTES,
    CENTRES,
    block_dot,
    centred,
    dot,
    dot_factors,
    halves,
    row_words,
)
from aot.codegen.ir.schedule import WORD_BYTES, Schedule, ScheduleError
from aot.codegen.nest.points import Points, Span, Spans, Stmts
from aot.runtime.abi import DType

LANES = 4  # numbers of 32 bits of a vector
VECTOR_BYTES = 4 * LANES


@dataclass(frozen=True, slots=True)
class WordRows:
    """The accumulators `total` of a tile; words of data are `x`, of weights `w`. u8 are less 128."""

    total: Buffer
    x: Load
    w: Load
    points: Points
    schedule: Schedule
    name: str

    @property
    def vector(self) -> Var:
        axis = self.points.vector
        if axis is None or len(self.points.axes) > 2:
            raise ScheduleError(f"words: a tile has rows along one axis, and lanes, got {len(self.points.axes)} axes")
        return axis

    @property
    def rows(self) -> Var | None:
        """Return the axis of the rows of the tile; None if it has one row."""
        return next((a for a in self.points.axes if a is not self.vector), None)

    @property
    def count(self) -> int:
        return 1 if self.rows is None else self.points.extent(self.rows)

    def around(self, stmts: Stmts) -> Stmts:
        """Return the statements of the sum, `stmts`, with those before and after it."""
        return stmts

    def update(self, inner: Spans) -> Stmts:
        """Return the statements that add the terms of a tile of the sum, at most 16."""
        axis, n, words = self._step(inner)
        fill = self.filled(words, axis, inner, n, CENTRES if self.x.dtype is DType.U8 else 0)
        w = centred(self.w) if self.w.dtype is DType.U8 else self.w
        own, column, stmts = self._columns(), self.points.point(self.vector), [*fill]
        for part in range(-(-n // WORD_BYTES)):
            dots: list[Stmt] = []
            for row in range(self.count):  # one after the other, so that few weights are in registers at a time
                term = dot(Load(words, (Const(row), Const(part))), w, WORD_BYTES)
                dots.append(Store(self.total, _cell(self.total, row, column), term, "add"))
            stmts += own.each(tuple(dots), {**inner, axis: Span(inner[axis].start + WORD_BYTES * part, 1)})
        return (Alloc(words, tuple(stmts)),)

    def _step(self, inner: Spans) -> tuple[Var, int, Buffer]:
        """Return the axis of the sum, its terms in a tile, and the registers of the words of the rows."""
        axis = next(a for a in inner if a.name == self.schedule.dots)
        n = inner[axis].extent
        if not isinstance(n, int) or n > VECTOR_BYTES:
            raise ScheduleError(f"words: a step has at most {VECTOR_BYTES} terms, got {n}")
        rows = self.count + self.count % 2
        return axis, n, dense(f"{self.name}words", rows, LANES, space=Space.REGISTERS, dtype=DType.I32)

    def filled(self, words: Buffer, axis: Var, inner: Spans, n: int, change: int) -> Stmts:
        """Return the statements that load the words of all rows; bits of `change` are changed."""
        word, row = Var("word", LANES), (self.rows,) if self.rows is not None else ()
        own = Points(row, self.points.spans, self.points.lets, self.schedule)
        row_word = row_words(self.x, n)
        row_word = prim("xor", row_word, Const(change, DType.I32)) if change else row_word
        fill: Stmts = (For(word, (Store(words, (own.cell[0], word), row_word),), LoopKind.VECTOR, LANES),)
        return own.each(fill, {**inner, axis: Span(inner[axis].start, 1)})

    def _columns(self) -> Points:
        """Return the points of one row."""
        spans = {a: s for a, s in self.points.spans.items() if a != self.rows}
        return Points((self.vector,), spans, self.points.lets, self.schedule)


def word_vectors(
    reduction: Reduce, schedule: Schedule, points: Points, inner: Spans, name: str
) -> tuple[Buffer, Stmts, Expr] | None:
    """Return registers for 16 bytes of each row, what loads them, and the number of the first word of a term.

    None unless a tile of the sum has that many bytes of data, side by side, and `row_vectors` says so.
    """
    if schedule.dots is None or schedule.row_vectors is None or points.vector is None or len(points.axes) > 2:
        return None
    factors = dot_factors(reduction, schedule.lane)
    if factors is None:
        return None
    tiled = [a for a in reduction.axes if inner[a].extent != 1]
    steps, size, word = (
        access(factors[0].buffer, factors[0].index, (*reduction.axes, *points.axes)).strides,
        1,
        Const(0),
    )
    for a in reversed(tiled):
        extent = inner[a].extent
        if steps.get(a) != size or not isinstance(extent, int):
            return None
        word = word if a.name == schedule.dots else word + Var(f"{a.name}.u", extent) * (size // WORD_BYTES)
        size *= extent
    if size != VECTOR_BYTES:
        return None
    rows = WordRows(points.accumulator("", DType.I32), *factors, points, schedule, name)
    words = dense(f"{name}words", rows.count, LANES, space=Space.REGISTERS, dtype=DType.I32)
    first = {a: Span(s.start, 1) for a, s in inner.items()}
    fill = rows.filled(words, next(a for a in reduction.axes if a.name == schedule.dots), first, VECTOR_BYTES, 0)
    return words, fill, word


@dataclass(frozen=True, slots=True)
class WordBlocks(WordRows):
    """Word rows summed in blocks of two rows and two columns, of unsigned data and signed weights."""

    @property
    def pairs(self) -> int:
        return (self.count + 1) // 2

    @property
    def blocks(self) -> Buffer:
        columns = self.total.shape[-1]
        return dense(f"{self.name}blocks", 2 * self.pairs, columns, space=Space.REGISTERS, dtype=self.total.dtype)

    def around(self, stmts: Stmts) -> Stmts:
        """Return `stmts`, which add to blocks, between the conversions of rows to blocks and of blocks to rows."""
        begin = self._interleave(self.blocks, self.total, 2 * self.pairs)
        end = self._interleave(self.total, self.blocks, self.count)
        return (Alloc(self.blocks, (*begin, *stmts, *end)),)

    def update(self, inner: Spans) -> Stmts:
        """Return the statements that add the terms of a tile of the sum, at most 16, to the blocks."""
        axis, n, words = self._step(inner)
        parts = -(-n // BLOCK_BYTES)
        rows = dense(f"{self.name}rows", self.pairs, parts, LANES, space=Space.REGISTERS, dtype=DType.I32)
        word, pair = Var("word", LANES), Var("pair", self.pairs)
        stmts = [*self.filled(words, axis, inner, n, 0)]
        if self.count % 2:
            zero = Store(words, (Const(self.count), word), Const(0, DType.I32))
            stmts.append(For(word, (zero,), LoopKind.VECTOR, LANES))
        for part in range(parts):
            both = halves(Load(words, (pair * 2, word)), Load(words, (pair * 2 + 1, word)), part == 1)
            body = For(word, (Store(rows, (pair, Const(part), word), both),), LoopKind.VECTOR, LANES)
            stmts.append(For(pair, (body,), LoopKind.UNROLLED))
        for part in range(parts):
            at = {**inner, axis: Span(inner[axis].start + BLOCK_BYTES * part, 1)}
            stmts += self._products(rows, part, at)
        return (Alloc(words, (Alloc(rows, tuple(stmts)),)),)

    def _products(self, rows: Buffer, part: int, at: Spans) -> Stmts:
        """Return the products of a block of terms."""
        point = self.points.point(self.vector)
        stores: list[Stmt] = []
        for half in (0, 1):
            for pair in range(self.pairs):  # one after the other, so that few weights are in registers at a time
                x = Load(rows, (Const(pair), Const(part), Const(0)))
                stores.append(Store(self.blocks, (Const(2 * pair + half), point), block_dot(x, self.w, half), "add"))
        return self._columns().each(tuple(stores), at)

    def _interleave(self, to: Buffer, source: Buffer, count: int) -> Stmts:
        """Return the statements that make `count` rows of `to`, each from halves of two rows of `source`."""
        column = self.points.point(self.vector)
        stmts: list[Stmt] = []
        for n in range(count):
            one, other = (self._row(source, 2 * (n // 2) + h, column) for h in (0, 1))
            store = Store(to, _cell(to, n, column), halves(one, other, high=n % 2 == 1))
            stmts.append(For(column, (store,), LoopKind.VECTOR, LANES))
        return tuple(stmts)

    def _row(self, source: Buffer, n: int, column: Var) -> Expr:
        zero: Expr = Const(0, DType.I32)
        return Load(source, _cell(source, n, column)) if source.name != self.total.name or n < self.count else zero


def _cell(buffer: Buffer, row: int, column: Var) -> tuple[Expr, ...]:
    return (Const(row), column) if len(buffer.shape) == 2 else (column,)
