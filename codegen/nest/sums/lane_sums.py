"""Reductions of one tile along its vector axis: partial results in lanes, folded once at the end.

part[tile, 0:64] = identity;  acc[tile] = init
for the steps of the axis:
  part[tile, 0:64] += body
acc[tile] += part[tile, 0] + part[tile, 1] ..
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition, identity
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import (
    Buffer,
    Const,
    For,
    Load,
    LoopKind,
    Reduce,
    Size,
    Stmt,
    Store,
    Var,
    as_expr,
    prim,
)
from aot.codegen.ir.schedule import Schedule
from aot.codegen.nest.points import Points, Span, Spans, Stmts, bound, depending, size_of, unrolled
from aot.codegen.nest.stored import at_point, unused_name
from aot.codegen.nest.sums.long_sums import (
    CHAIN,
    FEW,
    LONG,
    LongSum,
    block_of,
    count,
    far_sum,
    if_any_blocks,
    if_blocks,
    in_blocks,
    is_long,
)
from aot.codegen.nest.sums.reduction import Tiler, with_buffers
from aot.runtime.abi import DType


@dataclass(frozen=True, slots=True)
class _Sweep:
    """The vector axis of a reduction: `extent` = steps of `width`, of `lanes`, of half of these .., of single elements.

    Halves go into the first lanes, down to four of them, which all targets have; less than four are single elements.
    A dynamic extent ends in a step of `width` whose elements past the end are the identity. So element r always goes to
    partial result r % `width`. Later terms that change nothing, such as masked tokens of attention, do not change the
    order of the sum.
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
        """Number of terms of a partial result; `whole` if the extent varies."""
        return self.whole + sum(n for _, n, _ in self.rest if isinstance(n, int))

    @property
    def rest(self) -> tuple[tuple[Size, Size, int], ...]:
        """Return the parts after these, each as (first index, number of steps, elements of a step)."""
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
    vectors = max(1, min(schedule.partials, extent // lanes)) if isinstance(extent, int) else schedule.partials
    sweep = _Sweep(extent, lanes, lanes * vectors)
    part = points.accumulator(unused_name("part", definition), reduction.dtype, sweep.width)
    acc, here = points.accumulator(unused_name("acc", definition), reduction.dtype), Var(f"{name}.t", sweep.width)
    far = _FarSums(points, here, lanes, ())
    if is_long(reduction, count((axis, *outer)), LONG * sweep.width, False):
        far = replace(far, sums=_long_sums(definition, points, part, acc, here, bool(outer)))
    lane_sum = _LaneSum(reduction, points, sweep, axis, outer, part, acc, far)
    value = rewrite(definition.value, {reduction: Load(acc, points.cell)})
    body = (
        *lane_sum.begin(here),
        *lane_sum.sums(schedule, tiles),
        *_fold(part, acc, reduction.fn, lanes, vectors, points),
        *points.each((at_point(definition, value, points),)),
    )
    return with_buffers((part, acc, *(f.far for f in far.sums)), body)


@dataclass(frozen=True, slots=True)
class _LaneSum:
    """A tile of a reduction along `axis`: `part` has partial results in lanes, `acc` sums of single elements."""

    reduction: Reduce
    points: Points
    sweep: _Sweep
    axis: Var
    outer: tuple[Var, ...]  # all other reduction axes
    part: Buffer
    acc: Buffer
    far: _FarSums

    @property
    def ends(self) -> bool:
        """True if some elements of the last step may lie past the end."""
        return not isinstance(self.sweep.extent, int)

    def begin(self, here: Var) -> Stmts:
        """Initialise the partial results, with elements numbered by `here`, and the sums."""
        start, cell = identity(self.reduction.fn, self.acc.dtype), self.points.cell
        init = self.reduction.init if self.reduction.init is not None else start
        return (
            *self.points.each((self._vectors(here, Store(self.part, (*cell, here), start)),)),
            *self.points.each((Store(self.acc, cell, init),)),
        )

    def sums(self, schedule: Schedule, tiles: Tiler) -> Stmts:
        """Add up all elements, in loops over the outer axes."""
        if self.far.sums and self.outer:
            return _outer_blocks(self.outer, self.sweep.steps, schedule, tiles, self.far, self._every)
        if self.far.sums or self.ends:
            folded = if_blocks(self.sweep.whole, CHAIN, self.far.end)
            return (*tiles(self.outer, schedule, {}, self._every), *folded)
        return tuple(s for update in (self._whole, *self._later()) for s in tiles(self.outer, schedule, {}, update))

    def _every(self, inner: Spans) -> Stmts:
        return (*self._whole(inner), *(s for update in self._later() for s in update(inner)))

    def _later(self) -> list[Callable[[Spans], Stmts]]:
        """Return the parts after the steps of full width."""
        return [partial(self._pass_over, *part, self.ends) for part in self.sweep.rest if part[1] != 0]

    def _whole(self, inner: Spans) -> Stmts:
        """Build the steps of full width, in blocks if the sum is long."""
        steps, width = self.sweep.whole, self.sweep.width
        if not self.far.sums or (isinstance(steps, int) and steps <= CHAIN):
            return self._pass_over(0, steps, width, False, inner) if steps != 0 else ()
        return in_blocks(
            self.axis.name,
            steps,
            FEW if self.outer and self.ends else CHAIN,
            self.far.flush,
            lambda first, n: self._pass_over(first * width, n, width, False, inner),
            begin=() if self.outer else self.far.begin,
        )

    def _pass_over(self, first: Size, steps: Size, width: int, ends: bool, inner: Spans) -> Stmts:
        """Build steps of `width` elements. `ends`: some elements of the last step may lie past the end."""
        points, axis, reduction = self.points, self.axis, self.reduction
        step, point = Var(f"{axis.name}.o", steps), Var(f"{axis.name}.t", width)
        at = step * width + as_expr(first, DType.I64) + (point if width > 1 else Const(0))
        target, index = (self.acc, points.cell) if width == 1 else (self.part, (*points.cell, point))
        add = Store(target, index, reduction.body, reduction.fn)
        if ends:
            before = Load(target, index)
            more = prim(reduction.fn, before, reduction.body)
            add = Store(target, index, prim("within", axis, self.sweep.extent, more, before))
        stmts = bound((add,), [*depending(points.lets, axis), (axis, at)])
        stmts = points.each((self._vectors(point, *stmts),) if width > 1 else stmts, inner)
        return (For(step, unrolled(stmts, self.outer, inner)),)

    def _vectors(self, over: Var, *stmts: Stmt) -> Stmt:
        assert isinstance(over.extent, int)
        return For(over, stmts, LoopKind.VECTOR, min(self.sweep.lanes, over.extent))


def _outer_blocks(
    outer: tuple[Var, ...],
    steps: Size,
    schedule: Schedule,
    tiles: Tiler,
    far: _FarSums,
    body: Callable[[Spans], Stmts],
) -> Stmts:
    """Build loops over the outer axes of a long sum; `steps`: terms of each iteration, one after the other."""
    axis_index, size = block_of(outer, steps)
    axis, rest = outer[axis_index], outer[axis_index:]

    def blocks(before: Spans) -> Stmts:
        return in_blocks(
            axis.name,
            size_of(axis.extent),
            size,
            far.flush,
            lambda start, n: tiles(rest, schedule, {axis: Span(start, n)}, lambda inner: body(before | inner)),
            again=axis_index > 0,
        )

    loops = ((size_of(axis.extent), 0 if axis_index else size), (steps, FEW))
    begin, end = (if_any_blocks(loops, stmts) for stmts in (far.begin, far.end))
    return (*begin, *tiles(outer[:axis_index], schedule, {}, blocks), *end)


@dataclass(frozen=True, slots=True)
class _FarSums:
    """Long sums of each point of a tile: of its partial results along `lane`, and of its accumulator."""

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
    """Return the long sums of the partial results, and of the accumulator for terms after them if `both`."""
    size = part.shape[-1]
    assert isinstance(size, int)
    long = LongSum(part, far_sum(points, unused_name("far", definition), size), (*points.cell, lane))
    rest = LongSum(acc, far_sum(points, unused_name("far.rest", definition)), points.cell)
    return (long, rest) if both else (long,)


def _fold(part: Buffer, acc: Buffer, fn: str, lanes: int, count: int, points: Points) -> Stmts:
    """Reduce the `count` vectors of partial results at each point to one, and its lanes into the accumulator."""
    cell, lane, later = points.cell, Var("lane", lanes), Var("later", count - 1)
    vector = Store(part, (*cell, lane), Load(part, (*cell, (later + 1) * lanes + lane)), fn)
    vectors = For(later, (For(lane, (vector,), LoopKind.VECTOR, lanes),), LoopKind.UNROLLED)
    scalar = For(lane, (Store(acc, cell, Load(part, (*cell, lane)), fn),), LoopKind.VECTOR, lanes)
    return (*(points.each((vectors,)) if count > 1 else ()), *points.each((scalar,)))
