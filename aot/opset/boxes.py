"""What detection operations share: indices sorted by score, and how much boxes overlap."""

from __future__ import annotations

import numpy as np

from aot.ir.op import Operand
from aot.ir.types import Array, Dim, differs
from codegen.loops import Buffer, Expr, prim, select
from codegen.script import LANES, Script, Scripted, array, lanes, loops, var
from runtime.abi import DType
from runtime.errors import ShapeError

Corners = tuple[Expr, Expr, Expr, Expr]  # low y, low x, high y, high x


def pairs(boxes: Operand, scores: Operand, numbers: int = 4) -> tuple[tuple[Dim, Dim, str], ...]:
    """Sizes that are equal in boxes [N, B, numbers] and scores [N, .., B]."""
    return (
        (boxes.shape[0], scores.shape[0], "boxes and scores are of equally many images"),
        (boxes.shape[1], scores.shape[-1], "there are equally many boxes and scores"),
        (boxes.shape[2], numbers, f"a box is {numbers} numbers"),
    )


def check_pairs(what: str, boxes: Operand, scores: Operand, rank: int = 3, numbers: int = 4) -> None:
    """ShapeError unless boxes have rank 3 and scores `rank`, and their sizes agree."""
    ranked = (boxes.rank, scores.rank) == (3, rank)
    if not ranked or any(isinstance(b, int) and differs(a, b) for a, b, _ in pairs(boxes, scores, numbers)):
        wanted = f"[N, B, {numbers}] and [{'N, C' if rank == 3 else 'N'}, B]"
        raise ShapeError(f"{what}: boxes and scores {wanted}, got {boxes.type} and {scores.type}")


@loops
def sort_by_score(order: Scripted, scores: Scripted, row: Scripted, count: Scripted, key: Scripted) -> None:
    """order[row, 0..count - 1] holds indices into scores[key, ..]: the best first, the lower one of equals first.

    A heap whose root is the worst, taken apart.
    """
    for t in range(count // 2):
        _sift(order, scores, row, (count // 2 - 1 - t, count), order[(*row, count // 2 - 1 - t)], key)
    for t in range(count - 1):
        last = count - 1 - t
        item = order[(*row, last)]
        order[(*row, last)] = order[(*row, 0)]
        _sift(order, scores, row, (0, last), item, key)


@loops
def _sift(order: Scripted, scores: Scripted, row: Scripted, span: Scripted, item: Scripted, key: Scripted) -> None:
    start, end = span
    moving = var(item, DType.I64)
    hole = var(start, DType.I64)
    child = var(2 * start + 1, DType.I64)
    while child < end:
        if child + 1 < end and _worse(scores, key, order[(*row, child + 1)], order[(*row, child)]):
            child += 1
        if _worse(scores, key, order[(*row, child)], moving):
            order[(*row, hole)] = order[(*row, child)]
            hole = child
            child = 2 * child + 1
        else:
            child = end
    order[(*row, hole)] = moving


def _worse(scores: Buffer, key: tuple[Expr, ...], a: Expr, b: Expr) -> Expr:
    mine, other = scores[(*key, a)], scores[(*key, b)]
    return prim("or", prim("lt", mine, other), prim("and", prim("eq", mine, other), prim("gt", a, b)))


@loops
def keep_apart(
    order: Scripted, kept: Scripted, counts: Scripted, row: Scripted, span: Scripted, measure: Scripted,
    threshold: Scripted, eta: float = 1.0,
) -> None:  # fmt: skip
    """kept[row, 0..counts[row] - 1]: those of order[row, ..] that overlap no kept one by more than the threshold.

    `span`: how many there are, how many are kept at most. `measure`: a function that gives the overlap of two, and
    its first argument. With `eta` below 1 each that is kept lowers a threshold above 0.5.
    """
    overlap_of, boxes = measure
    found, most = span
    limit = var(threshold)
    counts[row] = 0
    k = var(0, DType.I64)
    while k < found and counts[row] < most:
        mine = order[(*row, k)]
        free = var(1, DType.I64)
        j = var(0, DType.I64)
        if not isinstance(overlap_of, Script):  # an expression can be computed for many at once
            over = array(LANES, dtype=DType.BOOL)
            while free == 1 and j + LANES <= counts[row]:
                for v in lanes(LANES):
                    over[v] = overlap_of(boxes, mine, kept[(*row, j + v)]) > limit
                for half in (8, 4, 2, 1):
                    for v in lanes(half):
                        over[v] = prim("or", over[v], over[v + half])
                if over[0]:
                    free = 0
                j += LANES
        while free == 1 and j < counts[row]:
            if overlap_of(boxes, mine, kept[(*row, j)]) > limit:
                free = 0
            j += 1
        if free == 1:
            kept[(*row, counts[row])] = mine
            counts[row] += 1
            if eta < 1.0 and limit > 0.5:
                limit = limit * eta
        k += 1


def overlap(a: Scripted, b: Scripted, offset: float = 0.0) -> Scripted:
    """Intersection over union, 0 for boxes apart; `offset` is added to widths and heights: boxes of whole pixels."""

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
    """The same for references: of one box (y0, x0, y1, x1) with many."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    common = np.maximum(high - low + offset, 0).prod(1)
    areas = [(b[..., 2:] - b[..., :2] + offset).prod(-1) for b in (box, others)]
    union = areas[0] + areas[1] - common
    meet = (common > 0) & (union > 0) & (low <= high).all(1)
    return np.where(meet, common / np.where(union > 0, union, 1), 0)


def greedy(
    boxes: Array, order: Array, threshold: float, most: int = -1, offset: float = 0.0, eta: float = 1.0
) -> list[int]:
    """For references: boxes in order that overlap no kept one by more than the threshold."""
    kept: list[int] = []
    for i in order:
        if len(kept) == most:
            break
        if not kept or not (overlaps(boxes[i], boxes[kept], offset) > threshold).any():
            kept.append(int(i))
            threshold *= eta if threshold > 0.5 else 1.0
    return kept
