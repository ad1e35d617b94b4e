"""Windows over channels, as in depthwise convolutions and pooling: nothing is shared between rows but the window.

    y[h, w, c] = add[kh, kw](x[h + kh, w + kw, c] * k[kh, kw, c])

    blocks[c:96] order[h w c kh kw] tile[w:7] unroll[kh kw] lanes[c:16] pack[k.2:16] parallel=h
"""

from __future__ import annotations

from math import prod

from codegen.access import reads, varies
from codegen.define import Definition
from codegen.index import normal
from codegen.loops import Load, Var
from codegen.schedule import Schedule, Tail, Tile
from codegen.schedules.pointwise import packs
from codegen.schedules.product_form import Form, extent, loops_of, parts, row_tile, width_of
from codegen.target import Target

PIXELS = 7  # rows of a window's tile
CHAINS = 8  # vectors of a window without rows: additions that wait for each other would take four cycles each
ALONE = 16  # lanes, where each may have to be read by itself
WRITTEN = 1024  # such reads that are written out
WINDOW = 32  # points of a reduction that are written out
LINE = 64  # bytes
AROUND = 4  # rows of a block: of fewer, most of what their windows read has left the nearest cache with the last block


def window(
    d: Definition, form: Form, lanes: int, target: Target, constants: frozenset[str], shared: frozenset[Var]
) -> Schedule:
    """Windows over channels: a vector of channels times a tile of pixels, the window written out.

    Of a large one, a piece of its rows: neighbours read much the same, which stays in registers.
    """
    alone = any(x.steps[form.lane] not in (0, 1) for x in reads(d, body=True) if x.buffer.name not in constants)
    width = width_of(extent(form.lane), min(lanes, ALONE) if alone else lanes)
    fuse: list[tuple[str, tuple[str, ...]]] = []
    rows = [*loops_of(d, form.rows[:-1], fuse), *(a.name for a in form.rows[-1:])]
    tile: list[Tile] = []
    small = prod(extent(a) for a in form.sums) <= WINDOW
    most = PIXELS if small or target.registers < 32 else 2 * PIXELS
    if alone and small:
        most = min(most, max(1, WRITTEN // (width * prod(extent(a) for a in form.sums))))
    height = _pixels(extent(form.rows[-1]), most) if form.rows else 1
    if form.rows:
        tile.append(row_tile(form.rows[-1:], rows[-1], height))
    if height == 1 and not alone:
        tile.append(Tile(form.lane.name, width * max(1, min(CHAINS, extent(form.lane) // width)), Tail.CUT))
    if not small and height > 1 and not varies(form.sums):
        tile.append(Tile(form.sums[-1].name, _pixels(extent(form.sums[-1]), PIXELS)))
    order = (*rows, form.lane.name, *(a.name for a in form.sums))
    channels = _channels(d, form, width, target, constants) if not shared else 0
    beside = _beside(form, rows, target) if channels else ()
    return Schedule(
        fuse=tuple(fuse),
        blocks=(*beside, (form.lane.name, channels)) if channels else (),
        order=order,
        tile=tuple(tile),
        unroll=tuple(a.name for a in form.sums) if small and all(isinstance(a.extent, int) for a in form.sums) else (),
        lanes=(form.lane.name, width),
        pack=packs(reads(d), form.lane, constants, width, form.sums),
        parallel=None if shared else (rows[0] if rows else form.lane.name),
    )


def _channels(d: Definition, form: Form, width: int, target: Target, constants: frozenset[str]) -> int:
    """How many channels' rows stay in the nearest cache until the last window has read them; 0 for all."""
    if varies((*form.rows, form.lane, *form.sums)):
        return 0
    read = [x.load for x in reads(d, body=True) if x.load is not None and x.load.buffer.name not in constants]
    held = max((_between(x, form) * x.buffer.dtype.stored_bytes for x in read), default=0)
    channels = extent(form.lane)
    if held * channels <= target.l1 // 2:
        return 0
    line = max(width, LINE // d.out.dtype.stored_bytes)
    room = target.l1 // 2 if line * held <= target.l1 // 2 else target.l1
    return next((n for n in parts(channels) if n % line == 0 and n * held <= room), 0)


def _beside(form: Form, rows: list[str], target: Target) -> tuple[tuple[str, int], ...]:
    """Blocks of rows for the cores: each core's are what it made of the input, if that was shared by rows."""
    if len(rows) < 2 or rows[0] != form.rows[0].name:
        return ()
    first, n = form.rows[0], extent(form.rows[0])
    count = next((k for k in range(min(target.cores, n // AROUND), 1, -1) if n % k == 0), 1)
    return ((first.name, n // count),) if count > 1 else ()


def _between(x: Load, form: Form) -> int:
    """Elements that windows read between two points of the outer rows, for one channel."""
    count, moving = 1, (*form.rows[-1:], *form.sums)
    for i in x.index:
        terms = normal(i, {}).terms
        count *= 1 + sum(abs(terms.get(a, 0)) * (extent(a) - 1) for a in moving)
    return count


def _pixels(n: int, most: int) -> int:
    """The tile up to `most` that leaves the fewest, fullest tiles."""
    n = max(n, 1)
    return -(-n // -(-n // most))
