"""Choice of the output axis of a reduction that becomes lanes, by which layouts are chosen."""

from __future__ import annotations

from codegen.access import known
from codegen.define import Definition
from codegen.expressions import loads, variables
from codegen.index import normal
from codegen.loops import Expr, Load, Space, Var


def lane_axis(d: Definition, constants: frozenset[str]) -> Var | None:
    """The output axis along which all that is read is equal, or moves plainly, or can be packed.

    One that only constants move with comes first, then the largest, then the last.
    """
    return next((a for *_, a in lane_axes(d, constants)), None)


def lane_axes(d: Definition, constants: frozenset[str]) -> list[tuple[bool, int, int, Var]]:
    """All that would do, the best first, with what makes them so: packed or not, lanes, place."""
    found: list[tuple[bool, int, int, Var]] = []
    for place, a in enumerate(d.axes):
        if dim_of(d.target, a, d.axes) is not None and _lanes_well(d, a, constants):
            packed = all(x.buffer.name in constants for x in memory_of(d) if a in variables(*x.index))
            found.append((packed, min(known(a.extent if a.extent is not None else 1), 16), place, a))
    return sorted(found, key=lambda f: f[:3], reverse=True)


def dim_of(index: tuple[Expr, ...], a: Var, beside: tuple[Var, ...] = ()) -> int | None:
    """The dimension along which `a` moves by one element, if it is in no other; alone there, or beside those given."""
    found = [k for k, i in enumerate(index) if a in variables(i)]
    terms = normal(index[found[0]], {}).terms if len(found) == 1 else {}
    return found[0] if terms.get(a) == 1 and all(t == a or t in beside for t in terms) else None


def _lanes_well(d: Definition, a: Var, constants: frozenset[str]) -> bool:
    sites = [(x, variables(*x.index)) for x in memory_of(d)]
    batch = frozenset(d.axes).intersection(*(v for _, v in sites))
    moving = [(x, v) for x, v in sites if a in v]
    for x, v in moving:
        if dim_of(x.index, a, _beside(d, x) if len(moving) == len(sites) else d.axes) is None:
            return False
        if x.buffer.name not in constants and len(moving) < len(sites) and (v - batch - {a}) & set(d.axes):
            return False
    return bool(moving)


def _beside(d: Definition, x: Load) -> tuple[Var, ...]:
    """Terms that lanes may be added to in an index: other axes, and those of a window that slides along them."""
    assert d.reduction is not None
    steps = {a: step for i in x.index for a, step in normal(i, {}).terms.items()}
    return (*d.axes, *(a for a in d.reduction.axes if steps.get(a, 1) == 1))


def memory_of(d: Definition) -> list[Load]:
    """Loads of the reduction, without tables of the compiler."""
    assert d.reduction is not None
    return [x for x in loads(d.reduction.body) if x.buffer.space is not Space.TABLE]
