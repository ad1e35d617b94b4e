"""Stores values between kernels in 16 bits where all their producers and consumers allow it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from aot.codegen.ir.access import typical
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loads, rewrite, variables, walk
from aot.codegen.ir.loops import Buffer, Const, Expr, Prim
from aot.codegen.ir.numbers.bf16_chains import chain_factors
from aot.codegen.ir.numbers.dot_forms import multiplies_small, scaled_sum
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import members, move_loads, rewrite_work
from aot.lowering.ir.steps import LoopControl, Step, Value
from aot.lowering.numbers.precision.residual_sums import residual_sums
from aot.lowering.numbers.precision.short_types import ShortTypes
from aot.lowering.numbers.precision.statistics import is_statistic
from aot.runtime.abi import DType

MIN_ELEMENTS = 1 << 10  # least elements of a value that is worth rounding
# Functions of the digits of a number, or with steps: their operands keep their digits.
EXACTING = frozenset("floor ceil trunc round_even round_away sign mod rem sin cos tan eq ne bits".split())


def shorten_values(types: ShortTypes) -> None:
    """Give values in the arena 16 bits."""
    steps, sums = types.steps, types.sums
    f32_names = {n for block in steps.blocks() for s in block.steps for n in _values_in_f32(types, s)}
    f32_names |= {n for n in residual_sums(steps) if types.shared_kind(n) is DType.BF16 and types.has_one_producer(n)}
    buffers: dict[str, Buffer] = {}
    for name in [n for block in steps.blocks() for n in block.touched()]:
        value = steps.values[name]
        kind = types.shared_kind(name)
        often = kind in sums.plain and types.is_loaded_often(name)
        often = often or (kind in sums.fast and name in types.converted)
        if kind is not None and not often and name not in f32_names and name not in buffers and _is_worth_it(value):
            buffers[name] = replace(value.buffer, dtype=kind)
            steps.values[name] = replace(value, buffer=buffers[name])
    change = move_loads(buffers)
    for step in (s for block in steps.blocks() for s in block.steps):
        step.works = tuple(rewrite_work(w, change, lambda b: buffers.get(b.name, b)) for w in step.works)


def _values_in_f32(types: ShortTypes, step: Step) -> Iterator[str]:
    """Yield the values that a step reads or writes in f32."""
    reads, writes = {x.buffer.name for x in step.reads()}, {b.name for b in step.writes()}
    has_definitions = step.control is None and all(not isinstance(w, tuple) for w in step.works)
    if not has_definitions or types.kind(step) is None:
        yield from reads | writes
        if isinstance(step.control, LoopControl):
            yield from (b.name for b in (*step.control.enters, *step.control.leaves))
        return
    if step.definition is None:
        yield from reads & writes  # carried from one iteration to the next
    yield from (x.buffer.name for x in step.binds.values())
    for d in (d for w in step.works for d in members(w)):
        yield from _exact_values(d)


def _exact_values(d: Definition) -> Iterator[str]:
    """Yield the values of a definition that 8 bits would falsify: indices, scales, statistics, exact operands."""
    yield from (x.buffer.name for x in loads(*d.index, *(i for x in loads(d.value) for i in x.index)))
    for e in walk(_without_product(d)):
        if isinstance(e, Prim) and _needs_digits(e):
            yield from (x.buffer.name for x in loads(*e.args))
    if d.reduction is not None and scaled_sum(d.reduction) is not None:
        yield from (x.buffer.name for x in loads(d.reduction.body))  # scales and zero points of whole groups
    if is_statistic(d) or any(isinstance(e, Prim) and _counts(e) for e in walk(d.value)):
        yield d.out.name


def _is_worth_it(value: Value) -> bool:
    b = value.buffer
    if (
        value.region is not MemoryRegion.ARENA
        or b.dtype is not DType.F32
        or value.half is not None
        or value.holds_bytes
    ):
        return False
    return not all(isinstance(n, int) for n in b.shape) or prod(map(typical, b.shape)) >= MIN_ELEMENTS


def _without_product(d: Definition) -> Expr:
    """Return the value computed from a product's sum, without the product: its factors are rounded anyway."""
    r = d.reduction
    return d.value if r is None or chain_factors(r) is None else rewrite(d.value, {r: Const(0.0, r.dtype)})


def _needs_digits(e: Prim) -> bool:
    leaves = e.fn == "cast" and not e.dtype.is_float and e.args[0].dtype.is_float
    return leaves or (e.fn in EXACTING and any(a.dtype.is_float for a in e.args))


def _counts(e: Prim) -> bool:
    """True for a float converted from a wide integer: a position, a size, a time; not a sum of products of bytes."""
    inner = e.args[0].dtype if e.fn == "cast" and e.dtype.is_float else DType.F32
    wide = not inner.is_float and inner.bits > 8 and bool(variables(*e.args) or loads(*e.args))
    return wide and not multiplies_small(*e.args)
