"""Groups of a producer and the windows that read it, computed in strips of rows that stay in the cache.

tile[h':7/short] parallel=h'        7 rows of the result, and the rows of the temporaries that they read
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from aot.codegen.ir.access import typical
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.loops import Size, Var
from aot.codegen.ir.schedule import Schedule, Tail, Tile
from aot.codegen.ir.traverse import rewrite_work
from aot.codegen.schedules.attention import ScheduleMember
from aot.codegen.schedules.products.product_form import extent, parts
from aot.codegen.schedules.request import Reasons, ScheduleChoice
from aot.codegen.target import Target


def strips(g: Group, target: Target, schedule_member: ScheduleMember) -> ScheduleChoice:
    """Return the schedule of strips. `schedule_member` schedules a member, given the axes around it that are points."""
    *outer, row = g.axes
    size = rows_of(g, target)
    half = target.l2 // 2
    reasons: Reasons = (lambda: f"{g.name}: strips of {size} rows take {_bytes(g, size)} bytes, half of L2 is {half}",)
    schedules: list[Schedule] = []
    for m in g.members:
        schedule, more = schedule_member(block(m, row, size) if isinstance(m, Definition) else m, frozenset(outer))
        if isinstance(m, Definition):
            schedule = replace(schedule, blocks=tuple(b for b in schedule.blocks if b[0] != row.name))
        schedules.append(replace(schedule, parallel=None))
        reasons += more
    tile = (Tile(row.name, size, Tail.SHORT),)
    order = (row.name, *(a.name for a in outer))
    return Schedule(order=order, tile=tile, parallel=row.name, members=tuple(schedules)), reasons


def block(d: Definition, row: Var, size: int) -> Definition:
    """Return the definition with `size` rows instead of all."""
    short = replace(row, extent=size)
    shortened = replace(d, axes=tuple(short if a == row else a for a in d.axes), index=d.target)
    block_of_rows = rewrite_work(shortened, lambda e: short if e == row else None)
    assert isinstance(block_of_rows, Definition)
    return block_of_rows


def rows_of(g: Group, target: Target) -> int:
    """Return the rows of a strip with temporaries that fit half of L2; if possible, equal strips and work of cores."""
    row = g.axes[-1]
    n, max_rows = extent(row), max(1, (target.l2 // 2 - _bytes(g, 0)) // (_bytes(g, 1) - _bytes(g, 0)))
    sizes = [k for k in parts(n) if max_rows // 2 < k <= max_rows]
    return next((k for k in sizes if n // k % target.cores == 0), next(iter(sizes), min(max_rows, n)))


def _bytes(g: Group, rows: int) -> int:
    """Return the bytes of the temporaries of a strip of `rows` rows."""
    spans = dict.fromkeys(g.axes, 1) | {g.axes[-1]: rows}
    spans |= {w.axis: rows * w.scale + w.size - w.scale for w in g.row_ranges}

    def size(n: Size) -> int:
        return spans.get(n, 0) if isinstance(n, Var) else typical(n)

    return sum(prod(map(size, t.shape)) * t.dtype.stored_bytes for t in g.temps)
