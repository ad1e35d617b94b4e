"""Windows over channels, as in depthwise convolutions and pooling: nothing is shared between rows but the window.

y[h, w, c] = add[kh, kw](x[h + kh, w + kw, c] * k[kh, kw, c])

blocks[c:96] order[h w c kh kw] tile[w:7] unroll[kh kw] lanes[c:16] pack[k.2:16] parallel=h

Products of bytes are summed by dots, whose words are made of rows of the window, once for all pixels that read them.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import reads, varies
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import variables
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Var
from aot.codegen.ir.numbers.dot_forms import elements_per_dot, takes_columns, window_factors
from aot.codegen.ir.schedule import Pack, Schedule, Tail, Tile, width_of
from aot.codegen.nest.sums.padding_terms import padding_terms
from aot.codegen.schedules.pointwise import packs
from aot.codegen.schedules.products.product_form import MatmulShape, extent, loops_of, parts, row_tile
from aot.codegen.schedules.request import Request, ScheduleChoice
from aot.codegen.target import Target
from aot.runtime.abi import DType


def window(request: Request, shape: MatmulShape) -> ScheduleChoice:
    """Return the schedule of a window: a vector of channels times a tile of pixels, the window unrolled.

    Only some rows of a large window are unrolled: neighbouring taps share most of their loads, which stay in registers.
    """
    d, lanes, target, constants = request.work, request.lanes, request.target, request.constants
    gathers_lanes = any(
        x.strides[shape.lane] not in (0, 1) for x in reads(d, body=True) if x.buffer.name not in constants
    )
    width = width_of(extent(shape.lane), min(lanes, COSTS.max_gathered_lanes) if gathers_lanes else lanes)
    around, fused = loops_of(d, shape.rows[:-1])
    rows = [*around, *(a.name for a in shape.rows[-1:])]
    tile: list[Tile] = []
    down = _words(d, shape, target, constants)
    if down is not None:
        shape = replace(shape, sums=(down, *(a for a in shape.sums if a != down)))
    points = prod(extent(a) for a in shape.sums)
    small = points <= (COSTS.max_unrolled_window if down is None else COSTS.max_unrolled_words)
    row = _pixels(extent(shape.sums[-1]), COSTS.window_tile_rows)
    max_rows = COSTS.window_tile_rows if small or target.registers < 32 else 2 * COSTS.window_tile_rows
    if gathers_lanes:
        max_rows = min(max_rows, max(1, COSTS.max_unrolled_gathers // (width * (points if small else row))))
    height = _pixels(extent(shape.rows[-1]), max_rows) if shape.rows else 1
    if shape.rows:
        tile.append(row_tile(shape.rows[-1:], rows[-1], height, once=d.overwrites))
    if down is not None:
        tile += [Tile(shape.lane.name, width, Tail.CUT), Tile(down.name, elements_per_dot(DType.U8), Tail.CUT)]
    elif height == 1 and not gathers_lanes:
        vectors = max(1, min(COSTS.latency_chains, extent(shape.lane) // width))
        tile.append(Tile(shape.lane.name, width * vectors, Tail.CUT))
    if not small and height > 1 and not varies(shape.sums):
        tile.append(Tile(shape.sums[-1].name, row))
    order = (*rows, shape.lane.name, *(a.name for a in shape.sums))
    channels = _channels(d, shape, width, target, constants) if not request.points else 0
    beside = _block_rows(d, shape, rows, target, constants) if channels else 0
    blocks = ((rows[0], beside),) if beside else ()
    if channels:
        blocks += ((shape.lane.name, channels),)
    schedule = Schedule(
        fuse=fused,
        blocks=blocks,
        order=order,
        tile=tuple(tile),
        skip_padding=_skipped(d, shape, tile),
        unroll=tuple(a.name for a in shape.sums if a != down) if small and not varies(shape.sums) else (),
        lanes=(shape.lane.name, width),
        pack=_packs(d, shape, down, width, constants),
        dots=down.name if down is not None else None,
        parallel=None if request.points else (rows[0] if rows else shape.lane.name),
    )
    return schedule, ()


def _words(d: Definition, shape: MatmulShape, target: Target, constants: frozenset[str]) -> Var | None:
    """Return the axis of the sum along which words of bytes are made; None without dots.

    Pixels of a tile share words if they do not move along the axis's dimension of the data.
    """
    factors = window_factors(d.reduction, shape.lane.name) if target.abilities.joins_bytes else None
    if factors is None or varies(shape.sums):
        return None
    data = next((x for x in factors if x.buffer.name not in constants), factors[0])
    for a in shape.sums:
        dims = [variables(i) for i in data.index if a in variables(i)]
        packings = _packs(d, shape, a, 1, constants)
        if all(v.isdisjoint(shape.rows[-1:]) for v in dims) and any(
            p.words and takes_columns(d, a, p, shape.lane.name) for p in packings
        ):
            return a
    return None


def _packs(
    d: Definition, shape: MatmulShape, down: Var | None, width: int, constants: frozenset[str]
) -> tuple[Pack, ...]:
    """Return the packings of constants; with an axis `down`, weights are packed in words along it."""
    sums = tuple(a for a in shape.sums if a != down)
    if down is None:
        return packs(reads(d), shape.lane, constants, width, sums)
    factors = window_factors(d.reduction, shape.lane.name) or ()
    packings = packs(reads(d), shape.lane, constants, width, (*sums, down))
    return tuple(replace(p, words=1) if any(x.buffer.name == p.operand for x in factors) else p for p in packings)


def _skipped(d: Definition, shape: MatmulShape, tile: list[Tile]) -> tuple[str, ...]:
    """Return the axes of the window along which one test for padding serves all points of a tile."""
    across = {shape.lane, *shape.rows[-1:]}
    skippable = [b for b in padding_terms(d) if b.test is not None and variables(b.index).isdisjoint(across)]
    return tuple(dict.fromkeys(b.axis.name for b in skippable if all(t.axis != b.axis.name for t in tile)))


def _channels(d: Definition, shape: MatmulShape, width: int, target: Target, constants: frozenset[str]) -> int:
    """Return the channels of a block: its rows stay in L1 until the last window has read them. 0: all channels."""
    if varies((*shape.rows, shape.lane, *shape.sums)):
        return 0
    bytes_per_channel = _bytes(d, {a: extent(a) for a in (*shape.rows[-1:], *shape.sums)}, constants)
    channels = extent(shape.lane)
    if bytes_per_channel * channels <= target.l1 // 2:
        return 0
    line = max(width, COSTS.line_bytes // d.out.dtype.stored_bytes)
    room = target.l1 // 2 if line * bytes_per_channel <= target.l1 // 2 else target.l1
    return next((n for n in parts(channels) if n % line == 0 and n * bytes_per_channel <= room), 0)


def _block_rows(d: Definition, shape: MatmulShape, rows: list[str], target: Target, constants: frozenset[str]) -> int:
    """Return the rows of a block; 0 for all. A core gets the rows that it wrote, if the producer was split by rows.

    The rows that a block reads stay in the core's L2 while the loop over channels passes over them again.
    """
    if len(rows) < 2 or rows[0] != shape.rows[0].name:
        return 0
    first, n = shape.rows[0], extent(shape.rows[0])
    extents = {a: extent(a) for a in (*shape.rows, shape.lane, *shape.sums)}
    counts = [k for k in range(1, n // COSTS.min_block_rows + 1) if n % k == 0] or [1]
    near = [k for k in counts if _bytes(d, {**extents, first: n // k}, constants) <= target.l2 // 2] or counts[-1:]
    count = next((k for k in near if k % target.cores == 0), next((k for k in near if k >= target.cores), near[-1]))
    return n // count if count > 1 else 0


def _bytes(d: Definition, sizes: dict[Var, int], constants: frozenset[str]) -> int:
    """Return the bytes that the windows at all points of the axes in `sizes` read from their largest input."""
    most_bytes = 0
    for x in reads(d, body=True):
        if x.load is not None and x.buffer.name not in constants:
            terms = [normal(i, {}).terms for i in x.load.index]
            spans = (1 + sum(abs(t.get(a, 0)) * (n - 1) for a, n in sizes.items()) for t in terms)
            most_bytes = max(most_bytes, prod(spans) * x.buffer.dtype.stored_bytes)
    return most_bytes


def _pixels(n: int, most: int) -> int:
    """Return the size up to `most` that cuts `n` pixels into the fewest tiles, of sizes as equal as possible."""
    n = max(n, 1)
    return -(-n // -(-n // most))
