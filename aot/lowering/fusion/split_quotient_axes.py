"""Splitting of axes that are read by quotient and remainder: transposed convolutions with stride become products.

y[c, h, w] = add[ic](x[ic, h // 2, w // 2] * k[ic, c, h % 2, w % 2])
y[c, 2 h + p, 2 w + q] = add[ic](x[ic, h, w] * k[ic, c, p, q])              one product for each p, q
y[j // 4, 2 h + j // 2 % 2, 2 w + j % 2] = ...                              few channels: p and q are columns, too
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aot.codegen.costs import COSTS
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import functions_in, loads, rewrite, variables, walk
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Const, Expr, Load, Prim, Size, Var, as_expr
from aot.lowering.context import Context
from aot.lowering.fusion.substitute import simplified
from aot.lowering.ir.steps import Steps
from aot.runtime.abi import DType

_DIVIDING = ("floordiv", "mod")


def split_quotient_axes(steps: Steps, _context: Context) -> None:
    """Rewrite every reduction with quotient axes, and copies that repeat a dynamic number of elements."""
    for step in steps.steps:
        d = step.definition
        if d is not None and not d.where:
            definition = _split(d) if d.reduction is not None else _repeated(d)
            if definition is not None:
                step.works = (definition,)


def _repeated(d: Definition) -> Definition | None:
    """Match y[i, j] = x[i, j % n] with j in 4 n: a row of n elements, four times."""
    sites = loads(d.value)
    varying = (a for a in d.axes if not isinstance(a.extent, int))
    return divided(d, sites) if any(not isinstance(_common_divisor(sites, a), int) for a in varying) else None


def _split(d: Definition) -> Definition | None:
    assert d.reduction is not None
    definition = divided(d, loads(d.reduction.body))
    if definition is None:
        return None
    unsplit = [a for a in d.axes if a in definition.axes]
    parts = [a for a in definition.axes if a not in unsplit]
    quotients, rests = parts[: len(parts) // 2], parts[len(parts) // 2 :]
    if not all(isinstance(a.extent, int) for a in rests) or not _moves_evenly(definition, quotients):
        return None
    return _merged(definition, [a for a in unsplit if _is_channel(definition, a, rests)], rests)


def divided(d: Definition, sites: Sequence[Load]) -> Definition | None:
    """Split each axis that `sites` read by quotient and remainder: first the other axes, then quotients, remainders."""
    change: dict[Expr, Expr] = {}
    quotients: list[Var] = []
    rests: list[Var] = []
    for a in d.axes:
        divisor = _common_divisor(sites, a)
        if divisor != 0:
            quotients.append(Var(a.name, _part(a, divisor)))
            rests.append(Var(f"{a.name}{divisor if isinstance(divisor, int) else '.rest'}", divisor))
            change[a] = quotients[-1] * divisor + rests[-1]
    if not change:
        return None
    value = simplified(rewrite(d.value, change))
    index = tuple(normal(rewrite(i, change), {}).expr() for i in d.target)
    unsplit = [a for a in d.axes if a not in change]
    return Definition(d.out, (*unsplit, *quotients, *rests), value, index)


def _common_divisor(sites: Sequence[Load], a: Var) -> Size:
    """Return the common divisor of `a` in all these accesses; 0 if they differ."""
    values = {
        q.args[1]
        for x in sites
        for i in x.index
        if not functions_in(i).isdisjoint(_DIVIDING)
        for q in walk(normal(i, {}).expr())
        if isinstance(q, Prim) and q.fn == "floordiv" and normal(q.args[0], {}).terms == {a: 1}
    }
    divisor: Expr = values.pop() if len(values) == 1 else Const(0)
    if isinstance(divisor, Const):
        return int(divisor.value) if divisor.value > 1 and _part(a, int(divisor.value)) is not None else 0
    return divisor if isinstance(divisor, Var) and _part(a, divisor) is not None else 0


def _part(a: Var, divisor: Size) -> Size | None:
    """Return the extent divided by `divisor`; None if that is no whole number."""
    if a.extent is None:
        return None
    size = normal(as_expr(a.extent, DType.I64), {})
    part = normal(size.expr() // divisor, {})
    if normal(part.expr() * divisor, {}).key != size.key:
        return None
    expr = part.expr()
    return int(expr.value) if isinstance(expr, Const) else expr


def _moves_evenly(d: Definition, quotients: list[Var]) -> bool:
    """True if each quotient moves evenly in all indices that contain it."""
    assert d.reduction is not None
    indices = [(i, normal(i, {}).terms) for x in loads(d.reduction.body) for i in x.index]
    return all(
        a not in variables(i) or (a in terms and not _is_nested(a, terms)) for i, terms in indices for a in quotients
    )


def _is_nested(a: Var, terms: Mapping[Expr, int]) -> bool:
    return any(a in variables(t) for t in terms if t != a)


def _is_channel(d: Definition, a: Var, rests: list[Var]) -> bool:
    """True if exactly the operands that move with the remainders move with `a`, which has a static size."""
    assert d.reduction is not None
    sites = loads(d.reduction.body)
    return isinstance(a.extent, int) and all((a in x.index) == bool(variables(*x.index) & {*rests}) for x in sites)


def _move_together(d: Definition, rests: list[Var]) -> bool:
    """True if each operand moves with all remainders or with none, so that one axis can replace them."""
    assert d.reduction is not None
    axes = [variables(*x.index) & {*rests} for x in loads(d.reduction.body)]
    return all(len(v) in (0, len(rests)) for v in axes)


def _merged(d: Definition, channels: list[Var], rests: list[Var]) -> Definition:
    """Merge the remainders into the channel axis, where there are few channels."""
    extent = 1
    for a in (*channels, *rests):
        assert isinstance(a.extent, int)
        extent *= a.extent
    count = extent
    for a in rests:
        assert isinstance(a.extent, int)
        count //= a.extent
    if len(channels) > 1 or count >= COSTS.vector_extent or not _move_together(d, rests):
        return d
    taken = {a.name for a in d.axes if a not in channels}
    j = Var(next(n for n in ("c", "j", "channel") if n not in taken), extent)
    change: dict[Expr, Expr] = {}
    quotient: Expr = j
    for a in reversed((*channels, *rests)):
        assert isinstance(a.extent, int)
        change[a] = quotient % a.extent
        quotient = quotient // a.extent
    unmerged = tuple(a for a in d.axes if a not in change)
    return replace(
        d,
        axes=(*unmerged, j),
        value=simplified(rewrite(d.value, change)),
        index=tuple(normal(rewrite(i, change), {}).expr() for i in d.target),
    )
