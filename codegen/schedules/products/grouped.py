"""Products in many small groups, as convolutions of 4 channels to 4: lanes run over the channels of several groups.

    y[h, w, 4 c + j] = add[ic, kh, kw](x[h + kh, w + kw, 4 c + ic] * k[c, j, ic, kh, kw])

    fuse[v=(c,j)] order[h w v kh ic kw] tile[w:12] unroll[ic kw] lanes[v:16] pack[k.(0,1):16]

The lanes' elements of `x`, or words of elements that dots sum, are shuffled out of one vector, which all taps of a
sliding window share.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import Access, reads, store, varies
from aot.codegen.ir.definition import Definition, unused_axis
from aot.codegen.ir.loops import Var
from aot.codegen.ir.numbers.dot_forms import (
    dot_factors,
    elements_per_dot,
    has_k_words,
    is_guarded,
    packed_field,
    packs_lanes,
    scaled_sum,
)
from aot.codegen.ir.schedule import Pack, Schedule, Tail, Tile
from aot.codegen.schedules.pointwise import is_packable
from aot.codegen.schedules.products.product_form import MatmulShape, extent, loops_of, row_tile
from aot.codegen.schedules.request import Fused, Request, ScheduleChoice
from aot.codegen.target import Target


def grouped(request: Request, shape: MatmulShape) -> ScheduleChoice | None:
    """Return the schedule of a product in groups; None if groups are not adjacent in memory.

    Groups that fill vectors alone have such a schedule with dots only.
    """
    d, lanes, target, constants = request.work, request.lanes, request.target, request.constants
    channels = extent(shape.lane)
    if request.points or len(shape.outer) != 1 or not shape.rows or varies((shape.lane, *shape.outer, *shape.sums)):
        return None
    (group,), out = shape.outer, store(d)
    fits = 1 < channels <= lanes and lanes % channels == 0 and extent(group) * channels % lanes == 0
    if not fits or out.strides[group] != channels or out.strides[shape.lane] != 1:
        return None
    body = reads(d, body=True)
    weights, data = [x for x in body if x.moves(shape.lane)], [x for x in body if not x.moves(shape.lane)]
    if len(weights) != 1 or not _packed(weights[0], shape, group, constants):
        return None
    slides = _slides(shape, body)
    inner = [a for a in shape.sums if a is not slides and any(x.strides[a] == 1 for x in data)]
    written = [a for a in (*inner, slides) if a is not None]
    sums = [*(a for a in shape.sums if a not in written), *written]
    packing = _plan(weights[0], shape, group, [*(a for a in shape.sums if a not in inner), *inner], lanes)
    words = _words(d, shape, group, inner, packing, target)
    if not words and (
        channels == lanes or not all((x.strides[group] or lanes) * (lanes // channels) <= lanes for x in data)
    ):
        return None
    name = unused_axis("v", d)
    lane_fused: Fused = ((name, (group.name, shape.lane.name)),)
    around, row_fused = loops_of(d, shape.rows[:-1], lane_fused)
    rows = [*around, shape.rows[-1].name]
    window, shuffles = extent(slides) if slides is not None else 1, 1 if words else prod(map(extent, inner))
    # Besides accumulators: vectors of the pixels that these and the window read, weights, and patterns of shuffles.
    height = max(1, (target.registers - window - shuffles - 1) // 2)
    schedule = Schedule(
        fuse=lane_fused + row_fused,
        order=(*rows, name, *(a.name for a in sums)),
        tile=(
            row_tile(shape.rows[-1:], rows[-1], height, once=d.overwrites),
            *(Tile(a.name, words, Tail.CUT) for a in inner if words),
        ),
        unroll=tuple(a.name for a in written),
        lanes=(name, lanes),
        pack=(replace(packing, words=1) if words else packing,),
        dots=inner[0].name if words else None,
        parallel=rows[0],
    )
    return schedule, ()


def _words(d: Definition, shape: MatmulShape, group: Var, inner: list[Var], packing: Pack, target: Target) -> int:
    """Return the elements of a word if dots sum the product, along the only axis in `inner`; else 0."""
    factors = dot_factors(d.reduction, shape.lane.name) if d.reduction is not None else None
    if d.reduction is None or factors is None or len(inner) != 1 or scaled_sum(d.reduction) is not None:
        return 0
    kind, packing = factors[1].buffer.dtype, replace(packing, words=1)
    if (
        not target.abilities.dot_terms(kind)
        or packed_field(d.reduction) is not None
        or (kind.is_float and is_guarded(d.reduction))
    ):
        return 0
    lies = has_k_words(d, (inner[0],), packing, shape.lane.name)
    return elements_per_dot(kind) if lies and packs_lanes(d, packing, (group.name, shape.lane.name)) else 0


def _packed(w: Access, shape: MatmulShape, group: Var, constants: frozenset[str]) -> bool:
    return w.buffer.name in constants and is_packable(w, shape.lane) and is_packable(w, group)


def _slides(shape: MatmulShape, body: tuple[Access, ...]) -> Var | None:
    """Return the axis of a short window that slides along the innermost rows, so that taps share loads."""
    steps = [x.strides for x in body if x.moves(shape.rows[-1])]
    short = [a for a in shape.sums if extent(a) <= COSTS.max_unrolled_slide]
    return next((a for a in reversed(short) if all(s[a] and s[a] == s[shape.rows[-1]] for s in steps)), None)


def _plan(w: Access, shape: MatmulShape, group: Var, sums: list[Var], lanes: int) -> Pack:
    """Return the packing of weights: blocks of channels of several groups, and inside of them the axes `sums`."""
    assert w.load is not None
    ranks = {a: n for n, a in enumerate((shape.lane, *sums))}
    dims = [
        (ranks[i] if isinstance(i, Var) and i in ranks else -1, k) for k, i in enumerate(w.load.index) if i != group
    ]
    order, at = tuple(k for _, k in sorted(dims)), w.load.index.index
    return Pack(w.buffer.name, order, at(shape.lane), lanes, fused=at(group))
