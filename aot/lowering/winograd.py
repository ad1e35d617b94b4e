"""3x3 convolutions become Winograd groups where that is less work; their weights are transformed at compile time."""

from __future__ import annotations

from aot.lowering.define import Steps, Value
from codegen.program import Region
from codegen.schedules.winograd import choose_size, form_of, transformed, winograd
from codegen.target import Target


def use_winograd(steps: Steps, target: Target) -> None:
    """Replace what is faster as tiles of 4x4 or 2x2 outputs. Weights grow by 4 or 16 ninths of what they were."""
    constants = steps.constants()
    for step in steps.steps:
        d = step.definition
        form = form_of(d, constants) if d is not None else None
        m = choose_size(form, target.cores) if form is not None else 0
        if d is None or form is None or not m:
            continue
        made = winograd(d, form, m, target)
        if made.weights.name not in steps.values:
            data = steps.values[form.w.buffer.name].data
            assert data is not None
            steps.values[made.weights.name] = Value(made.weights, Region.CONSTANT, data=transformed(data, form, m))
        step.works, step.schedule = (made.work,), made.schedule
    _drop_unread(steps)


def _drop_unread(steps: Steps) -> None:
    used = {x.buffer.name for s in steps.steps for x in s.reads()} | {b.name for s in steps.steps for b in s.writes()}
    steps.values = {n: v for n, v in steps.values.items() if n in used or v.region in (Region.INPUT, Region.OUTPUT)}
