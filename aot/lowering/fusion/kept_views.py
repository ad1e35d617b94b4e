"""Views that stay copies, because a consumer could not read their sources well in any layout."""

from __future__ import annotations

from itertools import permutations
from math import prod

from aot.codegen.ir.access import coefficient, in_order, offset, points, typical
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loads, variables, walk
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Buffer, Expr, Load, Prim, Var
from aot.lowering.fusion.substitute import memory_loads, substitution

MAX_ORDERED = 5  # dimensions whose orders are tried


def gathers_rows(consumer: Definition, b: Buffer) -> bool:
    """True if the consumer looks up as many rows of `b` as it has, or more, at places that data decide."""
    sites = [x for x in loads(consumer.value) if x.buffer.name == b.name and gathers(x.index)]
    often = typical(points(consumer)) * len(sites) >= prod(map(typical, b.shape))
    return often and any(isinstance(x.index[-1], Var) for x in sites)


def steps_unevenly(consumer: Definition, view: Definition) -> bool:
    """True if, through the view, no dimension order has even strides along the sums, or along lanes of all operands."""
    assert consumer.reduction is not None and isinstance(view.value, Load)
    body = memory_loads(consumer.reduction.body)
    moving = [(x.buffer.name == view.out.name, variables(*x.index) & set(consumer.axes)) for x in body]
    seen, others = (
        set[Var]().union(*(m for is_view, m in moving if is_view is through_view)) for through_view in (True, False)
    )
    matter = {*consumer.reduction.axes}
    if others <= seen:  # a window: only axes that move all operands can be lanes
        matter |= set(consumer.axes).intersection(*(m for _, m in moving))
    read = [Load(view.value.buffer, x.index) for x in _through(body, view)]
    return any(not _has_uniform_strides(x, matter) for x in read)


def divides_axis(consumer: Definition, view: Definition) -> bool:
    """True if the view reads its source by the quotient and the remainder of an output axis of the consumer.

    A quotient alone repeats elements, as keys for the heads that share them: a copy would have all repetitions.
    """
    assert consumer.reduction is not None
    for x in _through(memory_loads(consumer.reduction.body), view):
        terms = [t for i in x.index for t in normal(i, {}).terms]
        quotients = [t for t in terms if isinstance(t, Prim) and t.fn == "floordiv"]
        divided = variables(*quotients) & {*consumer.axes}
        if divided & variables(*(t for t in terms if t not in quotients)):
            return True
    return False


def _through(body: list[Load], view: Definition) -> list[Load]:
    """Return the loads of the view's source that replace loads of the view in `body`."""
    change = substitution(view)
    changed = (change(x) for x in body if x.buffer.name == view.out.name)
    return [x for e in changed if e is not None for x in loads(e)]


def _has_uniform_strides(x: Load, axes: set[Var]) -> bool:
    dims = [k for k, n in enumerate(x.buffer.shape) if n != 1]
    if len(dims) > MAX_ORDERED:
        return True
    for order in permutations(dims):
        at = offset(in_order(x.buffer, order), x.index)
        if all(coefficient(at, a) is not None for a in axes):
            return True
    return False


def gathers(index: tuple[Expr, ...]) -> bool:
    """True if the index itself loads from memory."""
    return any(isinstance(e, Load) for e in walk(*index))


def reuses(d: Definition, name: str) -> bool:
    """True if a definition reads elements of `name` more than once."""
    axes = (*d.axes, *(d.reduction.axes if d.reduction is not None else ()))
    for x in loads(d.value):
        if x.buffer.name == name:
            used = variables(*x.index)
            spare = [a.extent for a in axes if a not in used]
            points = prod(typical(a.extent or 1) for a in axes)
            size = prod(map(typical, x.buffer.shape))
            if spare or points > 1.5 * max(size, 1):
                return True
    return False
