"""Values that branches are added to and norms read: the residual stream of a transformer.

    y[i, j] = chains[k](x[i, k] * w[k, j]) + r[i, j]
    n[i, j] = (y[i, j] - add[k](y[i, k]) / 384) / ..          y and r stay f32

A branch is small beside what it is added to, and each rounding would stay in all later layers.
"""

from __future__ import annotations

from collections.abc import Iterator

from aot.codegen.ir.expressions import loads
from aot.codegen.ir.loops import Expr, Load, Prim
from aot.codegen.ir.traverse import members
from aot.lowering.ir.steps import Steps
from aot.lowering.numbers.precision.statistics import is_statistic


def residual_sums(steps: Steps) -> frozenset[str]:
    """Return the sums of values that norms read, and the values that are added up in them."""
    constants = steps.constants()
    added: dict[str, set[str]] = {}
    sums: set[str] = set()
    for d in (d for block in steps.blocks() for s in block.steps for w in s.works for d in members(w)):
        added.setdefault(d.out.name, set()).update(_addends(d.value, constants))
        if is_statistic(d) and d.reduction is not None:
            sums |= {x.buffer.name for x in loads(d.reduction.body)}
            added.setdefault(d.out.name, set()).update(_addends(d.reduction.body, constants))
    stack = [name for name in sums if added.get(name)]
    reached: set[str] = set()
    while stack:
        name = stack.pop()
        if name not in reached:
            reached.add(name)
            stack += added.get(name, ())
    return frozenset(reached)


def _addends(e: Expr, constants: frozenset[str]) -> set[str]:
    """Return the values that a sum adds as they are; none for a sum of fewer than two terms that vary."""
    terms = [t for t in _terms(e) if any(x.buffer.name not in constants for x in loads(t))]
    return {t.buffer.name for t in terms if isinstance(t, Load)} if len(terms) > 1 else set()


def _terms(e: Expr) -> Iterator[Expr]:
    stack = [e]
    while stack:
        term = stack.pop()
        if isinstance(term, Prim) and term.fn == "add" and term.dtype.is_float:
            stack += term.args
        else:
            yield term
