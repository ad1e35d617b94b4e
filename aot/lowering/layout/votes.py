"""Votes for the innermost dimension of values in memory.

    conv: y[n, c, h, w] = add[..](x[..] * f[..])        lanes run along c: c of y, and the summed channels of x

Each definition votes for an innermost dimension, weighted by its points; votes travel through definitions
without a reduction.
"""

from __future__ import annotations

from math import prod

from aot.codegen.costs import COSTS
from aot.codegen.ir.access import all_axes, points, typical
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loads, variables
from aot.codegen.ir.index import normal
from aot.codegen.ir.loops import Buffer, Load, Reduce, Var
from aot.codegen.ir.numbers.dot_forms import scaled_sum
from aot.codegen.ir.program import MemoryRegion
from aot.codegen.ir.traverse import members
from aot.lowering.fusion.group_rows import is_streaming, reads_once
from aot.lowering.ir.lane_axes import dim_of, lane_axes, memory_of
from aot.lowering.ir.steps import Steps
from aot.lowering.layout.planes import plane_columns

ROUNDS = 3
Votes = dict[str, dict[int, float]]
_IndexedDims = list[list[tuple[str, int]]]


def votes_of(steps: Steps) -> Votes:
    """Return the votes of all definitions of a block, by the names of values and their dimensions."""
    votes: Votes = {}
    definitions = [d for step in steps.steps for work in step.works for d in members(work)]
    elementwise = [_indexed_dims(d, steps) for d in definitions if d.reduction is None]
    constants = steps.constants()
    reductions, lanes = _voters([d for d in definitions if d.reduction is not None], steps, constants)
    columns = plane_columns(steps, reductions, constants)
    free = {id(d): lanes[id(d)] for d in reductions if _chooses(d, lanes[id(d)], constants)}
    for some in ([d for d in reductions if id(d) not in free], [d for d in reductions if id(d) in free]):
        for d in some:
            if id(d) in columns:
                _vote_for_planes(d, columns[id(d)], votes, constants)
                continue
            lane = wanted_lane(d, lanes[id(d)], votes) if id(d) in free else next(iter(lanes[id(d)]), None)
            _vote(d, lane, steps, votes, constants)
        for _ in range(ROUNDS):
            if not sum(_pass_on(indexed_dims, votes) for indexed_dims in (*elementwise, *reversed(elementwise))):
                break
    return votes


def _voters(
    reductions: list[Definition], steps: Steps, constants: frozenset[str]
) -> tuple[list[Definition], dict[int, list[Var]]]:
    """Return the definitions whose votes matter, in order, and the candidates for their lanes by their ids.

    Those that touch values in memory; and those of which a definition that follows votes touches a temporary, as do
    few of those inside of Winograd's transforms.
    """
    names = {id(d): {d.out.name, *(x.buffer.name for x in loads(d.value))} for d in reductions}
    lanes: dict[int, list[Var]] = {}
    new, asked = [d for d in reductions if not steps.values.keys().isdisjoint(names[id(d)])], set[str]()
    while new:
        lanes |= {id(d): lane_candidates(d, steps, constants) for d in new}
        asked.update(*(names[id(d)] for d in new if _chooses(d, lanes[id(d)], constants)))
        new = [d for d in reductions if id(d) not in lanes and not asked.isdisjoint(names[id(d)])]
    return [d for d in reductions if id(d) in lanes], lanes


def _chooses(d: Definition, lanes: list[Var], constants: frozenset[str]) -> bool:
    """True if votes choose among several candidates for the lane axis."""
    return len(lanes) > 1 and is_free(d, constants)


def lane_candidates(d: Definition, steps: Steps, constants: frozenset[str]) -> list[Var]:
    """Return candidates for the vector axis, best first; in temporaries the innermost axis alone.

    Temporaries of a group lie as they are indexed: rows of scores, along which a softmax runs.
    """
    lanes = [a for *_, a in lane_axes(d, constants)]
    inner = [a for a in lanes if d.target and a == d.target[-1]]
    return inner if inner and d.out.name not in steps.values else lanes


def is_free(d: Definition, constants: frozenset[str]) -> bool:
    """True if votes choose among the candidates for the lane axis; else packing does."""
    lanes = lane_axes(d, constants)
    return len(lanes) > 1 and not lanes[0][0] and not is_streaming(d, constants)


def _add(votes: Votes, buffer: Buffer, dim: int, weight: float) -> None:
    votes_by_dim = votes.setdefault(buffer.name, {})
    votes_by_dim[dim] = max(votes_by_dim.get(dim, 0.0), weight)


