"""Reductions of one tile with an accumulator in registers for each point; `lane_sums` has those along lanes.

acc[tile] = init
for the tiles of the reduction axes:
  acc[tile] += body                      unrolled over the tile, vector over the lanes
out[tile] = value(acc)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from aot.codegen.costs import COSTS
from aot.codegen.ir.definition import Definition, identity
from aot.codegen.ir.expressions import loads
from aot.codegen.ir.loops import (
    Alloc,
    Buffer,
    Const,
    Expr,
    If,
    Load,
    Prim,
    Reduce,
    Store,
    Var,
    as_expr,
    prim,
    select,
)
from aot.codegen.ir.numbers.bf16_chains import is_chain_sum
from aot.codegen.ir.numbers.dot_forms import (
    centred,
    dot,
    dot_factors,
    elements_per_dot,
    halved_factors,
    is_arranged,
    is_centred,
    is_guarded,
    packed_field,
    scaled_sum,
    terms_in_rows,
    window_factors,
)
from aot.codegen.ir.schedule import Schedule, ScheduleError, Tail, Tile
from aot.codegen.nest.points import Points, Span, Spans, Stmts, size_of, unrolled
from aot.codegen.nest.prefetch import prefetch_ahead, prefetch_epilogue, prefetch_panels
from aot.codegen.nest.stored import unused_name
from aot.codegen.nest.sums.chain_loops import chain_loops
from aot.codegen.nest.sums.f16_sums import in_f16
from aot.codegen.nest.sums.long_sums import (
    LONG_CHAIN,
    LongSum,
    block_of,
    count,
    far_sum,
    in_blocks,
    is_long,
)
from aot.codegen.nest.sums.padding_terms import padding_terms, skip_padding_terms, without_hoisted_tests
from aot.codegen.nest.sums.row_vectors import row_vectors
from aot.codegen.nest.sums.scaled_steps import RegisterValue, ScaledStep, register_values, with_register_values
from aot.codegen.nest.sums.tile_results import tile_results
from aot.codegen.nest.sums.word_blocks import WordBlocks, WordRows, word_vectors
from aot.runtime.abi import DType

Tiler = Callable[[tuple[Var, ...], Schedule, Spans, Callable[[Spans], Stmts]], Stmts]


def tile_sums(
    definition: Definition, reduction: Reduce, schedule: Schedule, points: Points, block_spans: Spans, tiles: Tiler
) -> Stmts:
    """Reduce with an accumulator per point of the tile. Partial sums of blocks in `block_spans` are in the output."""
    acc, cell = points.accumulator(unused_name("acc", definition), reduction.dtype), points.cell
    sums = _in_order(reduction.axes, schedule)
    scaled_step = _scaled_step(definition, reduction, sums, schedule, points)
    hoisted: tuple[RegisterValue, ...] = ()
    total, own = (acc, reduction.body) if scaled_step is None else (scaled_step.total, scaled_step.body)
    if scaled_step is None and schedule.dots is None and not is_chain_sum(reduction):
        hoisted, own = register_values(own, reduction.axes, (), schedule, points, unused_name("", definition))
    sum_spans = {a: block_spans.get(a, Span(Const(0), size_of(a.extent))) for a in sums}
    skipped_padding = [b for b in padding_terms(definition) if b.axis.name in schedule.skip_padding]
    ahead = partial(prefetch_ahead, reduction, schedule, points, block_spans, sum_spans)
    inner_reduction = without_hoisted_tests(replace(reduction, body=own), skipped_padding, points)

    blocks = _word_blocks(definition, inner_reduction, schedule, total, points)
    partial_update = (
        _partial_sums(definition, inner_reduction, schedule, points, total, ahead) if blocks is None else blocks.update
    )

    def update(inner: Spans) -> Stmts:
        if partial_update is not None:
            return partial_update(inner)
        rows, body = row_vectors(inner_reduction.body, schedule, points, inner, unused_name("", definition))
        words = word_vectors(inner_reduction, schedule, points, inner, unused_name("row", definition))
        stmts = _products_added(replace(inner_reduction, body=body), schedule, points, total, inner, words)
        stmts = with_register_values(rows, {a: s for a, s in inner.items() if a.name != schedule.row_vectors}, stmts)
        fetches = ahead(inner)
        if schedule.prefetch_epilogue:
            fetches += prefetch_epilogue(definition, reduction, schedule, points, sum_spans, inner)
        return (*fetches, *stmts)

    sum_blocks = {a: s for a, s in block_spans.items() if a in reduction.axes}

    def terms(axes: tuple[Var, ...], inner: Spans) -> Stmts:
        if not axes:
            return update(inner)
        axis, *rest = axes

        def step(span: Spans) -> Stmts:
            stmts = terms(tuple(rest), inner | span)
            for border in (b for b in skipped_padding if b.axis == axis):
                stmts = skip_padding_terms(border, points, inner | span, stmts)
            step_of_axis = None if scaled_step is None or axis != scaled_step.axis else scaled_step
            return stmts if step_of_axis is None else step_of_axis.around(stmts, inner | span, acc, cell)

        if far_sums is not None and axis is sums[axis_index]:
            flush = points.each(far_sums.flush)
            return in_blocks(
                axis.name,
                size_of(axis.extent),
                block,
                flush,
                lambda start, n: tiles((axis,), schedule, sum_blocks | {axis: Span(start, n)}, step),
                again=axis_index > 0,
            )
        if axis.name != schedule.dots or panels is None:
            return tiles((axis,), schedule, sum_blocks, step)
        ahead = partial(prefetch_panels, panels, schedule, points, block_spans, sums)
        panel_schedule = replace(schedule, tile=(Tile(axis.name, _part_terms(axis, panels, schedule), Tail.CUT),))
        return tiles(
            (axis,),
            panel_schedule,
            sum_blocks,
            lambda s: (*ahead(inner | s), *tiles((axis,), schedule, sum_blocks | s, step)),
        )

    far_sums = None if scaled_step is not None or sum_blocks else _long_chain(definition, schedule, points, acc, sums)
    axis_index, block = block_of(sums, 1)
    panels = _prefetched(reduction, schedule)
    first, last = _between_blocks(definition, reduction, points, block_spans, acc)
    begin = points.each((Store(acc, cell, first),))
    return _with_far(
        far_sums, points, acc, begin, with_register_values(hoisted, {}, _in_blocks(blocks, terms(sums, {}))), last
    )


def _partial_sums(
    definition: Definition,
    reduction: Reduce,
    schedule: Schedule,
    points: Points,
    total: Buffer,
    ahead: Callable[[Spans], Stmts],
) -> Callable[[Spans], Stmts] | None:
    """Return the statements that add a tile of a sum whose tiles have partial sums; None for other sums."""
    if is_chain_sum(reduction):
        return lambda inner: chain_loops(definition, reduction, points, total, points.cell, inner, ahead)
    if schedule.f16_sums is not None:
        return lambda inner: in_f16(definition, reduction, schedule, points, total, inner, ahead)
    return None


def _products_added(
    reduction: Reduce,
    schedule: Schedule,
    points: Points,
    total: Buffer,
    inner: Spans,
    words: tuple[Buffer, Stmts, Expr] | None = None,
) -> Stmts:
    """Return the statements that add the terms of a tile of the sum to the accumulators `total`.

    `words`: words of the data, see `word_vectors`.
    """
    stmts: Stmts = ()
    for n, (body, some) in enumerate(_by_words(reduction, schedule, inner)):
        if words is not None and isinstance(body, Prim):
            row = next((points.point(a) for a in points.axes if a is not points.vector), Const(0))
            body = replace(body, args=(Load(words[0], (row, words[2] + n)), *body.args[1:]))
        stmts += unrolled(points.each((Store(total, points.cell, body, reduction.fn),), some), reduction.axes, some)
    return stmts if words is None else (Alloc(words[0], (*words[1], *stmts)),)


def _in_blocks(blocks: WordRows | None, stmts: Stmts) -> Stmts:
    return stmts if blocks is None else blocks.around(stmts)


def _word_blocks(
    definition: Definition, reduction: Reduce, schedule: Schedule, total: Buffer, points: Points
) -> WordRows | None:
    """Return the helper that loads each row's words at once; None for sums that need none."""
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
    return with_buffers((acc, far.far), (*begin, *points.each(far.begin), *body, *points.each(far.end), *last))


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
    definition: Definition, reduction: Reduce, points: Points, block_spans: Spans, acc: Buffer
) -> tuple[Expr, Stmts]:
    """Return the start of an accumulator, and the stores at the end.

    The first block of a sum begins with its `init`, others with the partial sum in the output; the last one computes
    the value, others store the partial sum.
    """
    cell = points.cell
    first = reduction.init if reduction.init is not None else identity(reduction.fn, acc.dtype)
    last = tile_results(definition, reduction, points, acc)
    for axis in reduction.axes:
        if axis in block_spans:
            begin, extent = block_spans[axis].start, size_of(axis.extent)
            first = select(prim("eq", begin, Const(0)), first, Load(definition.out, definition.target))
            raw = points.each((Store(definition.out, definition.target, Load(acc, cell)),))
            last = (If(prim("lt", begin + size_of(block_spans[axis].extent), as_expr(extent, DType.I64)), raw, last),)
    return first, last


