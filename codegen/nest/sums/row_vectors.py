"""Products that load several terms of a row at a time, for instructions that multiply a vector by a lane of another.

rows[i.t, 0:4] = x[i, k:k + 4]
acc[i.t, j.t] += rows[i.t, k.u] * w[k + k.u, j]
"""

from __future__ import annotations

from dataclasses import replace

from aot.codegen.ir.expressions import rewrite, unguarded, variables
from aot.codegen.ir.loops import Expr, Load, Space, Var, dense
from aot.codegen.ir.schedule import Schedule
from aot.codegen.nest.points import Points, Spans, depending
from aot.codegen.nest.sums.scaled_steps import RegisterValue
from aot.runtime.abi import DType

_HERE = (Space.TABLE, Space.REGISTERS)  # constants, and numbers that are loaded already


def row_vectors(
    body: Expr, schedule: Schedule, points: Points, inner: Spans, name: str
) -> tuple[tuple[RegisterValue, ...], Expr]:
    """Return the vectors of a tile of the sum that all columns share, and the body that reads lanes of them.

    A tile of fewer terms than a vector has none. `name`: prefix of the names of buffers.
    """
    axis = next((a for a in inner if a.name == schedule.row_vectors), None)
    if axis is None or inner[axis].extent != schedule.size(axis.name).size or points.vector is None:
        return (), body
    moving, across = (_moving(points, a) for a in (axis, points.vector))
    loads = [x for x in dict.fromkeys(unguarded(body)) if x.dtype is DType.F32 and x.buffer.space not in _HERE]
    loads = [x for x in loads if variables(x) & moving and not variables(x) & across]
    vectors = {x: _in_registers(x, axis, schedule, points, inner, f"{name}rows{n}") for n, x in enumerate(loads)}
    term = Var(f"{axis.name}.u", inner[axis].extent)
    reads: dict[Expr, Expr] = {x: Load(k.buffer, (*k.points.cell[:-1], term)) for x, k in vectors.items()}
    return tuple(vectors.values()), rewrite(body, reads)


def _in_registers(x: Load, axis: Var, schedule: Schedule, points: Points, inner: Spans, name: str) -> RegisterValue:
    rows = tuple(a for a in points.axes if variables(x) & _moving(points, a))
    lanes = replace(schedule, lanes=(axis.name, schedule.size(axis.name).size))
    own = Points((*rows, axis), points.spans | {axis: inner[axis]}, points.lets, lanes)
    dtype = x.buffer.dtype if schedule.f16_sums else x.dtype
    return RegisterValue(x, dense(name, *own.shape, space=Space.REGISTERS, dtype=dtype), own, ())


def _moving(points: Points, axis: Var) -> set[Var]:
    """Return an axis and those that are computed from it."""
    return {axis, *(part for part, _ in depending(points.lets, axis))}
