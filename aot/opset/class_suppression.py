"""MatrixNms: boxes get lower scores where better ones overlap them; MulticlassNms: they go, class by class."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from aot.ir.op import Work, op
from aot.ir.types import Array, Dim
from aot.opset.boxes import greedy, keep_apart, overlaps
from aot.opset.selection import Candidates, Selecting, Selection, SelectionWithin, overlapping
from codegen.loops import Buffer, Expr, Space, dense, prim
from codegen.script import Scripted, loops, parallel, var

NEAR_ZERO = 1e-10  # a divisor is at least this


class Decay(StrEnum):
    """How a score falls with the overlap."""

    GAUSSIAN = "gaussian"
    LINEAR = "linear"


@dataclass(frozen=True)
class _Decaying(Selection):
    """X: overlap with a better box, K: the most that this one overlaps a better one."""

    decay_function: Decay = Decay.LINEAR
    gaussian_sigma: float = 2.0
    post_threshold: float = 0.0

    def factor(self, overlap: Expr, most: Expr) -> Expr:
        """exp((K^2 - X^2) sigma), or (1 - X) / (1 - K)"""
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

    X: overlap with the better box, K: the most that this one overlaps a better one;
    f = exp((K^2 - X^2) sigma), or (1 - X) / (1 - K).
    """

    @property
    def within(self) -> SelectionWithin:
        return MatrixNmsWithin(**vars(self))


@op()
class MatrixNmsWithin(_Decaying, SelectionWithin):
    """As MatrixNms, with room for all rows that there may be; the last output is how many there are."""

    strict = True

    def suppress(self, x: Candidates, order: Buffer, found: Buffer, left: tuple[Buffer, ...], room: Dim) -> Work:
        worst = dense("worst", x.images, x.classes, room, space=Space.ARENA)
        return _decay(x, order, found, left, worst, room, self)


@loops
def _decay(
    x: Scripted, order: Scripted, found: Scripted, left: Scripted, worst: Scripted, room: Scripted, op: Scripted
) -> None:
    kept, marks, counts = left
    for item in parallel(x.images * x.classes):
        n = item // x.classes
        c = item % x.classes
        counts[n, c] = 0
        for i in range(found[n, c]):
            mine = order[n, c, i]
            most = var(0.0)
            factor = var(1.0)
            for j in range(i):
                iou = overlapping((x, n, c, op.offset), mine, order[n, c, j])
                factor = min(factor, op.factor(iou, worst[n, c, j]))
                most = max(most, iou)
            worst[n, c, i] = most
            score = x.scores[(*x.row(n, c), mine)] * factor
            if score > op.post_threshold:
                kept[n, c, counts[n, c]] = mine
                marks[(n * x.classes + c) * room + counts[n, c]] = score
                counts[n, c] += 1


@dataclass(frozen=True)
class _Adaptive(Selection):
    """The limit of overlap; while it is above 0.5, each box that is kept multiplies it by `nms_eta`."""

    iou_threshold: float = 0.0
    nms_eta: float = 1.0

    def chosen(self, boxes: Array, scores: Array) -> list[tuple[int, float]]:
        order = np.array([i for i in np.argsort(-scores, kind="stable") if scores[i] >= self.score_threshold], int)
        order = order if self.nms_top_k < 0 else order[: self.nms_top_k]
        kept = greedy(boxes, order, self.iou_threshold, offset=self.offset, eta=self.nms_eta)
        return [(i, float(scores[i])) for i in kept]


@op("opset8", "opset9")
class MulticlassNms(_Adaptive, Selecting):
    """The best boxes of each class without those that overlap a better one; then the best of each image.

    Or each class has its own boxes [C, B, 4] and scores [C, B], and the third input says how many each image has.
    """

    @property
    def within(self) -> SelectionWithin:
        return MulticlassNmsWithin(**vars(self))


@op()
class MulticlassNmsWithin(_Adaptive, SelectionWithin):
    """As MulticlassNms, with room for all rows that there may be; the last output is how many there are."""

    def suppress(self, x: Candidates, order: Buffer, found: Buffer, left: tuple[Buffer, ...], room: Dim) -> Work:
        return _drop(x, order, found, left, room, self)


@loops
def _drop(x: Scripted, order: Scripted, found: Scripted, left: Scripted, room: Scripted, op: Scripted) -> None:
    kept, marks, counts = left
    for item in parallel(x.images * x.classes):
        n = item // x.classes
        c = item % x.classes
        span, measure = (found[n, c], room), (overlapping, (x, n, c, op.offset))
        keep_apart(order, kept, counts, (n, c), span, measure, op.iou_threshold, op.nms_eta)
        for k in range(counts[n, c]):
            marks[(n * x.classes + c) * room + k] = x.scores[(*x.row(n, c), kept[n, c, k])]
