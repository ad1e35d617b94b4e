"""Recurrences with large weights: each step of time becomes calls of their own, which all threads share.

    group over t in 100 { g = h[t] R;  c[t + 1] = ..;  h[t + 1] = .. }   ->   for t: call g; call c; call h

What moves with t moves where a buffer begins, so that one kernel serves all steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd, prod

from aot.lowering.steps import Repeat, Step, Steps, Value
from codegen.access import known
from codegen.define import Definition, Group
from codegen.expressions import loads, rewrite, variables
from codegen.index import normal
from codegen.loops import Buffer, Const, Expr, Load, Space, Var
from codegen.program import Region
from codegen.traverse import rewrite_work

LONGEST = 512  # steps of time that are worth a call each
LARGEST = 1 << 17  # bytes of weights that one thread keeps to itself


@dataclass(slots=True)
class _Shift:
    """Elements by which a buffer moves with each step of time."""

    elements: dict[str, int]

    def add(self, b: Buffer, index: tuple[Expr, ...], t: Var) -> bool:
        """Does the access agree with the others of this buffer?"""
        moved = 0
        for i, stride in zip(index, b.strides, strict=True):
            at = normal(i, {})
            if any(t in variables(atom) for atom in at.terms if atom != t):
                return False
            count = at.terms.get(t, 0)
            if count and not isinstance(stride, int):
                return False
            moved += count * (stride if isinstance(stride, int) else 0)
        return self.elements.setdefault(b.name, moved) == moved


def spread(steps: Steps) -> None:
    """Turn groups that carry values through time into repeated steps, where their weights are worth several threads."""
    made: list[Step] = []
    for step in steps.steps:
        if len(step.works) > 1 and step.schedule is None and any(isinstance(w, Group) for w in step.works):
            made += [replace(step, works=(work,)) for work in step.works]
        else:
            made.append(step)
    steps.steps = made
    for step in steps.steps:
        if len(step.works) == 1 and isinstance(step.works[0], Group):
            _spread(step, step.works[0], steps)


def _spread(step: Step, g: Group, steps: Steps) -> None:
    members = [m for m in g.members if isinstance(m, Definition)]
    if len(g.axes) != 1 or len(members) != len(g.members) or g.windows or not isinstance(n := g.axes[0].extent, int):
        return
    t = g.axes[0]
    if not 1 < n <= LONGEST or _weights(members, steps) <= LARGEST or any(t in temp.shape for temp in g.temps):
        return
    shift = _Shift({})
    outs = {d.out.name for d in members}
    if any(_reads_clock(d, t) for d in members):
        return
    for d in members:
        sites = [(d.out, d.target), *((x.buffer, x.index) for x in loads(d.value) if x.buffer.space is not Space.TABLE)]
        if not all(shift.add(b, index, t) for b, index in sites):
            return
    if not any(shift.elements.get(name) for name in outs):
        return
    renamed = {temp.name: _as_value(temp, step, steps) for temp in g.temps}
    fixed: dict[Expr, Expr] = {t: Const(0)}
    works = tuple(_at_start(d, t, fixed, renamed, shift.elements) for d in members)
    step.works, step.repeat = works, Repeat(n, dict(shift.elements))


def _reads_clock(d: Definition, t: Var) -> bool:
    """Does a value depend on the number of the step itself? A kernel for all steps does not know it."""
    return t in variables(rewrite(d.value, lambda e: Const(0, e.dtype) if isinstance(e, Load) else None))


def _weights(members: list[Definition], steps: Steps) -> int:
    constants = steps.constants()
    read = {x.buffer for d in members if d.reduction is not None for x in loads(d.value) if x.buffer.name in constants}
    return max((prod(map(known, b.shape)) * b.dtype.compute.bytes for b in read), default=0)


def _as_value(temp: Buffer, step: Step, steps: Steps) -> Buffer:
    name = f"{step.layers[0]}.{temp.name}"
    while name in steps.values:
        name += "_"
    made = replace(temp, name=name, space=Space.ARG)
    steps.values[name] = Value(made, Region.ARENA, elements=prod(map(known, temp.shape)))
    return made


def _at_start(
    d: Definition, t: Var, fixed: dict[Expr, Expr], renamed: dict[str, Buffer], shifts: dict[str, int]
) -> Definition:
    """The definition at time 0; buffers that move are no better aligned than their steps."""

    def placed(b: Buffer) -> Buffer:
        b = renamed.get(b.name, b)
        step = shifts.get(b.name, 0) * b.dtype.compute.bytes
        return replace(b, align=gcd(b.align, step)) if step else b

    def change(e: Expr) -> Expr | None:
        if isinstance(e, Load):
            return Load(placed(e.buffer), tuple(normal(rewrite(i, fixed), {}).expr() for i in e.index))
        return None

    made = rewrite_work(d, change, placed)
    assert isinstance(made, Definition)
    index = tuple(normal(rewrite(i, fixed), {}).expr() for i in d.target)
    return replace(made, axes=tuple(a for a in d.axes if a != t), index=index)
