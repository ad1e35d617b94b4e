"""Substitution of a definition's value for loads of its output.

v[i, j] = x[j, i],  y[k] = v[k, 3] + 1     ->     y[k] = x[3, k] + 1
"""

from __future__ import annotations

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loaded_names, loads, rewrite
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Expr, Load, Space, Var
from aot.codegen.ir.traverse import Change, rewrite_definition


def substitution(definition: Definition) -> Change:
    """Return the rewrite of loads from the output of `definition` to its value at that index."""
    name = definition.out.name

    def change(e: Expr) -> Expr | None:
        if name not in loaded_names(e):
            return e  # merged expressions are large, and have the load at few places
        if not isinstance(e, Load) or e.buffer.name != name:
            return None
        index = tuple(rewrite(i, change) for i in e.index) if loads(*e.index) else e.index
        axes: dict[Expr, Expr] = {
            a: i for a, i in zip(definition.target, index, strict=True) if isinstance(a, Var) and a is not i and a != i
        }
        return simplified(rewrite(definition.value, axes) if axes else definition.value)

    return change


def merged_definition(d: Definition, produced: Definition) -> Definition:
    """Return `d`, which computes the value of `produced` itself."""
    if d.where or d.results or any(map(loads, d.index)):
        return rewrite_definition(d, substitution(produced))
    return Definition(d.out, d.axes, rewrite(d.value, substitution(produced)), d.index)


def simplified(e: Expr) -> Expr:
    """Bring the indices of loads into normal form."""
    result = rewrite(e, _normalised)
    result.has_plain_indices = True  # expressions grow by merging: each part is visited once
    return result


def _normalised(x: Expr) -> Expr | None:
    """Return a load with its indices in normal form; None for expressions that contain anything else."""
    if hasattr(x, "has_plain_indices"):
        return x
    if isinstance(x, Load):
        inner = (rewrite(i, _normalised) if loads(i) else i for i in x.index)
        return Load(x.buffer, tuple(normal(i, {}).expr() for i in inner))
    return None


def memory_loads(value: Expr) -> list[Load]:
    """Return the loads of values, except loads of the compiler's tables."""
    return [x for x in loads(value) if x.buffer.space is not Space.TABLE]
