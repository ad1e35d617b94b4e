"""MatrixNms lowers scores of boxes that overlap better ones; MulticlassNms drops these boxes, class by class."""

from __future__ import annotations

from enum import StrEnum
from functools import partial

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, Expr, prim
from aot.codegen.script.script import MAX_LANES, Scripted, array, lanes, loops, parallel, select, var
from aot.ir.op import Work
from aot.ir.registry import op
from aot.ir.types import Array, Dim
from aot.opset.detection.boxes import (
    Measure,
    Ranking,
    clear_vectors,
    greedy,
    keep_apart,
    overlap,
    overlaps,
    room_for,
    sort_by_score,
)
from aot.opset.detection.suppression.selection import Candidates, PaddedSelection, Selecting, Selection, at_most
from aot.runtime.abi import DType

NEAR_ZERO = 1e-10  # added to divisors that may be 0


class Decay(StrEnum):
    """Formula for the decay of a score with the overlap."""

    GAUSSIAN = "gaussian"
    LINEAR = "linear"


@dataclass(frozen=True)
class _Decaying(Selection):
    """Decay of scores by X, the overlap with a better box, and K, the most which that box overlaps one better still."""

    decay_function: Decay = Decay.LINEAR
    gaussian_sigma: float = 2.0
    post_threshold: float = 0.0

    def factor(self, overlap: Expr, most: Expr) -> Expr:
        """Return exp((K^2 - X^2) sigma) or (1 - X) / (1 - K)."""
        if self.decay_function is Decay.GAUSSIAN:
            return prim("exp", (most * most - overlap * overlap) * self.gaussian_sigma)
        return (1.0 - overlap) / (1.0 - most + NEAR_ZERO)

    def chosen(self, boxes: Array, scores: Array) -> list[tuple[int, float]]:
        order = [int(i) for i in np.argsort(-scores, kind="stable") if scores[i] > self.score_threshold]
        order = order if self.nms_top_k < 0 else order[: self.nms_top_k]
        worst, left = np.zeros(len(order)), list[tuple[int, float]]()
        for k, i in enumerate(order):
            x = overlaps(boxes[i], boxes[order[:k]], self.offset)
            worst[k] = x.max(initial=0.0)
            if self.decay_function is Decay.GAUSSIAN:
                factors = np.exp((worst[:k] ** 2 - x**2) * self.gaussian_sigma)
            else:
                factors = (1 - x) / (1 - worst[:k] + NEAR_ZERO)
            score = float(scores[i] * factors.min(initial=1.0))
            left += [(i, score)] if score > self.post_threshold else []
        return left


@op("opset8")
class MatrixNms(_Decaying, Selecting):
    """Scores times the least of f(X, K) over the better boxes of the class, before the limit of boxes of an image.

    X: overlap with the better box, K: the most that this better box overlaps one better still;
    f = exp((K^2 - X^2) sigma), or (1 - X) / (1 - K).
    """

    @property
    def padded(self) -> PaddedSelection:
        return PaddedMatrixNms(**vars(self))


@op()
class PaddedMatrixNms(_Decaying, PaddedSelection):
    """MatrixNms with room for the maximum number of rows; the last output is their actual number."""

    strict = True

    def suppress(self, x: Candidates, order: Buffer, buffer: Buffer, left: tuple[Buffer, ...], room: Dim) -> Work:
        held = room_for(5, room, x.images, x.classes, dtype=x.boxes.dtype.compute)
        return _decay(x, order, buffer, left, held, room, self)


@loops
def _decay(
    x: Scripted, order: Scripted, found: Scripted, left: Scripted, held: Scripted, room: Scripted, op: Scripted
) -> None:
    """Keep boxes by decayed score. held[image, class]: corners so far, and the most that each overlaps a better one."""
    kept, marks, counts = left
    for item in parallel(x.images * x.classes):
        n = item // x.classes
        c = item % x.classes
        looked = at_most(found[n, c], op.nms_top_k)
        sort_by_score(order, x.scores, (n, c), found[n, c], x.row(n, c), looked)
        total = var(0, DType.I64)
        for i in range(looked):
            mine = order[n, c, i]
            clear_vectors(held, (n, c), i)
            for k, corner in enumerate(x.corners(n, c, mine)):
                held[n, c, k, i] = corner
            most, factor = _decayed(held, (n, c), i, op)
            held[n, c, 4, i] = most
            score = x.scores[(*x.row(n, c), mine)] * factor
            if score > op.post_threshold:
                kept[n, c, total] = mine
                marks[(n * x.classes + c) * room + total] = score
                total += 1
        counts[n, c] = total


