"""The stores of a point of a definition, and names for buffers of its kernel's own.

y[i, j] = value                    point[j.t] = value            in registers
                                   y[i, j] = point[j.t]
                                   q[i, j] = u8(point[j.t])      a result beside it
"""

from __future__ import annotations

from aot.codegen.ir.by_identity import by_identity
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loads, rewrite
from aot.codegen.ir.loops import Alloc, Const, Expr, If, Load, Space, Stmt, Store, as_expr, dense, prim
from aot.codegen.ir.traverse import expressions, writes
from aot.codegen.nest.points import Points
from aot.runtime.abi import DType


def at_point(definition: Definition, value: Expr, points: Points) -> Stmt:
    """Return the stores of one point, guarded by the bounds of the definition; they stand in the loops of `points`.

    Results read the value where it is computed: it is rounded as it is where a kernel of their own would load it.
    """
    stmts: tuple[Stmt, ...] = (Store(definition.out, definition.target, value),)
    if definition.results:
        lane = points.vector
        extent, cell = (1, Const(0)) if lane is None else (points.extent(lane), points.point(lane))
        point = dense(unused_name("point", definition), extent, space=Space.REGISTERS, dtype=definition.value.dtype)
        kept = Load(point, (cell,))
        known: dict[Expr, Expr] = {Load(definition.point, (Const(0),)): kept}
        beside = (Store(r.out, r.index, rewrite(r.value, known)) for r in definition.results)
        first = Store(definition.out, definition.target, kept)
        stmts = (Alloc(point, (Store(point, (cell,), value), first, *beside)),)
    for index, bound in definition.where:
        stmts = (If(prim("lt", index, as_expr(bound, DType.I64)), stmts),)
    return stmts[0]


def unused_name(name: str, definition: Definition) -> str:
    """Return `name`, or a longer one if the definition has a buffer of that name."""
    taken = _buffer_names(definition)
    while name in taken:
        name += "."
    return name


@by_identity(1 << 12, "known_names")
def _buffer_names(definition: Definition) -> frozenset[str]:
    """Return the names of the buffers that a definition reads or writes."""
    read = loads(*expressions(definition), *definition.target)
    return frozenset(b.name for b in (*(x.buffer for x in read), *writes(definition)))
