"""Schedules, as data: printed, compared, hashed, searched. A schedule changes a result by rounding at most."""

from __future__ import annotations

from enum import StrEnum

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Const, Expr, Size, Var, prim, select
from aot.runtime.abi import DType
from aot.runtime.errors import ScheduleError

__all__ = ["Pack", "Schedule", "ScheduleError", "Segment", "Tail", "Tile", "balance", "segments"]


WORD_BYTES = 4


class Tail(StrEnum):
    """Treatment of the rest when a tile does not divide its axis."""

    BALANCE = "balance"  # 49 by 6 -> 4 of 6, 5 of 5
    CUT = "cut"  # 49 by 6 -> 8 of 6, 1 of 1
    PEEL = "peel"  # as cut, and the last tile stands alone so that its bounds are known
    LAP = "lap"  # 49 by 32 -> 2 of 25, the last of which computes a row again: all tiles are equal, of 32 if dynamic
    SHORT = "short"  # as cut; but a dynamic extent is one loop, whose last tile is as long as the rest
    REST = "rest"  # one loop, whose last tile is as long as the rest


@dataclass(frozen=True, slots=True)
class Tile:
    """An axis in tiles of `size`, which are unrolled (the register tile, or the unrolling of a reduction)."""

    axis: str
    size: int
    tail: Tail = Tail.BALANCE


@dataclass(frozen=True, slots=True)
class Pack:
    """Dimension `axis` of buffer `operand` is blocked by `width`: [all dimensions as in `order`, width].

    Dimensions whose loops enclose the loop over blocks come before `axis` in `order`, so that blocks are stored in the
    order of their use. The last `words` dimensions are flattened and cut into words: [.., n / 4, width, 4] of bytes.
    Words have `word_bytes`: 8 are a row of a block that one instruction multiplies by two rows of another one.
    Dimension `fused` is not in `order`: blocks run over it and `axis` inside of it, as lanes over two fused axes do.
    """

    operand: str
    order: tuple[int, ...]
    axis: int
    width: int
    words: int = 0
    fused: int | None = None
    word_bytes: int = WORD_BYTES

    @property
    def place(self) -> int:
        """Dimension of the packed buffer that counts the blocks."""
        return self.order.index(self.axis)

    def elements(self, dtype: DType) -> int:
        """Return the number of elements of a word."""
        return self.word_bytes // dtype.stored_bytes


@dataclass(frozen=True, slots=True)
class Schedule:
    """Tiles, loop order, vectors, packing and prefetching. Names are axes; a fused name replaces its parts."""

    fuse: tuple[tuple[str, tuple[str, ...]], ...] = ()  # ("p", ("oh", "ow")): one axis that replaces several
    blocks: tuple[tuple[str, int], ...] = ()  # axes whose block loops enclose all others, block sizes
    order: tuple[str, ...] = ()  # loops from the outside in; other axes follow as defined
    tile: tuple[Tile, ...] = ()
    unroll: tuple[str, ...] = ()  # axes whose loop is written out in full
    skip_padding: tuple[str, ...] = ()  # reduction axes whose padding terms are skipped, for a whole tile of outputs
    lanes: tuple[str, int] | None = None  # vector axis, lanes
    partials: int = 1  # vectors of partial results of a reduction along its vector axis
    pack: tuple[Pack, ...] = ()
    prefetch: str | None = None  # packed operand: while a block of its packed axis is used, the next is prefetched
    # Least units of a call for prefetches further ahead in the same block; None: prefetches bring the next block.
    prefetch_within: int | None = None
    # Reduction axis, outermost: each step has a partial sum, which is scaled once by the factors that are equal in it.
    # With dots, steps add up integers.
    scaled_steps: str | None = None
    row_vectors: str | None = None  # reduction axis: numbers of its tile that all lanes share are loaded as one vector
    f16_sums: str | None = None  # reduction axis: the products of a tile of it are summed in f16, the tiles in f32
    dots: str | None = None  # reduction axis whose terms, products of small integers, are summed by words
    matrix: str | None = None  # output axis whose points are rows of tile registers; None: vectors sum the products
    prefetch_epilogue: bool = False  # while a tile is summed, operands and results of its epilogue are prefetched
    prefetch_level: int = 1  # cache that prefetches fill: 1 for L1, 2 for L2
    parallel: str | None = None
    pitch: tuple[tuple[str, int], ...] = ()  # elements added to the outermost stride of a temp
    members: tuple[Schedule, ...] = ()  # schedules of a group's members

    @property
    def in_blocks(self) -> bool:
        """True if instructions multiply blocks of two rows of data by two columns of weights."""
        return any(p.word_bytes > WORD_BYTES for p in self.pack)

    @property
    def lane(self) -> str:
        """Name of the axis along which neighbouring lanes lie: of fused axes, the innermost; empty without lanes."""
        name = self.lanes[0] if self.lanes is not None else ""
        return dict(self.fuse).get(name, (name,))[-1]

    def size(self, axis: str) -> Tile:
        """Return the tile of an axis. A vector axis without one is cut into vectors."""
        tile = next((t for t in self.tile if t.axis == axis), None)
        if self.lanes and self.lanes[0] == axis and (tile is None or tile.size == 1):
            return Tile(axis, self.lanes[1], Tail.CUT)
        return tile or Tile(axis, 1)


