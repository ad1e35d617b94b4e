"""Definitions or groups + schedules -> a kernel. Loops get their order here alone, whatever the operation is.

for the tiles of the output axes:            schedule.order, one loop per segment of equal tiles
  the points of a tile                       codegen.nest.points, codegen.nest.sums.reduction
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from math import gcd, inf

from aot.codegen.ir.access import volume
from aot.codegen.ir.definition import Definition, Group, RowRange
from aot.codegen.ir.expressions import loaded_names, loads, rewrite, variables
from aot.codegen.ir.index import bounds, normal
from aot.codegen.ir.loops import (
    Alloc,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    LoopKind,
    Prefetch,
    Size,
    Space,
    Store,
    TileOp,
    Var,
    While,
    as_expr,
    dense,
    prim,
)
from aot.codegen.ir.schedule import Pack, Schedule, ScheduleError, Segment, Tail, Tile, balance, segments
from aot.codegen.ir.traverse import has_parallel, rewrite_definition
from aot.codegen.nest.halo_fill import HaloFill, can_take, is_halo_fill, with_halo_fills
from aot.codegen.nest.legality import check
from aot.codegen.nest.pack import pack, pack_buffer
from aot.codegen.nest.points import Lets, Points, Span, Spans, Stmts
from aot.codegen.nest.stored import at_point
from aot.codegen.nest.sums.lane_sums import along_lanes
from aot.codegen.nest.sums.reduction import tile_sums
from aot.codegen.nest.tile_registers.matrix import in_tile_registers
from aot.codegen.nest.tile_registers.scaled_matrix import is_summed_by_vectors
from aot.codegen.nest.tile_registers.tile_configurations import with_tiles
from aot.codegen.nest.tile_registers.tile_epilogues import overlap_epilogues
from aot.runtime.abi import DType

Works = tuple[Definition | Group, ...]
Apply = Callable[[str, Works, tuple[Schedule, ...], tuple[Buffer, ...], tuple[Var, ...]], Kernel]


def apply(
    name: str,
    work: Definition | Group | Works,
    schedule: Schedule | tuple[Schedule, ...],
    params: tuple[Buffer, ...],
    sizes: tuple[Var, ...] = (),
) -> Kernel:
    """Return the kernel that computes `work`; several works run one after another and must not depend on each other.

    `params` are its ARG buffers in order; where a schedule packs one, the kernel's buffer is the packed one.
    Raises ScheduleError when a schedule does not fit.
    """
    works = work if isinstance(work, tuple) else (work,)
    schedules = schedule if isinstance(schedule, tuple) else (schedule,)
    return _kernel(name, works, schedules, params, sizes)


@lru_cache(maxsize=1 << 8)  # layers that repeat have equal kernels
def _kernel(
    name: str,
    works: Works,
    schedules: tuple[Schedule, ...],
    params: tuple[Buffer, ...],
    sizes: tuple[Var, ...],
) -> Kernel:
    if len(works) != len(schedules):
        raise ScheduleError(f"{name}: {len(works)} definitions, {len(schedules)} schedules")
    bodies: list[Stmts] = []
    packed: dict[str, Pack | None] = {}
    for w, s in zip(works, schedules, strict=True):
        check(w, s)
        for operand, packing in packings(w, s):
            if packed.setdefault(operand, packing) != packing:
                raise ScheduleError(f"{name}: {operand} is packed in one way only, got {packed[operand]} and {packing}")
        bodies.append(_build(w, s, {}))
    shared = next((n for n in reversed(range(len(works))) if has_parallel(bodies[n])), None)
    if shared is not None:
        pairs = enumerate(zip(works, schedules, strict=True))
        fills = {n: HaloFill(w, partial(_build, w, s)) for n, (w, s) in pairs if is_halo_fill(w, s)}
        if can_take(bodies[shared]):
            bodies[shared] = with_halo_fills(bodies[shared], tuple(fills.values()))
            bodies = [b for n, b in enumerate(bodies) if n not in fills]
        bodies = [b if has_parallel(b) else (For(Var("once", 1), b, LoopKind.PARALLEL),) for b in bodies]
    stmts = tuple(s for b in bodies for s in b)
    body = with_tiles(stmts)
    body = body if body is stmts else overlap_epilogues(body)
    _check_parallel(name, body, True)
    return Kernel(name, sizes, kernel_buffers(works, schedules, params), body)


def kernel_buffers(works: Works, schedules: tuple[Schedule, ...], params: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
    """Return the buffers of a kernel with these parameters: packed ones have the shape of their panels."""
    pairs = zip(works, schedules, strict=True)
    by_operand = {name: packing for w, s in pairs for name, packing in packings(w, s)}
    known = ((p, by_operand.get(p.name)) for p in params)
    return tuple(p if packing is None else pack_buffer(p, packing) for p, packing in known)


def packings(work: Definition | Group, schedule: Schedule) -> Iterator[tuple[str, Pack | None]]:
    """Yield each parameter that a work reads, with its packing or None."""
    if isinstance(work, Group):
        for member, member_schedule in zip(work.members, schedule.members, strict=True):
            yield from packings(member, member_schedule)
        return
    by_operand = {p.operand: p for p in schedule.pack}
    for x in loads(work.value, *(r.value for r in work.results)):
        if x.buffer.space is Space.ARG:
            yield x.buffer.name, by_operand.get(x.buffer.name)


def units(kernel: Kernel) -> Size:
    """Return the iterations of all parallel loops together, over the kernel's sizes; 1 if there is none."""
    return _units(kernel.body, {}) if has_parallel(kernel.body) else 1


