"""Reductions of one tile: accumulators in registers, or partial results in the lanes of a vector.

acc[tile] = init
for the tiles of the reduction axes:
  acc[tile] += body                      unrolled over the tile, vector over the lanes
out[tile] = value(acc)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition, identity
from aot.codegen.ir.expressions import loads, rewrite
from aot.codegen.ir.loops import (
    Alloc,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Reduce,
    Size,
    Stmt,
    Store,
    Var,
    as_expr,
    prim,
    select,
)
from aot.codegen.ir.numbers.chains import is_chains
from aot.codegen.ir.numbers.dot_forms import (
    centred,
    dot,
    dot_factors,
    halved_factors,
    is_arranged,
    is_centred,
    is_guarded,
    packed_field,
    scaled_sum,
    terms_in_rows,
    window_factors,
    word_elements,
)
from aot.codegen.ir.schedule import Schedule, ScheduleError, Tail, Tile
from aot.codegen.nest.chains import chained
from aot.codegen.nest.long_sums import (
    CHAIN,
    FEW,
    LONG,
    LONG_CHAIN,
    LongSum,
    block_of,
    count,
    far_sum,
    if_any_blocks,
    if_blocks,
    in_blocks,
    is_long,
)
from aot.codegen.nest.padding_terms import padding_terms, skip_padding_terms, without_hoisted_tests
from aot.codegen.nest.points import Points, Span, Spans, Stmts, bound, depending, size_of
from aot.codegen.nest.prefetch import prefetch_ahead, prefetch_epilogue, prefetch_panels
from aot.codegen.nest.row_vectors import row_vectors
from aot.codegen.nest.scaled_steps import Kept, ScaledStep, kept_values, with_kept
from aot.codegen.nest.stored import at_point, unused_name
from aot.codegen.nest.word_blocks import WordBlocks, WordRows
from aot.runtime.abi import DType

Tiler = Callable[[tuple[Var, ...], Schedule, Spans, Callable[[Spans], Stmts]], Stmts]


def in_tiles(
    definition: Definition, reduction: Reduce, schedule: Schedule, points: Points, part: Spans, tiles: Tiler
) -> Stmts:
    """Reduce with an accumulator per point of the tile. Partial sums of the blocks in `part` are in the output."""
    acc, cell = points.accumulator(unused_name("acc", definition), reduction.dtype), points.cell
    sums = _in_order(reduction.axes, schedule)
    scaled_step = _scaled_step(definition, reduction, sums, schedule, points)
    kept: tuple[Kept, ...] = ()
    total, own = (acc, reduction.body) if scaled_step is None else (scaled_step.total, scaled_step.body)
    if scaled_step is None and schedule.dots is None and not is_chains(reduction):
        kept, own = kept_values(own, reduction.axes, (), schedule, points, unused_name("", definition))
    whole = {a: part.get(a, Span(Const(0), size_of(a.extent))) for a in sums}
    outside = [b for b in padding_terms(definition) if b.axis.name in schedule.skip_padding]
    ahead = partial(prefetch_ahead, reduction, schedule, points, part, whole)
    inside = without_hoisted_tests(replace(reduction, body=own), outside, points)

    blocks = _word_blocks(definition, inside, schedule, total, points)

    def update(inner: Spans) -> Stmts:
        if blocks is not None:
            return blocks.update(inner)
        if is_chains(reduction):
            return chained(definition, inside, points, total, cell, inner, ahead)
        rows, body = row_vectors(inside.body, schedule, points, inner, unused_name("", definition))
        stmts = _products_added(replace(inside, body=body), schedule, points, total, inner)
        stmts = with_kept(rows, {a: s for a, s in inner.items() if a.name != schedule.row_vectors}, stmts)
        fetches = ahead(inner)
        if schedule.prefetch_epilogue:
            fetches += prefetch_epilogue(definition, reduction, schedule, points, whole, inner)
        return (*fetches, *stmts)

    mine = {a: s for a, s in part.items() if a in reduction.axes}

    def terms(axes: tuple[Var, ...], inner: Spans) -> Stmts:
        if not axes:
            return update(inner)
        axis, *rest = axes

        def step(span: Spans) -> Stmts:
            stmts = terms(tuple(rest), inner | span)
            for border in (b for b in outside if b.axis == axis):
                stmts = skip_padding_terms(border, points, inner | span, stmts)
            here = None if scaled_step is None or axis != scaled_step.axis else scaled_step
            return stmts if here is None else here.around(stmts, inner | span, acc, cell)

        if far is not None and axis is sums[place]:
            flush = points.each(far.flush)
            return in_blocks(
                axis.name,
                size_of(axis.extent),
                block,
                flush,
                lambda start, n: tiles((axis,), schedule, mine | {axis: Span(start, n)}, step),
                again=place > 0,
            )
        if axis.name != schedule.dots or panels is None:
            return tiles((axis,), schedule, mine, step)
        ahead = partial(prefetch_panels, panels, schedule, points, part, sums)
        parts = replace(schedule, tile=(Tile(axis.name, _part_terms(axis, panels, schedule), Tail.CUT),))
        return tiles((axis,), parts, mine, lambda s: (*ahead(inner | s), *tiles((axis,), schedule, mine | s, step)))

    far = None if scaled_step is not None or mine else _long_chain(definition, schedule, points, acc, sums)
    place, block = block_of(sums, 1)
    panels = _prefetched(reduction, schedule)
    first, last = _between_blocks(definition, reduction, points, part, acc)
    begin = points.each((Store(acc, cell, first),))
    return _with_far(far, points, acc, begin, with_kept(kept, {}, _in_blocks(blocks, terms(sums, {}))), last)


def _products_added(reduction: Reduce, schedule: Schedule, points: Points, total: Buffer, inner: Spans) -> Stmts:
    """Return the statements that add the terms of a tile of the sum to the accumulators `total`."""
    stmts: Stmts = ()
    for body, some in _by_words(reduction, schedule, inner):
        stmts += _unrolled(points.each((Store(total, points.cell, body, reduction.fn),), some), reduction.axes, some)
    return stmts


def _in_blocks(blocks: WordRows | None, stmts: Stmts) -> Stmts:
    return stmts if blocks is None else blocks.around(stmts)


def _word_blocks(
    definition: Definition, reduction: Reduce, schedule: Schedule, total: Buffer, points: Points
) -> WordRows | None:
    """Return a sum of bytes of which each row's words are loaded at once; None for others."""
    form = WordBlocks if schedule.in_blocks else WordRows if schedule.dots and is_centred(reduction) else None
    factors = dot_factors(reduction, schedule.lane)
    if form is None or factors is None or scaled_sum(reduction) is not None or len(points.axes) > 2:
        return None
    if not any(p.words and p.operand == factors[1].buffer.name and p.fused is None for p in schedule.pack):
        return None
    return form(total, *factors, points, schedule, unused_name("", definition))


