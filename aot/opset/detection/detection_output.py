"""DetectionOutput: boxes decoded against priors, overlapping ones suppressed class by class, an image's best kept."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, Const, Expr, Space, dense, prim
from aot.codegen.script.script import Scripted, loops, parallel, var
from aot.ir.conditions import Condition, alike, at_least
from aot.ir.op import Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, Shape, TensorType, simplify
from aot.opset.detection.boxes import greedy, overlap, sort_by_score
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError, ShapeError


class Code(StrEnum):
    """Meaning of the location input: corners, or centre and logarithm of the size, relative to the prior's."""

    CORNER = "caffe.PriorBoxParameter.CORNER"
    CENTER_SIZE = "caffe.PriorBoxParameter.CENTER_SIZE"


@dataclass(frozen=True)
class Detection(LoopOp):
    """Base of both versions.

    Inputs: locations [N, P * L * 4], confidences [N, P * C], priors [1 or N, 1 or 2, P * 4 or 5], perhaps the
    confidences [N, P * 2] and locations of a first stage. Output rows: (image, label, confidence, x0, y0, x1, y1),
    after the last one a row with image -1, then zeros.
    """

    elements = Elements.FLOAT
    uniform = (0, 1, 2, 3, 4)

    background_label_id: int = 0
    top_k: int = -1
    variance_encoded_in_target: bool = False
    keep_top_k: tuple[int, ...] = ()
    code_type: Code = Code.CORNER
    share_location: bool = True
    nms_threshold: float = 0.0
    confidence_threshold: float = 0.0
    clip_after_nms: bool = False
    clip_before_nms: bool = False
    decrease_label_id: bool = False
    normalized: bool = False
    input_height: int = 1
    input_width: int = 1
    objectness_score: float = 0.0

    def sizes(self, confidences: Shape, priors: Shape) -> tuple[int, int]:
        """Return the numbers of priors and of classes."""
        numbers = TensorType(DType.F32, (confidences[1], priors[2])).static_shape
        count = numbers[1] // (4 if self.normalized else 5)
        return count, getattr(self, "num_classes", 0) or numbers[0] // max(count, 1)

    @property
    def keep(self) -> int:
        return self.keep_top_k[0] if self.keep_top_k else -1

    def infer(
        self,
        locations: Operand,
        confidences: Operand,
        priors: Operand,
        first_confidences: Operand | None = None,
        first_locations: Operand | None = None,
    ) -> TensorType:
        if (locations.rank, confidences.rank, priors.rank) != (2, 2, 3):
            types = f"{locations.type}, {confidences.type}, {priors.type}"
            raise ShapeError(f"DetectionOutput: inputs must have rank 2, 2, 3, got {types}")
        count, classes = self.sizes(confidences.shape, priors.shape)
        if not self.keep_top_k:
            raise ModelError("DetectionOutput: keep_top_k must be given, got nothing")
        most = self.keep if self.keep > 0 else (self.top_k if self.top_k > 0 else count) * classes
        return TensorType(locations.dtype, (1, 1, simplify(locations.shape[0] * most), 7))

    def conditions(
        self, locations: Operand, confidences: Operand, priors: Operand, *firsts: Operand | None
    ) -> Sequence[Condition]:
        first_confidences, first_locations = (*firsts, None, None)[:2]
        count, classes = self.sizes(confidences.shape, priors.shape)
        box_classes, (images, rows) = 1 if self.share_location else classes, (locations.shape[0], priors.shape[1])
        sizes = [(locations, count * box_classes * 4, "locations"), (confidences, count * classes, "scores")]
        sizes += [] if first_locations is None else [(first_locations, count * box_classes * 4, "first locations")]
        sizes += [] if first_confidences is None else [(first_confidences, count * 2, "first scores")]
        fits = [c for x, n, what in sizes for c in alike(f"{what} must fit the priors", x.shape, (images, n))]
        fits.append(at_least("rows of priors and variances", rows, 1 if self.variance_encoded_in_target else 2))
        if priors.shape[0] != 1:
            fits.append((priors.shape[0], images, "priors are of one image or of each"))
        return fits

    def nest(
        self, outs: tuple[Buffer, ...], locations: Input, confidences: Input, priors: Input, *firsts: Input | None
    ) -> tuple[Work, ...]:
        count, classes = self.sizes(confidences.shape, priors.shape)
        images: Dim = locations.shape[0]
        box_classes = 1 if self.share_location else classes
        boxes = dense("boxes", images, box_classes, count, 4, space=Space.ARENA)
        scores = dense("scores", images, count * classes, space=Space.ARENA)
        order = dense("order", images, count * classes, space=Space.ARENA, dtype=DType.I64)
        kept = dense("kept", images, classes, count, space=Space.ARENA, dtype=DType.I64)
        counts = dense("counts", images, classes, space=Space.ARENA, dtype=DType.I64)
        shape = _Sizes(images, count, classes, box_classes, priors.shape[0] != 1)
        objects, first = (None if i is None else i.buffer for i in (*firsts, None, None)[:2])
        choose = _choose_by_prior if self.decrease_label_id else _choose_by_class
        return (
            _decode(boxes, locations.buffer, priors.buffer, first, shape, self),
            _score(scores, confidences.buffer, objects, shape, self),
            choose(boxes, scores, order, kept, counts, shape, self),
            _keep_best(scores, order, kept, counts, shape, self),
            _write(outs[0], boxes, scores, kept, counts, shape, self),
        )

    def reference(
        self,
        locations: Array,
        confidences: Array,
        priors: Array,
        first_confidences: Array | None = None,
        first_locations: Array | None = None,
    ) -> Array:
        count, classes = self.sizes(confidences.shape, priors.shape)
        box_classes = 1 if self.share_location else classes
        most = self.keep if self.keep > 0 else (self.top_k if self.top_k > 0 else count) * classes
        out = np.zeros((1, 1, len(locations) * most, 7))
        at = 0
        for n in range(len(locations)):
            prior = priors[n if len(priors) > 1 else 0].astype(np.float64)
            start = prior[0].reshape(count, -1)[:, -4:]
            start = start if self.normalized else start / np.array([self.input_width, self.input_height] * 2)
            spread = np.ones((count, 4)) if self.variance_encoded_in_target else prior[1][: count * 4].reshape(count, 4)
            boxes = np.broadcast_to(start[:, None], (count, box_classes, 4))
            for deltas in (first_locations, locations):
                if deltas is not None:
                    moves = deltas[n].astype(np.float64).reshape(count, box_classes, 4)
                    boxes = self._decoded(boxes, moves * spread[:, None])
            scores: Array = confidences[n].astype(np.float64).reshape(count, classes)
            if first_confidences is not None:
                absent = first_confidences[n].reshape(count, 2)[:, 1] < self.objectness_score
                scores = np.where(absent[:, None], np.arange(classes) == self.background_label_id, scores)
            for label, p in self._chosen(boxes, scores):
                box = boxes[p, 0 if self.share_location else label]
                box = np.clip(box, 0, 1) if self.clip_after_nms else box
                out[0, 0, at] = [n, label - self.decrease_label_id, scores[p, label], *box]
                at += 1
        if at < out.shape[2]:
            out[0, 0, at, 0] = -1
        return out.astype(locations.dtype)

    def _decoded(self, start: Array, offsets: Array) -> Array:
        if self.code_type is Code.CORNER:
            corners = start + offsets
        else:
            size, middle = start[..., 2:] - start[..., :2], (start[..., 2:] + start[..., :2]) / 2
            middle, half = offsets[..., :2] * size + middle, np.exp(offsets[..., 2:]) * size / 2
            corners = np.concatenate([middle - half, middle + half], -1)
        return np.clip(corners, 0, 1) if self.clip_before_nms else corners

    def _chosen(self, boxes: Array, scores: Array) -> list[tuple[int, int]]:
        """Return pairs (label, prior) in the order of the output."""
        most = len(scores) * scores.shape[1] if self.top_k < 0 else self.top_k
        kept: dict[int, list[int]] = {}
        if self.decrease_label_id:
            allowed = [c for c in range(1, scores.shape[1]) if c != self.background_label_id]
            best = [max(allowed, key=lambda c, p=p: (scores[p, c], -c)) for p in range(len(scores))]
            candidates = [p for p in range(len(scores)) if scores[p, best[p]] >= self.confidence_threshold]
            candidates = sorted(candidates, key=lambda p: (-scores[p, best[p]], p))[:most]
            groups = {c: [p for p in candidates if best[p] == c] for c in allowed}
        else:
            groups = dict[int, list[int]]()
            for c in range(scores.shape[1]):
                if c != self.background_label_id:
                    candidates = [p for p in range(len(scores)) if scores[p, c] > self.confidence_threshold]
                    groups[c] = sorted(candidates, key=lambda p, c=c: (-scores[p, c], p))[:most]
        for c, candidates in groups.items():
            own_boxes = boxes[:, 0 if self.share_location else c][:, [1, 0, 3, 2]]
            kept[c] = greedy(own_boxes, np.array(candidates, np.int64), self.nms_threshold)
        flat = [(c, p) for c, ps in kept.items() for p in ps]
        if -1 < self.keep < len(flat):
            flat = sorted(flat, key=lambda e: (-scores[e[1], e[0]], e[1]))[: self.keep]
            flat = [e for c in sorted(kept) for e in flat if e[0] == c]
        return flat