def _units(stmts: Stmts, lets: dict[Var, Expr]) -> Size:
    total: Size = 0
    for s in stmts:
        match s:
            case For(var, body, LoopKind.PARALLEL):
                extent = var.extent
                assert extent is not None
                each = _units(body, lets) if has_parallel(body) else 1
                total = total + (extent if isinstance(extent, int) else rewrite(extent, {**lets})) * each
            case Let(var, value, body):
                total = total + _units(body, {**lets, var: rewrite(value, {**lets})})
            case Alloc(_, body):
                total = total + _units(body, lets)
            case _:
                pass
    return total


def _check_parallel(name: str, stmts: Stmts, outermost: bool) -> None:
    for s in stmts:
        if isinstance(s, For) and s.kind is LoopKind.PARALLEL and not outermost:
            raise ScheduleError(f"{name}: the parallel loop must be outermost, got {s.var.name!r} inside another loop")
        if not isinstance(s, Store | Prefetch | TileOp):
            ordered = isinstance(s, If | While) or (isinstance(s, For) and s.kind is not LoopKind.PARALLEL)
            _check_parallel(name, s.body, outermost and not ordered)


def _build(work: Definition | Group, schedule: Schedule, spans: Spans) -> Stmts:
    return _definition(work, schedule, spans) if isinstance(work, Definition) else _group(work, schedule, spans)


# ---- groups


def _group(group: Group, schedule: Schedule, spans: Spans) -> Stmts:
    axes, lets = _fuse(group.axes, schedule, spans)
    pitch = dict(schedule.pitch)

    def body(tile: Spans) -> Stmts:
        inner = _unfused(tile, lets)
        inner |= {w.axis: _row_range(w, inner[w.of]) for w in group.row_ranges}
        local = {**spans, **inner}
        shrunk = {t: _shrink(t, local, pitch.get(t.name, 0)) for t in group.temps}
        shrunk = {t: _in_memory(b, t, group) for t, b in shrunk.items()}
        stmts: Stmts = ()
        for member, member_schedule in zip(group.members, schedule.members, strict=True):
            stmts += _member(_relocate(member, shrunk), member_schedule, local)
        for temp in reversed(list(shrunk.values())):
            if temp.space is not Space.TABLE:
                stmts = (Alloc(temp, stmts),)
        return stmts

    return _tiles(axes, schedule, spans, body)


