"""In-place writes: a definition overwrites a value that it is the last to read, point by point.

    y[n, c] = relu(x[n, c])   ->   x[n, c] = relu(x[n, c])     if x is read here for the last time and laid out as y is

A sum of products does so, too, if x is added to it and takes memory enough to leave a cache: reading and writing one
place moves two thirds of the bytes that reading one and writing another one does.

In a group of rows it does so row by row: e[r, j] = exp(x[r, j] - top[r]) where no other row of x is read with row r.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import buffer_bytes, store, varies, volume
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import loads, variables
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Buffer, Expr, Load
from aot.codegen.ir.numbers.matrix_form import even_height
from aot.codegen.ir.program import Region
from aot.codegen.ir.traverse import members, move_loads, rewrite_work
from aot.codegen.target import Target
from aot.lowering.context import Context
from aot.lowering.ir.steps import Step, Steps
from aot.lowering.program.arena import lifetimes


def write_in_place(steps: Steps, context: Context) -> None:
    """Rename outputs to the inputs that they may overwrite."""
    lives = lifetimes(steps)
    makers: dict[str, int] = {}
    touching: dict[str, dict[int, Step]] = {}  # steps that read or write a value, by its name
    for step in steps.steps:
        for b in step.writes():
            makers[b.name] = makers.get(b.name, 0) + 1
        for b in (*step.writes(), *(x.buffer for x in step.reads())):
            touching.setdefault(b.name, {})[id(step)] = step
    for at, step in enumerate(steps.steps):
        for n in range(len(_members(step))):
            d = _members(step)[n]
            if d.where or makers.get(d.out.name) != 1:
                continue
            if d.reduction is not None and not _is_large_sum(step, d, context.target):
                continue
            value = steps.values.get(d.out.name)  # None: a temporary of a group
            if value is None or value.region is not Region.ARENA:
                continue
            found = next((x for x in loads(d.value) if _fits(x, n, step, steps, lives, at)), None)
            if found is not None:
                moved = touching.pop(d.out.name)
                _rename(steps, moved.values(), d.out, found.buffer)
                touching[found.buffer.name] |= moved
                lives[found.buffer.name] = (lives[found.buffer.name][0], lives[d.out.name][1])
                makers[found.buffer.name] += 1


def _members(step: Step) -> tuple[Definition, ...]:
    """Return the definitions that a group computes one after another for each row, or a step's only definition."""
    if step.definition is not None:
        return (step.definition,)
    work = step.works[0] if len(step.works) == 1 else None
    rows = isinstance(work, Group) and len(work.axes) == 1 and all(isinstance(m, Definition) for m in work.members)
    return tuple(members(work)) if rows and work is not None else ()


def _is_large_sum(step: Step, d: Definition, target: Target) -> bool:
    """True if a step is one sum with results too large to stay in a cache until they are read.

    Tiles must not overlap: those of tile registers divide the rows. With dynamic sizes they may.
    """
    if step.definition is not d or varies(d.axes) or buffer_bytes(d.out) < COSTS.min_far_bytes:
        return False
    rows = volume(a.extent or 1 for a in d.axes if store(d).step(a) != 1)
    return not target.abilities.tiles or (isinstance(rows, int) and even_height(rows) > 0)


def _fits(x: Load, n: int, step: Step, steps: Steps, lives: dict[str, tuple[int, int]], at: int) -> bool:
    """True if member `n` of the step may write over the value that `x` reads."""
    found = _members(step)
    d = found[n]
    b, out, value = x.buffer, d.out, steps.values.get(x.buffer.name)
    if value is None or value.region is not Region.ARENA or lives[b.name][1] != at or b.name == out.name:
        return False
    if (b.shape, b.strides, b.origin, b.dtype) != (out.shape, out.strides, out.origin, out.dtype):
        return False
    alone = [y for y in loads(d.value) if y.buffer.name == b.name] == [x]
    summed = d.reduction is not None and x in loads(d.reduction)
    if not alone or summed or _keys(x.index) != _keys(d.target):
        return False
    earlier = [y for m in found[:n] for y in loads(m.value, *m.index) if y.buffer.name == b.name]
    later = [y for m in found[n + 1 :] for y in loads(m.value, *m.index) if y.buffer.name == b.name]
    return not later and all(_on_its_row(y, d, step) for y in earlier)


def _on_its_row(x: Load, d: Definition, step: Step) -> bool:
    """True if `x` reads, with each row of the group, only elements that `d` writes with that row."""
    work = step.works[0]
    assert isinstance(work, Group)
    moving = [bool(variables(i) & set(work.axes)) for i in d.target]
    return all(
        _keys((i,)) == _keys((j,)) if moves else not variables(i) & set(work.axes)
        for i, j, moves in zip(x.index, d.target, moving, strict=True)
    )


def _keys(index: tuple[Expr, ...]) -> list[tuple[object, int]]:
    return [normal(i, {}).key for i in index]


def _rename(steps: Steps, touching: Iterable[Step], old: Buffer, new: Buffer) -> None:
    """Put `new` in place of `old` in the steps that read or write it."""

    def place(b: Buffer) -> Buffer:
        return replace(b, name=new.name) if b.name == old.name else b

    moves = move_loads({old.name: replace(old, name=new.name)})
    for step in touching:
        step.works = tuple(rewrite_work(w, moves, place) for w in step.works)
    del steps.values[old.name]
