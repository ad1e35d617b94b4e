"""Choice of the output axis of a reduction that becomes lanes; layouts follow from it."""

from __future__ import annotations

from functools import lru_cache

from aot.codegen.ir.access import typical
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loads, variables
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Expr, Load, Space, Var


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
    return list(_lane_axes(d, constants.intersection(x.buffer.name for x in memory_of(d))))


@lru_cache(maxsize=1 << 15)  # layouts ask several times for the same definition
def _lane_axes(d: Definition, constants: frozenset[str]) -> tuple[tuple[bool, int, int, Var], ...]:
    """`constants`: those that the definition reads."""
    ranked: list[tuple[bool, int, int, Var]] = []
    for position, a in enumerate(d.axes):
        if dim_of(d.target, a, d.axes) is not None and _lanes_well(d, a, constants):
            packed = all(x.buffer.name in constants for x in memory_of(d) if a in variables(*x.index))
            ranked.append((packed, min(typical(a.extent if a.extent is not None else 1), 16), position, a))
    return tuple(sorted(ranked, key=lambda f: f[:3], reverse=True))


def dim_of(index: tuple[Expr, ...], a: Var, beside: tuple[Var, ...] = ()) -> int | None:
    """Return the dimension that `a` moves along by one element; None for several, or with axes not in `beside`."""
    dims = [k for k, i in enumerate(index) if a in variables(i)]
    terms = normal(index[dims[0]], {}).terms if len(dims) == 1 else {}
    return dims[0] if terms.get(a) == 1 and all(t == a or t in beside for t in terms) else None


def _lanes_well(d: Definition, a: Var, constants: frozenset[str]) -> bool:
    sites = [(x, variables(*x.index)) for x in memory_of(d)]
    batch = frozenset(d.axes).intersection(*(v for _, v in sites))
    moving = [(x, v) for x, v in sites if a in v]
    for x, v in moving:
        if dim_of(x.index, a, _axes_beside_lanes(d, x) if len(moving) == len(sites) else d.axes) is None:
            return False
        if x.buffer.name not in constants and len(moving) < len(sites) and (v - batch - {a}) & set(d.axes):
            return False
    return bool(moving)


def _axes_beside_lanes(d: Definition, x: Load) -> tuple[Var, ...]:
    """Return the axes that an index may have beside the lanes: output axes, and window axes of step one."""
    assert d.reduction is not None
    steps = {a: stride for i in x.index for a, stride in normal(i, {}).terms.items()}
    return (*d.axes, *(a for a in d.reduction.axes if steps.get(a, 1) == 1))


def memory_of(d: Definition) -> list[Load]:
    """Return the loads in the reduction, except loads of the compiler's tables."""
    assert d.reduction is not None
    return [x for x in loads(d.reduction.body) if x.buffer.space is not Space.TABLE]
