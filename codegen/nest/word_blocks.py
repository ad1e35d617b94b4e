"""Sums of products of bytes by instructions that multiply blocks: two rows of eight bytes by two columns of eight.

    words[i.t, 0:4] = 16 bytes of row i, from x[i, k] on        rows[p, b, 0:4] = block b of rows 2 p and 2 p + 1
    blocks[2 p + h, j.t] += block_dot(rows[p, b], w[k + 8 b, j] of half h)

Accumulators hold blocks of two rows and two columns meanwhile: that of the first two of four columns lies where the
first row was, that of the others where the second row was. They are made of rows before the sum, and rows of them after
it: both take the lower halves of two vectors, and the higher ones.
"""

from __future__ import annotations

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import (
    Alloc,
    Buffer,
    Const,
    Expr,
    For,
    Load,
    LoopKind,
    Space,
    Stmt,
    Store,
    Var,
    dense,
)
from aot.codegen.ir.numbers.dot_forms import BLOCK_BYTES, block_dot, halves, row_words
from aot.codegen.ir.schedule import Schedule, ScheduleError
from aot.codegen.nest.points import Points, Span, Spans, Stmts
from aot.runtime.abi import DType

LANES = 4  # numbers of 32 bits of a vector
VECTOR_BYTES = 4 * LANES


@dataclass(frozen=True, slots=True)
class WordBlocks:
    """The blocks of accumulators `total` of a tile, whose words of data are `x` and of weights `w`."""

    total: Buffer
    x: Load
    w: Load
    points: Points
    schedule: Schedule
    name: str

    @property
    def rows(self) -> Var | None:
        """Return the axis of the rows of the tile; None if it has one row."""
        found = [a for a in self.points.axes if a is not self.points.vector]
        if len(found) > 1 or self.points.vector is None:
            raise ScheduleError(f"blocks: a tile has rows along one axis, got {', '.join(a.name for a in found)}")
        return found[0] if found else None

    @property
    def count(self) -> int:
        return 1 if self.rows is None else self.points.extent(self.rows)

    @property
    def pairs(self) -> int:
        return (self.count + 1) // 2

    @property
    def blocks(self) -> Buffer:
        columns = self.total.shape[-1]
        return dense(f"{self.name}blocks", 2 * self.pairs, columns, space=Space.REGISTERS, dtype=self.total.dtype)

    def around(self, stmts: Stmts) -> Stmts:
        """Return `stmts`, which add to blocks, between statements that make blocks of rows, and rows of blocks."""
        begin = self._moved(self.blocks, self.total, 2 * self.pairs)
        end = self._moved(self.total, self.blocks, self.count)
        return (Alloc(self.blocks, (*begin, *stmts, *end)),)

    def update(self, inner: Spans) -> Stmts:
        """Return the statements that add the terms of a tile of the sum, at most 16, to the blocks."""
        axis = next(a for a in inner if a.name == self.schedule.dots)
        start, n = inner[axis].start, inner[axis].extent
        if not isinstance(n, int) or n > VECTOR_BYTES:
            raise ScheduleError(f"blocks: a step has at most {VECTOR_BYTES} terms, got {n}")
        words = dense(f"{self.name}words", 2 * self.pairs, LANES, space=Space.REGISTERS, dtype=DType.I32)
        parts = -(-n // BLOCK_BYTES)
        rows = dense(f"{self.name}rows", self.pairs, parts, LANES, space=Space.REGISTERS, dtype=DType.I32)
        at = {**inner, axis: Span(start, 1)}
        word, pair = Var("word", LANES), Var("pair", self.pairs)
        own = Points((self.rows,) if self.rows is not None else (), self.points.spans, self.points.lets, self.schedule)
        cell = own.cell[0]
        fill: Stmts = (For(word, (Store(words, (cell, word), row_words(self.x, n)),), LoopKind.VECTOR, LANES),)
        stmts: list[Stmt] = [*own.each(fill, at)]
        if self.count % 2:
            zero = Store(words, (Const(self.count), word), Const(0, DType.I32))
            stmts.append(For(word, (zero,), LoopKind.VECTOR, LANES))
        for part in range(parts):
            both = halves(Load(words, (pair * 2, word)), Load(words, (pair * 2 + 1, word)), part == 1)
            body = For(word, (Store(rows, (pair, Const(part), word), both),), LoopKind.VECTOR, LANES)
            stmts.append(For(pair, (body,), LoopKind.UNROLLED))
        for part in range(parts):
            stmts += self._products(rows, part, {**inner, axis: Span(start + BLOCK_BYTES * part, 1)})
        return (Alloc(words, (Alloc(rows, tuple(stmts)),)),)

    def _products(self, rows: Buffer, part: int, at: Spans) -> Stmts:
        """Return the products of a block of terms."""
        vector = self.points.vector
        assert vector is not None
        spans = {a: s for a, s in self.points.spans.items() if a != self.rows}
        own, point = Points((vector,), spans, self.points.lets, self.schedule), self.points.point(vector)
        stores: list[Stmt] = []
        for half in (0, 1):
            for pair in range(self.pairs):  # one behind the other, so that few weights are in registers at a time
                x = Load(rows, (Const(pair), Const(part), Const(0)))
                stores.append(Store(self.blocks, (Const(2 * pair + half), point), block_dot(x, self.w, half), "add"))
        return own.each(tuple(stores), at)

    def _moved(self, to: Buffer, source: Buffer, count: int) -> Stmts:
        """Return the statements that make rows of `to`, `count` of them, of lanes of two rows of `source`."""
        vector = self.points.vector
        assert vector is not None
        column = self.points.point(vector)
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
