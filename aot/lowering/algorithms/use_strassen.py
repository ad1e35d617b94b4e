"""Products of matrices become Strassen's where that is less work; their weights are transformed at compile time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from aot.codegen.ir.definition import LOCAL, Definition
from aot.codegen.ir.loops import Expr
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.target import Target
from aot.lowering.algorithms.strassen_form import StrassenForm, in_basis, pays, strassen_form_of
from aot.lowering.algorithms.strassen_groups import strassen
from aot.lowering.algorithms.strassen_matrices import LEFT
from aot.lowering.context import Context
from aot.lowering.ir.steps import Step, Steps, Value
from aot.lowering.storage.narrow_constants import smallest
from aot.runtime.abi import DType


def use_strassen(steps: Steps, context: Context) -> None:
    """Replace products that Strassen's algorithm makes faster; strides are final. Weights take no more memory."""
    forms = _forms(steps, context.target)
    halves: dict[tuple[Expr, ...], str] = {}
    new_steps: list[Step] = []
    for step in steps.steps:
        form = forms.get(id(step))
        if form is None:
            new_steps.append(step)
            continue
        sum_at, column_at = (form.w.index.index(a) for a in (form.sum, form.column))
        weights = f"{form.w.buffer.name}.strassen{sum_at}x{column_at}{LOCAL}"
        left = steps.unused(f"{form.d.out.name}.halves{LOCAL}")
        same = (form.x, *form.rows, form.row, form.sum)
        shared = halves.get(same)
        groups = strassen(form, shared or left, weights, context.target)
        if shared is None:
            steps.values[left] = Value(groups.left, MemoryRegion.ARENA, elements=groups.left.strides[0] * len(LEFT))
            new_steps.append(replace(step, works=(groups.halves.work,), kind="Halves", schedule=groups.halves.schedule))
            if steps.values[form.x.buffer.name].region in (
                MemoryRegion.ARENA,
                MemoryRegion.INPUT,
            ):  # nobody writes it meanwhile
                halves[same] = left
        if weights not in steps.values:
            arrange = partial(in_basis, sum_at=sum_at, column_at=column_at)
            data = steps.values[form.w.buffer.name].data
            steps.values[weights] = Value(groups.weights, MemoryRegion.CONSTANT, data=data, arrange=arrange)
        works = (*step.works[:-1], groups.products.work)  # before it there may be borders
        new_steps.append(replace(step, works=works, schedule=groups.products.schedule))
    steps.steps = new_steps


def _forms(steps: Steps, target: Target) -> dict[int, StrassenForm]:
    """Return the Strassen forms of steps. Their weights have no other consumers, and do not fit f16."""
    constants = steps.constants()
    forms: dict[int, StrassenForm] = {}
    for step in steps.steps if target.near_l3 else ():  # elsewhere no form pays
        d = step.works[-1] if step.works and step.schedule is None and step.repeat is None else None
        form = strassen_form_of(d, constants) if isinstance(d, Definition) else None
        if form is not None and pays(form, target):
            forms[id(step)] = form
    if not forms:
        return {}
    other_reads = {x.buffer.name for s in steps.steps if id(s) not in forms for x in s.reads()}
    return {i: f for i, f in forms.items() if f.w.buffer.name not in other_reads and not _is_small(steps, f, target)}


def _is_small(steps: Steps, form: StrassenForm, target: Target) -> bool:
    value = steps.values[form.w.buffer.name]
    return target.converts_half_aside and smallest(value, [DType.F16]) is not None
