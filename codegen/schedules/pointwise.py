"""Definitions without a reduction: vectors along the axis that most accesses move along by one element.

y[n, h, w, c] = x[n, h, w, c] * s[c]      fuse[p=(n,h,w)] order[p c] tile[c:64/cut] lanes[c:16] parallel=p
"""

from __future__ import annotations

from math import lcm, prod

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import Access, coefficient, known, reads, runs_on, store, varies
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import rewrite, variables, walk
from aot.codegen.ir.loops import Const, Expr, Load, Var
from aot.codegen.ir.schedule import Pack, Schedule, Tail, Tile
from aot.codegen.schedules.reasons import note
from aot.codegen.target import Target
from aot.runtime.abi import DType


def pointwise(d: Definition, target: Target, constants: frozenset[str], shared: frozenset[Var]) -> Schedule:
    axes = [a for a in d.axes if a not in shared]
    if not axes:
        return Schedule()
    lanes = lane_count(d, target)
    accesses = (store(d), *reads(d))
    axis = _lane_axis(axes, accesses, constants, lanes)
    order = sorted((a for a in axes if a is not axis), key=lambda a: -accesses[0].reach(a))
    inner = _contiguous_axes(axis, order, accesses, _computed_with(d) if varies(axes) else frozenset())
    across = None if _fills_code(d, inner, lanes) else _across(inner, order, accesses, constants)
    whole = _interleaved(inner, order, accesses[0], lanes) if across is None else 0
    if across is not None:
        order.remove(across)
    rows = _contiguous_axes(across, order, accesses) if across is not None else []
    outer = order
    fuse: list[tuple[str, tuple[str, ...]]] = []
    name, row = _fused_name("v", inner, d, fuse), _fused_name("r", rows, d, fuse)
    parallel = name if not rows else row
    apart = _unfused_loop(outer, shared)
    if outer:
        parallel = outer[0].name if shared else _fused_name("p", outer[: len(outer) - len(apart)], d, fuse)
    head = [a.name for a in outer] if shared else [parallel, *(a.name for a in apart)] if outer else []
    extent = prod(known(a.extent if a.extent is not None else 1) for a in inner)
    width = min(lanes, _power(extent))
    wide = whole or width * max(1, min(1 if rows else COSTS.pointwise_vectors, extent // max(width, 1)))
    return Schedule(
        fuse=tuple(fuse),
        order=(*head, *([row] if rows else []), name),
        tile=(*([Tile(row, lanes, Tail.CUT)] if rows else []), Tile(name, wide, Tail.CUT)),
        lanes=(name, width) if width > 1 else None,
        pack=packs(accesses, axis, constants, lanes) if len(inner) == 1 else (),
        parallel=None if shared else parallel,
    )


def _computed_with(d: Definition) -> frozenset[Var]:
    """Return axes whose values are computed with, as in tests of padding: fusing them would cost a division a lane."""
    return variables(rewrite(d.value, lambda e: Const(0, e.dtype) if isinstance(e, Load) else None))


def _contiguous_axes(
    axis: Var, order: list[Var], accesses: tuple[Access, ...], alone: frozenset[Var] = frozenset()
) -> list[Var]:
    """Return `axis` and the axes that continue where it ends, to be fused; remove them from `order`.

    Axes in `alone` are not fused.
    """
    found = [axis]
    while order and alone.isdisjoint((axis, order[-1])) and _contiguous(order[-1], found, accesses):
        found.insert(0, order.pop())
    return found


def _interleaved(inner: list[Var], order: list[Var], stored: Access, lanes: int) -> int:
    """Fuse a lane axis shorter than a vector with the axis that the store continues along.

    Return the elements of a tile, a common multiple of the axis and the lanes; 0 if the axes cannot be fused. Each lane
    of a tile then reads from a known place, so that loads become shuffles.
    """
    count = prod(known(a.extent if a.extent is not None else 1) for a in inner)
    tile = lcm(count, lanes)
    if varies(inner) or not 1 < count < lanes or tile > COSTS.max_interleaved_vectors * lanes or not order:
        return 0
    outer = order[-1]
    if known(outer.extent or 1) * count < tile or stored.steps.get(inner[-1]) != 1:
        return 0
    if stored.steps.get(outer) != count:
        return 0
    inner.insert(0, order.pop())
    return tile


def _fused_name(letter: str, axes: list[Var], d: Definition, fuse: list[tuple[str, tuple[str, ...]]]) -> str:
    """Return the name of an axis, or of several as one, which is added to `fuse`; "" for none."""
    if len(axes) < 2:
        return axes[0].name if axes else ""
    name = fresh(letter, d)
    fuse.append((name, tuple(a.name for a in axes)))
    return name


def _unfused_loop(outer: list[Var], shared: frozenset[Var]) -> list[Var]:
    """Return the innermost loop if it stays unfused: fused, each point would divide by a dynamic size.

    It is fused if the loops around it have too few iterations for the threads.
    """
    enough = prod(known(a.extent or 1) for a in outer[:-1]) >= COSTS.min_parallel_iterations
    return outer[-1:] if len(outer) > 1 and enough and not shared and varies(outer) else []


def _across(inner: list[Var], order: list[Var], accesses: tuple[Access, ...], constants: frozenset[str]) -> Var | None:
    """Return an axis along which an access is contiguous that is strided along the lanes; None without one.

    Tiles of both axes are transposed in registers.
    """
    if prod(known(a.extent if a.extent is not None else 1) for a in inner) < COSTS.min_transposed_extent:
        return None
    far = [x for x in accesses if x.buffer.name not in constants and _is_far(x, inner[-1])]
    for a in order:
        if any(x.steps.get(a) == 1 for x in far):
            row = _contiguous_axes(a, [other for other in order if other is not a], accesses)
            if prod(known(b.extent if b.extent is not None else 1) for b in row) >= COSTS.min_transposed_extent:
                return a
    return None


def _fills_code(d: Definition, inner: list[Var], lanes: int) -> bool:
    """True if tiles of dynamic axes would repeat a large expression too often: once for each rest in rows and lanes."""
    copies = (2 * lanes - 1) * lanes.bit_length()
    return varies(inner) and copies * sum(1 for _ in walk(d.value)) > COSTS.max_pointwise_code


def _is_far(x: Access, a: Var) -> bool:
    step = x.steps.get(a)
    return coefficient(x.at, a) is not None if step is None else abs(step) >= COSTS.gather_distance


def lane_count(d: Definition, target: Target) -> int:
    """Return the lanes of a vector of the widest type that a definition reads or writes."""
    return target.lanes(widest(d))


def widest(d: Definition) -> DType:
    """Return the widest compute type that a definition reads or writes."""
    return max((d.out.dtype.compute, *(x.buffer.dtype.compute for x in reads(d))), key=lambda t: t.bits)


def fresh(name: str, d: Definition) -> str:
    taken = {a.name for a in d.axes} | {a.name for a in (d.reduction.axes if d.reduction is not None else ())}
    while name in taken:
        name += "_"
    return name


def _power(n: int) -> int:
    """Return the largest power of two up to `n`."""
    return 1 << max(n, 1).bit_length() - 1


def _lane_axis(axes: list[Var], accesses: tuple[Access, ...], constants: frozenset[str], lanes: int) -> Var:
    """Return the axis with the fewest instructions: one for an access that moves by 0 or 1, else one for each lane.

    Loads that move by a few elements are shuffled out of that many vectors.
    """

    def cost(a: Var) -> tuple[float, float]:
        extent = known(a.extent if a.extent is not None else 1)
        each = 0.0
        for x in accesses:
            step = x.steps.get(a, 0)
            packable = x.load is not None and x.buffer.name in constants and a in x.load.index
            vectors = 1 if step in (0, 1) or packable else COSTS.gather_distance
            if step is not None and x.load is not None:
                vectors = min(vectors, abs(step) + 1)
            scattered = 1.5 if x.load is None else 1.0
            each += vectors / max(min(lanes, extent), 1) if vectors < COSTS.gather_distance else scattered
        return each, -axes.index(a)

    note(lambda: "lane axis by instructions an element: " + ", ".join(f"{a.name} {cost(a)[0]:.3g}" for a in axes))
    return min(axes, key=cost)


def _contiguous(outer: Var, inner: list[Var], accesses: tuple[Access, ...]) -> bool:
    """True if `outer` continues in every access where the fused `inner` axes end."""
    first = inner[0]
    if varies((first, outer)):
        return runs_on(accesses, outer, first)
    assert isinstance(first.extent, int)
    for x in accesses:
        a, b = x.steps.get(outer, 0), x.steps.get(first, 0)
        if a is None or b is None or a != first.extent * b:
            return False
    return True


def packable(x: Access, a: Var) -> bool:
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
    found: dict[str, Pack] = {}
    place: dict[Expr, int] = {a: n - len(outside) - 1 for n, a in enumerate((*outside, axis))}
    place |= {a: n + 1 for n, a in enumerate(order)}
    for x in accesses:
        if x.load is None or x.buffer.name not in constants or axis not in x.load.index:
            continue
        at = x.load.index.index(axis)
        if not isinstance(x.buffer.shape[at], int) or (x.steps.get(axis) == 1 and not order):
            continue
        dims = sorted((place.get(i, 0), k) for k, i in enumerate(x.load.index))
        found[x.buffer.name] = Pack(x.buffer.name, tuple(k for _, k in dims), at, lanes)
    return tuple(found.values())
