"""Halo fills inside of a parallel loop: the unit that writes elements of a result writes the halo beside them, too.

    parallel h in 14:
      y[h, -1, c] = 0                          halo on the left: cut into one part for each iteration of the loop
      if h = 0: y[-1, w, c] = 0                halo above all rows: written by the first iteration
      ...

So the halo is in the cache of the core that reads it next, and needs no units for which other threads have to wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeGuard

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import typical
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import variables
from aot.codegen.ir.index import bounds, normal
from aot.codegen.ir.loops import Alloc, Const, Expr, For, If, Let, LoopKind, Size, Var, as_expr, prim
from aot.codegen.ir.traverse import has_parallel
from aot.codegen.nest.points import Span, Spans, Stmts
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError

if TYPE_CHECKING:
    from aot.codegen.ir.schedule import Schedule

Build = Callable[[Spans], Stmts]


@dataclass(frozen=True, slots=True)
class HaloFill:
    """A definition with the same value at all points, as for a halo.

    `build` returns the statements that store its part in given spans.
    """

    definition: Definition
    build: Build


def can_take(stmts: Stmts) -> bool:
    """True if the first parallel loop runs at least once. If it may run zero times, no unit would write the halo."""
    for s in stmts:
        match s:
            case For(var, _, LoopKind.PARALLEL):
                return bounds(normal(as_expr(var.extent or 0, DType.I64), {}))[0] >= 1
            case Let() | Alloc() if has_parallel(s.body):
                return can_take(s.body)
            case _:
                continue
    return False


def is_halo_fill(work: Definition | Group, schedule: Schedule) -> TypeGuard[Definition]:
    """True if `work` stores one value everywhere and has no parallel loop of its own."""
    return stores_one_value(work) and schedule.parallel is None


def stores_one_value(work: Definition | Group) -> TypeGuard[Definition]:
    """True if the value of `work` is the same at all its points: a constant, or computed from single elements."""
    return isinstance(work, Definition) and work.reduction is None and not variables(work.value)


def with_halo_fills(stmts: Stmts, fills: tuple[HaloFill, ...]) -> Stmts:
    """Add the fills to the first parallel loop of `stmts`; `can_take` must hold for it."""
    if not fills:
        return stmts
    for n, s in enumerate(stmts):
        match s:
            case For(var, body, LoopKind.PARALLEL):
                extent = var.extent
                assert extent is not None
                added = tuple(p for fill in fills for p in _part(fill, var, extent))
                if has_parallel(body):
                    added = (For(Var("once", 1), added, LoopKind.PARALLEL),)
                loop = For(var, (*added, *body), LoopKind.PARALLEL)
            case Let(name, value, body) if has_parallel(body):
                loop = Let(name, value, with_halo_fills(body, fills))
            case Alloc(buffer, body) if has_parallel(body):
                loop = Alloc(buffer, with_halo_fills(body, fills))
            case _:
                continue
        return (*stmts[:n], loop, *stmts[n + 1 :])
    raise InternalError("fills: a parallel loop takes them, got none")


def _part(fill: HaloFill, unit: Var, units: Size) -> Stmts:
    """Build the part of a fill that unit `unit` of `units` of the parallel loop writes."""
    d = fill.definition
    row = _outermost(d)
    if isinstance(row, Var) and row in d.axes and row.extent is not None and not row.low:
        if isinstance(row.extent, int) and isinstance(units, int) and row.extent % units == 0:
            share = row.extent // units
            return fill.build({row: Span(unit * share, share)})
        count, length = as_expr(units, DType.I64), as_expr(row.extent, DType.I64)
        start, end = unit * length // count, (unit + 1) * length // count
        return fill.build({row: Span(start, end - start)})
    before = isinstance(row, Const) and row.value < 0
    turn: Expr = Const(0) if before else as_expr(units, DType.I64) - 1
    return (If(prim("eq", unit, turn), fill.build({})),)


def _outermost(d: Definition) -> Expr:
    """Return the output's index in the dimension of the largest stride, among those of more than one element."""
    moving = [
        (i, typical(stride))
        for i, n, stride in zip(d.target, d.out.shape, d.out.strides, strict=True)
        if typical(n) > 1
    ]
    return max(moving, key=lambda pair: pair[1], default=(Const(0), 0))[0]
