"""Soft suppression: a box that overlaps better ones has its score lowered, and may still be kept."""

from __future__ import annotations

import numpy as np

from aot.codegen.ir.loops import Expr, cast, prim, select
from aot.codegen.script.script import Scripted, loops, parallel, var
from aot.ir.types import Array
from aot.opset.detection.boxes import overlap as overlap_of
from aot.opset.detection.boxes import overlaps
from aot.runtime.abi import DType


@loops
def limit(held: Scripted) -> Scripted:
    """Return the number in an optional input of one element, 0 without it."""
    return 0.0 if held is None else held[(0,) * len(held.shape)]


def select_softly(
    boxes: Array, scores: Array, most: int, threshold: float, least: float, sigma: float
) -> list[tuple[int, float]]:
    """Select the best box repeatedly, its score lowered once by each kept box that it overlaps; for references."""
    lower, seen = scores.copy(), np.zeros(len(scores), int)
    left, chosen = set(np.flatnonzero(scores > least).tolist()), list[tuple[int, float]]()
    while left and len(chosen) < most:
        i = min(left, key=lambda j: (-lower[j], j))
        left.discard(i)
        before = lower[i]
        for j, _ in reversed(chosen[seen[i] :]):
            iou = overlaps(boxes[i], boxes[[j]])[0]
            if sigma > 0:
                lower[i] *= np.exp(-0.5 / sigma * iou * iou)
            elif iou > threshold:
                lower[i] = -np.inf
            if lower[i] <= least:
                break
        seen[i] = len(chosen)
        if lower[i] == before:
            chosen.append((i, float(before)))
        elif lower[i] > least:
            left.add(i)
    return chosen


@loops
def suppress_softly(
    boxes: Scripted,
    scores: Scripted,
    kept: Scripted,
    counts: Scripted,
    state: Scripted,
    limits: Scripted,
    shape: Scripted,
    numbers: Scripted,
) -> None:
    """Select the best box repeatedly; `seen`: number of kept boxes that have lowered its score, -1 once it is kept.

    `numbers`: f(boxes, image, i) gives the corners of a box.
    """
    lower, seen = state
    images, classes, count, keep = shape
    overlaps, least, sigma = limits
    for item in parallel(images * classes):
        n = item // classes
        c = item % classes
        counts[n, c] = 0
        for i in range(count):
            lower[n, c, i] = scores[n, c, i]
            seen[n, c, i] = 0
        going = var(1, DType.I64)
        while going == 1 and counts[n, c] < keep:
            best = var(-1, DType.I64)
            top = var(0.0, DType.F32)
            for i in range(count):
                better = prim("or", prim("lt", best, 0), prim("gt", lower[n, c, i], top))
                if seen[n, c, i] >= 0 and lower[n, c, i] > limit(least) and better:
                    best = i
                    top = lower[n, c, i]
            if best < 0:
                going = 0
            else:
                score = var(top, DType.F32)
                k = var(counts[n, c] - 1, DType.I64)
                while k >= seen[n, c, best]:
                    iou = overlap_of(numbers(boxes, n, best), numbers(boxes, n, kept[n, c, k]))
                    score = score * _told_off(iou, limit(overlaps), limit(sigma))
                    k -= 1
                    if score <= limit(least):
                        k = -1
                seen[n, c, best] = counts[n, c]
                lower[n, c, best] = score
                if score == top:
                    kept[n, c, counts[n, c]] = best
                    counts[n, c] += 1
                    seen[n, c, best] = -1


def _told_off(iou: Expr, threshold: Expr, sigma: Expr) -> Expr:
    """Return the factor of a score for an overlap; without a sigma 0 or 1, by the threshold."""
    soft = prim("exp", iou * iou * (-0.5) / select(prim("gt", sigma, 0.0), sigma, 1.0))
    return select(prim("gt", sigma, 0.0), soft, cast(prim("le", iou, threshold), DType.F32))
