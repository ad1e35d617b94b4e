"""Parts that detection operations share: sorting of indices by score, and overlap of boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, Expr, Space, cast, dense, prim, select
from aot.codegen.script.script import MAX_LANES, Script, Scripted, array, lanes, loops, var
from aot.ir.operand import Operand
from aot.ir.types import Array, Dim, differs
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

INDEX_MASK = (1 << 32) - 1  # mask of the half of an item that holds the index
Corners = tuple[Expr, Expr, Expr, Expr]  # low y, low x, high y, high x


def pairs(
    boxes: Operand, scores: Operand, *limits: Operand | None, numbers: int = 4
) -> tuple[tuple[Dim, Dim, str], ...]:
    """Return the sizes that must be equal: of boxes [N, B, numbers] and scores [N, .., B]; of limits and 1."""
    single = [n for o in limits if o is not None for n in o.shape]
    return (
        *((n, 1, "limits are single numbers") for n in single),
        (boxes.shape[0], scores.shape[0], "boxes and scores are of equally many images"),
        (boxes.shape[1], scores.shape[-1], "there are equally many boxes and scores"),
        (boxes.shape[2], numbers, f"a box is {numbers} numbers"),
    )


def check_pairs(what: str, boxes: Operand, scores: Operand, rank: int = 3, numbers: int = 4) -> None:
    """Raise ShapeError unless boxes have rank 3, scores have rank `rank`, and their sizes agree."""
    ranked = (boxes.rank, scores.rank) == (3, rank)
    if not ranked or any(isinstance(b, int) and differs(a, b) for a, b, _ in pairs(boxes, scores, numbers=numbers)):
        wanted = f"[N, B, {numbers}] and [{'N, C' if rank == 3 else 'N'}, B]"
        raise ShapeError(f"{what}: boxes and scores {wanted}, got {boxes.type} and {scores.type}")


def check_limits(what: str, *limits: Operand | None) -> None:
    """Raise ShapeError unless limits of overlap and of scores are floats."""
    if any(o is not None and not o.dtype.is_float for o in limits):
        types = ", ".join("nothing" if o is None else str(o.type) for o in limits)
        raise ShapeError(f"{what}: limits of overlap and of scores must be floats, got {types}")


@dataclass(frozen=True)
class Ranking:
    """View of order[row, ..] as comparable items: the upper half holds the score, the lower one the index.

    Indices are into scores[key, ..], fewer than 2^32. Better scores come first, NaN last; of equal ones the lower index
    comes first. With scores of 64 bits an item is the index alone, since both do not fit.
    """

    order: Scripted
    row: tuple[Expr, ...]
    scores: Buffer
    key: tuple[Expr, ...]

    @property
    def is_packed(self) -> bool:
        return self.scores.dtype.compute is DType.F32

    def at(self, place: Scripted) -> tuple[Scripted, ...]:
        return (*self.row, place)

    def item(self, index: Expr) -> Expr:
        if not self.is_packed:
            return index
        score = self.scores[(*self.key, index)]
        bits = prim("bits", select(prim("eq", score, 0.0), 0.0, score), dtype=DType.I32)
        ordered = prim("xor", bits, prim("and", prim("shr", bits, 31), 0x7FFFFFFF))
        high = select(prim("eq", score, score), cast(ordered, DType.I64), -(1 << 31))
        return prim("or", prim("shl", high, 32), INDEX_MASK - index)

    def index(self, item: Expr) -> Expr:
        if not self.is_packed:
            return item
        return prim("min", INDEX_MASK - prim("and", item, INDEX_MASK), self.scores.shape[len(self.key)] - 1)

    def worse(self, a: Expr, b: Expr) -> Expr:
        """True if item `a` ranks after item `b`."""
        if self.is_packed:
            return prim("lt", a, b)
        mine, other = (self.scores[(*self.key, i)] for i in (a, b))
        behind = prim("or", prim("lt", mine, other), prim("and", prim("ne", mine, mine), prim("eq", other, other)))
        unequal = prim("or", behind, prim("or", prim("gt", mine, other), prim("ne", other, other)))
        alike = prim("or", prim("not", unequal), prim("and", prim("ne", mine, mine), prim("ne", other, other)))
        return prim("or", behind, prim("and", alike, prim("gt", a, b)))


@loops
def heap(ranking: Ranking, count: Scripted) -> None:
    """Make the first `count` indices a heap of items with the best at its root."""
    order = ranking.order
    for t in range(count):
        order[ranking.at(t)] = ranking.item(order[ranking.at(t)])
    for t in range(count // 2):
        _sift(ranking, (count // 2 - 1 - t, count), order[ranking.at(count // 2 - 1 - t)])


@loops
def take_best(ranking: Ranking, count: Scripted) -> Scripted:
    """Move the best of `count` items to their end and return its index."""
    order = ranking.order
    best = order[ranking.at(0)]
    last = order[ranking.at(count - 1)]
    _sift(ranking, (0, count - 1), last)
    order[ranking.at(count - 1)] = best
    return ranking.index(best)


@loops
def _sift(ranking: Ranking, span: Scripted, item: Scripted) -> None:
    """Sift an item into a heap: from place `span[0]` down, move better items up, and put it where the last one was."""
    start, end = span
    order = ranking.order
    moving = var(item, DType.I64)
    hole = var(start, DType.I64)
    child = var(2 * start + 1, DType.I64)
    while child < end:
        other = min(child + 1, end - 1)
        child = other if ranking.worse(order[ranking.at(child)], order[ranking.at(other)]) else child
        if ranking.worse(moving, order[ranking.at(child)]):
            order[ranking.at(hole)] = order[ranking.at(child)]
            hole = child
            child = 2 * child + 1
        else:
            child = end
    order[ranking.at(hole)] = moving


@loops
def sort_by_score(
    order: Scripted, scores: Scripted, row: Scripted, count: Scripted, key: Scripted, most: Scripted = None
) -> None:
    """Sort order[row, 0..count - 1], indices into scores[key, ..]: best scores first, of equal ones the lower index.

    If `most` is given, only the first `most` indices are in order.
    """
    ranking = Ranking(order, row, scores, key)
    heap(ranking, count)
    for t in range(count if most is None else min(count, most)):
        take_best(ranking, count - t)
    for t in range(count // 2):
        first = order[ranking.at(t)]
        order[ranking.at(t)] = order[ranking.at(count - 1 - t)]
        order[ranking.at(count - 1 - t)] = first
    for t in range(count):
        order[ranking.at(t)] = ranking.index(order[ranking.at(t)])


@dataclass(frozen=True)
class Measure:
    """Measure of overlap: `numbers(i)` describes box i, `overlap(a, b)` compares two boxes by their numbers.

    `overlap` is an expression or a script. held[row, number, place]: memory for the numbers of all kept boxes.
    """

    numbers: Callable[[Scripted], Sequence[Scripted]]
    overlap: Callable[[Scripted, Scripted], Expr] | Script
    held: Scripted


def room_for(numbers: int, most: Dim, *rows: Dim, dtype: DType = DType.F32) -> Buffer:
    """Return a buffer for `Measure.held` of `most` boxes for each row, rounded up to whole vectors."""
    return dense(
        "held", *rows, numbers, (most + (MAX_LANES - 1)) // MAX_LANES * MAX_LANES, space=Space.ARENA, dtype=dtype
    )


@loops
def keep_apart(
    ranking: Ranking,
    kept: Scripted,
    counts: Scripted,
    span: Scripted,
    measure: Measure,
    threshold: Scripted,
    eta: float = 1.0,
    fits: Scripted = None,
) -> None:
    """Write the best boxes that overlap no kept one by more than the threshold to kept[row, 0..counts[row] - 1].

    `span`: the number of boxes, the number examined, the maximum number kept. With `eta` below 1 each kept box
    multiplies a threshold above 0.5 by `eta`. A box that does not satisfy `fits` counts as examined and is dropped.
    """
    found, looked, most = span
    row = ranking.row
    limit = var(threshold, measure.held.dtype)
    total = var(0, DType.I64)
    left = var(found, DType.I64)
    heap(ranking, found)
    while left > found - looked and total < most:
        mine = take_best(ranking, left)
        left -= 1
        if fits is None or fits(mine):
            free = _is_apart(measure, (row, total), mine, limit)
            if free == 1:
                clear_vectors(measure.held, row, total)
                for k, number in enumerate(measure.numbers(mine)):
                    measure.held[(*row, k, total)] = number
                kept[(*row, total)] = mine
                total += 1
                if eta < 1.0 and limit > 0.5:
                    limit = limit * eta
    counts[row] = total


@loops
def clear_vectors(held: Scripted, row: Scripted, place: Scripted) -> None:
    """If `place` begins a vector, zero that vector of each number, since vectors are read whole."""
    if place % MAX_LANES == 0:
        for k in range(held.shape[-2]):
            for v in lanes(MAX_LANES):
                held[(*row, k, place + v)] = 0.0


@loops
def _is_apart(measure: Measure, place: Scripted, mine: Scripted, limit: Scripted) -> Scripted:
    """Return 1 if a box overlaps no kept one by more than the limit, else 0. `place`: row, number of kept boxes."""
    row, total = place
    held = measure.held
    count = held.shape[-2]
    own = array(count, dtype=held.dtype)
    for k, number in enumerate(measure.numbers(mine)):
        own[k] = number
    box = [own[k] for k in tuple(range(count))]
    free = var(1, DType.I64)
    j = var(0, DType.I64)
    while free == 1 and j < total:
        if isinstance(measure.overlap, Script):
            if measure.overlap(box, [held[(*row, k, j)] for k in tuple(range(count))]) > limit:
                free = 0
            j += 1
        else:  # an expression can be vectorised
            near = array(MAX_LANES, dtype=DType.BOOL)
            for v in lanes(MAX_LANES):
                near[v] = measure.overlap(box, [held[(*row, k, j + v)] for k in tuple(range(count))]) > limit
                near[v] = prim("and", near[v], j + v < total)
            for half in (8, 4, 2, 1):
                for v in lanes(half):
                    near[v] = prim("or", near[v], near[v + half])
            if near[0]:
                free = 0
            j += MAX_LANES
    return free


def overlap(a: Scripted, b: Scripted, offset: float = 0.0) -> Scripted:
    """Return intersection over union, 0 for disjoint boxes; `offset` is added to widths and heights (pixels: 1)."""

    def area(y0: Expr, x0: Expr, y1: Expr, x1: Expr) -> Expr:
        return (y1 - y0 + offset) * (x1 - x0 + offset)

    low = [prim("max", p, q) for p, q in zip(a[:2], b[:2], strict=True)]
    high = [prim("min", p, q) for p, q in zip(a[2:], b[2:], strict=True)]
    height, width = (q - p + offset for p, q in zip(low, high, strict=True))
    common = prim("max", height, 0.0) * prim("max", width, 0.0)
    union = area(*a) + area(*b) - common
    meet = prim("and", prim("gt", common, 0.0), prim("gt", union, 0.0))
    for p, q in zip(low, high, strict=True) if offset else ():
        meet = prim("and", meet, prim("le", p, q))
    return select(meet, common / select(meet, union, 1.0), 0.0)


def overlaps(box: Array, others: Array, offset: float = 0.0) -> Array:
    """Return `overlap` of one box (y0, x0, y1, x1) with each of many, for references."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    common = np.maximum(high - low + offset, 0).prod(1)
    areas = [(b[..., 2:] - b[..., :2] + offset).prod(-1) for b in (box, others)]
    union = areas[0] + areas[1] - common
    meet = (common > 0) & (union > 0) & (low <= high).all(1)
    return np.where(meet, common / np.where(union > 0, union, 1), 0)


def greedy(
    boxes: Array, order: Array, threshold: float, most: int = -1, offset: float = 0.0, eta: float = 1.0
) -> list[int]:
    """Return the boxes of `order` that overlap no kept one by more than the threshold, for references."""
    selected: list[int] = []
    for i in order:
        if len(selected) == most:
            break
        if not selected or not (overlaps(boxes[i], boxes[selected], offset) > threshold).any():
            selected.append(int(i))
            threshold *= eta if threshold > 0.5 else 1.0
    return selected