def _with_far(far: LongSum | None, points: Points, acc: Buffer, begin: Stmts, body: Stmts, last: Stmts) -> Stmts:
    """Build a sum in `acc`, and in the sum `far` of its blocks where it is long."""
    if far is None:
        return (Alloc(acc, (*begin, *body, *last)),)
    return _with_buffers((acc, far.far), (*begin, *points.each(far.begin), *body, *points.each(far.end), *last))


def _long_chain(
    definition: Definition, schedule: Schedule, points: Points, acc: Buffer, axes: tuple[Var, ...]
) -> LongSum | None:
    """Return the sum of blocks of an accumulator; None where all terms are one chain."""
    reduction = definition.reduction
    if reduction is None or schedule.dots is not None or not is_long(reduction, count(axes), LONG_CHAIN):
        return None
    return LongSum(acc, far_sum(points, unused_name("far", definition)), points.cell)


def _scaled_step(
    definition: Definition, reduction: Reduce, sums: tuple[Var, ...], schedule: Schedule, points: Points
) -> ScaledStep | None:
    """Return the sum of a step of the axis `schedule.scaled_steps`; None without one."""
    steps = next((a for a in sums if a.name == schedule.scaled_steps), None)
    return None if steps is None else ScaledStep(reduction, steps, schedule, points, unused_name("", definition))


