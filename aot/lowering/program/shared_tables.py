"""Tables that are gathered by rows and packed for a product, such as an embedding that is also the head.

The gather reads the packed elements, so that a library has the table once:

    e[ids[i], k]   ->   e[ids[i] // 32, k, ids[i] % 32]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import loads
from aot.codegen.ir.schedule import Pack, Schedule
from aot.codegen.ir.traverse import Work, members, reads


def gathered_rows(work: Work) -> set[str]:
    """Return the buffers that a definition reads by gathering rows, and in no other way."""
    gathered, others = set[str](), set[str]()
    for d in members(work):
        for x in reads(d):
            (gathered if x.index and loads(x.index[0]) else others).add(x.buffer.name)
    return gathered - others


def with_tables(work: Definition | Group, schedule: Schedule, tables: Mapping[str, Pack]) -> Schedule:
    """Return a schedule that gathers rows of `tables` from their packed elements."""
    if isinstance(work, Group):
        pairs = zip(work.members, schedule.members, strict=True)
        return replace(schedule, members=tuple(with_tables(m, s, tables) for m, s in pairs))
    rows = sorted(gathered_rows(work) & tables.keys())
    return replace(schedule, pack=(*schedule.pack, *(replace(tables[name], operand=name) for name in rows)))