def _member(work: Definition | Group, schedule: Schedule, spans: Spans) -> Stmts:
    """Build a member of a group; if its loops need the length of a tile, once for each length."""
    for axis, span in spans.items():
        if span.lengths is not None and _needs_length(schedule, axis.name):
            long, short = (_member(work, schedule, {**spans, axis: Span(span.start, n)}) for n in span.lengths)
            return (If(prim("eq", span.extent, span.lengths[0]), long, short),)
    return _build(work, schedule, spans)


def _needs_length(s: Schedule, axis: str) -> bool:
    """True if a schedule cuts an axis, or makes one axis of it and others."""
    cut = axis in s.unroll or axis in dict(s.blocks) or s.size(axis).size > 1
    return cut or any(axis in parts for _, parts in s.fuse) or any(_needs_length(m, axis) for m in s.members)


def _unfused(tile: Spans, lets: Lets) -> Spans:
    """Add the spans of the axes that were fused: a tile of a fused axis is one point, and so one point of each."""
    inner = dict(tile)
    known: dict[Expr, Expr] = {axis: span.start for axis, span in tile.items()}
    for axis, value in reversed(lets):
        for fused in variables(value) & tile.keys():
            if tile[fused].extent != 1:
                got = tile[fused].extent
                raise ScheduleError(f"{fused.name}: a fused axis of a group has tiles of one point, got {got}")
        inner[axis] = Span(rewrite(value, known), 1)
    return inner


def _row_range(w: RowRange, tile: Span) -> Span:
    if not isinstance(tile.extent, int):
        raise ScheduleError(f"row range {w.axis.name!r}: the tile of {w.of.name!r} has no known size")
    start, extent = tile.start * w.scale - w.before, (tile.extent - 1) * w.scale + w.size
    if w.within is None:
        return Span(start, extent)
    low, high = w.within
    first = prim("min", prim("max", start, low), high)
    return Span(first, prim("max", prim("min", start + extent, high) - first, 0))


def _shrink(temp: Buffer, local: Spans, pitch: int) -> Buffer:
    """Shrink a temp: of a dimension given by a shared axis, only the current tile is stored."""
    spans = [local.get(n) if isinstance(n, Var) else None for n in temp.shape]
    shape = [_most(s.extent) if s else n for s, n in zip(spans, temp.shape, strict=True)]
    start = tuple(s.start if s else Const(0) for s in spans)
    shrunk = dense(temp.name, *shape, space=temp.space, dtype=temp.dtype, pitch=pitch, values=temp.values)
    return replace(shrunk, start=start)


def _in_memory(shrunk: Buffer, temp: Buffer, group: Group) -> Buffer:
    """Put numbers of several rows on the stack: members loop over the rows, and registers have constant indices."""
    rows = all(isinstance(n, Var) and n in group.axes for n in temp.shape) and any(n != 1 for n in shrunk.shape)
    return replace(shrunk, space=Space.STACK) if rows and shrunk.space is Space.REGISTERS else shrunk


def _most(extent: Size) -> Size:
    """Return the extent of the longest tile; the last one may be shorter."""
    high = extent if isinstance(extent, int) else bounds(normal(extent, {}))[1]
    return extent if high == inf else int(high)


def _relocate(work: Definition | Group, shrunk: dict[Buffer, Buffer]) -> Definition | Group:
    """Return the same work on the shrunk temps."""
    if isinstance(work, Group):
        return replace(work, members=tuple(_relocate(m, shrunk) for m in work.members))

    names = {b.name for b in shrunk}

    def window(e: Expr) -> Expr | None:
        if names.isdisjoint(loaded_names(e)):
            return e
        if isinstance(e, Load) and e.buffer in shrunk:
            return Load(shrunk[e.buffer], tuple(rewrite(i, window) for i in e.index))
        return None

    return rewrite_definition(work, window, lambda b: shrunk.get(b, b))


