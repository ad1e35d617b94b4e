"""Sums of steps with factors of their own, as the scales of groups of weights.

for g in 9:
  zero[j] = z[g, j]                                  values equal in a step are computed once
  part[i, j] = 0
  for k in 64:
    part[i, j] += x[i, g, k] * (n[g, k, j] - zero[j])
  acc[i, j] += part[i, j] * t[g, j]

Steps of bytes, x and n, add up integers, which become floats before they are scaled. What is added to each of their
terms and is equal in a step, as products of zero points, is added once, as many times as there are terms:

  acc[i, j] += (f32(part[i, j]) + mean[i, g] * z[g, j] * 64) * t[g, j]

Values that are equal in a whole sum without such steps are computed once before it, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from math import prod
from operator import mul

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.expressions import loads, rewrite, variables, walk
from aot.codegen.ir.loops import (
    Alloc,
    Buffer,
    Const,
    Expr,
    For,
    Load,
    LoopKind,
    Prim,
    Reduce,
    Space,
    Store,
    Var,
    as_expr,
    dense,
)
from aot.codegen.ir.numbers.dot_forms import scaled_sum
from aot.codegen.ir.schedule import Schedule
from aot.codegen.nest.points import Points, Span, Spans, Stmts, depending
from aot.runtime.abi import DType


@dataclass(frozen=True, slots=True)
class RegisterValue:
    """A value that is equal in a step, in registers: one for each point, and along unrolled axes `sums` of the sum."""

    value: Expr
    buffer: Buffer
    points: Points
    sums: tuple[Var, ...]

    @property
    def load(self) -> Load:
        return Load(self.buffer, (*self.sums, *self.points.cell))

    def fill(self, spans: Spans) -> Stmts:
        full_spans = {a: Span(Const(0), a.extent) for a in self.sums if a.extent is not None}
        stmts = self.points.each((Store(self.buffer, self.load.index, self.value),), spans | full_spans)
        for axis in reversed(self.sums):
            stmts = (For(Var(f"{axis.name}.u", axis.extent), stmts, LoopKind.UNROLLED),)
        return stmts


def register_values(
    body: Expr, sums: tuple[Var, ...], unrolled: tuple[Var, ...], schedule: Schedule, points: Points, name: str
) -> tuple[tuple[RegisterValue, ...], Expr]:
    """Return the values in `body` that are equal along `sums`, and the body that reads them from registers.

    Values may differ along the axes `unrolled` of these, each point of which has its own. `name`: prefix of the names
    of buffers.
    """
    moving = {a: {a, *(part for part, _ in depending(points.lets, a))} for a in sums}  # an axis and those fused into it
    values = dict.fromkeys(_equal(body, frozenset[Var]().union(*(moving[a] for a in sums if a not in unrolled))))
    return _all_in_registers(values, body, unrolled, schedule, points, name)


def register_operands(
    body: Expr, axis: Var, schedule: Schedule, points: Points, name: str
) -> tuple[tuple[RegisterValue, ...], Expr]:
    """Return the floats in `body` that are loaded and equal along `axis`, and the body that reads them from registers.

    Conversions belong to them, but no arithmetic: it rounds as in the body.
    """
    moving = {axis, *(part for part, _ in depending(points.lets, axis))}
    values: dict[Expr, None] = {}
    for e in walk(body):
        inner = e.args[0] if isinstance(e, Prim) and e.fn == "cast" else e
        if isinstance(inner, Load) and e.dtype is DType.F32 and variables(inner).isdisjoint(moving):
            values[e] = None
    return _all_in_registers(values, body, (), schedule, points, name)


def _all_in_registers(
    values: Iterable[Expr], body: Expr, unrolled: tuple[Var, ...], schedule: Schedule, points: Points, name: str
) -> tuple[tuple[RegisterValue, ...], Expr]:
    values_in_registers = tuple(
        _in_registers(v, f"{name}kept{n}", unrolled, schedule, points) for n, v in enumerate(values)
    )
    return values_in_registers, rewrite(body, {k.value: k.load for k in values_in_registers})


def with_register_values(values: tuple[RegisterValue, ...], spans: Spans, stmts: Stmts) -> Stmts:
    """Compute values before `stmts`, which read them."""
    stmts = (*(s for k in values for s in k.fill(spans)), *stmts)
    for k in values:
        stmts = (Alloc(k.buffer, stmts),)
    return stmts


def _in_registers(
    value: Expr, name: str, unrolled: tuple[Var, ...], schedule: Schedule, points: Points
) -> RegisterValue:
    moving = variables(value)
    lets = [(a, e) for a, e in points.lets if a in moving]
    moving = moving | variables(*(e for _, e in lets))
    axes = tuple(a for a in points.axes if a in moving)
    own = Points(axes, points.spans, points.lets, schedule)
    sums = tuple(a for a in unrolled if a in moving)
    sizes = (*(a.extent for a in sums if a.extent is not None), *own.shape)
    return RegisterValue(value, dense(name, *sizes, space=Space.REGISTERS, dtype=value.dtype), own, sums)


class ScaledStep:
    """The sum of a step of the axis `axis`: `body` is the terms that `total` accumulates."""

    def __init__(self, reduction: Reduce, axis: Var, schedule: Schedule, points: Points, name: str) -> None:
        """`name`: prefix of the names of buffers."""
        self.axis, self.points, self.fn = axis, points, reduction.fn
        self.shared, own = shared_factors(reduction, axis)
        sums = tuple(a for a in reduction.axes if a != axis)
        scaled_reduction = scaled_sum(reduction) if schedule.dots is not None else None
        self.terms = own if scaled_reduction is None else scaled_reduction.body
        # In `step`, `terms` stand for their sum.
        self.step = own if scaled_reduction is None else in_step(own, scaled_reduction, sums)
        own = self.terms
        self.total = points.accumulator(f"{name}part", own.dtype)
        unrolled = tuple(a for a in sums if schedule.size(a.name).size == a.extent)
        self.kept, self.body = register_values(own, sums, unrolled, schedule, points, name)

    def scaled(self, total: Expr) -> Expr:
        """Return the term of the sum that a step adds; `total`: the sum of its terms."""
        return reduce(mul, self.shared, rewrite(self.step, {self.terms: total}))

    def around(self, stmts: Stmts, spans: Spans, acc: Buffer, cell: tuple[Expr, ...]) -> Stmts:
        """Return the statements of a step: `stmts` add its terms."""
        zero = self.points.each((Store(self.total, cell, as_expr(0, self.total.dtype)),))
        add = self.points.each((Store(acc, cell, self.scaled(Load(self.total, cell)), self.fn),), spans)
        return with_register_values(self.kept, spans, (Alloc(self.total, (*zero, *stmts, *add)),))


def in_step(e: Expr, reduction: Reduce, sums: tuple[Var, ...]) -> Expr:
    """Sum `e` over `sums`, along which only the terms of `reduction` move, a sum of integers.

    In the result, the body of `reduction` stands for its sum.
    """
    if reduction.body == e or not isinstance(e, Prim):
        return e
    count = prod(a.extent for a in sums if isinstance(a.extent, int)) if e.fn == "add" else 1
    parts = (in_step(x, reduction, sums) if reduction.body in walk(x) else _times(x, count) for x in e.args)
    return Prim(e.fn, tuple(parts), e.dtype)


def _times(e: Expr, count: int) -> Expr:
    """Return `count` times an expression; its last factor is multiplied instead if that is constant."""
    match e:
        case Prim("mul", (other, Const(value)), DType.F32) if value * count == 1:
            return other
        case Prim("mul", (other, Const(value)), DType.F32):
            return other * (value * count)
        case _:
            return e if count == 1 else e * count


def has_equal_steps(reduction: Reduce, axis: Var) -> bool:
    """True if only the integers of a sum of scaled integers differ between the terms of a step of `axis`."""
    scaled_reduction = scaled_sum(reduction)
    if scaled_reduction is None:
        return False
    rest = rewrite(reduction.body, {scaled_reduction.body: Const(0, DType.I32)})
    return variables(rest).isdisjoint(frozenset(reduction.axes) - {axis})


def shared_factors(reduction: Reduce, axis: Var) -> tuple[tuple[Expr, ...], Expr]:
    """Split the terms of a sum: the factors that are equal in a step of `axis`, and the product of the others."""
    inner = frozenset(reduction.axes) - {axis}
    factors = tuple(_factors(reduction.body))
    own = [f for f in factors if variables(f) & inner]
    return tuple(f for f in factors if f not in own), reduce(mul, own)


def count_register_values(reduction: Reduce, axis: Var, unrolled: tuple[Var, ...]) -> int:
    """Return the number of values that are equal in a step of `axis`; each point of `unrolled` has its own."""
    if scaled_sum(reduction) is not None:
        return 0
    inner = frozenset(reduction.axes) - {axis, *unrolled}
    values = dict.fromkeys(_equal(shared_factors(reduction, axis)[1], inner))
    sizes = [[a.extent for a in unrolled if a in variables(v)] for v in values]
    return sum(prod(n for n in each if isinstance(n, int)) for each in sizes)


def _factors(e: Expr) -> Iterator[Expr]:
    if isinstance(e, Prim) and e.fn == "mul":
        for part in e.args:
            yield from _factors(part)
    else:
        yield e


def _equal(e: Expr, inner: frozenset[Var]) -> Iterator[Expr]:
    """Yield the largest computed floats in `e` that no axis of `inner` changes and that read memory.

    Values that are read under a condition stay where they are.
    """
    equal = not variables(e) & inner and isinstance(e, Prim | Load) and e.dtype.is_float
    if equal and any(x.buffer.space is not Space.TABLE for x in loads(e)):
        yield e
    elif not (isinstance(e, Load) or (isinstance(e, Prim) and e.fn == "within")):
        for part in e.children:
            yield from _equal(part, inner)
