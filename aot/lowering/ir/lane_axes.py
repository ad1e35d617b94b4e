"""Choice of the output axis of a reduction that becomes lanes; layouts follow from it."""

from __future__ import annotations

from functools import lru_cache

from aot.codegen.ir.access import typical
from aot.codegen.ir.by_identity import kept
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loads, variables
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Expr, Load, Space, Var

Index = tuple[Expr, ...]
Accesses = tuple[tuple[Index, bool], ...]  # indices of loads, and if each is of a constant


def lane_axis(d: Definition, constants: frozenset[str]) -> Var | None:
    """Return the best output axis for lanes.

    Each operand is invariant along it, or moves by single elements, or can be packed.

    An axis that only constants move with comes first, then the largest (up to 16 iterations), then the last.
    """
    return next((a for *_, a in lane_axes(d, constants)), None)


def lane_axes(d: Definition, constants: frozenset[str]) -> list[tuple[bool, int, int, Var]]:
    """Return all axes that can become lanes, best first, each with its sort key.

    Packed or not, lanes up to 16, place.
    """
    assert d.reduction is not None
    sites, known = memory_of(d), kept(d, "known_lanes")
    fixed = tuple([x.buffer.name in constants for x in sites])
    if fixed not in known:
        accesses = tuple((x.index, one) for x, one in zip(sites, fixed, strict=True))
        known[fixed] = _lane_axes(d.axes, d.target, d.reduction.axes, accesses)
    return list(known[fixed])


@lru_cache(maxsize=1 << 12)  # layouts ask several times, and equal layers read other buffers in the same way
def _lane_axes(
    axes: tuple[Var, ...], target: tuple[Expr, ...], sum_axes: tuple[Var, ...], accesses: Accesses
) -> tuple[tuple[bool, int, int, Var], ...]:
    sites = [(index, variables(*index), fixed) for index, fixed in accesses]
    ranked: list[tuple[bool, int, int, Var]] = []
    for position, a in enumerate(axes):
        if dim_of(target, a, axes) is not None and _lanes_well(a, axes, sum_axes, sites):
            packed = all(fixed for _, moving, fixed in sites if a in moving)
            ranked.append((packed, min(typical(a.extent if a.extent is not None else 1), 16), position, a))
    return tuple(sorted(ranked, key=lambda f: f[:3], reverse=True))


def dim_of(index: tuple[Expr, ...], a: Var, beside: tuple[Var, ...] = ()) -> int | None:
    """Return the dimension that `a` moves along by one element; None for several, or with axes not in `beside`."""
    dims = [k for k, i in enumerate(index) if (i == a if isinstance(i, Var) else a in variables(i))]
    if len(dims) != 1 or index[dims[0]] == a:
        return dims[0] if len(dims) == 1 else None
    terms = normal(index[dims[0]], {}).terms
    return dims[0] if terms.get(a) == 1 and all(t == a or t in beside for t in terms) else None


def _lanes_well(
    a: Var, axes: tuple[Var, ...], sum_axes: tuple[Var, ...], sites: list[tuple[Index, frozenset[Var], bool]]
) -> bool:
    batch = frozenset(axes).intersection(*(v for _, v, _ in sites))
    moving = [site for site in sites if a in site[1]]
    for index, v, fixed in moving:
        if dim_of(index, a, _axes_beside_lanes(axes, sum_axes, index) if len(moving) == len(sites) else axes) is None:
            return False
        if not fixed and len(moving) < len(sites) and (v - batch - {a}) & set(axes):
            return False
    return bool(moving)


def _axes_beside_lanes(axes: tuple[Var, ...], sum_axes: tuple[Var, ...], index: Index) -> tuple[Var, ...]:
    """Return the axes that an index may have beside the lanes: output axes, and window axes of step one."""
    steps = {a: stride for i in index for a, stride in normal(i, {}).terms.items()}
    return (*axes, *(a for a in sum_axes if steps.get(a, 1) == 1))


def memory_of(d: Definition) -> list[Load]:
    """Return the loads in the reduction, except loads of the compiler's tables."""
    assert d.reduction is not None
    return [x for x in loads(d.reduction.body) if x.buffer.space is not Space.TABLE]