# ---- one definition


def _definition(definition: Definition, schedule: Schedule, spans: Spans) -> Stmts:
    for packing in schedule.pack:
        definition = pack(definition, packing)
    target = definition.target
    axes, lets = _fuse(definition.axes, schedule, spans)
    reduction = definition.reduction
    if reduction is not None:
        inner, more = _fuse(reduction.axes, schedule, {})
        lets = more + lets
        fused = replace(reduction, axes=inner)
        definition = replace(definition, value=rewrite(definition.value, {reduction: fused}))
        reduction = fused
    definition = replace(definition, axes=axes, index=target)

    def block(block_spans: Spans, block_schedule: Schedule) -> Stmts:
        def tile(inner: Spans) -> Stmts:
            points = Points(definition.axes, inner, lets, schedule)
            if reduction is not None and schedule.matrix is not None and not is_summed_by_vectors(schedule, points):
                return in_tile_registers(definition, reduction, schedule, points, block_spans)
            if reduction is None:
                return points.each((at_point(definition, definition.value, points),))
            if schedule.lanes and any(a.name == schedule.lanes[0] for a in reduction.axes):
                return along_lanes(definition, reduction, schedule, points, _tiles)
            return tile_sums(definition, reduction, schedule, points, block_spans, _tiles)

        return _tiles(axes, block_schedule, {**spans, **block_spans}, tile)

    return _blocks(axes, reduction.axes if reduction else (), schedule, spans, block)


def _blocks(
    outputs: tuple[Var, ...],
    sums: tuple[Var, ...],
    schedule: Schedule,
    spans: Spans,
    body: Callable[[Spans, Schedule], Stmts],
) -> Stmts:
    """Build loops over `schedule.blocks`; `body` builds, by the remaining schedule, each combination of block sizes.

    The blocks of one output axis around the parallel loop of another one are parallel, too. If the parallel axis itself
    is cut into blocks around the loops over other output axes, both its blocks and its tiles are parallel.
    """
    if not schedule.blocks:
        return body({}, schedule)
    (first, size), *inner_blocks = schedule.blocks
    if inner_blocks and first == schedule.parallel and {n for n, _ in inner_blocks} <= {a.name for a in outputs}:
        outer = Schedule(order=(first,), tile=(Tile(first, size),), parallel=first)
        inner_schedule = replace(schedule, blocks=tuple(inner_blocks))
        axes = tuple(a for a in outputs if a.name == first)

        def inside(block_spans: Spans) -> Stmts:
            return _blocks(
                outputs,
                sums,
                inner_schedule,
                {**spans, **block_spans},
                lambda inner, p: body({**block_spans, **inner}, p),
            )

        return _tiles(axes, outer, spans, inside)
    sizes = dict(schedule.blocks)
    cut = schedule.parallel in sizes
    around = [a.name for a in outputs if a.name in sizes and isinstance(a.extent, int)]
    parallel = schedule.parallel
    if not cut and parallel is not None:
        parallel = around[0] if len(sizes) == len(around) == 1 else None
    tiles = tuple(Tile(n, size, Tail.SHORT) for n, size in sizes.items())
    outer = Schedule(order=tuple(sizes), tile=tiles, parallel=parallel)
    inner = replace(schedule, parallel=None) if cut else schedule
    axes = tuple(a for a in (*outputs, *sums) if a.name in sizes)
    return _tiles(axes, outer, spans, lambda block_spans: body(block_spans, inner))


