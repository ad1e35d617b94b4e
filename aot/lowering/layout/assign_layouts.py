"""Physical layout: the order of dimensions in memory, halos and pitches. Definitions keep their logical indices.

    conv: y[n, c, h, w]       strides make c innermost, because its lanes run along c
    padded reads              x gets a halo of `fill` around it, and `within` vanishes from its consumers
    row pitch                 + 64 bytes where rows of a product would share lines of the cache

Each definition votes for an innermost dimension, weighted by its points; votes travel through definitions
without a reduction. Among the orders with that dimension innermost, one is taken in which every access moves evenly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import permutations
from math import inf, prod

from aot.codegen.costs import COSTS
from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import all_axes, coefficient, element_offset, points, typical
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.expressions import loads
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Buffer, Expr, Size, Var
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import members, move_loads, rewrite_work
from aot.codegen.target import Target
from aot.lowering.context import Context
from aot.lowering.fusion.group_rows import is_streaming
from aot.lowering.ir.steps import Steps, Value
from aot.lowering.layout.halo import Halo, borders, halos, strip
from aot.lowering.layout.operand_copies import copy_keys, copy_padded_inputs
from aot.lowering.layout.votes import innermost, votes_of


def assign_layouts(steps: Steps, context: Context) -> None:
    """Assign strides to every value of a block, and rewrite its steps to buffers with these strides."""
    copy_padded_inputs(steps)
    votes = votes_of(steps)
    if copy_keys(steps, votes):
        votes = votes_of(steps)
    halo = halos(steps)
    placed: dict[str, Buffer] = {}
    sites, constants = _sites(steps), steps.constants()
    for value in [steps.values[name] for name in steps.touched()]:
        if value.region is MemoryRegion.ARENA:
            touched = sites.get(value.name, [])
            wishes = votes.get(value.name, {})
            buffer, elements = _place(value, wishes, halo.get(value.name), touched, constants, context.target)
            placed[value.name] = buffer
            steps.values[value.name] = replace(value, buffer=buffer, elements=elements)
    filled: set[str] = set()
    for step in steps.steps:
        works = tuple(strip(w, halo, steps) for w in step.works)
        written = {b.name for b in step.writes()}
        for b in [b for b in step.writes() if b.name in halo and b.name not in filled]:
            filled.add(b.name)
            fills = borders(placed[b.name], halo[b.name])
            known_later = any(x.buffer.name in written for d in fills for x in loads(d.value))
            works = (*works, *fills) if known_later else (*fills, *works)
        step.works = tuple(rewrite_work(w, move_loads(placed), lambda b: placed.get(b.name, b)) for w in works)


@dataclass(frozen=True, slots=True)
class Site:
    """An access of a definition. `rows`: the axes of the group around it; it runs for one point of them at a time."""

    d: Definition
    index: tuple[Expr, ...]
    rows: tuple[Var, ...]


def _place(
    value: Value,
    votes: dict[int, float],
    halo: Halo | None,
    sites: list[Site],
    constants: frozenset[str],
    target: Target,
) -> tuple[Buffer, Size]:
    b = value.buffer
    dims = [k for k, n in enumerate(b.shape) if n != 1 or (halo is not None and halo.sides[k] != (0, 0))]
    last = innermost(dims, votes)
    orders = [tuple(k for k in dims if k != last) + ((last,) if last is not None else ())]
    if 1 < len(dims) <= 4 and _is_reshaped(sites):
        orders += [p for p in permutations(dims) if p != orders[0]]

        def cost(p: tuple[int, ...]) -> float:
            return _unevenness(_strided(b, p, None, 0)[0], sites) + (0 if p[-1] == last else votes.get(last or 0, 0.0))

        order = _cheapest(orders, cost)
    else:
        order = orders[0]
    return _strided(b, order, halo, _pitch(b, order, sites, constants, target))


def _cheapest(orders: list[tuple[int, ...]], cost: Callable[[tuple[int, ...]], float]) -> tuple[int, ...]:
    """Return the first order of least cost; the search ends at one that costs nothing."""
    least_cost, cheapest = inf, orders[0]
    for order in orders:
        if (order_cost := cost(order)) < least_cost:
            least_cost, cheapest = order_cost, order
        if not least_cost:
            break
    return cheapest


def _is_reshaped(sites: list[Site]) -> bool:
    """True if some access divides an index into dimensions, or gathers."""
    return any(not isinstance(atom, Var) for x in sites for i in x.index for atom in normal(i, {}).terms)


def _sites(steps: Steps) -> dict[str, list[Site]]:
    """Return the accesses of each value, by its name."""
    sites: dict[str, list[Site]] = {}
    for step in steps.steps:
        for work in step.works:
            rows = work.axes if isinstance(work, Group) else ()
            for d in members(work):
                for x in loads(d.value, *d.index):
                    sites.setdefault(x.buffer.name, []).append(Site(d, x.index, rows))
                sites.setdefault(d.out.name, []).append(Site(d, d.target, rows))
    return sites


def _unevenness(b: Buffer, sites: list[Site]) -> float:
    """Count the steps of all accesses that the layout of `b` makes uneven, or that lie in the same set of the cache.

    An axis of a group's rows counts once for a row: its address is computed there.
    """
    total, size = 0.0, b.dtype.stored_bytes
    for x in sites:
        count = float(typical(points(x.d)))
        for inside in _uneven_axes(b.strides, size, x.index, all_axes(x.d), x.rows):
            total += count / inside
    return total


@lru_cache(maxsize=1 << 12)  # equal layers have equal accesses
def _uneven_axes(
    strides: tuple[Size, ...], size: int, index: tuple[Expr, ...], axes: tuple[Var, ...], rows: tuple[Var, ...]
) -> tuple[int, ...]:
    """Return the uneven axes of an access of elements of `size` bytes; each as the points that count once."""
    at, uneven = element_offset(strides, index), list[int]()
    for a in axes:
        stride = coefficient(at, a)
        row = a in rows
        if stride is None:
            inside = prod(typical(i.extent or 1) for i in axes if row and i not in rows)
            uneven.append(max(1, inside))  # a dynamic size may be typically 0: a difference of sizes
        elif rows and not row and _collides(stride.const * size, typical(a.extent or 1)):
            uneven.append(1)
    return tuple(uneven)


def _collides(stride: int, count: int) -> bool:
    """True if `count` elements that are `stride` bytes apart exceed the ways of an L1 cache set."""
    return stride != 0 and stride % COSTS.page_bytes == 0 and count > COSTS.cache_ways


def _strided(b: Buffer, order: tuple[int, ...], halo: Halo | None, pitch: int) -> tuple[Buffer, Size]:
    """Return `b` with strides, and its elements in all. `order`: dimensions, outermost first; others have stride 0."""
    strides: list[Size] = [0] * len(b.shape)
    stride: Size = 1
    origin: Size = 0
    for position, k in enumerate(reversed(order)):
        before, after = halo.sides[k] if halo else (0, 0)
        strides[k] = stride
        origin = origin + before * stride
        stride = stride * (b.shape[k] + (before + after))
        if position == 0:
            stride = stride + pitch
    return replace(
        b, strides=tuple(strides), origin=origin, halo=halo.fill if halo and not isinstance(halo.fill, Expr) else None
    ), stride


def _pitch(b: Buffer, order: tuple[int, ...], sites: list[Site], constants: frozenset[str], target: Target) -> int:
    """Return the elements to add to a row.

    Rows of a product a multiple of 2 KiB apart would share lines of the cache. Tile registers read 32 rows at once.
    """
    conflict_bytes = COSTS.page_bytes // (8 if target.abilities.tiles else 2)
    if len(order) < 2 or not isinstance(n := b.shape[order[-1]], int) or n * b.dtype.stored_bytes % conflict_bytes:
        return 0
    products = (x.d for x in sites if x.d.reduction is not None and x.d.out.name != b.name)
    rows = [d for d in products if not is_streaming(d, constants)]
    return COSTS.line_bytes // b.dtype.stored_bytes if rows and not _is_reshaped(sites) else 0
