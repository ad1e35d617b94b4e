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
from aot.codegen.schedules.attention import chain, is_chain
from aot.codegen.schedules.pointwise import pointwise
from aot.codegen.schedules.products.product import product
from aot.codegen.schedules.reasons import note, recorded
from aot.codegen.schedules.row_strips import strips
from aot.codegen.schedules.rows import rows, rows_together
from aot.codegen.target import Target

NOTHING: frozenset[Var] = frozenset()


def choose(work: Definition | Group, target: Target, constants: frozenset[str]) -> Schedule:
    """Return the schedule of a kernel's work; buffers named in `constants` may be packed at compile time."""
    return _chosen(work, target, constants)


def explain(work: Definition | Group, target: Target, constants: frozenset[str]) -> tuple[str, ...]:
    """Return the reasons for the schedule of `choose`: for each definition its form, the candidates, their costs."""
    return recorded(lambda: _chosen.__wrapped__(work, target, constants))


@lru_cache(maxsize=1 << 11)  # layers that repeat have equal works
def _chosen(work: Definition | Group, target: Target, constants: frozenset[str]) -> Schedule:
    def plan(member: Definition | Group, shared: frozenset[Var]) -> Schedule:
        return _planned(member, target, constants, shared)

    if isinstance(work, Group) and is_chain(work):
        return chain(work, target, plan)
    if isinstance(work, Group) and work.row_ranges:
        return strips(work, target, plan)
    return _planned(work, target, constants, NOTHING)


def _planned(work: Definition | Group, target: Target, constants: frozenset[str], shared: frozenset[Var]) -> Schedule:
    if isinstance(work, Group):
        return _group(work, target, constants, shared)
    return _definition(work, target, constants, shared)


def _definition(d: Definition, target: Target, constants: frozenset[str], shared: frozenset[Var]) -> Schedule:
    """Return the schedule of a definition. `shared`: axes of the groups around it, each a single point here."""
    if d.reduction is None:
        note(lambda: f"{d.out.name}: no reduction")
        return pointwise(d, target, constants, shared)
    found = product(d, target, constants, shared)
    if found is not None:
        return found
    note(lambda: f"{d.out.name}: no output axis serves as lanes")
    return rows(d, target, constants, shared)


def _group(g: Group, target: Target, constants: frozenset[str], shared: frozenset[Var]) -> Schedule:
    inner = shared | frozenset(g.axes)
    plans = tuple(replace(_planned(m, target, constants, inner), parallel=None) for m in g.members)
    apart = not shared and not _carries(g)
    tile = rows_together(g, plans, target) if apart else ()
    return Schedule(tile=tile, parallel=g.axes[0].name if g.axes and apart else None, members=plans)


def _carries(g: Group) -> bool:
    """True if a point of the shared axes reads a value that another point has written."""
    outside = {b.name for b in writes(g)}
    targets = {d.out.name: d.target for d in members(g)}
    return any(not _own(x.index, targets[x.buffer.name], g.axes) for x in reads(g) if x.buffer.name in outside)


def _own(index: tuple[Expr, ...], target: tuple[Expr, ...], shared: tuple[Var, ...]) -> bool:
    """True if the point that reads `index` writes it, at `target`: indices that move with shared axes are equal."""
    moving = [k for k, i in enumerate(target) if variables(i) & set(shared)] or range(len(target))
    return all(normal(index[k], {}).key == normal(target[k], {}).key for k in moving)
