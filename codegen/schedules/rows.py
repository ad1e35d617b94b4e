"""Reductions along contiguous memory: partial results in lanes, folded once; or element by element where nothing fits.

s[r] = add[j in 1024](x[r, j])      lanes[j:16] partials=4
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt, prod

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import all_axes, all_continue, reads, store, typical, varies
from aot.codegen.ir.definition import Definition, Group, unused_axis
from aot.codegen.ir.loops import Space, Var
from aot.codegen.ir.schedule import Schedule, Tail, Tile
from aot.codegen.schedules.pointwise import is_packable, packs
from aot.codegen.schedules.request import Reasons, Request, ScheduleChoice, widest
from aot.codegen.target import Target


def rows(request: Request) -> ScheduleChoice:
    """Return the schedule of a reduction: lanes along the sum, or element by element if no axis runs along memory."""
    d, target, constants, shared = request.work, request.target, request.constants, request.points
    assert d.reduction is not None
    outer = [a for a in d.axes if a not in shared]
    if not shared:
        outer = _parallel_first(outer, COSTS.units_per_core * target.cores)
    order = tuple(a.name for a in outer)
    parallel = None if shared or not outer else outer[0].name
    axis = _vector_axis(d, constants)
    text = f"lanes along the sum: {axis.name}" if axis is not None else "no axis of the sum runs along memory"
    reasons: Reasons = (lambda: text,)
    if axis is None or typical(axis.extent if axis.extent is not None else 1) < 4:
        return Schedule(order=order, parallel=parallel), reasons
    together = _fused_sum_axes(d, axis, constants)
    length = prod(typical(a.extent if a.extent is not None else 1) for a in together)
    name = axis.name if len(together) == 1 else unused_axis("r", d)
    lanes = target.sum_lanes(widest(d))
    while lanes > length:
        lanes //= 2
    blocks: tuple[tuple[str, int], ...] = ()
    tile = _register_tile(d, outer, lanes, target)
    if tile:
        first = [a.name for a in outer if a.name not in (t.axis for t in tile)]
        order = (*first, *(t.axis for t in tile))
        square = tile[0].tail is Tail.CUT  # many outputs either way
        if square and not target.keeps_sum_order:  # a vector for each output: longer sums would make a smaller tile
            lanes = target.lanes(widest(d))
        if square and not first and not shared:
            parallel = tile[1].axis
            blocks = ((parallel, COSTS.rows_block),)
        else:
            parallel = parallel if parallel is None else order[0]
    schedule = Schedule(
        fuse=((name, tuple(a.name for a in together)),) if len(together) > 1 else (),
        blocks=blocks,
        order=order,
        tile=tile,
        lanes=(name, lanes),
        partials=1 if tile else COSTS.partial_vectors,
        parallel=parallel,
        pack=packs(reads(d, body=True), axis, constants, lanes),
    )
    return schedule, reasons


def _register_tile(d: Definition, outer: list[Var], lanes: int, target: Target) -> tuple[Tile, ...]:
    """Return the register tile of a product of two operands that are contiguous along the sum; () for other reductions.

    If one operand has a few rows only, the tile holds all of them and as many rows of the other as registers allow.
    Otherwise it is square, and the operand with fewer rows comes first.
    """
    body = [x for x in reads(d, body=True) if x.buffer.space is not Space.TABLE]
    if len(body) != 2 or lanes < target.sum_lanes(widest(d)):
        return ()
    registers = max(lanes // target.lanes(widest(d)), 1)  # of the partial sums of one output
    alone = {a: [x.load for x in body if x.moves(a)] for a in outer}
    for w in body if not varies(d.axes) else ():
        few = [a for a in outer if alone[a] == [w.load]]
        rows = [a for a in outer if len(alone[a]) == 1 and alone[a] != [w.load]]
        count, parts = prod(map(_count, few)), 1
        if rows and 1 < count <= COSTS.max_adjacent_outputs:
            if registers > 1 and len(few) == 1 and count % 2 == 0 and _height(count, registers, target) < 2:
                parts = 2  # so that a row of them is read twice, and the fold of more rows is waited for at once
            height = _height(count // parts, registers, target)
            row = max(rows, key=lambda a: (typical(a.extent or 1) >= height, -store(d).reach(a)))
            return Tile(row.name, height), *(Tile(a.name, _count(a) // parts) for a in few)
    sides = [[a for a in outer if alone[a] == [x.load] and a.extent != 1] for x in body]
    if not all(sides):
        return ()
    either = sorted((max(side, key=_count) for side in sides), key=_count)
    size = isqrt(
        target.registers * 3 // (4 * (registers if target.keeps_sum_order else 1))
    )  # a quarter is for the operands
    return tuple(Tile(a.name, size, Tail.CUT) for a in either)


def _height(count: int, registers: int, target: Target) -> int:
    """Return the rows that registers hold the sums of, with `count` rows of the other operand."""
    return max((target.registers - 1 - count) // (count * registers), 1)


def _fused_sum_axes(d: Definition, axis: Var, constants: frozenset[str]) -> tuple[Var, ...]:
    """Return the axes of the sum that are contiguous across each other, up to `axis`: one loop, with one tail for all.

    `axis` alone if a constant may be packed along it.
    """
    assert d.reduction is not None
    accesses, fused_sum_axes = reads(d, body=True), (axis,)
    while not varies(d.reduction.axes) and not any(x.buffer.name in constants for x in accesses):
        outer = next(
            (a for a in d.reduction.axes if a not in fused_sum_axes and all_continue(accesses, a, fused_sum_axes[0])),
            None,
        )
        if outer is None:
            break
        fused_sum_axes = (outer, *fused_sum_axes)
    return fused_sum_axes


def _count(a: Var) -> int:
    return typical(a.extent or 1)


def _parallel_first(axes: list[Var], enough: int) -> list[Var]:
    """Sort so that the parallel axis comes first: the first one with `enough` iterations, or the longest."""
    sizes = [typical(a.extent if a.extent is not None else 1) for a in axes]
    parallel = next((a for a, n in zip(axes, sizes, strict=True) if n >= enough), None)
    if parallel is None and axes:
        parallel = axes[sizes.index(max(sizes))]
    return sorted(axes, key=lambda a: a is not parallel)


def _vector_axis(d: Definition, constants: frozenset[str]) -> Var | None:
    """Return the reduction axis along which each load moves by 0 or 1 or can be packed; None without one."""
    assert d.reduction is not None
    axes: list[Var] = []
    for a in d.reduction.axes:
        steps = [
            x.strides.get(a) for x in reads(d, body=True) if not (x.buffer.name in constants and is_packable(x, a))
        ]
        if 1 in steps and {*steps} <= {0, 1}:
            axes.append(a)
    return max(axes, key=lambda a: typical(a.extent if a.extent is not None else 1), default=None)


def rows_together(g: Group, schedules: Sequence[Schedule], target: Target) -> tuple[tuple[Tile, ...], Reasons]:
    """Return the tile of short rows that a group computes member by member; () if a row passes all members at once.

    A fold of partial results waits for each of its steps, and so does what needs it: meanwhile the next row is summed.
    """
    works = [m for m in g.members if isinstance(m, Definition)]
    folds = any(_folds(m, p) for m, p in zip(works, schedules, strict=False))
    lengths = [n for t in g.temps for n in t.shape if n not in g.axes]
    if not g.axes or not folds or len(works) < len(g.members) or not all(isinstance(n, int) for n in lengths):
        return (), ()
    each = max(
        prod(typical(a.extent or 1) for a in all_axes(m) if a not in g.axes) * m.out.dtype.compute.bytes for m in works
    )
    count = prod(typical(a.extent or 1) for a in g.axes) // (COSTS.units_per_core * target.cores)
    size = min(COSTS.row_block_bytes // each, COSTS.max_row_block, typical(g.axes[-1].extent or 1), count)
    if size < COSTS.min_row_block:
        return (), (lambda: "row by row",)
    return (Tile(g.axes[-1].name, size, Tail.REST),), (lambda: f"{g.name}: {size} rows of {each} bytes at a time",)


def _folds(d: Definition, schedule: Schedule) -> bool:
    """True if a reduction has partial results in lanes."""
    r = d.reduction
    return r is not None and schedule.lanes is not None and any(a.name == schedule.lanes[0] for a in r.axes)