def _vote(d: Definition, lane: Var | None, steps: Steps, votes: Votes, constants: frozenset[str]) -> None:
    """Vote for the lane axis as innermost; in operands that do not move with it, for the longest summed axis.

    Data of scaled sums of integers are read by words, so the elements of a group should be innermost. Data read
    outside of the sum, as by an addition after a convolution, should have the layout of the result.
    """
    assert d.reduction is not None
    weight = float(typical(points(d)))
    if is_streaming(d, constants):
        for x in loads(d.reduction.body):
            inner = [k for k, i in enumerate(x.index) if i in d.reduction.axes]
            if inner and inner[-1] == len(x.index) - 1:
                _add(votes, x.buffer, inner[-1], weight / 4)
        return
    if _stays(d, steps):
        return
    elements = float(prod(typical(a.extent or 1) for a in d.axes))
    if lane is not None and (dim := dim_of(d.target, lane, d.axes)) is not None:
        _add(votes, d.out, dim, COSTS.scattered_store * elements)
    summed_loads, is_scaled = loads(d.reduction.body), scaled_sum(d.reduction) is not None
    for x in loads(d.value):
        if lane is not None and x not in summed_loads and (dim := dim_of(x.index, lane, d.axes)) is not None:
            _add(votes, x.buffer, dim, elements)
    for x in summed_loads:
        if _is_read_once(x, d, steps):
            continue
        along = dim_of(x.index, lane, d.axes) if lane is not None else None
        if along is not None:
            _add(votes, x.buffer, along, weight)
        elif (summed := _summed_dim(x, d.reduction, is_scaled)) is not None:
            _add(votes, x.buffer, summed, weight / 8)


def _summed_dim(x: Load, r: Reduce, is_scaled: bool) -> int | None:
    """Return the dimension of an operand along the longest axis of a sum, or, of integers, along the words."""
    if is_scaled:
        return next((k for k in reversed(range(len(x.index))) if r.axes[-1] in variables(x.index[k])), None)
    by_extent = sorted(r.axes, key=lambda a: typical(a.extent or 1))
    return next((k for a in reversed(by_extent) if (k := dim_of(x.index, a)) is not None), None)


def _vote_for_planes(d: Definition, column: Var, votes: Votes, constants: frozenset[str]) -> None:
    """Vote for columns as innermost in the result and in the image."""
    weight = float(typical(points(d)))
    for b, index in ((d.out, d.target), *((x.buffer, x.index) for x in memory_of(d))):
        if b.name not in constants and (dim := dim_of(index, column, all_axes(d))) is not None:
            _add(votes, b, dim, weight)


def _is_read_once(x: Load, d: Definition, steps: Steps) -> bool:
    """True for the data of a product with a vector: each element is read once, so another layout would not pay."""
    assert d.reduction is not None
    value = steps.values.get(x.buffer.name)
    if value is None or value.region is MemoryRegion.CONSTANT or len(loads(d.reduction.body)) < 2:
        return False
    return variables(*x.index) >= {*d.axes, *d.reduction.axes} and reads_once(x, all_axes(d))


def _stays(d: Definition, steps: Steps) -> bool:
    """True if a window reads an input and writes an output in rows: two changes of layout cost more than lanes gain."""
    assert d.reduction is not None
    last = d.target[-1] if d.target else None
    if not isinstance(last, Var) or _region(steps, d.out.name) is not MemoryRegion.OUTPUT:
        return False
    inputs = {b.name for s in steps.steps if s.kind == "Parameter" for b in s.writes()}
    return all(
        (x.buffer.name in inputs or _region(steps, x.buffer.name) is MemoryRegion.INPUT)
        and 0 < normal(x.index[-1], {}).terms.get(last, 0) < COSTS.gather_distance
        for x in loads(d.reduction.body)
    )


def _region(steps: Steps, name: str) -> MemoryRegion | None:
    """Return the region of a value; None for a temporary of a group."""
    value = steps.values.get(name)
    return None if value is None else value.region


def wanted_lane(d: Definition, lanes: list[Var], votes: Votes) -> Var:
    """Return the candidate for the lane axis with the most votes in the buffers that are read and written."""
    assert d.reduction is not None
    sites = [(d.out, d.target), *((x.buffer, x.index) for x in loads(d.reduction.body))]

    def wanted(a: Var) -> float:
        dims = ((b.name, dim_of(index, a, all_axes(d))) for b, index in sites)
        return sum(votes.get(name, {}).get(k, 0.0) for name, k in dims if k is not None)

    return max(lanes, key=wanted)


def _indexed_dims(d: Definition, steps: Steps) -> _IndexedDims:
    """Return, for each axis of a definition, the values in memory and their dimensions that it alone indexes."""
    indexed_dims: dict[Var, list[tuple[str, int]]] = {}
    for b, index in ((d.out, d.target), *((x.buffer, x.index) for x in loads(d.value))):
        for k, i in enumerate(index):
            if isinstance(i, Var) and b.name in steps.values:
                indexed_dims.setdefault(i, []).append((b.name, k))
    return list(indexed_dims.values())


def _pass_on(dims_of_axes: _IndexedDims, votes: Votes) -> bool:
    """Spread votes through a definition without a reduction, so that its values are laid out alike.

    True if a vote has changed.
    """
    scores = [0.9 * max([votes[n].get(k, 0.0) for n, k in dims if n in votes], default=0.0) for dims in dims_of_axes]
    changed = False
    for score, dims in zip(scores, dims_of_axes, strict=True):
        for name, k in dims if score > 0 else ():
            votes_by_dim = votes.setdefault(name, {})
            if score > votes_by_dim.get(k, 0.0):
                votes_by_dim[k] = score
                changed = True
    return changed


def innermost(dims: list[int], votes: dict[int, float]) -> int | None:
    """Return the dimension with most votes if it is one of `dims`, else the last of these."""
    winner = max(votes, key=lambda k: (votes[k], k), default=None)
    return winner if winner in dims else dims[-1] if dims else None
