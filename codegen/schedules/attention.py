"""Groups of products and rows over the same axes: a block of rows of each at a time.

tile[i:48] parallel=b        products of 48 rows; the softmax between them reads its operands from the cache
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import fills, typical, varies
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.loops import Var
from aot.codegen.ir.schedule import Schedule, Tail, Tile
from aot.codegen.ir.traverse import members
from aot.codegen.schedules.request import Reasons, ScheduleChoice
from aot.codegen.target import Target

ScheduleMember = Callable[[Definition | Group, frozenset[Var]], ScheduleChoice]


def is_attention(g: Group) -> bool:
    """True if the group consists of products, and of groups over its own axes alone."""
    inner = [m for m in g.members if isinstance(m, Group)]
    return 0 < len(inner) < len(g.members) and all(m.axes == g.axes for m in inner)


def attention(g: Group, target: Target, schedule_member: ScheduleMember) -> ScheduleChoice:
    """Return the schedule of a group. `schedule_member` schedules a member, given the axes of points around it."""
    *outer, row = g.axes
    size = _size(g, row, target)
    text = f"{g.name}: products with rows between: blocks of {size} rows, half of L2 is {target.l2 // 2} bytes"
    reasons: Reasons = (lambda: text,)
    recomputes_rows = varies((row,)) and fills((row,), size) and not any(d.overwrites for d in members(g))
    schedules: list[Schedule] = []
    for m in g.members:
        if isinstance(m, Definition):
            block = replace(m, axes=tuple(replace(a, extent=size) if a == row else a for a in m.axes))
            schedule, more = schedule_member(block, frozenset(outer))
            schedule = schedule if recomputes_rows else _without_overlap(schedule, row)
        else:
            schedule, more = schedule_member(m, frozenset())
        schedules.append(replace(schedule, parallel=None))
        reasons += more
    tile = (Tile(row.name, size, Tail.LAP if recomputes_rows else Tail.REST),)
    if len(outer) > 1 and varies(outer):  # any of them may be 1
        name = next(n for n in "pqr" if n not in {a.name for a in g.axes})
        fuse = ((name, tuple(a.name for a in outer)),)
        return Schedule(fuse=fuse, tile=tile, parallel=name, members=tuple(schedules)), reasons
    shared = next((a for a in outer if typical(a.extent or 1) > 1), row)
    return Schedule(tile=tile, parallel=shared.name, members=tuple(schedules)), reasons


def _without_overlap(s: Schedule, row: Var) -> Schedule:
    """Return a schedule that cuts its tiles of rows: a block of a dynamic number of rows may be shorter than a tile."""
    if not varies((row,)):
        return s
    return replace(
        s, tile=tuple(replace(t, tail=Tail.CUT) if t.axis == row.name and t.tail is Tail.LAP else t for t in s.tile)
    )


def _size(g: Group, row: Var, target: Target) -> int:
    """Return the rows of a block with temporaries that fit half of L2; a divisor of all rows if there is one."""
    if varies((row,)) or not all(isinstance(n, int) for t in g.temps for n in t.shape[len(g.axes) :]):
        return COSTS.dynamic_attention_rows
    large = (t for t in g.temps if len(t.shape) > len(g.axes))
    each = sum(prod(typical(n) for n in t.shape[len(g.axes) :]) * t.dtype.stored_bytes for t in large)
    n = typical(row.extent or 1)
    rows = min(n, COSTS.max_attention_rows, max(COSTS.min_attention_rows, target.l2 // (2 * each)))
    return next((k for k in range(rows, rows // 2, -1) if n % k == 0), rows)
