"""Physical layout: the order of dimensions in memory, halos and pitches. Definitions keep their logical indices.

    conv: y[n, c, h, w]       strides make c innermost, because its lanes run along c
    padded reads              x gets a halo of `fill` around it, and `within` vanishes from its readers
    pixel pitch               + 64 bytes where pixels lie a multiple of 4 KiB apart

Each definition votes for an innermost dimension, weighted by its points; votes travel through definitions
without a reduction. Among the orders with that dimension innermost, one is taken in which every access moves evenly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import permutations
from math import inf, prod

from aot.lowering.fusion.group_rows import reads_once, streams
from aot.lowering.ir.lane_axes import dim_of, lane_axes, lane_axis, memory_of
from aot.lowering.ir.steps import Step, Steps, Value
from aot.lowering.layout.halo import Halo, borders, halos, strip
from aot.lowering.layout.planes import plane_columns
from codegen.costs import COSTS
from codegen.ir.access import all_axes, coefficient, known, offset, points
from codegen.ir.definition import Definition, Group
from codegen.ir.dot_widths import scaled_sum
from codegen.ir.expressions import loads, variables, walk
from codegen.ir.index import normal
from codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Reduce, Size, Var, dense
from codegen.ir.program import Region
from codegen.ir.traverse import Work, members, move_loads, rewrite_work

ROUNDS = 3


def assign_layouts(steps: Steps) -> None:
    """Assign strides to every value of a block, and rewrite its steps to buffers with these strides."""
    copy_padded_inputs(steps)
    wanted = _votes(steps)
    if copy_keys(steps, wanted):
        wanted = _votes(steps)
    halo = halos(steps)
    placed: dict[str, Buffer] = {}
    sites, constants = _sites(steps), steps.constants()
    for value in [steps.values[name] for name in steps.touched()]:
        if value.region is Region.ARENA:
            touched = sites.get(value.name, [])
            buffer, elements = _place(value, wanted.get(value.name, {}), halo.get(value.name), touched, constants)
            placed[value.name] = buffer
            steps.values[value.name] = replace(value, buffer=buffer, elements=elements)
    filled: set[str] = set()
    for step in steps.steps:
        works = tuple(strip(w, halo, steps) for w in step.works)
        made = {b.name for b in step.writes()}
        for b in [b for b in step.writes() if b.name in halo and b.name not in filled]:
            filled.add(b.name)
            fills = borders(placed[b.name], halo[b.name])
            known_later = any(x.buffer.name in made for d in fills for x in loads(d.value))
            works = (*works, *fills) if known_later else (*fills, *works)
        step.works = tuple(rewrite_work(w, move_loads(placed), lambda b: placed.get(b.name, b)) for w in works)


def copy_padded_inputs(steps: Steps) -> None:
    """Copy float inputs that a window or a product reads repeatedly, so that they can have a better layout."""
    constants = steps.constants()
    read = [name for name in dict.fromkeys(steps.inputs) if name in steps.values]  # bodies drop inputs without readers
    inputs = [steps.values[name] for name in read]
    movable = {v.name: v for v in inputs if v.region is not Region.CONSTANT and v.buffer.dtype.is_float}
    works = [(w, d) for s in steps.steps for w in s.works for d in members(w)]
    readers = [(w, d) for w, d in works if any(x.buffer.name in movable for x in loads(d.value))]
    wanted = {n for w, d in readers for n in (*_windows(d, constants, w), *_across(d, constants))}
    for name, value in movable.items():
        if name in wanted:
            _copy(steps, value)


def _windows(d: Definition, constants: frozenset[str], work: Work) -> set[str]:
    """Return the buffers that a product or a window reads repeatedly, with an index other than axis or constant.

    In a group the rows are flattened, so only indices that move with the sum count.
    """
    if d.reduction is None or streams(d, constants):
        return set()
    axes, every = set(d.reduction.axes), all_axes(d)
    again = [x for x in loads(d.value) if not (variables(*x.index) >= {*every} and reads_once(x, every))]
    indices = [(x.buffer.name, i) for x in again for i in x.index if not isinstance(i, Var | Const)]
    return {name for name, i in indices if not isinstance(work, Group) or variables(i) & axes}


def _across(d: Definition, constants: frozenset[str]) -> set[str]:
    """Return the buffers that a product reads repeatedly, and strided along its lanes."""
    if d.reduction is None or streams(d, constants):
        return set()
    lane, count = lane_axis(d, constants), known(points(d))
    if lane is None:
        return set()
    found = [x for x in memory_of(d) if x.buffer.name not in constants and dim_of(x.index, lane) is not None]
    return {
        x.buffer.name
        for x in found
        if offset(x.buffer, x.index).terms.get(lane) != 1
        and count >= COSTS.copy_reads * prod(map(known, x.buffer.shape))
    }


def _copy(steps: Steps, value: Value) -> None:
    b = value.buffer
    made = replace(b, name=steps.unused(f"{b.name}.copy"))
    steps.values[made.name] = Value(made, Region.ARENA)
    for step in steps.steps:
        step.works = tuple(rewrite_work(w, move_loads({b.name: made})) for w in step.works)
    axes = tuple(Var(f"d{k}", n) for k, n in enumerate(b.shape) if n != 1)
    left = iter(axes)
    index = tuple(Const(0) if n == 1 else next(left) for n in b.shape)
    steps.steps.insert(0, Step((Definition(made, axes, Load(b, index), index),), (b.name,), "Parameter"))


Votes = dict[str, dict[int, float]]


def copy_keys(steps: Steps, votes: Votes) -> bool:
    """Copy matmul operands that would be read strided into contiguous buffers; True if any was copied.

    Attention keys are strided if they share a tensor with queries and values, for which another order is better.
    """
    constants = steps.constants()
    copies: dict[Load, Load] = {}
    found: list[Step] = []

    def copied(e: Expr) -> Expr | None:
        return copies.get(e) if isinstance(e, Load) else None

    for step in steps.steps:
        own = {b.name for b in step.writes()}  # as those of a recurrence, which are not there before the step
        for d in (d for w in step.works for d in members(w)):
            for x in _keys(d, steps, votes, constants):
                if x not in copies and x.buffer.name not in own:
                    axes = tuple(a for a in all_axes(d) if a in variables(*x.index))
                    name = steps.unused(f"{x.buffer.name}.keys")
                    made = dense(name, *(a.extent or 1 for a in axes), dtype=x.buffer.dtype)
                    steps.values[name] = Value(made, Region.ARENA)
                    copies[x] = Load(made, axes)
                    found.append(Step((Definition(made, axes, x, axes),), step.layers, "Transpose"))
        if copies:
            step.works = tuple(rewrite_work(w, copied) for w in step.works)
        found.append(step)
    steps.steps = found
    return bool(copies)


def _keys(d: Definition, steps: Steps, votes: Votes, constants: frozenset[str]) -> list[Load]:
    """Return the operands to copy.

    They are strided in a product in which every candidate for the lane axis would be strided.
    """
    if d.reduction is None or streams(d, constants) or any(x.buffer.name in constants for x in memory_of(d)):
        return []
    if any(isinstance(e, Prim) and e.fn in ("within", "select") for e in walk(d.reduction.body)):
        return []  # a copy would read elements that are guarded here
    lanes = [a for *_, a in lane_axes(d, constants)]
    across = {a: [x for x in memory_of(d) if _is_across(x, a, d, steps, votes)] for a in lanes}
    if not lanes or not all(across.values()):
        return []
    lane = _wanted(d, lanes, votes) if _free_lanes(d, constants) else lanes[0]
    often = known(points(d)) // COSTS.copy_reads
    axes = {x: [a for a in all_axes(d) if a in variables(*x.index)] for x in across[lane]}
    return [x for x, mine in axes.items() if prod(known(a.extent or 1) for a in mine) <= often and not loads(*x.index)]


def _is_across(x: Load, lane: Var, d: Definition, steps: Steps, votes: Votes) -> bool:
    """True if `x` reads a value of the arena in which the lanes will not be contiguous."""
    value = steps.values.get(x.buffer.name)
    if value is None or value.region is not Region.ARENA or lane not in variables(*x.index):
        return False
    dims = [k for k, n in enumerate(x.buffer.shape) if n != 1]
    return dim_of(x.index, lane, d.axes) != _innermost(dims, votes.get(x.buffer.name, {}))


# ---- votes


def _votes(steps: Steps) -> Votes:
    votes: Votes = {}
    found = [d for step in steps.steps for work in step.works for d in members(work)]
    plain = [d for d in found if d.reduction is None]
    reductions = [d for d in found if d.reduction is not None]
    constants = steps.constants()
    columns = plane_columns(steps, reductions, constants)
    free = {id(d): axes for d in reductions if (axes := _free_lanes(d, constants))}
    for some in ([d for d in reductions if id(d) not in free], [d for d in reductions if id(d) in free]):
        for d in some:
            if id(d) in columns:
                _vote_for_planes(d, columns[id(d)], votes, constants)
                continue
            lane = _wanted(d, free[id(d)], votes) if id(d) in free else lane_axis(d, constants)
            _vote(d, lane, steps, votes, constants)
        for _ in range(ROUNDS):
            for d in (*plain, *reversed(plain)):
                _pass_on(d, steps, votes)
    return votes


def _free_lanes(d: Definition, constants: frozenset[str]) -> list[Var]:
    """Return the candidates for the lane axis where votes choose among them.

    None if there is only one, or packing chooses.
    """
    lanes = lane_axes(d, constants)
    return [a for *_, a in lanes] if not streams(d, constants) and len(lanes) > 1 and not lanes[0][0] else []


def _add(votes: Votes, buffer: Buffer, dim: int, weight: float) -> None:
    mine = votes.setdefault(buffer.name, {})
    mine[dim] = max(mine.get(dim, 0.0), weight)


def _vote(d: Definition, lane: Var | None, steps: Steps, votes: Votes, constants: frozenset[str]) -> None:
    """Vote for the lane axis as innermost; in operands that do not move with it, for the longest summed axis.

    Data of scaled sums of integers are read by words, so the elements of a group should be innermost. What is read
    beside the sum, as by an addition behind a convolution, should lie as the result.
    """
    assert d.reduction is not None
    weight = float(known(points(d)))
    if streams(d, constants):
        for x in loads(d.reduction.body):
            inner = [k for k, i in enumerate(x.index) if i in d.reduction.axes]
            if inner and inner[-1] == len(x.index) - 1:
                _add(votes, x.buffer, inner[-1], weight / 4)
        return
    if _stays(d, steps):
        return
    results = float(prod(known(a.extent or 1) for a in d.axes))
    if lane is not None and (dim := dim_of(d.target, lane, d.axes)) is not None:
        _add(votes, d.out, dim, COSTS.scattered_store * results)
    summed_loads = loads(d.reduction.body)
    for x in loads(d.value):
        if lane is not None and x not in summed_loads and (dim := dim_of(x.index, lane, d.axes)) is not None:
            _add(votes, x.buffer, dim, results)
    for x in summed_loads:
        if _is_read_once(x, d, steps):
            continue
        along = dim_of(x.index, lane, d.axes) if lane is not None else None
        summed = _summed_dim(x, d.reduction)
        if along is not None:
            _add(votes, x.buffer, along, weight)
        elif summed is not None:
            _add(votes, x.buffer, summed, weight / 8)


def _summed_dim(x: Load, r: Reduce) -> int | None:
    """Return the dimension of an operand along the longest axis of a sum, or, of integers, along the words."""
    if scaled_sum(r) is not None:
        return next((k for k in reversed(range(len(x.index))) if r.axes[-1] in variables(x.index[k])), None)
    longest = sorted(r.axes, key=lambda a: known(a.extent or 1))
    summed = [k for a in longest if (k := dim_of(x.index, a)) is not None]
    return summed[-1] if summed else None


def _vote_for_planes(d: Definition, column: Var, votes: Votes, constants: frozenset[str]) -> None:
    """Vote for columns as innermost in the result and in the picture."""
    weight = float(known(points(d)))
    for b, index in ((d.out, d.target), *((x.buffer, x.index) for x in memory_of(d))):
        if b.name not in constants and (dim := dim_of(index, column, all_axes(d))) is not None:
            _add(votes, b, dim, weight)


def _is_read_once(x: Load, d: Definition, steps: Steps) -> bool:
    """True for the data of a product with a vector: each element is read once, so another layout would not pay."""
    assert d.reduction is not None
    value = steps.values.get(x.buffer.name)
    if value is None or value.region is Region.CONSTANT or len(loads(d.reduction.body)) < 2:
        return False
    return variables(*x.index) >= {*d.axes, *d.reduction.axes} and reads_once(x, all_axes(d))


def _stays(d: Definition, steps: Steps) -> bool:
    """True for a window between input and output in rows: two changes of layout would cost more than lanes gain."""
    assert d.reduction is not None
    last = d.target[-1] if d.target else None
    if not isinstance(last, Var) or _region(steps, d.out.name) is not Region.OUTPUT:
        return False
    given = {b.name for s in steps.steps if s.kind == "Parameter" for b in s.writes()}
    return all(
        (x.buffer.name in given or _region(steps, x.buffer.name) is Region.INPUT)
        and 0 < normal(x.index[-1], {}).terms.get(last, 0) < COSTS.gather_distance
        for x in loads(d.reduction.body)
    )


def _region(steps: Steps, name: str) -> Region | None:
    """Return the region of a value; None for a temporary of a group."""
    value = steps.values.get(name)
    return None if value is None else value.region


def _wanted(d: Definition, lanes: list[Var], votes: Votes) -> Var:
    """Return the lane axis with the most votes in the buffers read and written."""
    assert d.reduction is not None
    sites = [(d.out, d.target), *((x.buffer, x.index) for x in loads(d.reduction.body))]

    def wanted(a: Var) -> float:
        dims = ((b.name, dim_of(index, a, all_axes(d))) for b, index in sites)
        return sum(votes.get(name, {}).get(k, 0.0) for name, k in dims if k is not None)

    return max(lanes, key=wanted)


def _pass_on(d: Definition, steps: Steps, votes: Votes) -> None:
    """Spread votes through a definition without a reduction, whose values should be laid out alike."""
    sites = [(d.out, d.target), *((x.buffer, x.index) for x in loads(d.value))]
    sites = [(b, i) for b, i in sites if b.name in steps.values]
    scores: dict[Var, float] = {}
    for b, index in sites:
        for k, i in enumerate(index):
            if isinstance(i, Var):
                scores[i] = max(scores.get(i, 0.0), 0.9 * votes.get(b.name, {}).get(k, 0.0))
    for b, index in sites:
        for k, i in enumerate(index):
            if isinstance(i, Var) and scores.get(i, 0.0) > 0:
                _add(votes, b, k, scores[i])


# ---- placement


@dataclass(frozen=True, slots=True)
class Site:
    """An access of a definition. `rows`: the axes of the group around it, at one point of which it runs at a time."""

    d: Definition
    index: tuple[Expr, ...]
    rows: tuple[Var, ...]


def _place(
    value: Value, votes: dict[int, float], halo: Halo | None, sites: list[Site], constants: frozenset[str]
) -> tuple[Buffer, Size]:
    b = value.buffer
    dims = [k for k, n in enumerate(b.shape) if n != 1 or (halo is not None and halo.sides[k] != (0, 0))]
    last = _innermost(dims, votes)
    orders = [tuple(k for k in dims if k != last) + ((last,) if last is not None else ())]
    if 1 < len(dims) <= 4 and _is_reshaped(sites):
        orders += [p for p in permutations(dims) if p != orders[0]]

        def cost(p: tuple[int, ...]) -> float:
            return _unevenness(_strided(b, p, None, 0)[0], sites) + (0 if p[-1] == last else votes.get(last or 0, 0.0))

        order = _cheapest(orders, cost)
    else:
        order = orders[0]
    return _strided(b, order, halo, _pitch(b, order, sites, constants))


def _cheapest(orders: list[tuple[int, ...]], cost: Callable[[tuple[int, ...]], float]) -> tuple[int, ...]:
    """Return the first order of least cost; the search ends at one that costs nothing."""
    least, best = inf, orders[0]
    for order in orders:
        if (now := cost(order)) < least:
            least, best = now, order
        if not least:
            break
    return best


def _innermost(dims: list[int], votes: dict[int, float]) -> int | None:
    """Return the dimension with most votes if it is one of `dims`, else the last of these."""
    wanted = max(votes, key=lambda k: (votes[k], k), default=None)
    return wanted if wanted in dims else dims[-1] if dims else None


def _is_reshaped(sites: list[Site]) -> bool:
    """True if some access divides an index into dimensions, or gathers."""
    return any(not isinstance(atom, Var) for x in sites for i in x.index for atom in normal(i, {}).terms)


def _sites(steps: Steps) -> dict[str, list[Site]]:
    """Return the accesses of each value, by its name."""
    found: dict[str, list[Site]] = {}
    for step in steps.steps:
        for work in step.works:
            rows = work.axes if isinstance(work, Group) else ()
            for d in members(work):
                for x in loads(d.value, *d.index):
                    found.setdefault(x.buffer.name, []).append(Site(d, x.index, rows))
                found.setdefault(d.out.name, []).append(Site(d, d.target, rows))
    return found


def _unevenness(b: Buffer, sites: list[Site]) -> float:
    """Count the steps of all accesses that the layout of `b` makes uneven, or that lie in the same set of the cache.

    An axis of a group's rows counts once for a row: its address is computed there.
    """
    total = 0.0
    for x in sites:
        at, count = offset(b, x.index), float(known(points(x.d)))
        for a in all_axes(x.d):
            step = coefficient(at, a)
            row = a in x.rows
            if step is None:
                total += count / prod(known(i.extent or 1) for i in all_axes(x.d) if row and i not in x.rows)
            elif x.rows and not row and _collides(step.const * b.dtype.stored_bytes, known(a.extent or 1)):
                total += count
    return total


def _collides(step: int, count: int) -> bool:
    """True if so many elements, `step` bytes apart, are more than a set of the nearest cache holds."""
    return step != 0 and step % COSTS.page_bytes == 0 and count > COSTS.cache_ways


def _strided(b: Buffer, order: tuple[int, ...], halo: Halo | None, pitch: int) -> tuple[Buffer, Size]:
    """Return `b` with strides, and its elements in all. `order`: dimensions, outermost first; others take no room."""
    strides: list[Size] = [0] * len(b.shape)
    step: Size = 1
    origin: Size = 0
    for place, k in enumerate(reversed(order)):
        before, after = halo.sides[k] if halo else (0, 0)
        strides[k] = step
        origin = origin + before * step
        step = step * (b.shape[k] + (before + after))
        if place == 0:
            step = step + pitch
    return replace(
        b, strides=tuple(strides), origin=origin, halo=halo.fill if halo and not isinstance(halo.fill, Expr) else None
    ), step


def _pitch(b: Buffer, order: tuple[int, ...], sites: list[Site], constants: frozenset[str]) -> int:
    """Return the elements to add to a row.

    Rows of a product a multiple of 2 KiB apart would share lines of the cache.
    """
    half = COSTS.page_bytes // 2
    if len(order) < 2 or not isinstance(n := b.shape[order[-1]], int) or n * b.dtype.stored_bytes % half:
        return 0
    products = (x.d for x in sites if x.d.reduction is not None and x.d.out.name != b.name)
    rows = [d for d in products if not streams(d, constants)]
    return COSTS.line_bytes // b.dtype.stored_bytes if rows and not _is_reshaped(sites) else 0