def _between_blocks(
    definition: Definition, reduction: Reduce, points: Points, part: Spans, acc: Buffer
) -> tuple[Expr, Stmts]:
    """Return the start of an accumulator, and the stores at the end.

    The first block of a sum begins with its `init`, others with the partial sum in the output; the last one computes
    the value, others store the partial sum.
    """
    cell = points.cell
    first = reduction.init if reduction.init is not None else identity(reduction.fn, acc.dtype)
    last = points.each((at_point(definition, rewrite(definition.value, {reduction: Load(acc, cell)}), points),))
    for axis in reduction.axes:
        if axis in part:
            begin, extent = part[axis].start, size_of(axis.extent)
            first = select(prim("eq", begin, Const(0)), first, Load(definition.out, definition.target))
            raw = points.each((Store(definition.out, definition.target, Load(acc, cell)),))
            last = (If(prim("lt", begin + size_of(part[axis].extent), as_expr(extent, DType.I64)), raw, last),)
    return first, last


def _prefetched(reduction: Reduce, schedule: Schedule) -> Load | None:
    """Return the load of the packed weights whose next panel is prefetched while dots sum the terms of this one."""
    packed = {p.operand for p in schedule.pack if p.operand == schedule.prefetch and schedule.dots}
    return next((x for x in loads(reduction.body) if x.buffer.name in packed), None)


