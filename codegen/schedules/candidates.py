"""Schedules that a measured search tries for a definition: other register tiles, and the other order of their loops.

order[p oc kh kc] tile[p:14 oc:32]   ->   tile[p:7 oc:48], tile[p:28 oc:16], ..., order[oc p kh kc], ...
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import typical
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.schedule import Schedule, ScheduleError, Tile
from aot.codegen.nest.legality import check
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target

MAX_VECTORS = 4  # most vectors of a row of a register tile


def candidates(work: Definition | Group, target: Target, constants: frozenset[str]) -> tuple[Schedule, ...]:
    """Return the candidates, the cost model's choice first: legal, each with the same bits at any number of threads."""
    first = choose(work, target, constants)
    if not isinstance(work, Definition) or work.reduction is None or first.lanes is None or not first.tile:
        return (first,)
    if not all(isinstance(a.extent, int) for a in (*work.axes, *work.reduction.axes)):
        return (first,)
    schedules = dict.fromkeys([first, *(s for tiled in _tiled(work, first, target) for s in (tiled, *_swapped(tiled)))])
    return tuple(s for s in schedules if s is first or _legal(work, s))


def _tiled(work: Definition, s: Schedule, target: Target) -> Iterator[Schedule]:
    """Yield schedules with other register tiles: for each width, the greatest height and half of it, rows balanced."""
    assert s.lanes is not None
    lane, lanes = s.lanes
    rows = next((t for t in s.tile if t.axis != lane and t.axis in s.order and _is_output(work, s, t.axis)), None)
    lane_tile = next((t for t in s.tile if t.axis == lane), None)
    yield s
    if rows is None:
        return
    count, columns = _extent(work, s, rows.axis), -(-_extent(work, s, lane) // lanes)
    for vectors in range(1, min(MAX_VECTORS, columns) + 1) if lane_tile is not None else (1,):
        highest = min(COSTS.max_tile_rows, (target.registers - 2 - vectors) // vectors)
        for max_height in (highest, max(1, highest // 2)):
            height = -(-count // -(-count // max_height))
            yield _with(s, {rows.axis: height, lane: vectors * lanes})


def _with(s: Schedule, sizes: dict[str, int]) -> Schedule:
    """Return the schedule with tiles of other sizes; operands are packed as wide as the lanes' tile."""
    assert s.lanes is not None
    old = s.size(s.lanes[0]).size
    tiles = tuple(Tile(t.axis, sizes.get(t.axis, t.size), t.tail) for t in s.tile)
    changed = any(t.axis == s.lanes[0] for t in s.tile)
    packs = tuple(replace(p, width=sizes[s.lanes[0]]) if changed and p.width == old else p for p in s.pack)
    return replace(s, blocks=(), tile=tiles, pack=packs)


def _swapped(s: Schedule) -> Iterator[Schedule]:
    """Yield the schedule with the loops over rows and lanes exchanged, if one lies directly inside the other."""
    assert s.lanes is not None
    tiled = [s.order.index(t.axis) for t in s.tile if t.axis in s.order]
    if s.lanes[0] not in s.order or len(tiled) < 2 or abs(tiled[0] - tiled[1]) != 1:
        return
    order = list(s.order)
    a, b = tiled[:2]
    order[a], order[b] = order[b], order[a]
    yield replace(s, blocks=(), order=tuple(order), parallel=order[0] if s.parallel == s.order[0] else s.parallel)


def _is_output(work: Definition, s: Schedule, axis: str) -> bool:
    return {a.name for a in work.axes} >= set(dict(s.fuse).get(axis, (axis,)))


def _extent(work: Definition, s: Schedule, axis: str) -> int:
    parts = dict(s.fuse).get(axis, (axis,))
    return prod(typical(a.extent if a.extent is not None else 1) for a in work.axes if a.name in parts)


def _legal(work: Definition, s: Schedule) -> bool:
    try:
        check(work, s)
    except ScheduleError:
        return False
    return True
