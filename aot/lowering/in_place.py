"""In place: a definition without a reduction writes over the value it reads last, point by point.

    y[n, c] = relu(x[n, c])   ->   x[n, c] = relu(x[n, c])     if x is read here for the last time and laid out as y is
"""

from __future__ import annotations

from dataclasses import replace

from aot.lowering.memory import lifetimes
from aot.lowering.steps import Step, Steps
from codegen.define import Definition
from codegen.expressions import loads
from codegen.index import normal
from codegen.loops import Buffer, Expr, Load
from codegen.program import Region
from codegen.traverse import move_loads, rewrite_work


def reuse(steps: Steps) -> None:
    """Rename outputs to the inputs they may lie on."""
    lives = lifetimes(steps)
    makers: dict[str, int] = {}
    for step in steps.steps:
        for b in step.writes():
            makers[b.name] = makers.get(b.name, 0) + 1
    for at, step in enumerate(steps.steps):
        d = step.definition
        if d is None or d.reduction is not None or d.where or makers.get(d.out.name) != 1:
            continue
        if steps.values[d.out.name].region is not Region.ARENA:
            continue
        found = next((x for x in loads(d.value) if _fits(x, d, steps, lives, at)), None)
        if found is not None:
            _rename(steps, d.out, found.buffer)
            lives[found.buffer.name] = (lives[found.buffer.name][0], lives[d.out.name][1])
            makers[found.buffer.name] += 1


def _fits(x: Load, d: Definition, steps: Steps, lives: dict[str, tuple[int, int]], at: int) -> bool:
    b, out = x.buffer, d.out
    if steps.values[b.name].region is not Region.ARENA or lives[b.name][1] != at or b.name == out.name:
        return False
    if (b.shape, b.strides, b.origin, b.dtype) != (out.shape, out.strides, out.origin, out.dtype):
        return False
    alone = [y for y in loads(d.value) if y.buffer.name == b.name] == [x]
    return alone and _keys(x.index) == _keys(d.target)


def _keys(index: tuple[Expr, ...]) -> list[tuple[object, int]]:
    return [normal(i, {}).key for i in index]


def _rename(steps: Steps, old: Buffer, new: Buffer) -> None:
    def place(b: Buffer) -> Buffer:
        return replace(b, name=new.name) if b.name == old.name else b

    moves = move_loads({old.name: replace(old, name=new.name)})
    for step in steps.steps:
        if _touches(step, old.name):
            step.works = tuple(rewrite_work(w, moves, place) for w in step.works)
    del steps.values[old.name]


def _touches(step: Step, name: str) -> bool:
    return any(b.name == name for b in step.writes()) or any(x.buffer.name == name for x in step.reads())