def _part_terms(axis: Var, w: Load, schedule: Schedule) -> int:
    """Return the terms that dots sum between prefetches of the next panel; all if the sum has no fitting divisor.

    Loads behind prefetches of many lines at a time wait for them.
    """
    step, extent = schedule.size(axis.name).size, size_of(axis.extent)
    least = -(-COSTS.fetch_words * word_elements(w.buffer.dtype) // step) * step
    if not isinstance(extent, int):
        return least
    return next((n for n in range(least, extent, step) if extent % n == 0), extent)


def _in_order(axes: tuple[Var, ...], schedule: Schedule) -> tuple[Var, ...]:
    rank = {name: i for i, name in enumerate(schedule.order)}
    return tuple(sorted(axes, key=lambda a: rank.get(a.name, len(rank))))


def _unrolled(stmts: Stmts, axes: tuple[Var, ...], inner: Spans) -> Stmts:
    """Write out the iterations of a tile along the axes of a sum."""
    for axis in reversed(axes):
        if inner[axis].extent != 1:
            stmts = (For(Var(f"{axis.name}.u", inner[axis].extent), stmts, LoopKind.UNROLLED),)
    return stmts


def _by_words(reduction: Reduce, schedule: Schedule, inner: Spans) -> list[tuple[Expr, Spans]]:
    """Return the terms to add for a tile of the sum, with the spans that they cover; with dots, for each word."""
    axis = next((a for a in reduction.axes if a.name == schedule.dots), None)
    lane = schedule.lane
    factors = dot_factors(reduction, lane)
    if axis is None or factors is None or (factors[1].dtype.is_float and is_guarded(reduction)):
        return [(reduction.body, inner)]
    start, extent = inner[axis].start, inner[axis].extent
    if not isinstance(extent, int):
        raise ScheduleError(f"{axis.name}: dots need a tile of a static size, got {extent}")
    x, w = factors
    words = {p.operand for p in schedule.pack if p.words}
    words |= {f.buffer.name for f in factors if is_arranged(f, (axis,)) is not None}
    if w.buffer.name in words and window_factors(reduction, lane) is not None:
        x, w = w, x  # words of weights, and rows of data
    size = word_elements(w.buffer.dtype)
    found: list[tuple[Expr, Spans]] = []
    sums, few = halved_factors(reduction), packed_field(reduction)
    for n in range(0, extent, size):
        count = min(size, extent - n)
        rows = () if w.buffer.name in words else terms_in_rows(w, axis, count, size)
        term = dot(x, w if few is None else few.value, count, rows)
        if is_centred(reduction):
            data, weights = (centred(f) if f.dtype is DType.U8 else f for f in (x, w))
            term = dot(data, weights, count, rows)
        if sums is not None:
            (a, b), (c, d) = sums
            term = dot(a + b, c + d, count)
        found.append((term, {**inner, axis: Span(start + n, 1)}))
    return found


@dataclass(frozen=True, slots=True)
class _Sweep:
    """The vector axis of a reduction: `extent` = steps of `width`, of `lanes`, of half of these .., of single elements.

    Halves go into the first lanes, down to four of them, which all targets have; less than four are single elements.
    A dynamic extent ends in a step of `width` whose elements past the end are the identity. So element r always goes to
    partial result r % `width`, and terms behind it that change nothing, as those of tokens that attention masks, do not
    change the order of the sum.
    """

    extent: Size
    lanes: int
    width: int

    @property
    def whole(self) -> Size:
        """Number of steps of `width`."""
        return self.extent // self.width

    @property
    def steps(self) -> Size:
        """Number of terms of a partial result; those of `whole` if the extent varies."""
        return self.whole + sum(n for _, n, _ in self.rest if isinstance(n, int))

    @property
    def rest(self) -> tuple[tuple[Size, Size, int], ...]:
        """Return the parts behind these, each as (first index, number of steps, elements of a step)."""
        rest = self.extent % self.width
        if not isinstance(self.extent, int):
            return ((self.extent - rest, (rest + (self.width - 1)) // self.width, self.width),)
        sizes = [self.lanes >> n for n in range(self.width == self.lanes, self.lanes.bit_length() - 2)]
        ends = [self.extent - self.extent % size for size in (self.width, *sizes, 1)]
        return tuple((a, (b - a) // n, n) for (a, b), n in zip(pairwise(ends), (*sizes, 1), strict=True))


def along_lanes(definition: Definition, reduction: Reduce, schedule: Schedule, points: Points, tiles: Tiler) -> Stmts:
    """Reduce along the vector axis: partial results in lanes, folded once at the end."""
    assert schedule.lanes is not None
    name, lanes = schedule.lanes
    axis = next(a for a in reduction.axes if a.name == name)
    outer = tuple(a for a in reduction.axes if a is not axis)
    extent = axis.extent
    assert extent is not None
    most = max(1, min(schedule.partials, extent // lanes)) if isinstance(extent, int) else schedule.partials
    sweep = _Sweep(extent, lanes, lanes * most)
    part = points.accumulator(unused_name("part", definition), reduction.dtype, sweep.width)
    acc, cell = points.accumulator(unused_name("acc", definition), reduction.dtype), points.cell
    here, start = Var(f"{name}.t", sweep.width), identity(reduction.fn, acc.dtype)

    def vectors(over: Var, *stmts: Stmt) -> Stmt:
        assert isinstance(over.extent, int)
        return For(over, stmts, LoopKind.VECTOR, min(lanes, over.extent))

    def pass_over(first: Size, steps: Size, width: int, ends: bool = False) -> Callable[[Spans], Stmts]:
        """Build steps of `width` elements. `ends`: some elements of the last step may lie past the end."""
        step, point = Var(f"{name}.o", steps), Var(f"{name}.t", width)
        at = step * width + as_expr(first, DType.I64) + (point if width > 1 else Const(0))
        target, index = (acc, cell) if width == 1 else (part, (*cell, point))
        add = Store(target, index, reduction.body, reduction.fn)
        if ends:
            before = Load(target, index)
            more = prim(reduction.fn, before, reduction.body)
            add = Store(target, index, prim("within", axis, extent, more, before))

        def update(inner: Spans) -> Stmts:
            stmts = bound((add,), [*depending(points.lets, axis), (axis, at)])
            stmts = points.each((vectors(point, *stmts),) if width > 1 else stmts, inner)
            return (For(step, _unrolled(stmts, outer, inner)),)

        return update

    begin = (
        *points.each((vectors(here, Store(part, (*cell, here), start)),)),
        *points.each((Store(acc, cell, reduction.init if reduction.init is not None else start),)),
    )
    ends = not isinstance(extent, int)
    rest = [pass_over(*p, ends) for p in sweep.rest if p[1] != 0]
    far = _FarSums(points, here, lanes, ())
    if is_long(reduction, count((axis, *outer)), LONG * sweep.width, False):
        far = replace(far, sums=_long_sums(definition, points, part, acc, here, bool(outer)))

    def whole(inner: Spans) -> Stmts:
        if not far.sums or (isinstance(sweep.whole, int) and sweep.whole <= CHAIN):
            return pass_over(0, sweep.whole, sweep.width)(inner) if sweep.whole != 0 else ()
        return in_blocks(
            name,
            sweep.whole,
            FEW if outer and ends else CHAIN,
            far.flush,
            lambda first, steps: pass_over(first * sweep.width, steps, sweep.width)(inner),
            begin=() if outer else far.begin,
        )

    def every(inner: Spans) -> Stmts:
        return (*whole(inner), *(s for update in rest for s in update(inner)))

    if far.sums and outer:
        sums = _outer_blocks(outer, sweep.steps, schedule, tiles, far, every)
    elif far.sums or ends:
        sums = (*tiles(outer, schedule, {}, every), *if_blocks(sweep.whole, CHAIN, far.end))
    else:
        sums = tuple(s for update in (whole, *rest) for s in tiles(outer, schedule, {}, update))
    body = (
        *begin,
        *sums,
        *_fold(part, acc, reduction.fn, lanes, most, points),
        *points.each((at_point(definition, rewrite(definition.value, {reduction: Load(acc, cell)}), points),)),
    )
    return _with_buffers((part, acc, *(f.far for f in far.sums)), body)


def _outer_blocks(
    outer: tuple[Var, ...],
    steps: Size,
    schedule: Schedule,
    tiles: Tiler,
    far: _FarSums,
    body: Callable[[Spans], Stmts],
) -> Stmts:
    """Build loops over the outer axes of a long sum; `steps`: terms of each iteration, one behind the other."""
    place, size = block_of(outer, steps)
    axis, rest = outer[place], outer[place:]

    def blocks(before: Spans) -> Stmts:
        return in_blocks(
            axis.name,
            size_of(axis.extent),
            size,
            far.flush,
            lambda start, n: tiles(rest, schedule, {axis: Span(start, n)}, lambda inner: body(before | inner)),
            again=place > 0,
        )

    found = ((size_of(axis.extent), 0 if place else size), (steps, FEW))
    begin, end = (if_any_blocks(found, stmts) for stmts in (far.begin, far.end))
    return (*begin, *tiles(outer[:place], schedule, {}, blocks), *end)


@dataclass(frozen=True, slots=True)
class _FarSums:
    """Long sums of each point of a tile: those of partial results along `lane`, and of its accumulator."""

    points: Points
    lane: Var
    lanes: int
    sums: tuple[LongSum, ...]

    @property
    def begin(self) -> Stmts:
        return self._each(lambda far: far.begin)

    @property
    def flush(self) -> Stmts:
        return self._each(lambda far: far.flush)

    @property
    def end(self) -> Stmts:
        return self._each(lambda far: far.end)

    def _each(self, build: Callable[[LongSum], Stmts]) -> Stmts:
        stmts: Stmts = ()
        for far in self.sums:
            own = build(far)
            own = (For(self.lane, own, LoopKind.VECTOR, self.lanes),) if self.lane in far.index else own
            stmts += self.points.each(own)
        return stmts


def _long_sums(
    definition: Definition, points: Points, part: Buffer, acc: Buffer, lane: Var, both: bool
) -> tuple[LongSum, ...]:
    """Return the long sums of the partial results, and of the accumulator for terms behind them if `both`."""
    size = part.shape[-1]
    assert isinstance(size, int)
    long = LongSum(part, far_sum(points, unused_name("far", definition), size), (*points.cell, lane))
    rest = LongSum(acc, far_sum(points, unused_name("far.rest", definition)), points.cell)
    return (long, rest) if both else (long,)


def _with_buffers(buffers: tuple[Buffer, ...], body: Stmts) -> Stmts:
    for buffer in reversed(buffers):
        body = (Alloc(buffer, body),)
    return body


def _fold(part: Buffer, acc: Buffer, fn: str, lanes: int, count: int, points: Points) -> Stmts:
    """Reduce the `count` vectors of partial results at each point to one, and its lanes into the accumulator."""
    cell, lane, later = points.cell, Var("lane", lanes), Var("later", count - 1)
    vector = Store(part, (*cell, lane), Load(part, (*cell, (later + 1) * lanes + lane)), fn)
    vectors = For(later, (For(lane, (vector,), LoopKind.VECTOR, lanes),), LoopKind.UNROLLED)
    scalar = For(lane, (Store(acc, cell, Load(part, (*cell, lane)), fn),), LoopKind.VECTOR, lanes)
    return (*(points.each((vectors,)) if count > 1 else ()), *points.each((scalar,)))
