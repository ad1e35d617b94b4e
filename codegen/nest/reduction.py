"""Reductions of one tile: accumulators in registers, or partial results in the lanes of a vector.

acc[tile] = init
for the tiles of the reduction axes:
  acc[tile] += body                      unrolled over the tile, vector over the lanes
out[tile] = value(acc)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from codegen.costs import COSTS
from codegen.ir.access import volume
from codegen.ir.chains import is_chains
from codegen.ir.definition import Definition, identity
from codegen.ir.dot_widths import (
    dot,
    dot_factors,
    fields,
    halved_factors,
    is_guarded,
    terms_in_rows,
    window_factors,
    word,
)
from codegen.ir.expressions import loads, rewrite, variables
from codegen.ir.loops import (
    Alloc,
    Const,
    Expr,
    For,
    If,
    Load,
    LoopKind,
    Prefetch,
    Reduce,
    Size,
    Stmt,
    Store,
    Var,
    as_expr,
    prim,
    select,
)
from codegen.ir.schedule import Schedule, ScheduleError
from codegen.nest.apart import Apart, Kept, kept_values, with_kept
from codegen.nest.chains import chained
from codegen.nest.padding_terms import asking_no_longer, padding_terms, passed_over
from codegen.nest.points import Points, Span, Spans, Stmts, bound, depending
from runtime.abi import DType

Tiler = Callable[[tuple[Var, ...], Schedule, Spans, Callable[[Spans], Stmts]], Stmts]


def guarded(definition: Definition, value: Expr) -> Stmt:
    """Return the store of one point, guarded by the bounds of the definition."""
    stmt: Stmt = Store(definition.out, definition.target, value)
    for index, most in definition.where:
        stmt = If(prim("lt", index, as_expr(most, DType.I64)), (stmt,))
    return stmt


def fresh(name: str, definition: Definition) -> str:
    """Return `name`, or a longer one if the definition has a buffer of that name."""
    taken = {x.buffer.name for x in loads(definition.value, *definition.target)} | {definition.out.name}
    while name in taken:
        name += "."
    return name


def in_tiles(
    definition: Definition, reduction: Reduce, schedule: Schedule, points: Points, part: Spans, tiles: Tiler
) -> Stmts:
    """Reduce with an accumulator per point of the tile. Partial sums of the blocks in `part` are in the output."""
    acc, cell = points.accumulator(fresh("acc", definition), reduction.dtype), points.cell
    start = reduction.init if reduction.init is not None else identity(reduction.fn, acc.dtype)
    sums = _in_order(reduction.axes, schedule)
    steps = next((a for a in sums if a.name == schedule.apart), None)
    apart = None if steps is None else Apart(reduction, steps, schedule, points, fresh("", definition))
    kept: tuple[Kept, ...] = ()
    total, own = (acc, reduction.body) if apart is None else (apart.total, apart.body)
    if apart is None and schedule.dots is None and not is_chains(reduction):
        kept, own = kept_values(own, reduction.axes, (), schedule, points, fresh("", definition))
    whole = {a: part.get(a, Span(Const(0), _size(a.extent))) for a in sums}
    outside = [b for b in padding_terms(definition) if b.axis.name in schedule.skip_padding]
    inside = asking_no_longer(replace(reduction, body=own), outside, points)

    def update(inner: Spans) -> Stmts:
        if is_chains(reduction):
            return chained(definition, inside, points, total, cell, inner)
        stmts: Stmts = ()
        for body, some in _by_words(inside, schedule, inner):
            stmts += _unrolled(points.each((Store(total, cell, body, reduction.fn),), some), reduction, some)
        fetches = _ahead(reduction, schedule, points, part, whole, inner)
        if schedule.prefetch_epilogue:
            fetches += _early(definition, reduction, schedule, points, whole, inner)
        return (*fetches, *stmts)

    mine = {a: s for a, s in part.items() if a in reduction.axes}

    def terms(axes: tuple[Var, ...], inner: Spans) -> Stmts:
        if not axes:
            return update(inner)
        axis, *rest = axes

        def step(span: Spans) -> Stmts:
            stmts = terms(tuple(rest), inner | span)
            for border in (b for b in outside if b.axis == axis):
                stmts = passed_over(border, points, inner | span, stmts)
            return stmts if apart is None or axis != apart.axis else apart.around(stmts, inner | span, acc, cell)

        return tiles((axis,), schedule, mine, step)

    end = points.each((guarded(definition, rewrite(definition.value, {reduction: Load(acc, cell)})),))
    for axis in reduction.axes:
        if axis in part:
            begin, extent = part[axis].start, _size(axis.extent)
            start = select(prim("eq", begin, Const(0)), start, Load(definition.out, definition.target))
            raw = points.each((Store(definition.out, definition.target, Load(acc, cell)),))
            end = (If(prim("lt", begin + _size(part[axis].extent), as_expr(extent, DType.I64)), raw, end),)
    return (
        Alloc(
            acc,
            (
                *points.each((Store(acc, cell, start),)),
                *with_kept(kept, {}, terms(sums, {})),
                *end,
            ),
        ),
    )


def _in_order(axes: tuple[Var, ...], schedule: Schedule) -> tuple[Var, ...]:
    rank = {name: i for i, name in enumerate(schedule.order)}
    return tuple(sorted(axes, key=lambda a: rank.get(a.name, len(rank))))


def _unrolled(stmts: Stmts, reduction: Reduce, inner: Spans) -> Stmts:
    for axis in reversed(reduction.axes):
        if inner[axis].extent != 1:
            stmts = (For(Var(f"{axis.name}.u", inner[axis].extent), stmts, LoopKind.UNROLLED),)
    return stmts


def _by_words(reduction: Reduce, schedule: Schedule, inner: Spans) -> list[tuple[Expr, Spans]]:
    """Return the terms to add for a tile of the sum, with the spans that they cover; with dots, for each word."""
    axis = next((a for a in reduction.axes if a.name == schedule.dots), None)
    lane = schedule.lanes[0] if schedule.lanes is not None else ""
    factors = dot_factors(reduction, lane)
    if axis is None or factors is None or (factors[1].dtype.is_float and is_guarded(reduction)):
        return [(reduction.body, inner)]
    start, extent = inner[axis].start, inner[axis].extent
    if not isinstance(extent, int):
        raise ScheduleError(f"{axis.name}: dots need a tile of a static size, got {extent}")
    x, w = factors
    words = {p.operand for p in schedule.pack if p.words}
    if w.buffer.name in words and window_factors(reduction, lane) is not None:
        x, w = w, x  # words of weights, and rows of data
    size = word(w.buffer.dtype)
    found: list[tuple[Expr, Spans]] = []
    sums, few = halved_factors(reduction), fields(reduction)
    for n in range(0, extent, size):
        count = min(size, extent - n)
        rows = () if w.buffer.name in words else terms_in_rows(w, axis, count, size)
        term = dot(x, w if few is None else few.value, count, rows)
        if sums is not None:
            (a, b), (c, d) = sums
            term = dot(a + b, c + d, count)
        found.append((term, {**inner, axis: Span(start + n, 1)}))
    return found


def _ahead(reduction: Reduce, schedule: Schedule, points: Points, part: Spans, spans: Spans, inner: Spans) -> Stmts:
    """Prefetch the packed operand's next block, spread evenly over the work on this one; `spans` of the sum."""
    read = next((x for x in loads(reduction.body) if x.buffer.name == schedule.prefetch), None)
    place = next((p.place for p in schedule.pack if p.operand == schedule.prefetch), None)
    if read is None or points.vector is None:
        return ()
    if place is None:
        return _across(read, schedule, points, points.vector, inner)
    if schedule.prefetch_within is not None:
        return _further(read, schedule, points, inner)
    rank = {name: n for n, name in enumerate(schedule.order)}
    later = (a for a in points.spans if rank.get(a.name, -1) > rank.get(points.vector.name, -1))
    rows = {a: points.spans[a] for a in sorted(later, key=lambda a: rank[a.name])}
    whole = {a: part.get(a, Span(Const(0), _size(a.extent))) for a in rows}
    steps, count = volume(s.extent for s in spans.values()), volume(s.extent for s in whole.values())
    share = (steps * read.buffer.shape[-1] + count - 1) // count  # elements for each row
    line = COSTS.line_bytes // read.buffer.dtype.stored_bytes
    height = volume(s.extent for s in rows.values())
    each = (height * share + steps - 1) // steps  # elements for each step of this tile
    at = _linear([(s.start - whole[a].start, whole[a].extent) for a, s in rows.items()]) * share
    at = at + _linear([(inner[a].start - s.start, s.extent) for a, s in spans.items()]) * each
    lines = (each * volume(s.extent for s in inner.values()) + line - 1) // line
    index = _following(read, place, points, part, spans)
    if isinstance(lines, int):
        level = schedule.prefetch_level
        return tuple(Prefetch(read.buffer, (*index, at + line * n), level=level) for n in range(lines))
    n = Var("f", lines)
    return (For(n, (Prefetch(read.buffer, (*index, at + n * line), level=schedule.prefetch_level),)),)