@dataclass(frozen=True)
class _Sizes:
    images: Dim
    priors: int
    classes: int
    places: int
    own_priors: bool  # each image has its own set

    def place(self, op: Detection, label: Expr) -> Expr:
        return Const(0) if op.share_location else label


@loops
def _moved(start: Scripted, x: Scripted, spread: Scripted, op: Scripted) -> Scripted:
    """Return the decoded box (x0, y0, x1, y1)."""
    m = [v if s is None else v * s for v, s in zip(x, spread, strict=True)]
    if op.code_type is Code.CORNER:
        found = [a + b for a, b in zip(start, m, strict=True)]
    else:
        size = (start[2] - start[0], start[3] - start[1])
        middle = [m[k] * size[k] + (start[k] + start[k + 2]) / 2.0 for k in (0, 1)]
        half = [prim("exp", m[k + 2]) * size[k] / 2.0 for k in (0, 1)]
        found = [middle[0] - half[0], middle[1] - half[1], middle[0] + half[0], middle[1] + half[1]]
    return [max(min(v, 1.0), 0.0) for v in found] if op.clip_before_nms else found


@loops
def _decode(boxes: Scripted, locations: Scripted, priors: Scripted, first: Scripted, s: Scripted, op: Scripted) -> None:
    width = 4 if op.normalized else 5
    for n in parallel(s.images):
        image = n if s.own_priors else 0
        for p in range(s.priors):
            begin = [priors[image, 0, p * width + width - 4 + k] for k in range(4)]
            start = (
                begin
                if op.normalized
                else [v / float(op.input_height if k % 2 else op.input_width) for k, v in enumerate(begin)]
            )
            spread = [None if op.variance_encoded_in_target else priors[image, 1, p * 4 + k] for k in range(4)]
            for c in range(s.places):
                at = (p * s.places + c) * 4
                before = start if first is None else _moved(start, [first[n, at + k] for k in range(4)], spread, op)
                found = _moved(before, [locations[n, at + k] for k in range(4)], spread, op)
                for k, v in enumerate(found):
                    boxes[n, c, p, k] = v


