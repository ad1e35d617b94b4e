"""Text form of steps: the values that lie in memory, then the works in order, blocks of control flow indented.

    steps m for n in 1..8
      x: f32[n, 784] input 0
      fc1: f32[n, 512] arena
    fc1 + relu (MatMul)
      fc1[i, j] = max(add[k in 784](x[i, k] * w[k, j]), 0)    for i in n, j in 512

Strides are shown where they are final and not those of dense rows: `strides 1, 28, 784`; offsets of the first element
(halos) as `from 29`.
"""

from __future__ import annotations

from collections.abc import Iterator

from aot.codegen.ir.loops import Buffer, Const, Size, Var, dense
from aot.codegen.ir.printer import definition_text, expr_text, schedule_text, size_text, statements_text
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import Work
from aot.lowering.ir.steps import BranchControl, Layouts, LoopControl, Step, Steps, Value


def steps_text(steps: Steps) -> str:
    """Print a whole model, one line for each value and definition."""
    symbols = ", ".join(f"{s.name} in {s.low}..{size_text(s.extent)}" for s in steps.symbols)
    head = f"steps {steps.name}" + (f" for {symbols}" if symbols else "")
    named = (f"  {s.name} = {expr_text(e)}" for s, e in steps.sizes.meaning.items())
    values = (f"  {_value(v, steps.layouts)}" for v in steps.values.values())
    return "\n".join([head, *named, *values, *_block(steps, 0)]) + "\n"


def _value(value: Value, layouts: Layouts) -> str:
    b = value.buffer
    where = {
        MemoryRegion.INPUT: f"input {value.index}",
        MemoryRegion.OUTPUT: f"output {value.index}",
        MemoryRegion.CONSTANT: "constant",
    }
    region = where.get(value.region, value.region.value)
    shape = ", ".join(map(size_text, b.shape))
    parts = [f"{b.name}: {b.dtype.value}[{shape}] {region}", "bytes" if value.holds_bytes else ""]
    if layouts is Layouts.FINAL:
        parts += _strides(b)
    if value.half is not None:
        parts.append(f"half {size_text(value.half.index)} of {value.half.pair}")
    return " ".join(filter(None, parts))


def _strides(b: Buffer) -> list[str]:
    dense_buffer = dense(b.name, *b.shape, dtype=b.dtype)
    texts = [f"strides {', '.join(map(size_text, b.strides))}"] if b.strides != dense_buffer.strides else []
    return texts + ([f"from {size_text(b.origin)}"] if b.origin not in (0, Const(0)) else [])


def _block(steps: Steps, depth: int) -> Iterator[str]:
    for step in steps.steps:
        yield from _step(step, depth)


def _step(step: Step, depth: int) -> Iterator[str]:
    pad = "  " * depth
    times = f" {step.repeat.count} times" if step.repeat is not None else ""
    yield f"{pad}{' + '.join(step.layers)} ({step.kind}){times}"
    yield from (f"{pad}  check {r.text}: {size_text(r.one)} = {size_text(r.other)}" for r in step.checks)
    yield from (f"{pad}  bind {s.name} = {expr_text(x)}" for s, x in step.binds.items())
    for work in step.works:
        yield work_text(work, depth + 1)
    if step.schedule is not None:
        yield schedule_text(step.schedule, depth + 2)
    yield from _control(step.control, depth + 1)


def work_text(work: Work, depth: int = 0) -> str:
    """Print a definition, a group or statements."""
    return statements_text(work, depth) if isinstance(work, tuple) else definition_text(work, depth)


def _control(control: BranchControl | LoopControl | None, depth: int) -> Iterator[str]:
    pad = "  " * depth
    match control:
        case BranchControl(condition, then, other):
            yield f"{pad}if {size_text(condition)}:"
            yield from _block(then, depth + 1)
            yield f"{pad}else:"
            yield from _block(other, depth + 1)
        case LoopControl():
            yield f"{pad}let {_settings(control.start)}"
            yield f"{pad}while {control.counter.name} < {size_text(control.limit)} and {size_text(control.going)}:"
            yield from _block(control.body, depth + 1)
            yield f"{pad}  let {_settings(control.follow)}"
        case None:
            return


def _settings(sizes: dict[Var, Size]) -> str:
    return ", ".join(f"{s.name} = {size_text(n)}" for s, n in sizes.items())
