"""Packs pairs of terms of bf16 columns in words, for products of data: keys and values of attention.

    s[i, j] = add[k in 64](q[i, k] * keys[k, j])
->  keys.words[p, j, e] = keys[2 * p + e, j]            for p in 32, e in 2
    s[i, j] = add[k in 64](q[i, k] * keys.words[k // 2, j, k % 2])

Without packed words, each tile of rows would interleave the same two rows of keys again. Tile registers load words;
without packed words they could not sum columns of a dynamic size. The last word is padded with zeros. For tile
registers, words of zeros fill the last block.

Where the number of rows is dynamic, each call chooses. Few rows, as one token has, read the columns unpacked.

    if n >= 48 { keys.words = ..; s = .. } else { s = .. }
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import access, all_axes, coefficient, typical, varies
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import loads, rewrite, variables
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Size, Var, as_expr, dense, prim, select
from aot.codegen.ir.numbers.bf16_chains import is_chain_sum, is_contiguous
from aot.codegen.ir.numbers.dot_forms import dot_factors, elements_per_dot, takes_rows
from aot.codegen.ir.numbers.matrix_form import ROWS, matrix_form
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.rename_sizes import renamed
from aot.codegen.ir.schedule import Schedule
from aot.codegen.ir.traverse import Work, rewrite_work
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from aot.lowering.context import Context
from aot.lowering.fusion.substitute import simplified
from aot.lowering.ir.steps import BranchControl, Step, Steps, Value
from aot.runtime.abi import DType


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns that a product reads in rows: its axes that move them, the axis of its sum, and its lanes.

    `rows`: the other axes, whose points read the same columns. The words of a column hold a multiple of `block` terms.
    """

    load: Load
    axes: tuple[Var, ...]
    k_axis: Var
    lane: Var
    rows: tuple[Var, ...]
    block: int

    @property
    def are_many(self) -> bool:
        """True if each column is multiplied by enough rows to pay for a copy, for all dynamic sizes."""
        return not varies(self.rows) and prod(typical(a.extent or 1) for a in self.rows) >= COSTS.min_word_rows


def pack_k_pairs(steps: Steps, context: Context) -> None:
    """Copy columns of products of data into words of two terms where many rows multiply them."""
    target = context.target
    if not (target.abilities.sums_pairs or target.abilities.tiles):
        return
    constants, copies = steps.constants(), dict[Load, Load]()
    new_steps: list[Step] = []
    for step in steps.steps:
        own = {b.name for b in step.writes()}
        read = [c for c in _read(step, target, constants) if c.load.buffer.name not in own | constants]
        for c in read:
            if c.load not in copies and c.are_many:
                works, copies[c.load] = _in_words(c, steps)
                new_steps.append(Step(works, step.layers, "Transpose"))
        step.works = tuple(map(_reading(copies), step.works))
        new_steps.append(_by_rows(step, [c for c in read if varies(c.rows)], steps))
        for x in [x for x in copies if x.buffer.name in own]:
            del copies[x]  # written again: the words are of the value before
    steps.steps = new_steps


def _reading(copies: dict[Load, Load]) -> Callable[[Work], Work]:
    """Return a rewriting that replaces loads by loads of their copies."""
    return lambda work: rewrite_work(work, lambda e: copies.get(e) if isinstance(e, Load) else None)


def _read(step: Step, target: Target, constants: frozenset[str]) -> Iterator[Columns]:
    """Yield the columns in rows that the products of a step read."""
    if step.schedule is not None or step.repeat is not None or step.control is not None:
        return
    pairs = [(w, choose(w, target, constants)) for w in step.works if isinstance(w, Definition | Group)]
    while pairs:
        work, schedule = pairs.pop()
        if not isinstance(work, Definition):
            pairs += zip(work.members, schedule.members, strict=True)
        elif (columns := _columns(work, schedule, target)) is not None:
            yield columns


def _columns(d: Definition, schedule: Schedule, target: Target) -> Columns | None:
    """Return the columns of a product that its target sums faster from words."""
    lane = next((a for a in d.axes if schedule.lanes is not None and a.name == schedule.lanes[0]), None)
    if d.reduction is None or lane is None or schedule.matrix is not None:
        return None
    if is_chain_sum(d.reduction):
        columns = _of_chains(d, lane) if target.abilities.tiles else None
    else:
        columns = _of_dots(d, lane, schedule.dots)
    if columns is None or loads(*columns[0].index):
        return None
    load, k_axis, block = columns
    axes = tuple(a for a in all_axes(d) if a in variables(*load.index))
    return Columns(load, axes, k_axis, lane, tuple(a for a in d.axes if a not in axes), block)


def _of_dots(d: Definition, lane: Var, dots: str | None) -> tuple[Load, Var, int] | None:
    """Return columns that dots of pairs read in rows, the axis of the sum and the terms of a word."""
    assert d.reduction is not None
    k_axis = next((a for a in d.reduction.axes if a.name == dots), None)
    factors = dot_factors(d.reduction, lane.name)
    if k_axis is None or factors is None or not takes_rows(d, k_axis, lane.name):
        return None
    return factors[1], k_axis, elements_per_dot(factors[1].buffer.dtype)