def _fuse(axes: tuple[Var, ...], schedule: Schedule, spans: Spans) -> tuple[tuple[Var, ...], Lets]:
    """Fuse axes as `schedule` asks; the old ones become quotients and remainders of the new one, bound by `let`."""
    lets: Lets = []
    for name, parts in schedule.fuse:
        if not any(a.name in parts for a in axes):
            continue
        old = [next(a for a in axes if a.name == p) for p in parts]
        spans_of = {a: spans.get(a) or _whole(a) for a in old}
        new = Var(name, volume([spans_of[a].extent for a in old]))
        rest: Expr = new
        own_lets: Lets = []
        for a in reversed(old[1:]):
            own_lets.append((a, spans_of[a].start + rest % as_expr(spans_of[a].extent, DType.I64)))
            rest = rest // as_expr(spans_of[a].extent, DType.I64)
        own_lets.append((old[0], spans_of[old[0]].start + rest))
        lets += own_lets
        axes = tuple(new if a is old[0] else a for a in axes if a is old[0] or a not in old)
    return axes, lets


def _whole(axis: Var) -> Span:
    if axis.extent is None:
        raise ScheduleError(f"axis {axis.name!r} has no extent")
    return Span(Const(axis.low), axis.extent - axis.low if axis.low else axis.extent)


# ---- loops


def _tiles(axes: tuple[Var, ...], schedule: Schedule, spans: Spans, body: Callable[[Spans], Stmts]) -> Stmts:
    """Build loops over the tiles of `axes`, outermost first; `body` is built for each combination of tile sizes."""
    rank = {name: i for i, name in enumerate(schedule.order)}
    return _nested(tuple(sorted(axes, key=lambda a: rank.get(a.name, len(rank)))), schedule, spans, body)


def _nested(axes: tuple[Var, ...], schedule: Schedule, spans: Spans, body: Callable[[Spans], Stmts]) -> Stmts:
    if not axes:
        return body({})
    axis, rest = axes[0], axes[1:]
    axis_span = spans.get(axis) or _whole(axis)
    tile = schedule.size(axis.name)
    kind = LoopKind.PARALLEL if schedule.parallel == axis.name else LoopKind.SERIAL
    kind = LoopKind.UNROLLED if axis.name in schedule.unroll else kind
    stmts: Stmts = ()
    for segment in segments(axis_span.extent, tile):
        is_whole_axis = segment.size == 1 and segment.count == axis.extent and axis_span.start == Const(0)
        looped = segment.count != 1 or kind is LoopKind.PARALLEL
        loop = axis if is_whole_axis or not looped else Var(_label(axis.name, spans), segment.count)
        iteration = loop if looped else Const(0)
        if segment.latest is None:
            at = as_expr(segment.start, DType.I64)
            at = at + iteration * segment.size if looped else at
        else:
            at = _at_most(iteration, segment.size, segment.latest)
        span = Span(axis_span.start + at, *_lengths(segment, at))
        inner = _nested(rest, schedule, spans, lambda s, span=span: body({axis: span, **s}))
        stmts += (For(loop, inner, kind),) if looped else inner
    for name, value in reversed(balance(axis_span.extent, tile)):
        stmts = (Let(name, value, stmts),)
    return stmts


def _lengths(segment: Segment, at: Expr) -> tuple[Size, tuple[int, int] | None]:
    """Return the length of the tile at `at`, and the two that occur, if known."""
    size, last = segment.size, segment.last
    if last is None:
        return size, None
    return prim("min", as_expr(last, DType.I64) - at, size), (size, last % size) if isinstance(last, int) else None


def _at_most(iteration: Expr, size: int, latest: Size) -> Expr:
    """Return the start of a tile, `latest` at most. A common factor stays outside, where quotients of rows see it."""
    factor = gcd(size, latest) if isinstance(latest, int) else 1
    last = latest if factor == 1 or not isinstance(latest, int) else latest // factor
    return prim("min", iteration * (size // factor), last) * factor


def _label(name: str, spans: Spans) -> str:
    """Return a name for a loop variable that no enclosing loop has: p.o, p.m, p.n, p.o2, ..."""
    taken = {v.name for s in spans.values() for v in variables(s.start)}
    labels = (f"{name}.{letter}{level or ''}" for level in (0, *range(2, 100)) for letter in "omn")
    return next(n for n in labels if n not in taken)