def _prefetched(reduction: Reduce, schedule: Schedule) -> Load | None:
    """Return the load of the packed weights whose next panel is prefetched while dots sum the terms of this one."""
    packed = {p.operand for p in schedule.pack if p.operand == schedule.prefetch and schedule.dots}
    return next((x for x in loads(reduction.body) if x.buffer.name in packed), None)


def _part_terms(axis: Var, w: Load, schedule: Schedule) -> int:
    """Return the terms that dots sum between prefetches of the next panel; all if the sum has no fitting divisor.

    Loads wait for earlier prefetches, so these are of few lines at a time.
    """
    step, extent = schedule.size(axis.name).size, size_of(axis.extent)
    least = -(-COSTS.fetch_words * elements_per_dot(w.buffer.dtype) // step) * step
    if not isinstance(extent, int):
        return least
    return next((n for n in range(least, extent, step) if extent % n == 0), extent)


def _in_order(axes: tuple[Var, ...], schedule: Schedule) -> tuple[Var, ...]:
    rank = {name: i for i, name in enumerate(schedule.order)}
    return tuple(sorted(axes, key=lambda a: rank.get(a.name, len(rank))))


def with_buffers(buffers: tuple[Buffer, ...], body: Stmts) -> Stmts:
    """Return statements that have buffers of their own."""
    for buffer in reversed(buffers):
        body = (Alloc(buffer, body),)
    return body


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
    size = elements_per_dot(w.buffer.dtype)
    products: list[tuple[Expr, Spans]] = []
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
        products.append((term, {**inner, axis: Span(start + n, 1)}))
    return products