def _further(read: Load, schedule: Schedule, points: Points, inner: Spans) -> Stmts:
    """Prefetch the lines of the packed operand that lie `stream_distance_bytes` behind those in use."""
    known: dict[Expr, Expr] = {a: s.start for a, s in (points.spans | inner).items()}
    known |= {axis: rewrite(value, known) for axis, value in points.lets}
    index, size = [rewrite(i, known) for i in read.index[:-1]], read.buffer.dtype.stored_bytes
    lines = -(-volume(s.extent for s in inner.values()) * read.buffer.shape[-1] * size // COSTS.line_bytes)
    assert isinstance(lines, int) and schedule.prefetch_within is not None
    ahead = COSTS.stream_distance_bytes // size
    first = Prefetch(read.buffer, (*index, Const(0)), ahead, schedule.prefetch_within, schedule.prefetch_level)
    return tuple(replace(first, index=(*index, Const(n * COSTS.line_bytes // size))) for n in range(lines))


def _across(read: Load, schedule: Schedule, points: Points, lane: Var, inner: Spans) -> Stmts:
    """Prefetch the same steps of the sum of the tile that comes `COSTS.tiles_ahead` later along the vector axis.

    None beyond the last tile: there, its own lines are asked for once more.
    """
    tile, size = points.spans[lane], read.buffer.dtype.stored_bytes
    width = points.extent(lane)
    if width < schedule.size(lane.name).size or any(s.extent != 1 for s in inner.values()):
        return ()
    last = as_expr(_size(lane.extent), DType.I64) - width
    begin = prim("min", tile.start + COSTS.tiles_ahead * width, last)
    known: dict[Expr, Expr] = {a: s.start for a, s in (points.spans | inner).items()}
    stmts: Stmts = ()
    for n in range(-(-width * size // COSTS.line_bytes)):
        here = known | {lane: begin + n * COSTS.line_bytes // size}
        here |= {axis: rewrite(value, here) for axis, value in points.lets}
        stmts += (Prefetch(read.buffer, tuple(rewrite(i, here) for i in read.index), level=schedule.prefetch_level),)
    return stmts


def _following(read: Load, place: int, points: Points, part: Spans, sums: Spans) -> tuple[Expr, ...]:
    """Return the index of the start of the next packed block; index number `place` counts blocks.

    If the vector axis is cut into blocks, their last packed block is followed by their first at the next piece of the
    sum.
    """

    def indices(starts: dict[Expr, Expr]) -> list[Expr]:
        known: dict[Expr, Expr] = {**{a: s.start for a, s in points.spans.items()}, **starts}
        known |= {axis: rewrite(value, known) for axis, value in points.lets}
        return [rewrite(i, known) for i in read.index[:-1]]

    index = indices({a: s.start for a, s in sums.items()})
    following = index[place] + 1
    columns, width = part.get(points.vector) if points.vector else None, read.buffer.shape[-1]
    if columns is None:
        return (*index[:place], following, *index[place + 1 :])
    last = prim("eq", following, (columns.start + columns.extent) // width)
    further = indices({a: s.start + s.extent for a, s in sums.items()})
    index = [select(last, after, here) for after, here in zip(further, index, strict=True)]
    return (*index[:place], select(last, columns.start // width, following), *index[place + 1 :])


def _early(
    definition: Definition, reduction: Reduce, schedule: Schedule, points: Points, spans: Spans, inner: Spans
) -> Stmts:
    """Prefetch operands and results of the tile's epilogue, line by line, spread over the sum and its `spans`."""
    lane, rows = points.vector, [a for a in points.axes if a is not points.vector]
    steps, step = volume(s.extent for s in spans.values()), volume(s.extent for s in inner.values())
    if lane is None or len(rows) != 1 or not isinstance(steps, int) or not isinstance(step, int):
        return ()
    now = _linear([(inner[a].start - s.start, s.extent) for a, s in spans.items()]) // step
    moving = {rows[0], *(a for a, _ in depending(points.values({}), points.point(rows[0])))}
    stmts: Stmts = ()
    value = rewrite(definition.value, {reduction: Const(0, reduction.dtype)})
    for buffer, index in (*((x.buffer, x.index) for x in loads(value)), (definition.out, definition.target)):
        dense_lane = any(s == 1 and lane in variables(i) for s, i in zip(buffer.strides, index, strict=True))
        if not dense_lane or moving.isdisjoint(variables(*index)):
            continue
        line = COSTS.line_bytes // buffer.dtype.stored_bytes
        across = -(-points.extent(lane) // line)
        count = across * points.extent(rows[0])
        each = -(-count * step // steps)
        for n in range(each):
            at = prim("min", now * each + n, count - 1)
            row, column = at // across, at % across * line
            known: dict[Expr, Expr] = {a: s.start for a, s in points.spans.items()}
            known |= {rows[0]: points.spans[rows[0]].start + row, lane: points.spans[lane].start + column}
            known |= {axis: rewrite(e, known) for axis, e in points.lets}
            stmts += (Prefetch(buffer, tuple(rewrite(i, known) for i in index), level=schedule.prefetch_level),)
    return stmts


def _size(extent: Size | None) -> Size:
    assert extent is not None
    return extent


def _linear(index: list[tuple[Expr, Size | None]]) -> Expr:
    """Return the position of `index`, as (index, extent) pairs, in row-major order."""
    total: Expr = Const(0)
    for i, extent in index:
        total = total * as_expr(extent or 1, DType.I64) + i
    return total


@dataclass(frozen=True, slots=True)
class _Sweep:
    """The vector axis of a reduction: `extent` = steps of `width`, then of `lanes`, then single elements.

    A dynamic extent ends in a step of `width` whose elements past the end are the identity. So element r always goes to
    partial result r % `width`, and terms behind it that change nothing, as those of tokens that attention masks, do not
    change the order of the sum.
    """

    extent: Size
    lanes: int
    width: int

    @property
    def parts(self) -> tuple[tuple[Size, Size, int], ...]:
        """Return the parts, each as (first index, number of steps, elements of a step)."""
        wide, rest = self.extent // self.width, self.extent % self.width
        if not isinstance(self.extent, int):
            return (0, wide, self.width), (self.extent - rest, (rest + (self.width - 1)) // self.width, self.width)
        near, last = self.extent - rest, rest % self.lanes
        steps = rest // self.lanes if self.width > self.lanes else 0
        return (0, wide, self.width), (near, steps, self.lanes), (self.extent - last, last, 1)

    def ends_in(self, first: Size) -> bool:
        """True if elements of the part that begins at `first` may lie past the end."""
        return not isinstance(self.extent, int) and first != 0


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
    part = points.accumulator(fresh("part", definition), reduction.dtype, sweep.width)
    acc, cell = points.accumulator(fresh("acc", definition), reduction.dtype), points.cell
    here, lane, later = Var(f"{name}.t", sweep.width), Var("lane", lanes), Var("later", most - 1)
    start = identity(reduction.fn, acc.dtype)

    def vectors(over: Var, stmts: Stmts) -> Stmts:
        return (For(over, stmts, LoopKind.VECTOR, lanes),)

    def pass_over(first: Size, count: Size, width: int) -> Callable[[Spans], Stmts]:
        step, point = Var(f"{name}.o", count), Var(f"{name}.t", width)
        at = step * width + as_expr(first, DType.I64) + (point if width > 1 else Const(0))
        target, index = (acc, cell) if width == 1 else (part, (*cell, point))
        add = Store(target, index, reduction.body, reduction.fn)
        if sweep.ends_in(first):
            before = Load(target, index)
            more = prim(reduction.fn, before, reduction.body)
            add = Store(target, index, prim("within", axis, extent, more, before))

        def update(inner: Spans) -> Stmts:
            stmts = bound((add,), [*depending(points.lets, axis), (axis, at)])
            stmts = points.each(vectors(point, stmts) if width > 1 else stmts, inner)
            for a in reversed(outer):
                if inner[a].extent != 1:
                    stmts = (For(Var(f"{a.name}.u", inner[a].extent), stmts, LoopKind.UNROLLED),)
            return (For(step, stmts),)

        return update

    parts = [pass_over(*p) for p in sweep.parts if p[1] != 0]
    if isinstance(extent, int):
        sums = tuple(s for update in parts for s in tiles(outer, schedule, {}, update))
    else:
        sums = tiles(outer, schedule, {}, lambda inner: tuple(s for update in parts for s in update(inner)))

    fold = (Store(part, (*cell, lane), Load(part, (*cell, (later + 1) * lanes + lane)), reduction.fn),)
    return (
        Alloc(
            part,
            (
                Alloc(
                    acc,
                    (
                        *points.each(vectors(here, (Store(part, (*cell, here), start),))),
                        *points.each((Store(acc, cell, reduction.init if reduction.init is not None else start),)),
                        *sums,
                        *(points.each((For(later, vectors(lane, fold), LoopKind.UNROLLED),)) if most > 1 else ()),
                        *points.each(vectors(lane, (Store(acc, cell, Load(part, (*cell, lane)), reduction.fn),))),
                        *points.each((guarded(definition, rewrite(definition.value, {reduction: Load(acc, cell)})),)),
                    ),
                ),
            ),
        ),
    )
