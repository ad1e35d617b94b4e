"""Copies of operands that would be read repeatedly in a layout that does not suit them.

scores[i, j] = add[k](q[i, k] * three[1, j, k])     keys lie with queries and values: three.keys[j, k], j innermost
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import all_axes, offset, points, typical
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import loads, variables, walk
from aot.codegen.ir.loops import Const, Expr, Load, Prim, Var, dense
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import Work, members, move_loads, rewrite_work
from aot.lowering.fusion.group_rows import is_streaming, reads_once
from aot.lowering.ir.lane_axes import dim_of, lane_axis, memory_of
from aot.lowering.ir.steps import Step, Steps, Value
from aot.lowering.layout.votes import Votes, innermost, is_free, lane_candidates, wanted_lane


def copy_padded_inputs(steps: Steps) -> None:
    """Copy float inputs that a window or a product reads repeatedly, so that they can have a better layout."""
    constants = steps.constants()
    read = [
        name for name in dict.fromkeys(steps.inputs) if name in steps.values
    ]  # bodies drop inputs without consumers
    inputs = [steps.values[name] for name in read]
    movable = {v.name: v for v in inputs if v.region is not MemoryRegion.CONSTANT and v.buffer.dtype.is_float}
    works = [(w, d) for s in steps.steps for w in s.works for d in members(w)]
    consumers = [(w, d) for w, d in works if any(x.buffer.name in movable for x in loads(d.value))]
    wanted = {n for w, d in consumers for n in (*_windows(d, constants, w), *_across(d, constants))}
    for name, value in movable.items():
        if name in wanted:
            _copy(steps, value)


def _windows(d: Definition, constants: frozenset[str], work: Work) -> set[str]:
    """Return the buffers that a product or a window reads repeatedly, with an index other than axis or constant.

    In a group the rows are flattened, so only indices that move with the sum count.
    """
    if d.reduction is None or is_streaming(d, constants):
        return set()
    axes, own_axes = set(d.reduction.axes), all_axes(d)
    again = [x for x in loads(d.value) if not (variables(*x.index) >= {*own_axes} and reads_once(x, own_axes))]
    indices = [(x.buffer.name, i) for x in again for i in x.index if not isinstance(i, Var | Const)]
    return {name for name, i in indices if not isinstance(work, Group) or variables(i) & axes}


def _across(d: Definition, constants: frozenset[str]) -> set[str]:
    """Return the buffers that a product reads repeatedly, and strided along its lanes."""
    if d.reduction is None or is_streaming(d, constants):
        return set()
    lane, count = lane_axis(d, constants), typical(points(d))
    if lane is None:
        return set()
    strided = [x for x in memory_of(d) if x.buffer.name not in constants and dim_of(x.index, lane) is not None]
    return {
        x.buffer.name
        for x in strided
        if offset(x.buffer, x.index).terms.get(lane) != 1
        and count >= COSTS.copy_reads * prod(map(typical, x.buffer.shape))
    }


def _copy(steps: Steps, value: Value) -> None:
    b = value.buffer
    buffer = replace(b, name=steps.unused(f"{b.name}.copy"))
    steps.values[buffer.name] = Value(buffer, MemoryRegion.ARENA)
    for step in steps.steps:
        if any(x.buffer.name == b.name for x in step.reads()):
            step.works = tuple(rewrite_work(w, move_loads({b.name: buffer})) for w in step.works)
    axes = tuple(Var(f"d{k}", n) for k, n in enumerate(b.shape) if n != 1)
    left = iter(axes)
    index = tuple(Const(0) if n == 1 else next(left) for n in b.shape)
    steps.steps.insert(0, Step((Definition(buffer, axes, Load(b, index), index),), (b.name,), "Parameter"))


def copy_keys(steps: Steps, votes: Votes) -> bool:
    """Copy matmul operands that would be read strided into contiguous buffers; True if any was copied.

    Attention keys are strided if they share a tensor with queries and values, for which another order is better.
    """
    constants = steps.constants()
    copies: dict[Load, Load] = {}
    new_steps: list[Step] = []

    def copied(e: Expr) -> Expr | None:
        return copies.get(e) if isinstance(e, Load) else None

    for step in steps.steps:
        own = {b.name for b in step.writes()}  # as those of a recurrence, which are not there before the step
        for d in (d for w in step.works for d in members(w)):
            for x in _keys(d, steps, votes, constants):
                if x not in copies and x.buffer.name not in own:
                    axes = tuple(a for a in all_axes(d) if a in variables(*x.index))
                    name = steps.unused(f"{x.buffer.name}.keys")
                    copy = dense(name, *(a.extent or 1 for a in axes), dtype=x.buffer.dtype)
                    steps.values[name] = Value(copy, MemoryRegion.ARENA)
                    copies[x] = Load(copy, axes)
                    new_steps.append(Step((Definition(copy, axes, x, axes),), step.layers, "Transpose"))
        if copies:
            step.works = tuple(rewrite_work(w, copied) for w in step.works)
        new_steps.append(step)
    steps.steps = new_steps
    return bool(copies)


def _keys(d: Definition, steps: Steps, votes: Votes, constants: frozenset[str]) -> list[Load]:
    """Return the operands to copy.

    They are strided in a product in which every candidate for the lane axis would be strided.
    """
    if d.reduction is None or not any(x.buffer.name in steps.values for x in memory_of(d)):
        return []
    if any(x.buffer.name in constants for x in memory_of(d)) or is_streaming(d, constants):
        return []
    if any(isinstance(e, Prim) and e.fn in ("within", "select") for e in walk(d.reduction.body)):
        return []  # a copy would read elements that are guarded here
    lanes = lane_candidates(d, steps, constants)
    across = {a: [x for x in memory_of(d) if _is_across(x, a, d, steps, votes)] for a in lanes}
    if not lanes or not all(across.values()):
        return []
    lane = wanted_lane(d, lanes, votes) if is_free(d, constants) else lanes[0]
    often = typical(points(d)) // COSTS.copy_reads
    axes = {x: [a for a in all_axes(d) if a in variables(*x.index)] for x in across[lane]}
    return [x for x, own in axes.items() if prod(typical(a.extent or 1) for a in own) <= often and not loads(*x.index)]


def _is_across(x: Load, lane: Var, d: Definition, steps: Steps, votes: Votes) -> bool:
    """True if `x` reads a value of the arena that will not be contiguous along the lanes."""
    value = steps.values.get(x.buffer.name)
    if value is None or value.region is not MemoryRegion.ARENA or lane not in variables(*x.index):
        return False
    dims = [k for k, n in enumerate(x.buffer.shape) if n != 1]
    return dim_of(x.index, lane, d.axes) != innermost(dims, votes.get(x.buffer.name, {}))