@loops
def _score(scores: Scripted, confidences: Scripted, objects: Scripted, s: Scripted, op: Scripted) -> None:
    for n in parallel(s.images):
        for p in range(s.priors):
            for c in range(s.classes):
                scores[n, p * s.classes + c] = confidences[n, p * s.classes + c]
            if objects is not None and objects[n, p * 2 + 1] < op.objectness_score:
                for c in range(s.classes):
                    scores[n, p * s.classes + c] = 0.0
                if op.background_label_id >= 0:
                    scores[n, p * s.classes + op.background_label_id] = 1.0


@loops
def _consider(boxes: Scripted, kept: Scripted, counts: Scripted, where: Scripted, p: Scripted, limit: float) -> None:
    """Keep prior p of image n and label c, unless it overlaps a kept one by more than the limit."""
    n, c, place = where
    free = var(1, DType.I64)
    k = var(0, DType.I64)
    mine = _corners(boxes, n, place, p)
    while free == 1 and k < counts[n, c]:
        if overlap(mine, _corners(boxes, n, place, kept[n, c, k])) > limit:
            free = 0
        k += 1
    if free == 1:
        kept[n, c, counts[n, c]] = p
        counts[n, c] += 1


def _corners(boxes: Buffer, n: Expr, position: Expr, p: Expr) -> tuple[Expr, ...]:
    return tuple(boxes[n, position, p, k] for k in (1, 0, 3, 2))


