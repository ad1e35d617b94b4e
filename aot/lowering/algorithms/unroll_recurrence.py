"""Recurrences that are shared by threads: blocks of sequences, or, with large weights, the calls of each time step.

    group over t in 100 { g = h[t] R;  c[t + 1] = ..;  h[t + 1] = .. }   ->   group over b in 8 { group over t .. }
    group over t in 100 { g = h[t] R;  c[t + 1] = ..;  h[t + 1] = .. }   ->   for t: call g; call c; call h

Sequences do not read each other's states, so a block of them passes through all steps by itself, if the cache of a core
holds the weights. Of calls, one kernel serves all steps. If their number is static, all calls are there, and buffers
that move with t move where a buffer begins; else a loop runs them, and t is one of their sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import gcd, prod

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import buffer_bytes, typical, varies
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import loads, rewrite, variables
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Size, Space, Var, as_expr, prim, select
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.schedule import Tail, Tile
from aot.codegen.ir.traverse import rewrite_work
from aot.codegen.schedules.choose import carries, choose
from aot.codegen.target import Target
from aot.lowering.context import Context
from aot.lowering.ir.steps import BranchControl, LoopControl, Repeat, Step, Steps, Value
from aot.runtime.abi import DType


@dataclass(slots=True)
class _Shift:
    """Elements that a buffer moves by with each step of time."""

    elements: dict[str, int]

    def add(self, b: Buffer, index: tuple[Expr, ...], t: Var) -> bool:
        """Note how far an access moves with each step; True if all accesses of its buffer move alike."""
        distance = 0
        for i, stride in zip(index, b.strides, strict=True):
            at = normal(i, {})
            if any(t in variables(atom) for atom in at.terms if atom != t):
                return False
            count = at.terms.get(t, 0)
            if count and not isinstance(stride, int):
                return False
            distance += count * (stride if isinstance(stride, int) else 0)
        return self.elements.setdefault(b.name, distance) == distance


def unroll_recurrence(steps: Steps, context: Context) -> None:
    """Turn groups that carry values through time into repeated steps if their weights are worth several threads."""
    new_steps: list[Step] = []
    for step in steps.steps:
        if len(step.works) > 1 and step.schedule is None and any(isinstance(w, Group) for w in step.works):
            new_steps += [replace(step, works=(work,)) for work in step.works]
        else:
            new_steps.append(step)
    steps.steps = new_steps
    for step in steps.steps:
        if len(step.works) == 1 and isinstance(step.works[0], Group):
            _spread(step, step.works[0], steps, context.target)


def _spread(step: Step, g: Group, steps: Steps, target: Target) -> None:
    members = [m for m in g.members if isinstance(m, Definition)]
    if len(g.axes) != 1 or len(members) != len(g.members) or g.row_ranges:
        return
    weights, t, n = _weights(members, steps), g.axes[0], g.axes[0].extent
    by_sequences, fits_core = _by_sequences(g, members, weights, target), weights <= COSTS.private_weight_bytes
    if by_sequences is not None and (fits_core or isinstance(n, int) or not varies(by_sequences.axes)):
        step.works = (by_sequences,)
        return
    if n is None or fits_core or any(t in variables(*_sizes(temp)) for temp in g.temps):
        return
    if not isinstance(n, int):
        _cycle(step, g, members, n, steps, target)
        if by_sequences is not None:
            _where_few(step, by_sequences, steps)
    elif 1 < n <= COSTS.max_unrolled_steps:
        _repeat(step, g, members, n, steps)


def _by_sequences(g: Group, members: list[Definition], weights: int, target: Target) -> Group | None:
    """Return a group over sequences around a group over time steps; None if sequences are few or dependent."""
    t, temps = g.axes[0], {b.name for b in g.temps}
    if weights > target.l2 // 2 or not carries(g):
        return None
    for b in members[0].axes:
        if b == t or (isinstance(b.extent, int) and b.extent < COSTS.min_sequences):
            continue
        if not all(b in m.axes for m in members) or not _is_independent(members, b):
            continue
        local = {m.out.name: replace(m.out, shape=_with(m, b)) for m in members if m.out.name in temps}
        return _nested(g, b, local) if local.keys() == temps else None
    return None


def _with(d: Definition, b: Var) -> tuple[Size, ...]:
    """Return the shape of an output with `axis` as a dimension: only a tile of it is stored."""
    return tuple(b if i == b else n for i, n in zip(d.target, d.out.shape, strict=True))


def _is_independent(members: list[Definition], b: Var) -> bool:
    """True if no point of an axis reads what another point writes."""
    dims_by_name = {m.out.name: [k for k, i in enumerate(m.target) if i == b] for m in members}
    accesses = [(dims_by_name[m.out.name], m.target) for m in members]
    accesses += [
        (dims_by_name[x.buffer.name], x.index) for m in members for x in loads(m.value) if x.buffer.name in dims_by_name
    ]
    return all(len(dims) == 1 and index[dims[0]] == b for dims, index in accesses)


def _nested(g: Group, b: Var, temps: dict[str, Buffer]) -> Group:
    """Return a group over an axis around a group over the axes of `g`, with renamed temporaries."""

    def placed(x: Buffer) -> Buffer:
        return temps.get(x.name, x)

    def change(e: Expr) -> Expr | None:
        return Load(placed(e.buffer), tuple(rewrite(i, change) for i in e.index)) if isinstance(e, Load) else None

    inner = rewrite_work(replace(g, name=f"{g.name}.steps", temps=()), change, placed)
    assert isinstance(inner, Group)
    return Group(g.name, (b,), tuple(temps.values()), (inner,))


def _where_few(step: Step, by_sequences: Group, steps: Steps) -> None:
    """Branch on a dynamic number of sequences: few keep the control flow of a step, many are blocks for threads."""
    other = Step((by_sequences,), step.layers, step.kind)
    few = _is_at_most(by_sequences.axes[0], COSTS.min_sequences - 1)
    blocks = (replace(steps, steps=[branch], inputs=[], outputs=[]) for branch in (replace(step), other))
    step.control = BranchControl(few, *blocks)


def _is_at_most(axis: Var, count: int) -> Expr:
    return select(prim("le", as_expr(axis.extent or 1, DType.I64), count), 1, 0)


def _sizes(b: Buffer) -> tuple[Expr, ...]:
    return tuple(n for n in b.shape if isinstance(n, Expr))


def _cycle(step: Step, g: Group, members: list[Definition], n: Expr, steps: Steps, target: Target) -> None:
    """Build a loop of control flow; the kernels read its counter."""
    renamed = {temp.name: _as_value(temp, step, steps) for temp in g.temps}
    clock = Var(f"{next(iter(renamed), step.layers[0])}.t", n)
    works = [_for_step(d, g.axes[0], clock, lambda b: renamed.get(b.name, b)) for d in members]
    body = replace(steps, steps=[_by_rows(Step((w,), step.layers, step.kind), w, steps, target) for w in works])
    for name in body.touched():
        value = steps.values[name]
        if value.region is MemoryRegion.ARENA and name not in {b.name for b in renamed.values()}:
            steps.values[name] = replace(value, region=MemoryRegion.SHARED)
    step.works = ()
    step.control = LoopControl(clock, n, 1, body, {clock: 0}, {clock: clock + 1}, (), ())


def _by_rows(step: Step, d: Definition, steps: Steps, target: Target) -> Step:
    """Widen the tile of a product of few rows, which has too few chains of multiply-adds.

    As many panels as make up a tile twice as wide, and rows as long as the narrow one does not fill the chains. Dots
    keep their tiles, which hold the terms of words. Weights that L2 keeps from step to step need no prefetches.
    """
    schedule = choose(d, target, steps.constants())
    rows = [a for a in d.axes if isinstance(a.extent, Expr)]
    if schedule.lanes is None or schedule.dots is not None or not schedule.pack or len(rows) != 1:
        return step
    if rows[0].name not in (t.axis for t in schedule.tile):
        return step
    lane, lanes = schedule.lanes
    vectors = schedule.size(lane).size // lanes
    max_rows = min((COSTS.latency_chains - 1) // vectors, (target.registers - 2) // (2 * vectors) - 1)
    if max_rows < 1:
        return step
    sums = (t for t in schedule.tile if t.axis not in (rows[0].name, lane))
    tiles = (Tile(rows[0].name, max_rows), Tile(lane, 2 * vectors * lanes, Tail.CUT), *sums)
    if _weights([d], steps) <= target.l2 // 2:
        schedule = replace(schedule, prefetch=None)
        step = replace(step, schedule=schedule)
    few = replace(step, schedule=replace(schedule, tile=tiles, prefetch_epilogue=False))
    then, other = (replace(steps, steps=[branch], inputs=[], outputs=[]) for branch in (few, step))
    return replace(step, works=(), control=BranchControl(_is_at_most(rows[0], max_rows), then, other))


def _repeat(step: Step, g: Group, members: list[Definition], n: int, steps: Steps) -> None:
    """Repeat the calls for each time step, with buffers that move."""
    t = g.axes[0]
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

    def placed(b: Buffer) -> Buffer:
        """Reduce the alignment of a buffer that moves to the alignment of its steps."""
        b = renamed.get(b.name, b)
        step_bytes = shift.elements.get(b.name, 0) * b.dtype.stored_bytes
        return replace(b, align=gcd(b.align, step_bytes)) if step_bytes else b

    step.works = tuple(_for_step(d, t, Const(0), placed) for d in members)
    step.repeat = Repeat(n, dict(shift.elements))


def _reads_clock(d: Definition, t: Var) -> bool:
    """True if a value is computed from the number of the time step, which a kernel for all steps does not know."""
    return t in variables(rewrite(d.value, lambda e: Const(0, e.dtype) if isinstance(e, Load) else None))


def _weights(members: list[Definition], steps: Steps) -> int:
    read = {x.buffer for d in members if d.reduction is not None for x in loads(d.value)}
    values = ((b, steps.values.get(b.name)) for b in read)
    return max((buffer_bytes(b) for b, v in values if v and v.region is MemoryRegion.CONSTANT), default=0)


def _as_value(temp: Buffer, step: Step, steps: Steps) -> Buffer:
    name = steps.unused(f"{step.layers[0]}.{temp.name}")
    buffer = replace(temp, name=name, space=Space.ARG)
    steps.values[name] = Value(buffer, MemoryRegion.ARENA, elements=prod(map(typical, temp.shape)))
    return buffer


def _for_step(d: Definition, t: Var, now: Expr, placed: Callable[[Buffer], Buffer]) -> Definition:
    """Rewrite the definition for one time step, with other buffers."""
    fixed: dict[Expr, Expr] = {t: now}

    def change(e: Expr) -> Expr | None:
        if isinstance(e, Load):
            return Load(placed(e.buffer), tuple(normal(rewrite(i, fixed), {}).expr() for i in e.index))
        return now if e == t else None

    rewritten = rewrite_work(d, change, placed)
    assert isinstance(rewritten, Definition)
    index = tuple(normal(rewrite(i, fixed), {}).expr() for i in d.target)
    return replace(rewritten, axes=tuple(a for a in d.axes if a != t), index=index)
