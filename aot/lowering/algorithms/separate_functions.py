"""Functions of sums along memory, as vectors of neighbours: a sum whose lanes fold to one number has scalars behind it.

y[h, w] = 1 / (exp(-add[c](x[h, w, c] * f[c])) + 1)           each exponential alone
t[w] = add[c](x[h, w, c] * f[c])                              a group over h
y[h, w] = 1 / (exp(-t[w]) + 1)                                vectors along w

Sums keep their order, so that results keep their bits.
"""

from __future__ import annotations

from functools import partial

from aot.lowering.ir.steps import Steps
from codegen.costs import COSTS
from codegen.ir.access import COST, coefficient, offset
from codegen.ir.definition import LOCAL, Definition, Group
from codegen.ir.expressions import rewrite, walk
from codegen.ir.loops import Const, Prim, Reduce, Space, Var, dense
from codegen.ir.traverse import Work
from codegen.schedules.choose import choose
from codegen.target import Target


def separate_functions(steps: Steps, target: Target) -> None:
    """Group sums along memory with what is computed of them; values have their strides by now."""
    constants = steps.constants()
    for step in steps.steps:
        if step.schedule is None and step.repeat is None:
            step.works = tuple(map(partial(_separated, target=target, constants=constants), step.works))


def _separated(work: Work, target: Target, constants: frozenset[str]) -> Work:
    if not isinstance(work, Definition) or work.reduction is None or work.where or not _is_heavy(work, work.reduction):
        return work
    d, r = work, work.reduction
    plan = choose(d, target, constants)
    column = next((a for a in d.axes if _is_contiguous(d, a)), None)
    around = sorted((a for a in d.axes if a is not column), key=lambda a: a.name != plan.parallel)
    if column is None or not around or around[0].name != plan.parallel:  # threads share columns
        return work
    if plan.tile:  # several sums at a time have other partial sums than one alone
        return work
    if plan.lanes is None or any(a.name == plan.lanes[0] for a in d.axes) or not isinstance(column.extent, int):
        return work
    if not target.lanes(d.out.dtype) <= column.extent <= COSTS.max_function_columns:
        return work
    t = dense(f"t{LOCAL}", column.extent, space=Space.STACK, dtype=r.dtype)
    sums = Definition(t, d.axes, r, (column,))
    functions = Definition(d.out, d.axes, rewrite(d.value, {r: t[column]}), d.target)
    return Group("functions", tuple(around), (t,), (sums, functions))


def _is_heavy(d: Definition, r: Reduce) -> bool:
    """True if functions of the sum take as long as an exponential."""
    behind = walk(rewrite(d.value, {r: Const(0, r.dtype)}))
    return sum(COST.get(e.fn, 1) for e in behind if isinstance(e, Prim)) >= COST["exp"]


def _is_contiguous(d: Definition, a: Var) -> bool:
    """True if neighbours along an axis are neighbours in memory."""
    step = coefficient(offset(d.out, d.target), a)
    return step is not None and step.is_const and step.const == 1
