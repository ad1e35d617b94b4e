"""Definitions without a reduction: vectors along the axis that most accesses move along by one element.

    y[n, h, w, c] = x[n, h, w, c] * s[c]      fuse[p=(n,h,w)] order[p c] tile[c:64/cut] lanes[c:16] parallel=p
"""

from __future__ import annotations

from codegen.access import Access, known, reads, runs_on, store, varies
from codegen.define import Definition
from codegen.loops import Expr, Var
from codegen.schedule import Pack, Schedule, Tail, Tile
from codegen.target import Target

UNROLL = 4  # vectors in flight


def pointwise(d: Definition, target: Target, constants: frozenset[str], shared: frozenset[Var]) -> Schedule:
    axes = [a for a in d.axes if a not in shared]
    if not axes:
        return Schedule()
    lanes = lane_count(d, target)
    accesses = (store(d), *reads(d))
    axis = _lane_axis(axes, accesses, constants, lanes)
    order = sorted((a for a in axes if a is not axis), key=lambda a: -accesses[0].reach(a))
    inner = [axis]
    while order and _contiguous(order[-1], inner, accesses):
        inner.insert(0, order.pop())
    outer = order
    fuse: list[tuple[str, tuple[str, ...]]] = []
    name = axis.name
    if len(inner) > 1:
        name = fresh("v", d)
        fuse.append((name, tuple(a.name for a in inner)))
    extent = 1
    for a in inner:
        extent *= known(a.extent if a.extent is not None else 1)
    parallel = name
    if outer:
        parallel = outer[0].name
        if len(outer) > 1 and not shared:
            parallel = fresh("p", d)
            fuse.append((parallel, tuple(a.name for a in outer)))
    names = [a.name for a in outer]
    head = [parallel] if outer and (len(outer) == 1 or parallel not in names) else names
    width = min(lanes, _power(extent))
    wide = width * max(1, min(UNROLL, extent // max(width, 1)))
    return Schedule(
        fuse=tuple(fuse),
        order=(*head, name),
        tile=(Tile(name, wide, Tail.CUT),),
        lanes=(name, width) if width > 1 else None,
        pack=packs(accesses, axis, constants, lanes) if len(inner) == 1 else (),
        parallel=None if shared else parallel,
    )


def lane_count(d: Definition, target: Target) -> int:
    """Lanes of the widest type that a definition touches."""
    widest = max((d.out.dtype.compute, *(x.buffer.dtype.compute for x in reads(d))), key=lambda t: t.bits)
    return target.lanes(widest)


def fresh(name: str, d: Definition) -> str:
    taken = {a.name for a in d.axes} | {a.name for a in (d.reduction.axes if d.reduction is not None else ())}
    while name in taken:
        name += "_"
    return name


def _power(n: int) -> int:
    """The largest power of two that is not larger."""
    return 1 << max(n, 1).bit_length() - 1


def _lane_axis(axes: list[Var], accesses: tuple[Access, ...], constants: frozenset[str], lanes: int) -> Var:
    """The axis that costs least: an access that moves by 0 or 1 is one instruction, any other is one a lane."""

    def cost(a: Var) -> tuple[float, float]:
        extent = known(a.extent if a.extent is not None else 1)
        each = 0.0
        for x in accesses:
            step = x.steps.get(a, 0)
            packable = x.load is not None and x.buffer.name in constants and a in x.load.index
            scattered = 1.5 if x.load is None else 1.0
            each += 1 / min(lanes, extent) if step in (0, 1) or packable else scattered
        return each, -axes.index(a)

    return min(axes, key=cost)


def _contiguous(outer: Var, inner: list[Var], accesses: tuple[Access, ...]) -> bool:
    """Does `outer` go on in every access where the fused `inner` axes end?"""
    first = inner[0]
    if varies((first, outer)):
        return runs_on(accesses, outer, first)
    assert isinstance(first.extent, int)
    for x in accesses:
        a, b = x.steps.get(outer, 0), x.steps.get(first, 0)
        if a is None or b is None or a != first.extent * b:
            return False
    return True


def packs(
    accesses: tuple[Access, ...], axis: Var, constants: frozenset[str], lanes: int, order: tuple[Var, ...] = ()
) -> tuple[Pack, ...]:
    """Constants that do not move by one element along the lanes are blocked by the lanes.

    `order`: the loops inside, outermost first; dimensions that no loop walks plainly come before them.
    """
    found: dict[str, Pack] = {}
    place: dict[Expr, int] = {a: n for n, a in enumerate(order)}
    for x in accesses:
        if x.load is None or x.buffer.name not in constants or axis not in x.load.index:
            continue
        at = x.load.index.index(axis)
        if not isinstance(x.buffer.shape[at], int) or (x.steps.get(axis) == 1 and not order):
            continue
        others = sorted((place.get(i, -1), k) for k, i in enumerate(x.load.index) if k != at)
        found[x.buffer.name] = Pack(x.buffer.name, tuple(k for _, k in others), at, lanes)
    return tuple(found.values())
