"""Detectron's second stage: the best boxes, their features from the matching level of a pyramid, the detections."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Expr, Space, Var, cast, dense, prim, select
from aot.codegen.script.script import Scripted, loops, parallel, var
from aot.ir.conditions import Condition, alike, at_least
from aot.ir.op import Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import attr, op
from aot.ir.types import Array, TensorType
from aot.opset.detection.boxes import greedy, overlap, sort_by_score
from aot.opset.detection.roi_align import Aligned, Sampling, pooled, sampled, written
from aot.opset.products.pool_windows import channels_last
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

CANONICAL_SIZE = 224.0  # size of the boxes that belong to level 2


@op("opset6")
class ExperimentalDetectronTopKROIs(LoopOp):
    """The `max_rois` boxes of [R, 4] with the largest probabilities [R], best first; zeros if there are fewer."""

    elements = Elements.FLOAT
    uniform = (0, 1)

    max_rois: int = 0

    def infer(self, rois: Operand, probabilities: Operand) -> TensorType:
        if rois.rank != 2 or probabilities.rank != 1:
            raise ShapeError(
                f"{self.type}: boxes must be [R, 4] and scores [R], got {rois.type} and {probabilities.type}"
            )
        return TensorType(rois.dtype, (self.max_rois, 4))

    def conditions(self, rois: Operand, probabilities: Operand) -> Sequence[Condition]:
        return alike("a box is 4 numbers and has a score", rois.shape, (probabilities.shape[0], 4))

    def nest(self, outs: tuple[Buffer, ...], rois: Input, probabilities: Input) -> tuple[Work, ...]:
        order = dense("order", rois.shape[0], space=Space.ARENA, dtype=DType.I64)
        return (_best(outs[0], rois.buffer, probabilities.buffer, order, rois.shape[0], self.max_rois),)

    def reference(self, rois: Array, probabilities: Array) -> Array:
        best = rois[np.argsort(-probabilities.astype(np.float64), kind="stable")[: self.max_rois]]
        return np.pad(best, ((0, self.max_rois - len(best)), (0, 0)))


@loops
def _best(out: Scripted, rois: Scripted, scores: Scripted, order: Scripted, count: Scripted, most: int) -> None:
    for r in range(count):
        order[r] = r
    sort_by_score(order, scores, (), count, ())
    for r in range(most):
        if r < count:
            place = order[r]
            for k in range(4):
                out[r, k] = rois[place, k]
        else:
            for k in range(4):
                out[r, k] = 0.0


@op("opset6")
class ExperimentalDetectronROIFeatureExtractor(LoopOp):
    """Boxes [R, 4] and the levels [1, C, H, W] of a pyramid: each box aligned on the level for its size; and the boxes.

    level = floor(2 + log2(sqrt(area) / 224)), between the first and the last; a box without area gives zeros.
    """

    elements = Elements.FLOAT
    uniform = tuple(range(16))
    single = True

    output_size: int = 0
    sampling_ratio: int = 0
    pyramid_scales: tuple[int, ...] = ()
    aligned: bool = False

    def _sampling(self, level: int) -> Sampling:
        cells, scale = (self.output_size, self.output_size), 1.0 / self.pyramid_scales[level]
        mode = Aligned.HALF_PIXEL_FOR_NN if self.aligned else Aligned.ASYMMETRIC
        return Sampling(cells, self.sampling_ratio, scale, mode=mode, least=1.0)

    def infer(self, rois: Operand, *levels: Operand) -> tuple[TensorType, TensorType]:
        if len(levels) != len(self.pyramid_scales) or not levels or rois.rank != 2:
            raise ShapeError(
                f"{self.type}: there must be a level for each of {len(self.pyramid_scales)} scales, got {len(levels)}"
            )
        if any(f.rank != 4 for f in levels):
            raise ShapeError(f"{self.type}: levels must have rank 4, got {', '.join(str(f.type) for f in levels)}")
        shape = (rois.shape[0], levels[0].shape[1], self.output_size, self.output_size)
        return TensorType(rois.dtype, shape), TensorType(rois.dtype, rois.shape)

    def conditions(self, rois: Operand, *levels: Operand) -> Sequence[Condition]:
        channels = [(f.shape[1], levels[0].shape[1], "levels have equally many channels") for f in levels[1:]]
        pictures = [at_least("levels of one picture", f.shape[0], 1) for f in levels]
        return [(rois.shape[1], 4, "a box is 4 numbers"), *channels, *pictures]

    def nest(self, outs: tuple[Buffer, ...], rois: Input, *levels: Input) -> tuple[Work, ...]:
        boxes, channels, height, width = outs[0].shape
        acc = dense("acc", boxes, height, width, channels, space=Space.ARENA)
        copies = [channels_last(f, f"level{n}", DType.F32) for n, f in enumerate(levels)]
        copies_with_samples = tuple((pixels, self._sampling(n)) for n, (pixels, _) in enumerate(copies))
        sums = pooled(acc, copies_with_samples, rois.buffer, None, partial(self._level, rois, len(levels)))
        i, k = copied = Var("i", rois.shape[0]), Var("k", 4)
        features = (*(copy for _, copy in copies), sums, written(outs[0], acc))
        return (*features, Definition(outs[1], copied, rois(i, k)))

    def _level(self, rois: Input, count: int, r: Expr) -> Expr:
        """Return the level of a box; `count` if it has no area."""
        area = (rois(r, 2) - rois(r, 0)) * (rois(r, 3) - rois(r, 1))
        size = prim("sqrt", prim("max", area, 0.0)) / CANONICAL_SIZE
        level = prim("floor", prim("log", size + 1e-6) / float(np.log(2)) + 2.0)
        level = prim("max", prim("min", cast(level, DType.I64), count - 1), 0)
        return select(prim("gt", area, 0.0), level, count)

    def reference(self, rois: Array, *levels: Array) -> tuple[Array, Array]:
        out = np.zeros((len(rois), levels[0].shape[1], self.output_size, self.output_size), rois.dtype)
        for r, (x0, y0, x1, y1) in enumerate(rois.astype(np.float64)):
            area = (x1 - x0) * (y1 - y0)
            if area > 0:
                level = int(np.clip(np.floor(2 + np.log2(np.sqrt(area) / CANONICAL_SIZE + 1e-6)), 0, len(levels) - 1))
                out[r] = sampled(levels[level], rois[r : r + 1], np.zeros(1, np.int64), self._sampling(level))[0]
        return out, rois


@op("opset6")
class ExperimentalDetectronDetectionOutput(LoopOp):
    """Boxes [R, 4], deltas [R, 4 C], scores [R, C], picture [1, 3]: the boxes [M, 4], classes [M] and scores [M] found.

    For each class but the first, deltas move the boxes; those above `score_threshold` that overlap no better one by
    more than `nms_threshold` are kept. If these are more than M: the best M, best first; else all by class, then zeros.
    """

    elements = Elements.FLOAT
    uniform = (0, 1, 2, 3)

    score_threshold: float = attr()
    nms_threshold: float = attr()
    num_classes: int = attr()
    post_nms_count: int = attr()
    max_detections_per_image: int = attr()
    max_delta_log_wh: float = attr()
    deltas_weights: tuple[float, ...] = attr()
    class_agnostic_box_regression: bool = False

    def infer(
        self, rois: Operand, deltas: Operand, scores: Operand, picture: Operand
    ) -> tuple[TensorType, TensorType, TensorType]:
        inputs = (rois, deltas, scores, picture)
        if any(x.rank != 2 for x in inputs):
            shapes = ", ".join(str(x.type) for x in inputs)
            rule = f"inputs must be [R, 4], [R, 4 C], [R, C], [1, 3] with C = {self.num_classes}"
            raise ShapeError(f"{self.type}: {rule}, got {shapes}")
        if len(self.deltas_weights) != 4:
            raise ShapeError(f"{self.type}: there must be 4 deltas_weights, got {len(self.deltas_weights)}")
        most = (self.max_detections_per_image,)
        return TensorType(rois.dtype, (*most, 4)), TensorType(DType.I32, most), TensorType(rois.dtype, most)

    def conditions(self, rois: Operand, deltas: Operand, scores: Operand, picture: Operand) -> Sequence[Condition]:
        rows, classes = rois.shape[0], self.num_classes
        sizes = [(rois, rows, 4), (deltas, rows, 4 * classes), (scores, rows, classes), (picture, 1, 3)]
        rule = f"boxes [R, 4], deltas [R, {4 * classes}], scores [R, {classes}], a picture [1, 3]"
        return [c for x, count, width in sizes for c in alike(rule, x.shape, (count, width))]

    def nest(
        self, outs: tuple[Buffer, ...], rois: Input, deltas: Input, scores: Input, picture: Input
    ) -> tuple[Work, ...]:
        count, classes, wide = rois.shape[0], self.num_classes, rois.dtype.compute
        boxes = dense("boxes", classes * count, 4, space=Space.ARENA, dtype=wide)
        confidences = dense("confidences", classes * count, space=Space.ARENA, dtype=wide)
        order = dense("order", classes, count, space=Space.ARENA, dtype=DType.I64)
        kept = dense("kept", classes, space=Space.ARENA, dtype=DType.I64)
        ranking = dense("ranking", classes * count, space=Space.ARENA, dtype=DType.I64)
        return (
            _refine(boxes, confidences, rois.buffer, deltas.buffer, scores.buffer, count, self),
            _suppress(order, kept, boxes, confidences, count, self),
            _collect(outs, ranking, (order, kept), boxes, confidences, count, self),
        )

    def reference(self, rois: Array, deltas: Array, scores: Array, picture: Array) -> tuple[Array, Array, Array]:
        start, offsets = rois.astype(np.float64), deltas.astype(np.float64).reshape(len(rois), -1, 4)
        detections: list[tuple[float, int, Array]] = []
        for c in range(1, self.num_classes):
            boxes = self._refined(start, offsets[:, c])
            valid = (start[:, 2:] > start[:, :2]).all(1)
            own = np.where(valid, scores[:, c].astype(np.float64), 0)
            order = np.argsort(-own, kind="stable")
            indices = greedy(
                boxes, order[own[order] > self.score_threshold], self.nms_threshold, self.post_nms_count, 1.0
            )
            detections += [(float(own[r]), c, boxes[r]) for r in indices]
        if len(detections) > self.max_detections_per_image:
            detections = sorted(detections, key=lambda f: -f[0])[: self.max_detections_per_image]
        out = np.zeros((self.max_detections_per_image, 6))
        for m, (score, c, box) in enumerate(detections):
            out[m] = (*box, c, score)
        return out[:, :4].astype(rois.dtype), out[:, 4].astype(np.int32), out[:, 5].astype(rois.dtype)

    def _refined(self, boxes: Array, deltas: Array) -> Array:
        size = boxes[:, 2:] - boxes[:, :2] + 1
        scaled = deltas / np.array(self.deltas_weights)
        centre = boxes[:, :2] + size / 2 + scaled[:, :2] * size
        half = np.exp(np.minimum(scaled[:, 2:], self.max_delta_log_wh)) * size / 2
        return np.maximum(np.concatenate([centre - half, centre + half - 1], 1), 0)


@loops
def _refine(
    boxes: Scripted,
    confidences: Scripted,
    rois: Scripted,
    deltas: Scripted,
    scores: Scripted,
    count: Scripted,
    op: ExperimentalDetectronDetectionOutput,
) -> None:
    for r in parallel(count):
        left, top, right, bottom = _corner_values(rois, r, boxes.dtype)
        valid = right > left and bottom > top
        for c in range(1, op.num_classes):
            place = c * count + r
            for k, low, high in ((0, left, right), (1, top, bottom)):
                size = high - low + 1.0
                shift = cast(deltas[r, c * 4 + k], boxes.dtype) / op.deltas_weights[k]
                growth = cast(deltas[r, c * 4 + k + 2], boxes.dtype) / op.deltas_weights[k + 2]
                half = prim("exp", prim("min", growth, op.max_delta_log_wh)) * size * 0.5
                centre = low + size * 0.5 + shift * size
                boxes[place, k] = prim("max", centre - half, 0.0)
                boxes[place, k + 2] = prim("max", centre + half - 1.0, 0.0)
            confidences[place] = select(valid, cast(scores[r, c], boxes.dtype), 0.0)


def _corner_values(rois: Scripted, r: Scripted, dtype: DType) -> Scripted:
    return tuple(cast(rois[r, k], dtype) for k in range(4))


@loops
def _suppress(
    order: Scripted,
    kept: Scripted,
    boxes: Scripted,
    confidences: Scripted,
    count: Scripted,
    op: ExperimentalDetectronDetectionOutput,
) -> None:
    """Write the places of the kept boxes of class c to order[c, 0..kept[c] - 1]."""
    for t in parallel(op.num_classes - 1):
        c = t + 1
        found = var(0, DType.I64)
        for r in range(count):
            if confidences[c * count + r] > op.score_threshold:
                order[c, found] = c * count + r
                found += 1
        sort_by_score(order, confidences, (c,), found, ())
        stay = var(0, DType.I64)
        for i in range(found):
            place = order[c, i]
            k = var(0, DType.I64)
            while k < stay and overlap(_corners(boxes, place), _corners(boxes, order[c, k]), 1.0) <= op.nms_threshold:
                k += 1
            if k == stay and stay < op.post_nms_count:
                order[c, stay] = place
                stay += 1
        kept[c] = stay


def _corners(boxes: Buffer, position: Expr) -> tuple[Expr, ...]:
    return tuple(boxes[position, k] for k in (1, 0, 3, 2))


@loops
def _collect(
    outs: Scripted,
    ranking: Scripted,
    by_class: Scripted,
    boxes: Scripted,
    confidences: Scripted,
    count: Scripted,
    op: ExperimentalDetectronDetectionOutput,
) -> None:
    found, classes, scores = outs
    order, kept = by_class
    most = op.max_detections_per_image
    total = var(0, DType.I64)
    for c in range(1, op.num_classes):
        for k in range(kept[c]):
            ranking[total] = order[c, k]
            total += 1
    if total > most:
        sort_by_score(ranking, confidences, (), total, ())
    for m in range(most):
        if m < total:
            place = ranking[m]
            for k in range(4):
                found[m, k] = boxes[place, k]
            classes[m] = place // count
            scores[m] = confidences[place]
        else:
            for k in range(4):
                found[m, k] = 0.0
            classes[m] = 0
            scores[m] = 0.0