@dataclass(frozen=True, slots=True)
class Segment:
    """`count` tiles of `size`, the first at `start`."""

    start: Size
    size: int
    count: Size
    last: Size | None = None  # end of the axis if the last tile may be shorter
    latest: Size | None = None  # start of the last tile if it overlaps the one before


def segments(extent: Size, tile: Tile) -> tuple[Segment, ...]:
    """Partition 0..extent into runs of equal tiles; each run becomes one loop."""
    size = tile.size
    if not isinstance(extent, int):
        if size == 1:
            return (Segment(0, 1, extent),)
        if tile.tail in (Tail.SHORT, Tail.REST):
            return (Segment(0, size, (extent + (size - 1)) // size, extent),)
        if tile.tail is Tail.LAP:
            return (Segment(0, size, (extent + (size - 1)) // size, latest=extent - size),)
        return _balanced(tile) if tile.tail is Tail.BALANCE else _cut(extent, size)
    if extent <= 0:
        return ()
    count = -(-extent // size)
    low, more = divmod(extent, count)
    if tile.tail is Tail.REST and count > 1 and extent % size:
        return (Segment(0, size, count, extent),)
    match tile.tail:
        case Tail.BALANCE:
            runs = [(0, low + 1, more), (more * (low + 1), low, count - more)]
        case Tail.LAP:
            return (Segment(0, low + (more > 0), count, latest=extent - low - 1 if more else None),)
        case Tail.CUT | Tail.SHORT | Tail.REST:
            runs = [(0, size, extent // size), (extent // size * size, extent % size, 1)]
        case Tail.PEEL:
            runs = [(0, size, count - 1), ((count - 1) * size, extent - (count - 1) * size, 1)]
    return tuple(Segment(*r) for r in runs if r[1] and r[2])


def _cut(extent: Expr, size: int) -> tuple[Segment, ...]:
    """Cut into whole tiles, then the rest into powers of two: each of these loops runs at most once."""
    runs = [Segment(0, size, extent // size)]
    rest, part = extent % size, 1 << (size - 1).bit_length() - 1
    while part and normal(rest, {}).key != normal(Const(0), {}).key:
        runs.append(Segment(extent - rest, part, rest // part))
        rest = extent % part if size & (size - 1) == 0 else rest % part
        part //= 2
    return tuple(runs)


def _names(tile: Tile) -> tuple[Var, Var, Var]:
    return Var(f"{tile.axis}.tiles"), Var(f"{tile.axis}.low"), Var(f"{tile.axis}.more")


def _balanced(tile: Tile) -> tuple[Segment, ...]:
    """Cut a dynamic extent into balanced tiles: each tile size has a loop, and at most two of them run."""
    tiles, low, more = _names(tile)

    def loop(height: int) -> Segment:
        first = prim("eq", low, height - 1)
        second = select(prim("eq", low, height), tiles - more, 0)
        return Segment(select(first, 0, more * (low + 1)), height, select(first, more, second))

    return tuple(loop(height) for height in range(tile.size, 0, -1))


def balance(extent: Size, tile: Tile) -> tuple[tuple[Var, Expr], ...]:
    """Return the sizes that `segments` of a dynamic extent reads: `more` tiles of size `low + 1`, others of `low`."""
    if isinstance(extent, int) or tile.size == 1 or tile.tail is not Tail.BALANCE:
        return ()
    tiles, low, more = _names(tile)
    count = prim("max", (extent + (tile.size - 1)) // tile.size, 1)
    return (tiles, count), (low, extent // tiles), (more, extent % tiles)


def width_of(n: int, lanes: int) -> int:
    """Return the lanes of a vector for `n` elements: `lanes`, halved until they are no more than the elements."""
    while lanes > max(n, 1):
        lanes //= 2
    return lanes
