"""In-place writes: a definition overwrites a value that it is the last to read, point by point.

    y[n, c] = relu(x[n, c])   ->   x[n, c] = relu(x[n, c])     if x is read here for the last time and laid out as y is

A sum of products to which x is added also overwrites x, if it is too large to stay in a cache. In place moves 2 bytes
per byte (read, write) instead of 3 (read, read for ownership, write).

A group of rows overwrites row by row: e[r, j] = exp(x[r, j] - top[r]) where no other row of x is read with row r.
"""

from __future__ import annotations

from dataclasses import replace

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import buffer_bytes, store, varies, volume
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import loads, variables
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Buffer, Expr, Load
from aot.codegen.ir.numbers.matrix_form import even_height
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import members, move_loads, rewrite_work
from aot.codegen.target import Target
from aot.lowering.context import Context
from aot.lowering.ir.steps import Step, Steps
from aot.lowering.program.arena import live_ranges


def write_in_place(steps: Steps, context: Context) -> None:
    """Rename outputs to the inputs that they may overwrite; steps are rewritten once all new names are known."""
    ranges = live_ranges(steps)
    producers: dict[str, int] = {}
    for step in steps.steps:
        for b in step.writes():
            producers[b.name] = producers.get(b.name, 0) + 1
    names = _Names()
    for at, step in enumerate(steps.steps):
        definitions = _members(step)
        for n, d in enumerate(definitions):
            if d.where or producers.get(d.out.name) != 1:
                continue
            if d.reduction is not None and not _is_large_sum(step, d, context.target):
                continue
            value = steps.values.get(d.out.name)  # None: a temporary of a group
            if value is None or value.region is not MemoryRegion.ARENA:
                continue
            candidate = _InPlaceCandidate(step, definitions, n, at, names)
            over = next((x for x in loads(d.value) if candidate.fits(x, steps, ranges)), None)
            if over is not None:
                old, new = d.out.name, names.of(over.buffer)
                names.new[old] = replace(d.out, name=new)
                ranges[new] = (ranges[new][0], ranges[old][1])
                producers[new] += 1
    names.put(steps)


class _Names:
    """New buffers by the names of the values that they replace."""

    def __init__(self) -> None:
        self.new: dict[str, Buffer] = {}

    def of(self, b: Buffer) -> str:
        """Return the name that a buffer has by now."""
        return self.new[b.name].name if b.name in self.new else b.name

    def put(self, steps: Steps) -> None:
        """Rename the values in all steps that read or write them."""

        def place(b: Buffer) -> Buffer:
            return replace(b, name=self.of(b)) if b.name in self.new else b

        moves = move_loads(self.new)
        for step in steps.steps:
            if any(b.name in self.new for b in (*step.writes(), *(x.buffer for x in step.reads()))):
                step.works = tuple(rewrite_work(w, moves, place) for w in step.works)
        for old in self.new:
            del steps.values[old]


def _members(step: Step) -> tuple[Definition, ...]:
    """Return a step's only definition, or the definitions that a group computes one after another for each row."""
    if step.definition is not None:
        return (step.definition,)
    work = step.works[0] if len(step.works) == 1 else None
    rows = isinstance(work, Group) and len(work.axes) == 1 and all(isinstance(m, Definition) for m in work.members)
    return tuple(members(work)) if rows and work is not None else ()


def _is_large_sum(step: Step, d: Definition, target: Target) -> bool:
    """True if a step is one sum with results too large to stay in a cache until they are read.

    Tiles must not overlap, since a second tile would read what the first one wrote. Tiles of tile registers do not
    overlap if they divide the rows. With dynamic sizes they may overlap.
    """
    if step.definition is not d or varies(d.axes) or buffer_bytes(d.out) < COSTS.min_far_bytes:
        return False
    rows = volume(a.extent or 1 for a in d.axes if store(d).stride(a) != 1)
    return not target.abilities.tiles or (isinstance(rows, int) and even_height(rows) > 0)


@dataclass(frozen=True, slots=True)
class _InPlaceCandidate:
    """Member `n` of the `definitions` of step number `at`, and the names that values have at that step."""

    step: Step
    definitions: tuple[Definition, ...]
    n: int
    at: int
    names: _Names

    def fits(self, x: Load, steps: Steps, ranges: dict[str, tuple[int, int]]) -> bool:
        """True if the member may write over the value that `x` reads."""
        d = self.definitions[self.n]
        b, out, name = x.buffer, d.out, self.names.of(x.buffer)
        value = steps.values.get(name)
        if value is None or value.region is not MemoryRegion.ARENA or ranges[name][1] != self.at or name == out.name:
            return False
        if (b.shape, b.strides, b.origin, b.dtype) != (out.shape, out.strides, out.origin, out.dtype):
            return False
        summed = d.reduction is not None and x in loads(d.reduction)
        if self._reads(name, d.value) != [x] or summed or _keys(x.index) != _keys(d.target):
            return False
        earlier = [y for m in self.definitions[: self.n] for y in self._reads(name, m.value, *m.index)]
        later = any(self._reads(name, m.value, *m.index) for m in self.definitions[self.n + 1 :])
        return not later and all(_stays_in_row(y, d, self.step) for y in earlier)

    def _reads(self, name: str, *values: Expr) -> list[Load]:
        return [y for y in loads(*values) if self.names.of(y.buffer) == name]


def _stays_in_row(x: Load, d: Definition, step: Step) -> bool:
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
