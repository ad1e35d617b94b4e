"""Groups of sequences; each passes through the steps of an inner group: a block of sequences at a time.

tile[b:4] parallel=b        products of 4 rows in each step; a thread runs all steps of a block
"""

from __future__ import annotations

from dataclasses import replace

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import varies
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.schedule import Schedule, Tail, Tile
from aot.codegen.schedules.attention import ScheduleMember
from aot.codegen.schedules.products.product_form import extent
from aot.codegen.schedules.request import Reasons, ScheduleChoice
from aot.codegen.schedules.row_strips import block


def is_sequences(g: Group) -> bool:
    """True if the only member of the group is a group over other axes, of definitions."""
    inner = g.members[0]
    if len(g.members) > 1 or not isinstance(inner, Group) or not g.axes or not set(g.axes).isdisjoint(inner.axes):
        return False
    return all(isinstance(m, Definition) for m in inner.members)


def sequences(g: Group, schedule_member: ScheduleMember) -> ScheduleChoice:
    """Return the schedule of a group. `schedule_member` schedules a member, given the axes of points around it."""
    (row,), inner = g.axes, g.members[0]
    assert isinstance(inner, Group)
    size = COSTS.dynamic_sequence_rows if varies(g.axes) else _size(extent(row))
    text = f"{g.name}: each block of {size} sequences passes through all steps by itself"
    reasons: Reasons = (lambda: text,)
    short = replace(inner, members=tuple(block(m, row, size) for m in inner.members if isinstance(m, Definition)))
    schedule, more = schedule_member(short, frozenset())
    schedules = tuple(_at_most(s, row.name, size) for s in schedule.members)
    tile = (Tile(row.name, size, Tail.SHORT if varies(g.axes) else Tail.BALANCE),)
    schedule = replace(schedule, parallel=None, members=schedules)
    return Schedule(tile=tile, parallel=row.name, members=(schedule,)), reasons + more


def _at_most(s: Schedule, axis: str, size: int) -> Schedule:
    """Limit the tiles of an axis to the points of a block: there is a loop for each number of points."""
    return replace(s, tile=tuple(replace(t, size=min(t.size, size)) if t.axis == axis else t for t in s.tile))


def _size(count: int) -> int:
    """Return the rows of a block: an even number of blocks, for threads, of rows that fill a register tile once."""
    pairs = -(-count // (2 * COSTS.max_sequence_rows))
    return -(-count // (2 * pairs))
