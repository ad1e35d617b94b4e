"""Definitions without a reduction: vectors along the axis that most accesses move along by one element.

y[n, h, w, c] = x[n, h, w, c] * s[c]      fuse[p=(n,h,w)] order[p c] tile[c:64/cut] lanes[c:16] parallel=p
"""

from __future__ import annotations

from math import lcm, prod

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import Access, all_continue, coefficient, reads, store, typical, varies
from aot.codegen.ir.definition import Definition, unused_axis
from aot.codegen.ir.expressions import rewrite, variables, walk
from aot.codegen.ir.loops import Const, Expr, Load, Var
from aot.codegen.ir.schedule import Pack, Schedule, Tail, Tile
from aot.codegen.schedules.request import Fused, Request, ScheduleChoice


def pointwise(request: Request) -> ScheduleChoice:
    """Return the schedule of a definition without a reduction."""
    d, lanes, constants, shared = request.work, request.lanes, request.constants, request.points
    axes = [a for a in d.axes if a not in shared]
    if not axes:
        return Schedule(), ()
    accesses = (store(d), *reads(d))
    axis = _lane_axis(axes, accesses, constants, lanes)
    order = sorted((a for a in axes if a is not axis), key=lambda a: -accesses[0].reach(a))
    inner, order = _contiguous_axes(axis, order, accesses, _computed_with(d) if varies(axes) else frozenset())
    across = None if _fills_code(d, inner, lanes) else _across(inner, order, accesses, constants)
    whole = _interleaved(inner, order, accesses[0], lanes) if across is None else 0
    if whole:
        inner, order = [order[-1], *inner], order[:-1]
    rows, outer = list[Var](), order
    if across is not None:
        rows, outer = _contiguous_axes(across, [a for a in order if a is not across], accesses)
    (name, fused), (row, row_fused) = _fused("v", inner, d), _fused("r", rows, d)
    fused, parallel = fused + row_fused, row if rows else name
    last = _unfused_loop(outer, shared)
    if outer and shared:
        parallel = outer[0].name
    elif outer:
        parallel, outer_fused = _fused("p", outer[: len(outer) - len(last)], d)
        fused += outer_fused
    head = [a.name for a in outer] if shared else [parallel, *(a.name for a in last)] if outer else []
    extent = prod(typical(a.extent if a.extent is not None else 1) for a in inner)
    width = min(lanes, _power(extent))
    wide = whole or width * max(1, min(1 if rows else COSTS.pointwise_vectors, extent // max(width, 1)))
    schedule = Schedule(
        fuse=fused,
        order=(*head, *([row] if rows else []), name),
        tile=(*([Tile(row, lanes, Tail.CUT)] if rows else []), Tile(name, wide, Tail.CUT)),
        lanes=(name, width) if width > 1 else None,
        pack=packs(accesses, axis, constants, lanes) if len(inner) == 1 else (),
        parallel=None if shared else parallel,
    )
    return schedule, (lambda: _lane_text(axes, accesses, constants, lanes),)


def _computed_with(d: Definition) -> frozenset[Var]:
    """Return the axes that values are computed from, as in tests of padding; if fused, they cost a division a lane."""
    return variables(rewrite(d.value, lambda e: Const(0, e.dtype) if isinstance(e, Load) else None))


def _contiguous_axes(
    axis: Var, order: list[Var], accesses: tuple[Access, ...], alone: frozenset[Var] = frozenset()
) -> tuple[list[Var], list[Var]]:
    """Return `axis` with the axes that continue where it ends, to be fused, and the rest of `order`.

    Axes in `alone` are not fused.
    """
    axes, rest = [axis], [*order]
    while rest and alone.isdisjoint((axis, rest[-1])) and _are_contiguous(rest[-1], axes, accesses):
        axes.insert(0, rest.pop())
    return axes, rest


def _interleaved(inner: list[Var], order: list[Var], stored: Access, lanes: int) -> int:
    """Return the elements of a tile if a lane axis shorter than a vector fuses with the last axis of `order`; else 0.

    The store continues along that one. The tile is a common multiple of the axis and the lanes: each lane then reads
    from a known place, so that loads become shuffles.
    """
    count = prod(typical(a.extent if a.extent is not None else 1) for a in inner)
    tile = lcm(count, lanes)
    if varies(inner) or not 1 < count < lanes or tile > COSTS.max_interleaved_vectors * lanes or not order:
        return 0
    outer = order[-1]
    if typical(outer.extent or 1) * count < tile or stored.strides.get(inner[-1]) != 1:
        return 0
    return tile if stored.strides.get(outer) == count else 0


def _fused(letter: str, axes: list[Var], d: Definition) -> tuple[str, Fused]:
    """Return the name of an axis, or of several as one, and what it fuses; "" for none."""
    if len(axes) < 2:
        return (axes[0].name if axes else ""), ()
    name = unused_axis(letter, d)
    return name, ((name, tuple(a.name for a in axes)),)


def _unfused_loop(outer: list[Var], shared: frozenset[Var]) -> list[Var]:
    """Return the innermost loop if it stays unfused: fused, each point would divide by a dynamic size.

    It is fused if the loops around it have too few iterations for the threads.
    """
    enough = prod(typical(a.extent or 1) for a in outer[:-1]) >= COSTS.min_parallel_iterations
    return outer[-1:] if len(outer) > 1 and enough and not shared and varies(outer) else []


def _across(inner: list[Var], order: list[Var], accesses: tuple[Access, ...], constants: frozenset[str]) -> Var | None:
    """Return an axis along which an access is contiguous although the lanes stride over it; None without one.

    Tiles of both axes are transposed in registers.
    """
    if prod(typical(a.extent if a.extent is not None else 1) for a in inner) < COSTS.min_transposed_extent:
        return None
    far = [x for x in accesses if x.buffer.name not in constants and _is_far(x, inner[-1])]
    for a in order:
        if any(x.strides.get(a) == 1 for x in far):
            row, _ = _contiguous_axes(a, [other for other in order if other is not a], accesses)
            if prod(typical(b.extent if b.extent is not None else 1) for b in row) >= COSTS.min_transposed_extent:
                return a
    return None


def _fills_code(d: Definition, inner: list[Var], lanes: int) -> bool:
    """True if tiles of dynamic axes would repeat a large expression too often: once for each rest in rows and lanes."""
    copies = (2 * lanes - 1) * lanes.bit_length()
    return varies(inner) and copies * sum(1 for _ in walk(d.value)) > COSTS.max_pointwise_code


def _is_far(x: Access, a: Var) -> bool:
    stride = x.strides.get(a)
    return coefficient(x.at, a) is not None if stride is None else abs(stride) >= COSTS.gather_distance


def _power(n: int) -> int:
    """Return the largest power of two that is at most `n`."""
    return 1 << max(n, 1).bit_length() - 1


def _lane_axis(axes: list[Var], accesses: tuple[Access, ...], constants: frozenset[str], lanes: int) -> Var:
    """Return the axis with the fewest instructions; of equal ones the last."""
    return min(reversed(axes), key=lambda a: _instructions(a, accesses, constants, lanes))


def _lane_text(axes: list[Var], accesses: tuple[Access, ...], constants: frozenset[str], lanes: int) -> str:
    """Return the reason of `_lane_axis` as text."""
    costs = (f"{a.name} {_instructions(a, accesses, constants, lanes):.3g}" for a in axes)
    return "lane axis by instructions an element: " + ", ".join(costs)


def _instructions(a: Var, accesses: tuple[Access, ...], constants: frozenset[str], lanes: int) -> float:
    """Return the instructions for an element with lanes along `a`.

    One for an access that moves by 0 or 1, else one for each lane. Loads that move by a few elements are shuffled out
    of that many vectors.
    """
    extent, each = typical(a.extent if a.extent is not None else 1), 0.0
    for x in accesses:
        stride = x.strides.get(a, 0)
        is_packed_constant = x.load is not None and x.buffer.name in constants and a in x.load.index
        vectors = 1 if stride in (0, 1) or is_packed_constant else COSTS.gather_distance
        if stride is not None and x.load is not None:
            vectors = min(vectors, abs(stride) + 1)
        scattered = 1.5 if x.load is None else 1.0
        each += vectors / max(min(lanes, extent), 1) if vectors < COSTS.gather_distance else scattered
    return each


def _are_contiguous(outer: Var, inner: list[Var], accesses: tuple[Access, ...]) -> bool:
    """True if `outer` continues in every access where the fused `inner` axes end."""
    first = inner[0]
    if varies((first, outer)):
        return all_continue(accesses, outer, first)
    assert isinstance(first.extent, int)
    for x in accesses:
        a, b = x.strides.get(outer, 0), x.strides.get(first, 0)
        if a is None or b is None or a != first.extent * b:
            return False
    return True


def is_packable(x: Access, a: Var) -> bool:
    """True if `a` is one plain dimension of the load, and part of no other."""
    return x.load is not None and a in x.load.index and sum(a in variables(i) for i in x.load.index) == 1


def packs(
    accesses: tuple[Access, ...],
    axis: Var,
    constants: frozenset[str],
    lanes: int,
    order: tuple[Var, ...] = (),
    outside: tuple[Var, ...] = (),
) -> tuple[Pack, ...]:
    """Return packings of constants that are not contiguous along the lanes: blocks of as many elements as lanes.

    `order`: axes of the loops inside of the lanes' loop; `outside`: axes of those around it; both outermost first.
    Dimensions that are no plain axis of a loop come after the blocks and before the loops inside.
    """
    by_operand: dict[str, Pack] = {}
    ranks: dict[Expr, int] = {a: n - len(outside) - 1 for n, a in enumerate((*outside, axis))}
    ranks |= {a: n + 1 for n, a in enumerate(order)}
    for x in accesses:
        if x.load is None or x.buffer.name not in constants or axis not in x.load.index:
            continue
        at = x.load.index.index(axis)
        if not isinstance(x.buffer.shape[at], int) or (x.strides.get(axis) == 1 and not order):
            continue
        dims = sorted((ranks.get(i, 0), k) for k, i in enumerate(x.load.index))
        by_operand[x.buffer.name] = Pack(x.buffer.name, tuple(k for _, k in dims), at, lanes)
    return tuple(by_operand.values())
