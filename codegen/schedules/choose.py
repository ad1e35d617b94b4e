"""A schedule for a definition or group, by its form and the target: never by the name of an operation.

form                                               file                    computed at once
a reduction whose loads move with an output axis   products/product.py      rows x vectors
  all of them                                      products/depthwise.py    pixels x channels
  in many small groups                             products/grouped.py      pixels x channels of several groups
a reduction along contiguous memory                rows.py                  partial results in lanes
no reduction                                       pointwise.py             vectors along the innermost axis
group                                              members as above, rows in parallel
products with a softmax between                    attention.py             a block of rows at a time
a producer and the windows that read it            row_strips.py            a strip of rows at a time
sequences that pass through steps                  sequences.py             a block of sequences at a time
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import variables
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Expr, Var
from aot.codegen.ir.schedule import Schedule
from aot.codegen.ir.traverse import members, reads, writes
from aot.codegen.schedules.attention import attention, is_attention
from aot.codegen.schedules.pointwise import pointwise
from aot.codegen.schedules.products.product import product
from aot.codegen.schedules.request import Request, ScheduleChoice, texts
from aot.codegen.schedules.row_strips import strips
from aot.codegen.schedules.rows import rows, rows_together
from aot.codegen.schedules.sequences import is_sequences, sequences
from aot.codegen.target import Target


def choose(work: Definition | Group, target: Target, constants: frozenset[str]) -> Schedule:
    """Return the schedule of a kernel's work; buffers named in `constants` may be packed at compile time."""
    return _chosen(work, target, constants)[0]


def explain(work: Definition | Group, target: Target, constants: frozenset[str]) -> tuple[str, ...]:
    """Return the reasons for the schedule of `choose`: for each definition its form, the candidates, their costs."""
    return texts(_chosen(work, target, constants)[1])


@lru_cache(maxsize=1 << 11)  # layers that repeat have equal works
def _chosen(work: Definition | Group, target: Target, constants: frozenset[str]) -> ScheduleChoice:
    def plan(member: Definition | Group, points: frozenset[Var]) -> ScheduleChoice:
        return _planned(member, target, constants, points)

    if isinstance(work, Group) and is_attention(work):
        return attention(work, target, plan)
    if isinstance(work, Group) and work.row_ranges:
        return strips(work, target, plan)
    if isinstance(work, Group) and is_sequences(work):
        return sequences(work, plan)
    return plan(work, frozenset())


def _planned(
    work: Definition | Group, target: Target, constants: frozenset[str], points: frozenset[Var]
) -> ScheduleChoice:
    """Return the schedule of a member. `points`: axes of the groups around it, each a single point here."""
    if isinstance(work, Group):
        return _group(work, target, constants, points)
    return _definition(Request(work, target, constants, points))


def _definition(request: Request) -> ScheduleChoice:
    out = request.work.out.name
    if request.work.reduction is None:
        schedule, reasons = pointwise(request)
        return schedule, (lambda: f"{out}: no reduction", *reasons)
    choice, why = product(request)
    if choice is not None:
        return choice, why
    schedule, reasons = rows(request)
    return schedule, (*why, lambda: f"{out}: no output axis serves as lanes", *reasons)


def _group(g: Group, target: Target, constants: frozenset[str], points: frozenset[Var]) -> ScheduleChoice:
    inner = points | frozenset(g.axes)
    planned = [_planned(m, target, constants, inner) for m in g.members]
    schedules, reasons = (
        tuple(replace(s, parallel=None) for s, _ in planned),
        tuple(r for _, more in planned for r in more),
    )
    if points or carries(g):
        return Schedule(members=schedules), reasons
    tile, more = rows_together(g, schedules, target)
    return Schedule(tile=tile, parallel=g.axes[0].name if g.axes else None, members=schedules), reasons + more


def carries(g: Group) -> bool:
    """True if a point of the shared axes reads a value that another point has written."""
    outside = {b.name for b in writes(g)}
    targets = {d.out.name: d.target for d in members(g)}
    return any(
        not _reads_own_point(x.index, targets[x.buffer.name], g.axes) for x in reads(g) if x.buffer.name in outside
    )


def _reads_own_point(index: tuple[Expr, ...], target: tuple[Expr, ...], shared: tuple[Var, ...]) -> bool:
    """True if a point reads only what it writes itself: `index` and `target` are equal where shared axes move them."""
    moving = [k for k, i in enumerate(target) if variables(i) & set(shared)] or range(len(target))
    return all(normal(index[k], {}).key == normal(target[k], {}).key for k in moving)