@loops
def _decayed(held: Scripted, row: Scripted, i: Scripted, op: Scripted) -> Scripted:
    """Return the greatest overlap of box i with a better one, and the least factor."""
    own = array(4, dtype=held.dtype)
    common = array(MAX_LANES, dtype=held.dtype)
    most = array(MAX_LANES, dtype=held.dtype)
    factor = array(MAX_LANES, dtype=held.dtype)
    for k in (0, 1, 2, 3):
        own[k] = held[(*row, k, i)]
    box = [own[k] for k in (0, 1, 2, 3)]
    for v in lanes(MAX_LANES):
        most[v] = 0.0
        factor[v] = 1.0
    for part in range((i + (MAX_LANES - 1)) // MAX_LANES):
        for v in lanes(MAX_LANES):
            j = part * MAX_LANES + v
            common[v] = overlap(box, [held[(*row, k, j)] for k in (0, 1, 2, 3)], op.offset)
            factor[v] = min(factor[v], select(j < i, op.factor(common[v], held[(*row, 4, j)]), 1.0))  # pyrefly: ignore[bad-specialization]  of a script
            most[v] = max(most[v], select(j < i, common[v], 0.0))  # pyrefly: ignore[bad-specialization]  of a script
    for half in (8, 4, 2, 1):
        for v in lanes(half):
            factor[v] = min(factor[v], factor[v + half])
            most[v] = max(most[v], most[v + half])
    return most[0], factor[0]


@dataclass(frozen=True)
class _Adaptive(Selection):
    """Suppression with a limit of overlap; while it is above 0.5, each kept box multiplies it by `nms_eta`."""

    iou_threshold: float = 0.0
    nms_eta: float = 1.0

    def chosen(self, boxes: Array, scores: Array) -> list[tuple[int, float]]:
        order = np.array([i for i in np.argsort(-scores, kind="stable") if scores[i] >= self.score_threshold], int)
        order = order if self.nms_top_k < 0 else order[: self.nms_top_k]
        indices = greedy(boxes, order, self.iou_threshold, offset=self.offset, eta=self.nms_eta)
        return [(i, float(scores[i])) for i in indices]


@op("opset8", "opset9")
class MulticlassNms(_Adaptive, Selecting):
    """The best boxes of each class without those that overlap a better one; then the best of each image.

    Alternatively each class has its own boxes [C, B, 4] and scores [C, B]; the third input is the number of boxes per
    image.
    """

    @property
    def padded(self) -> PaddedSelection:
        return PaddedMulticlassNms(**vars(self))


@op()
class PaddedMulticlassNms(_Adaptive, PaddedSelection):
    """MulticlassNms with room for the maximum number of rows; the last output is their actual number."""

    def suppress(self, x: Candidates, order: Buffer, buffer: Buffer, left: tuple[Buffer, ...], room: Dim) -> Work:
        held = room_for(4, room, x.images, x.classes, dtype=x.boxes.dtype.compute)
        return _drop(x, order, buffer, left, (room, held), self)


@loops
def _drop(x: Scripted, order: Scripted, found: Scripted, left: Scripted, rooms: Scripted, op: Scripted) -> None:
    kept, marks, counts = left
    room, held = rooms
    for item in parallel(x.images * x.classes):
        n = item // x.classes
        c = item % x.classes
        looked = at_most(found[n, c], op.nms_top_k)
        measure = Measure(partial(x.corners, n, c), partial(overlap, offset=op.offset), held)
        ranking = Ranking(order, (n, c), x.scores, x.row(n, c))
        keep_apart(ranking, kept, counts, (found[n, c], looked, room), measure, op.iou_threshold, op.nms_eta)
        for k in range(counts[n, c]):
            marks[(n * x.classes + c) * room + k] = x.scores[(*x.row(n, c), kept[n, c, k])]
