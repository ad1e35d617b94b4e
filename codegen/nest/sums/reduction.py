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
    Size,
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
    return _TileSum(definition, reduction, schedule, points, block_spans, tiles).build()


class _TileSum:
    """The reduction of one tile: `acc` has an accumulator for each of its points, to which `terms` are added."""

    def __init__(
        self,
        definition: Definition,
        reduction: Reduce,
        schedule: Schedule,
        points: Points,
        block_spans: Spans,
        tiles: Tiler,
    ) -> None:
        self.definition, self.reduction, self.schedule, self.points = definition, reduction, schedule, points
        self.block_spans, self.tiles = block_spans, tiles
        self.sum_blocks = {a: s for a, s in block_spans.items() if a in reduction.axes}
        self.axes = _in_order(reduction.axes, schedule)
        self.acc = points.accumulator(unused_name("acc", definition), reduction.dtype)
        self.scaled_step = _scaled_step(definition, reduction, self.axes, schedule, points)
        self.total = self.acc if self.scaled_step is None else self.scaled_step.total
        padding = padding_terms(definition) if schedule.skip_padding else ()
        self.skipped_padding = [b for b in padding if b.axis.name in schedule.skip_padding]
        self.hoisted, self.terms = self._terms()
        self.word_rows = _word_rows(definition, self.terms, schedule, self.total, points)
        self.far = self._long_sum()
        self.far_axis, self.far_size = block_of(self.axes, 1)

    def build(self) -> Stmts:
        """Return the statements of the sum, from the start of its accumulators to the stores of its values."""
        first, last = _between_blocks(self.definition, self.reduction, self.points, self.block_spans, self.acc)
        begin = self.points.each((Store(self.acc, self.points.cell, first),))
        stmts = self._loops(self.axes, {})
        stmts = stmts if self.word_rows is None else self.word_rows.around(stmts)
        return _with_far(self.far, self.points, self.acc, begin, with_register_values(self.hoisted, {}, stmts), last)

    def _terms(self) -> tuple[tuple[RegisterValue, ...], Reduce]:
        """Return values that are computed before the loops, and the reduction of what is left to add."""
        body = self.reduction.body if self.scaled_step is None else self.scaled_step.body
        hoisted: tuple[RegisterValue, ...] = ()
        if self.scaled_step is None and self.schedule.dots is None and not is_chain_sum(self.reduction):
            name = unused_name("", self.definition)
            hoisted, body = register_values(body, self.reduction.axes, (), self.schedule, self.points, name)
        return hoisted, without_hoisted_tests(replace(self.reduction, body=body), self.skipped_padding, self.points)

    def _long_sum(self) -> LongSum | None:
        """Return the sum of the accumulators' blocks; None if all terms are one chain."""
        if self.scaled_step is not None or self.sum_blocks or self.schedule.dots is not None:
            return None
        if not is_long(self.reduction, count(self.axes), LONG_CHAIN):
            return None
        return LongSum(self.acc, far_sum(self.points, unused_name("far", self.definition)), self.points.cell)

    def _loops(self, axes: tuple[Var, ...], inner: Spans) -> Stmts:
        """Return loops over `axes`, outermost first, that add the terms of `inner`, a span of each axis around them."""
        if not axes:
            return self._add(inner)
        axis, *rest = axes
        step = partial(self._step, axis, tuple(rest), inner)
        if self.far is not None and axis is self.axes[self.far_axis]:
            return self._far_tiles(axis, self.far, step)
        panels = _prefetched(self.reduction, self.schedule) if axis.name == self.schedule.dots else None
        return self._tiles(axis, {}, step) if panels is None else self._panel_tiles(axis, panels, inner, step)

    def _tiles(self, axis: Var, block: Spans, step: Callable[[Spans], Stmts]) -> Stmts:
        """Return the loop over the tiles of an axis, or over those of one `block`."""
        return self.tiles((axis,), self.schedule, self.sum_blocks | block, step)

    def _far_tiles(self, axis: Var, far: LongSum, step: Callable[[Spans], Stmts]) -> Stmts:
        """Return loops over the blocks of a long sum: each block's accumulators are added to `far`."""

        def run(start: Expr, extent: Size) -> Stmts:
            return self._tiles(axis, {axis: Span(start, extent)}, step)

        flush = self.points.each(far.flush)
        return in_blocks(axis.name, size_of(axis.extent), self.far_size, flush, run, again=self.far_axis > 0)

    def _panel_tiles(self, axis: Var, panels: Load, inner: Spans, step: Callable[[Spans], Stmts]) -> Stmts:
        """Return the loop over the tiles of an axis, with prefetches of the next panel between some of them."""
        terms = Tile(axis.name, _part_terms(axis, panels, self.schedule), Tail.CUT)
        ahead = partial(prefetch_panels, panels, self.schedule, self.points, self.block_spans, self.axes)
        return self.tiles(
            (axis,),
            replace(self.schedule, tile=(terms,)),
            self.sum_blocks,
            lambda span: (*ahead(inner | span), *self._tiles(axis, span, step)),
        )

    def _step(self, axis: Var, rest: tuple[Var, ...], inner: Spans, span: Spans) -> Stmts:
        """Return a step of the loop over `axis`, within its `span`: loops over the `rest` of the axes."""
        spans = inner | span
        stmts = self._loops(rest, spans)
        for border in self.skipped_padding:
            if border.axis == axis:
                stmts = skip_padding_terms(border, self.points, spans, stmts)
        if self.scaled_step is None or axis != self.scaled_step.axis:
            return stmts
        return self.scaled_step.around(stmts, spans, self.acc, self.points.cell)

    def _add(self, inner: Spans) -> Stmts:
        """Add the terms of a tile: in the form of the sum if it has one of its own, else one by one."""
        if self.word_rows is not None:
            return self.word_rows.update(inner)
        definition, points, total = self.definition, self.points, self.total
        if is_chain_sum(self.terms):
            return chain_loops(definition, self.terms, points, total, points.cell, inner, self._prefetches)
        if self.schedule.f16_sums is not None:
            return in_f16(definition, self.terms, self.schedule, points, total, inner, self._prefetches)
        rows, body = row_vectors(self.terms.body, self.schedule, points, inner, unused_name("", definition))
        words = word_vectors(self.terms, self.schedule, points, inner, unused_name("row", definition))
        stmts = _products_added(replace(self.terms, body=body), self.schedule, points, total, inner, words)
        stmts = with_register_values(
            rows, {a: s for a, s in inner.items() if a.name != self.schedule.row_vectors}, stmts
        )
        fetches = self._prefetches(inner)
        if self.schedule.prefetch_epilogue:
            fetches += prefetch_epilogue(definition, self.reduction, self.schedule, points, self._sum_spans(), inner)
        return (*fetches, *stmts)

    def _prefetches(self, inner: Spans) -> Stmts:
        spans = self._sum_spans()
        return prefetch_ahead(self.reduction, self.schedule, self.points, self.block_spans, spans, inner)

    def _sum_spans(self) -> Spans:
        return {a: self.block_spans.get(a, Span(Const(0), size_of(a.extent))) for a in self.axes}


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


def _word_rows(
    definition: Definition, reduction: Reduce, schedule: Schedule, total: Buffer, points: Points
) -> WordRows | None:
    """Return the helper that loads each row's words at once; None for sums that need none."""
    form = WordBlocks if schedule.in_blocks else WordRows if schedule.dots and is_centred(reduction) else None
    factors = dot_factors(reduction, schedule.lane) if form is not None else None
    if form is None or factors is None or scaled_sum(reduction) is not None or len(points.axes) > 2:
        return None
    if not any(p.words and p.operand == factors[1].buffer.name and p.fused is None for p in schedule.pack):
        return None
    return form(total, *factors, points, schedule, unused_name("", definition))


def _with_far(far: LongSum | None, points: Points, acc: Buffer, begin: Stmts, body: Stmts, last: Stmts) -> Stmts:
    """Build a sum in `acc`, and in the sum `far` of its blocks if it is long."""
    if far is None:
        return (Alloc(acc, (*begin, *body, *last)),)
    return with_buffers((acc, far.far), (*begin, *points.each(far.begin), *body, *points.each(far.end), *last))


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
    """Return the load of packed weights to prefetch: dots sum the terms of one panel meanwhile."""
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
    factors = dot_factors(reduction, lane) if axis is not None else None
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