@loops
def _choose_by_class(
    boxes: Scripted, scores: Scripted, order: Scripted, kept: Scripted, counts: Scripted, s: Scripted, op: Scripted
) -> None:
    for n in parallel(s.images):
        for c in range(s.classes):
            counts[n, c] = 0
            if c != op.background_label_id:
                found = var(0, DType.I64)
                for p in range(s.priors):
                    if scores[n, p * s.classes + c] > op.confidence_threshold:
                        order[n, found] = p * s.classes + c
                        found += 1
                sort_by_score(order, scores, (n,), found, (n,))
                most = found if op.top_k < 0 else min(found, op.top_k)
                for k in range(most):
                    _consider(boxes, kept, counts, (n, c, s.place(op, c)), order[n, k] // s.classes, op.nms_threshold)


@loops
def _choose_by_prior(
    boxes: Scripted, scores: Scripted, order: Scripted, kept: Scripted, counts: Scripted, s: Scripted, op: Scripted
) -> None:
    for n in parallel(s.images):
        found = var(0, DType.I64)
        for c in range(s.classes):
            counts[n, c] = 0
        for p in range(s.priors):
            best = var(-1.0, DType.F32)
            label = var(0, DType.I64)
            for c in range(1, s.classes):
                if c != op.background_label_id and scores[n, p * s.classes + c] > best:
                    best = scores[n, p * s.classes + c]
                    label = c
            if label > 0 and best >= op.confidence_threshold:
                order[n, found] = p * s.classes + label
                found += 1
        sort_by_score(order, scores, (n,), found, (n,))
        most = found if op.top_k < 0 else min(found, op.top_k)
        for k in range(most):
            c = order[n, k] % s.classes
            _consider(boxes, kept, counts, (n, c, s.place(op, c)), order[n, k] // s.classes, op.nms_threshold)


@loops
def _keep_best(scores: Scripted, order: Scripted, kept: Scripted, counts: Scripted, s: Scripted, op: Scripted) -> None:
    for n in parallel(s.images if op.keep > -1 else 0):
        total = var(0, DType.I64)
        for c in range(s.classes):
            for k in range(counts[n, c]):
                order[n, total] = kept[n, c, k] * s.classes + c
                total += 1
        if total > op.keep:
            sort_by_score(order, scores, (n,), total, (n,))
            for c in range(s.classes):
                counts[n, c] = 0
            for k in range(op.keep):
                flat = order[n, k]
                kept[n, flat % s.classes, counts[n, flat % s.classes]] = flat // s.classes
                counts[n, flat % s.classes] += 1


@loops
def _write(
    out: Scripted, boxes: Scripted, scores: Scripted, kept: Scripted, counts: Scripted, s: Scripted, op: Scripted
) -> None:
    rows = out.shape[2]
    at = var(0, DType.I64)
    for n in range(s.images):
        for c in range(s.classes):
            for k in range(counts[n, c]):
                p = kept[n, c, k]
                numbers = [n, c - 1 if op.decrease_label_id else c, scores[n, p * s.classes + c]]
                for j, v in enumerate(numbers):
                    out[0, 0, at, j] = v
                for j in range(4):
                    edge = boxes[n, s.place(op, c), p, j]
                    out[0, 0, at, 3 + j] = max(min(edge, 1.0), 0.0) if op.clip_after_nms else edge
                at += 1
    for r in range(at, rows):
        for j in range(7):
            out[0, 0, r, j] = 0.0
    if at < rows:
        out[0, 0, at, 0] = -1.0


@op("opset1", type="DetectionOutput")
class DetectionOutput_1(Detection):
    """DetectionOutput with the number of classes as an attribute."""

    num_classes: int = 0


@op("opset8")
class DetectionOutput(Detection):
    """The number of classes follows from the shapes."""
