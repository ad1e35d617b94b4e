"""Convolutions become Winograd groups where that is less work; their weights are transformed at compile time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from operator import itemgetter

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import buffer_bytes
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.target import Target
from aot.ir.types import Array
from aot.ir.values.deferred import Deferred, value_of
from aot.lowering.algorithms.winograd_form import Tiling, WinogradForm, forms_of, transformed
from aot.lowering.algorithms.winograd_groups import winograd
from aot.lowering.algorithms.winograd_tilings import choose_tilings
from aot.lowering.context import Context
from aot.lowering.ir.steps import Step, Steps, Value
from aot.runtime.abi import DType


def use_winograd(steps: Steps, context: Context) -> None:
    """Replace convolutions that Winograd's algorithm makes faster.

    Weights of 3x3 become 4 times as large, or 16/9 times; 5 taps become 6. Sums of bytes, transformed in i16, stay
    exact. Where bits may not depend on the target, the choice does not.
    """
    target = context.target
    constants = steps.constants()
    # Products of bytes in tile registers are faster still, and those of i16 without dots are slower.
    bytes_faster = target.abilities.tiles or not target.abilities.dot_terms(DType.I16)
    byte_values = {
        n for n, v in steps.values.items() if (not bytes_faster if v.buffer.dtype is DType.U8 else v.holds_bytes)
    }
    read = {name for block in steps.blocks() for name in block.touched()}  # without constants that bytes have replaced
    weights = sum(buffer_bytes(steps.values[name].buffer) for name in constants & read)
    evicted = weights > COSTS.evicted_weight_bytes and not target.near_l3 and not target.keeps_sum_order
    weight_cost = COSTS.winograd_far_weight if evicted else COSTS.winograd_weight
    parts: dict[int, list[Step]] = {}
    tilings_of: dict[WinogradForm, tuple[float, tuple[Tiling, ...]]] = {}
    for step in steps.steps:
        d = step.definition
        forms = forms_of(d, constants, target.abilities.summed_short, byte_values) if d is not None else ()
        forms = [f.with_largest(value_of(_weights(f, steps))) if f.is_whole else f for f in forms]
        choices: list[tuple[float, tuple[Tiling, ...], WinogradForm]] = []
        for form in forms:
            nameless = form.nameless
            if nameless not in tilings_of:
                tilings_of[nameless] = choose_tilings(nameless, weight_cost)
            choices.append((*tilings_of[nameless], form))
        _, tilings, form = min(choices, key=itemgetter(0), default=(0.0, (), None))
        if d is None or form is None or not tilings:
            continue
        parts[id(step)] = [p for t in tilings for p in _tiled(step, d, form, t, target, steps)]
    steps.steps = [p for s in steps.steps for p in parts.get(id(s), [s])]


def _weights(form: WinogradForm, steps: Steps) -> Array | Deferred:
    """Return the weights of a form, in the order of its load."""
    data = steps.values[form.w.buffer.name].data
    assert data is not None
    return data


def _tiled(step: Step, d: Definition, form: WinogradForm, tiling: Tiling, target: Target, steps: Steps) -> list[Step]:
    """Return the steps that make the outputs of one tiling."""
    planned = winograd(d, form, tiling, target, steps.sizes.of, steps.unused)
    if planned.weights.name not in steps.values:
        data = _weights(form, steps)
        arrange = partial(transformed, form=form, tiling=tiling)
        steps.values[planned.weights.name] = Value(planned.weights, MemoryRegion.CONSTANT, data=data, arrange=arrange)
    steps.values |= {temp.name: Value(temp, MemoryRegion.ARENA) for temp in planned.temps}
    pairs = zip(planned.works, planned.schedules, strict=True)
    return [replace(step, works=(work,), schedule=schedule) for work, schedule in pairs]
