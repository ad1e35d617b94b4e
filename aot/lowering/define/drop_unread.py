"""Drops steps and values that no result needs: shape arithmetic, and operands that only inference of types read."""

from __future__ import annotations

from aot.codegen.ir.loops import Var
from aot.codegen.ir.program import MemoryRegion
from aot.lowering.ir.steps import LoopControl, Step, Steps

LASTING = (MemoryRegion.OUTPUT, MemoryRegion.STATE)  # regions whose values outlast an inference


def drop_unread(steps: Steps) -> None:
    """Drop steps and values without consumers: shape arithmetic, and operands that only inference of types read."""
    needed: dict[int, frozenset[Var]] = {}
    for _ in range(2):  # twice, since steps dropped first need no symbols any more
        _drop(steps, LASTING, _needed_symbols(steps, needed))
    used = {x.buffer.name for s in steps.steps for x in s.reads()} | {b.name for s in steps.steps for b in s.writes()}
    used |= {v.half.pair for n, v in steps.values.items() if n in used and v.half is not None} | set(steps.inputs)
    for name in [n for n in steps.values if n not in used]:
        del steps.values[name]


def _needed_symbols(steps: Steps, known: dict[int, frozenset[Var]]) -> frozenset[Var]:
    """Return the late symbols that steps and outputs need, except those that a loop sets itself.

    `known`: the symbols of steps without blocks, by identity, which grow.
    """
    if not steps.sizes.late:
        return frozenset()
    shapes = [n for name in steps.outputs for n in steps.values[name].buffer.shape]
    addresses = [v.at for v in steps.values.values()]
    late_symbols = steps.sizes.late_of(*shapes, *addresses, steps.state_bytes)
    for step in (s for b in steps.blocks() for s in b.steps):
        late = known.get(id(step))
        if late is None:
            late = steps.sizes.late_in(step.sizes())
            if step.control is None:
                known[id(step)] = late
        late_symbols |= late.difference(step.control.start) if isinstance(step.control, LoopControl) else late
    return late_symbols


def _drop(steps: Steps, lasting: tuple[MemoryRegion, ...], symbols: frozenset[Var]) -> None:
    """Drop steps that check nothing, set none of `symbols`, and write nothing `lasting` or read by later steps."""
    needed: set[str] = set()
    reversed_steps: list[Step] = []
    for step in reversed(steps.steps):
        for block in step.blocks():
            _drop(block, (*LASTING, MemoryRegion.SHARED), symbols)
        step.binds = {s: x for s, x in step.binds.items() if s in symbols}
        read = any(b.name in needed or steps.values[b.name].region in lasting for b in step.writes())
        if read or step.checks or step.sets() & symbols:
            reversed_steps.append(step)
            needed |= {x.buffer.name for x in step.reads()}
    steps.steps = reversed_steps[::-1]