def _of_chains(d: Definition, lane: Var) -> tuple[Load, Var, int] | None:
    """Return columns in rows that tile registers can multiply once they are words, the axis of the sum, and a block."""
    assert d.reduction is not None
    form = matrix_form(d.reduction, lane)
    if form is None or len(d.reduction.axes) > 1 or not is_contiguous(form.x, form.axis, form.terms):
        return None
    at = access(form.w.buffer, form.w.index, all_axes(d))
    return (
        (form.w, form.axis, form.terms) if at.strides[lane] == 1 and coefficient(at.at, form.axis) is not None else None
    )


def _by_rows(step: Step, read: list[Columns], steps: Steps) -> Step:
    """Return a choice between the step and one that reads words, by the number of its rows; the step if none varies."""
    varying = {a for c in read for a in c.rows if varies((a,))}
    if len(varying) != 1:
        return step
    (row,) = varying
    copies, many = dict[Load, Load](), list[Step]()
    for c in read:
        if c.load not in copies:
            works, copies[c.load] = _in_words(c, steps)
            many.append(Step(works, step.layers, "Transpose"))
    rows = as_expr(row.extent or 1, DType.I64)
    least = steps.sizes.of(prim("max", rows, COSTS.min_word_rows), is_size=True)
    works = renamed(tuple(map(_reading(copies), step.works)), {row: replace(row, extent=least)})
    many.append(Step(works, step.layers, step.kind))
    are_many = select(prim("ge", rows, COSTS.min_word_rows), 1, 0)
    few = Step(step.works, step.layers, step.kind)
    then, other = (replace(steps, steps=branch, inputs=[], outputs=[]) for branch in (many, [few]))
    return replace(step, works=(), control=BranchControl(are_many, then, other))


def _in_words(c: Columns, steps: Steps) -> tuple[tuple[Definition, ...], Load]:
    """Return the definitions of a copy in words, and the load from it."""
    x, k_axis, lane, size = c.load, c.k_axis, c.lane, elements_per_dot(c.load.buffer.dtype)
    n, outer = k_axis.extent or 1, tuple(a for a in c.axes if a not in (k_axis, lane))
    full_words, words_per_column = (
        steps.sizes.of(m, is_size=True) for m in (n // size, _blocks(n, c.block) * (c.block // size))
    )
    words, elements = _placed(c, outer, words_per_column, steps)
    steps.values[words.name] = Value(words, MemoryRegion.ARENA, elements=elements)
    pair, element = Var(f"{k_axis.name}.p", full_words), Var(f"{k_axis.name}.e", size)

    def term(k: Expr) -> Expr:
        return simplified(rewrite(x, {k_axis: k}))

    value = term(pair * size + element)
    works = (Definition(words, (*outer, pair, lane, element), value, (*outer, pair, lane, element)),)
    padding = words_per_column - full_words
    for e in range(size if padding else 0):
        last = Var(f"{k_axis.name}.z", padding)
        position = last + full_words if padding != 1 else as_expr(full_words, DType.I64)
        k = normal(position * size + e, {}).expr()
        value = prim("within", k, n, term(k), 0.0)
        if isinstance(k, Const) and isinstance(n, int):
            value = term(k) if k.value < n else Const(0.0, x.dtype)
        axes = (*outer, last, lane) if padding != 1 else (*outer, lane)
        works += (Definition(words, axes, value, (*outer, position, lane, Const(e))),)
    at = normal(k_axis // size, {}).expr(), lane, normal(k_axis % size, {}).expr()
    return works, Load(words, (*outer, *at))


def _blocks(n: Size, size: int) -> Size:
    return (n + (size - 1)) // size


def _placed(c: Columns, outer: tuple[Var, ...], pairs: Size, steps: Steps) -> tuple[Buffer, Size]:
    """Return the buffer of the words and its elements.

    Rows of words a multiple of 2 KiB apart would share lines of the cache. Tile registers load 32 words, however few
    columns are left.
    """
    dtype, columns = c.load.buffer.dtype, c.lane.extent or 1
    shape = (*(a.extent or 1 for a in outer), pairs, columns, elements_per_dot(dtype))
    line, row = COSTS.line_bytes // dtype.stored_bytes, columns * elements_per_dot(dtype)
    if c.block > elements_per_dot(dtype) or not isinstance(row, int):
        row = (_blocks(columns, 2 * ROWS) * 2 + 1) * line
    elif row * dtype.stored_bytes % (COSTS.page_bytes // 2) == 0:
        row += line
    strides: list[Size] = [elements_per_dot(dtype), 1]
    for n in (row, *reversed(shape[1:-2])):
        strides.insert(0, steps.sizes.of(n if len(strides) == 2 else strides[0] * n))
    elements = steps.sizes.of(strides[0] * shape[0])
    name = steps.unused(f"{c.load.buffer.name}.words")
    return replace(dense(name, *shape, dtype=dtype), strides=tuple(strides)), elements
