"""Tiles that are contiguous along another axis than their vectors: whole rows, transposed in registers.

unrolled u in 16:
  vector v in 16 by 16:
    y[u, v] = x[v, u]      16 loads of 16 elements each, instead of 256 loads
    y[v, u] = x[u, v]      stores likewise
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.expressions import loads, unguarded
from aot.codegen.ir.index import Affine, exactly
from aot.codegen.ir.loops import For, Let, Load, LoopKind, Space, Stmt, Store, Var
from aot.codegen.llvm.emit.address import Access, reads_memory
from aot.codegen.llvm.emit.arithmetic.convert import MEMORY, from_memory
from aot.codegen.llvm.emit.arithmetic.shuffle import transposed
from aot.codegen.llvm.emit.function_text import Value, lanes_of, vector
from aot.codegen.llvm.emit.lane_index import lane_of
from aot.codegen.llvm.emit.replaced import replaced
from aot.codegen.llvm.emit.values import Values


@dataclass(frozen=True, slots=True)
class _Tile:
    """Context of a store: the names bound outside and inside of the vector loop."""

    outside: tuple[Let, ...]
    loop: For
    inside: tuple[Let, ...]
    store: Store


@dataclass(slots=True)
class _Column:
    """Vectors to store; the elements of each lane, from all vectors, are contiguous in memory.

    `is_normal`: none is a denormal number.
    """

    lane: Var
    first: Access
    values: list[Value]
    is_normal: bool


class TileTransposer:
    """Emits the loads of an unrolled loop before all of its iterations, and its stores after them.

    `kept`: stores of the enclosing tile, by the offset of the next vector of each column; None outside of tiles.
    """

    def __init__(self, values: Values) -> None:
        self.values = values
        self.kept: dict[object, _Column] | None = None
        self._tiles: dict[int, _Tile | None] = {}  # by identity of the unrolled loop

    def tile(self, loop: For) -> _Tile | None:
        """Return the store in an unrolled loop over vectors if it has the form of a tile."""
        if id(loop) not in self._tiles:
            self._tiles[id(loop)] = _tile(loop)
        return self._tiles[id(loop)]

    def keeps_stores(self, loop: For) -> bool:
        """True if the stores of an unrolled loop over vectors are kept until its end."""
        tile = self.tile(loop)
        return tile is not None and tile.store.accumulate is None and not _rereads(tile.store)

    def keep(self, target: Access, value: Value) -> None:
        """Keep a vector with elements far apart in memory, to store it with its column."""
        lane, is_normal = self.values.at.lane, self.values.is_normal
        assert self.kept is not None and lane is not None
        column = self.kept.pop(target.whole.key, None) or _Column(lane, target, [], is_normal)
        column.values.append(value)
        self.kept[target.whole.plus(Affine({}, 1)).key] = column

    def write_kept(self, kept: dict[object, _Column]) -> None:
        """Store the kept vectors, transposed: the elements of each lane are a row."""
        saved = self.values.at.lane
        for column in kept.values():
            self.values.at.lane = column.lane
            parts = [self.values.at.in_lane(column.first, i) for i in range(self.values.width)]
            self.values.at.lane = None
            count, poison = len(column.values), Value(column.values[0].type, "poison")
            rows = [*column.values, *[poison] * ((1 << (count - 1).bit_length()) - count)]
            self.values.is_normal = column.is_normal
            for part, row in zip(parts, transposed(self.values.f, rows), strict=True):
                self._write_row(part, row, count)
        self.values.at.lane, self.values.is_normal = saved, False

    def _write_row(self, a: Access, row: Value, count: int) -> None:
        start, size = 0, lanes_of(row.type)
        while start < count:
            while size > count - start:
                size //= 2
            offset = a.offset.plus(Affine({}, start))
            part = row if size == lanes_of(row.type) else self.values.f.part(row, start, size)
            self.values.write(Access(a.buffer, offset, 0, offset), part, size)
            start += size

    def read_blocks(self, loop: For) -> None:
        """Load operands that are contiguous along the axis of an unrolled loop over vectors, for all iterations."""
        tile = self.tile(loop)
        extent = loop.var.extent
        short = not isinstance(extent, int) or extent < COSTS.min_transposed_extent
        if tile is None or short or self.values.inside is not None:
            return
        saved = self.values.at.env.get(loop.var), self.values.at.env.get(tile.loop.var)
        for start, lanes in vectors(tile.loop.var, tile.loop.lanes):
            if lanes >= COSTS.min_transposed_extent:
                self.values.at.lane, self.values.at.env[tile.loop.var] = lane_of(start, lanes)
                for load in unguarded(tile.store.value):
                    self._read_block(load, loop.var, tile)
        self.values.at.lane = None
        for var, known in zip((loop.var, tile.loop.var), saved, strict=True):
            self.values.at.env.pop(var, None)
            if known is not None:
                self.values.at.env[var] = known

    def _read_block(self, load: Load, var: Var, tile: _Tile) -> None:
        assert isinstance(var.extent, int)
        if load.buffer.space is Space.TABLE or load.buffer.name in self.values.registers:
            return
        accesses: list[Access] = []
        for k in range(var.low, var.extent):
            self.values.at.env[var] = exactly(k)
            with self._bound((*tile.outside, *tile.inside)):
                a = self.values.at.access(load.buffer, load.index)
            distance = a.offset.plus(accesses[0].offset, -1) if accesses else Affine({})
            is_distant = self.values.at.is_strided(a) if a.stride is None else abs(a.stride) >= COSTS.gather_distance
            if not is_distant or distance.terms or distance.const != len(accesses):
                return
            accesses.append(a)
        while len(accesses) >= COSTS.min_transposed_extent:
            count = 1 << min(len(accesses), self.values.width).bit_length() - 1
            self._transpose(accesses[:count])
            accesses = accesses[count:]

    def _transpose(self, accesses: list[Access]) -> None:
        """Load rows, transpose them, and record the vector that each access reads."""
        first, lane = accesses[0], self.values.at.lane
        type_ = vector(MEMORY[first.buffer.dtype], len(accesses))
        parts = [self.values.at.in_lane(first, i) for i in range(self.values.width)]
        with replaced(self.values.at, lane=None):
            rows = [self.values.f.load(type_, self.values.at.pointer(p), self.values.at.align(p)) for p in parts]
        known = self.values.loaded.setdefault(first.buffer.name, {})
        for a, column in zip(accesses, transposed(self.values.f, rows), strict=True):
            value = from_memory(self.values.f, a.buffer.dtype, column, self.values.abilities.converts)
            known[("gather", a.buffer.dtype, a.whole.key, lane), ""] = value

    @contextmanager
    def _bound(self, lets: tuple[Let, ...]) -> Generator[None]:
        saved = [(let.var, self.values.at.env.get(let.var)) for let in lets]
        for let in lets:
            self.values.at.env[let.var] = self.values.at.normal(let.value)
        yield
        for var, known in reversed(saved):
            self.values.at.env.pop(var, None)
            if known is not None:
                self.values.at.env[var] = known


def _tile(loop: For) -> _Tile | None:
    outside, inner = _lets(loop.body)
    if not isinstance(inner, For) or inner.kind is not LoopKind.VECTOR:
        return None
    inside, store = _lets(inner.body)
    return _Tile(outside, inner, inside, store) if isinstance(store, Store) else None


def _lets(body: tuple[Stmt, ...]) -> tuple[tuple[Let, ...], Stmt | None]:
    """Return the lets of a body and the one statement below them; None if there are several."""
    lets: list[Let] = []
    while len(body) == 1 and isinstance(body[0], Let) and not reads_memory(body[0].value):
        lets.append(body[0])
        body = body[0].body
    return tuple(lets), body[0] if len(body) == 1 else None


def vectors(var: Var, lanes: int) -> Iterator[tuple[int, int]]:
    """Yield the first element and the lanes of each vector of a loop over `var`."""
    start = var.low
    assert isinstance(var.extent, int)
    while start < var.extent:
        if start + lanes <= var.extent:
            yield start, lanes
            start += lanes
        else:
            lanes //= 2


def _rereads(store: Store) -> bool:
    """True if a store reads the buffer that it writes."""
    return any(x.buffer.name == store.buffer.name for x in loads(*store.index, store.value))
