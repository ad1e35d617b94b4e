"""Functions of sums along memory, for vectors of outputs: folding the lanes of a sum leaves scalar code after it.

y[h, w] = 1 / (exp(-add[c](x[h, w, c] * f[c])) + 1)           each exponential alone
t[w] = add[c](x[h, w, c] * f[c])                              a group over h
y[h, w] = 1 / (exp(-t[w]) + 1)                                vectors along w

Where several sums are made at a time, or neighbours are not neighbours in memory, as after a transposed convolution,
functions are a step of their own, in place. Sums keep their order, so that results keep their bits.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import COST, coefficient, offset, typical, varies
from aot.codegen.ir.definition import LOCAL, Definition, Group
from aot.codegen.ir.expressions import rewrite, variables, walk
from aot.codegen.ir.loops import Const, Expr, Load, Prim, Reduce, Space, Var, dense
from aot.codegen.ir.numbers.denormals import flushes
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.schedule import Schedule
from aot.codegen.ir.traverse import Work
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from aot.lowering.context import Context
from aot.lowering.ir.steps import Step, Steps
from aot.lowering.program.kernel_parameters import canonical, with_roles


def separate_functions(steps: Steps, context: Context) -> None:
    """Group sums along memory with the functions of their results; strides are final."""
    new_steps: list[Step] = []
    for step in steps.steps:
        if step.schedule is None and step.repeat is None:
            step.works = tuple(map(partial(_separated, target=context.target, steps=steps), step.works))
            new_steps += _in_two(step, context.target, steps)
        else:
            new_steps.append(step)
    steps.steps = new_steps


def _separated(work: Work, target: Target, steps: Steps) -> Work:
    if not isinstance(work, Definition) or work.reduction is None or work.where or not _is_heavy(work, work.reduction):
        return work
    d, r = work, work.reduction
    schedule = _schedule(d, target, steps)
    column = next((a for a in d.axes if _is_contiguous(d, a)), None)
    around = sorted((a for a in d.axes if a is not column), key=lambda a: a.name != schedule.parallel)
    if column is None or not around or around[0].name != schedule.parallel:  # threads share columns
        return work
    if schedule.tile:  # several sums at a time have other partial sums than one alone
        return work
    if schedule.lanes is None or any(a.name == schedule.lanes[0] for a in d.axes) or not isinstance(column.extent, int):
        return work
    if not target.lanes(d.out.dtype) <= column.extent <= COSTS.max_function_columns:
        return work
    t = dense(f"t{LOCAL}", column.extent, space=Space.STACK, dtype=r.dtype)
    sums = Definition(t, d.axes, r, (column,))
    functions = Definition(d.out, d.axes, rewrite(d.value, {r: t[column]}), d.target)
    return Group("functions", tuple(around), (t,), (sums, functions))


def _in_two(step: Step, target: Target, steps: Steps) -> list[Step]:
    """Split a step into one of the sums and one of their functions; return the step alone if that saves nothing."""
    d = step.definition
    r = d.reduction if d is not None else None
    if d is None or r is None or d.where or step.binds or d.out.dtype is not r.dtype or not _is_heavy(d, r):
        return [step]
    schedule = _schedule(d, target, steps)
    if schedule.lanes is None or any(a.name == schedule.lanes[0] for a in d.axes):
        return [step]
    count = prod(map(typical, d.out.shape))
    if varies(d.axes) or prod(typical(a.extent or 1) for a in d.axes) != count:
        return [step]
    if count < COSTS.pointwise_vectors * target.lanes(d.out.dtype):  # no longer than another call
        return [step]
    axes = {k: Var(f"d{k}", n) for k, n in enumerate(d.out.shape) if n != 1}
    index = tuple(axes.get(k, Const(0)) for k in range(len(d.out.shape)))
    change: dict[Expr, Expr] = {a: i for a, i in zip(d.target, index, strict=True) if isinstance(a, Var)}
    value = rewrite(d.value, {r: Load(d.out, index), **change})
    sums = replace(d, value=r)
    functions = Definition(d.out, tuple(axes.values()), value, index)
    if not variables(value) <= {*axes.values()} or _schedule(sums, target, steps) != schedule:
        return [step]
    if len({flushes((w,), target) for w in (d, sums, functions)}) > 1:  # some keep denormals
        return [step]
    return [replace(step, works=(w,)) for w in (sums, functions)]


def _schedule(d: Definition, target: Target, steps: Steps) -> Schedule:
    """Return the schedule of a definition, chosen in the form in which its kernel asks for it again."""
    (work,), roles = canonical((d,), steps, number_temps=True)
    assert isinstance(work, Definition)
    constants = frozenset(r for n, r in roles.items() if steps.values[n].region is MemoryRegion.CONSTANT)
    return with_roles(choose(work, target, constants), {role: name for name, role in roles.items()})


def _is_heavy(d: Definition, r: Reduce) -> bool:
    """True if functions of the sum take as long as an exponential."""
    if d.value is r:
        return False
    after_sum = walk(rewrite(d.value, {r: Const(0, r.dtype)}))
    return sum(COST.get(e.fn, 1) for e in after_sum if isinstance(e, Prim)) >= COST["exp"]


def _is_contiguous(d: Definition, a: Var) -> bool:
    """True if neighbours along an axis are neighbours in memory."""
    stride = coefficient(offset(d.out, d.target), a)
    return stride is not None and stride.is_const and stride.const == 1
