"""Columns of bf16 in words of two terms, for products of data that dots of pairs sum: keys and values of attention.

    s[i, j] = add[k in 64](q[i, k] * keys[k, j])
->  keys.words[p, j, e] = keys[2 * p + e, j]            for p in 32, e in 2
    s[i, j] = add[k in 64](q[i, k] * keys.words[k // 2, j, k % 2])

Without it each tile of rows interleaves the same two rows of keys again. A last word that is not full ends in zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from aot.lowering.fusion.substitute import simplified
from aot.lowering.ir.steps import Step, Steps, Value
from codegen.costs import COSTS
from codegen.ir.access import all_axes, known, varies
from codegen.ir.definition import Definition, Group
from codegen.ir.dot_widths import dot_factors, takes_rows, word
from codegen.ir.expressions import loads, rewrite, variables
from codegen.ir.index import normal
from codegen.ir.loops import Buffer, Const, Expr, Load, Var, dense
from codegen.ir.program import Region
from codegen.ir.schedule import Schedule
from codegen.ir.traverse import rewrite_work
from codegen.schedules.choose import choose
from codegen.target import Target
from runtime.abi import DType


def arrange_words(steps: Steps, target: Target) -> None:
    """Copy the columns of products of data into words where many rows multiply them."""
    if not target.sums_pairs:
        return
    constants, copies = steps.constants(), dict[Load, Load]()
    found: list[Step] = []

    def copied(e: Expr) -> Expr | None:
        return copies.get(e) if isinstance(e, Load) else None

    for step in steps.steps:
        own = {b.name for b in step.writes()}
        for d, plan in _scheduled(step, target, constants):
            columns = _columns(d, plan)
            if columns is None or columns[0] in copies or columns[0].buffer.name in own | constants:
                continue
            if (made := _in_words(*columns, d, steps)) is not None:
                works, copies[columns[0]] = made
                found.append(Step(works, step.layers, "Transpose"))
        step.works = tuple(rewrite_work(w, copied) for w in step.works)
        found.append(step)
        for x in [x for x in copies if x.buffer.name in own]:
            del copies[x]  # written again: the words are of the value before
    steps.steps = found


def _scheduled(step: Step, target: Target, constants: frozenset[str]) -> Iterator[tuple[Definition, Schedule]]:
    """Yield each definition of a step with the schedule that it will have."""
    if step.schedule is not None or step.repeat is not None or step.control is not None:
        return
    pairs = [(w, choose(w, target, constants)) for w in step.works if isinstance(w, Definition | Group)]
    while pairs:
        work, plan = pairs.pop()
        if isinstance(work, Definition):
            yield work, plan
        else:
            pairs += zip(work.members, plan.members, strict=True)


def _columns(d: Definition, plan: Schedule) -> tuple[Load, Var, Var] | None:
    """Return columns that dots of pairs read in rows, the axis of the sum and the lanes; None for other products."""
    if plan.dots is None or plan.lanes is None or d.reduction is None:
        return None
    part = next((a for a in d.reduction.axes if a.name == plan.dots), None)
    lane = next((a for a in d.axes if a.name == plan.lanes[0]), None)
    factors = dot_factors(d.reduction, plan.lanes[0])
    if part is None or lane is None or factors is None or not takes_rows(d, part, lane.name):
        return None
    return factors[1], part, lane


def _in_words(x: Load, part: Var, lane: Var, d: Definition, steps: Steps) -> tuple[tuple[Definition, ...], Load] | None:
    """Return the definitions of a copy in words and the load from it; None where few rows multiply the columns."""
    mine = [a for a in all_axes(d) if a in variables(*x.index)]
    rows = prod(known(a.extent or 1) for a in d.axes if a not in mine)
    if rows < COSTS.min_word_rows or varies(mine) or loads(*x.index):
        return None
    n, size = known(part.extent or 1), word(x.buffer.dtype)
    outer = tuple(a for a in mine if a not in (part, lane))
    shape = *(known(a.extent or 1) for a in outer), -(-n // size), known(lane.extent or 1), size
    words, elements = _placed(steps.unused(f"{x.buffer.name}.words"), shape, x.buffer.dtype)
    steps.values[words.name] = Value(words, Region.ARENA, elements=elements)
    pair, element = Var(f"{part.name}.p", n // size), Var(f"{part.name}.e", size)

    def term(k: Expr) -> Expr:
        return simplified(rewrite(x, {part: k}))

    works = (
        Definition(words, (*outer, pair, lane, element), term(pair * size + element), (*outer, pair, lane, element)),
    )
    for e in range(size if n % size else 0):  # the last word
        value = term(Const(n - n % size + e)) if e < n % size else Const(0.0, x.dtype)
        works += (Definition(words, (*outer, lane), value, (*outer, Const(n // size), lane, Const(e))),)
    at = normal(part // size, {}).expr(), lane, normal(part % size, {}).expr()
    return works, Load(words, (*outer, *at))


def _placed(name: str, shape: tuple[int, ...], dtype: DType) -> tuple[Buffer, int]:
    """Return the buffer and its elements; rows of words a multiple of 2 KiB apart would share lines of the cache."""
    row = prod(shape[-2:])
    if row * dtype.stored_bytes % (COSTS.page_bytes // 2) == 0:
        row += COSTS.line_bytes // dtype.stored_bytes
    outside = (row * prod(shape[k + 1 : -2]) for k in range(len(shape) - 2))
    buffer = replace(dense(name, *shape, dtype=dtype), strides=(*outside, shape[-1], 1))
    return buffer, row * prod(shape[:-2])
