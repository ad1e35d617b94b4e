"""Proposals for one image, of Detectron."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.codegen.ir.loops import Buffer, select
from aot.codegen.script.script import Scripted, loops, parallel
from aot.ir.conditions import Condition, alike, at_least
from aot.ir.op import Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType, simplify
from aot.opset.detection.proposals.moved_boxes import (
    LOG_LIMIT,
    Image,
    Search,
    moved_array,
    moved_corners,
    search_boxes,
    searched,
    temporaries,
    within,
)
from aot.runtime.errors import ShapeError


@op("opset6")
class ExperimentalDetectronGenerateProposalsSingleImage(LoopOp):
    """Proposals for one image (height, width, ..): anchors [H * W * A, 4], deltas [4 A, H, W], scores [A, H, W].

    Outputs boxes [post_nms_count, 4] and their scores, zeros after the last.
    """

    elements = Elements.FLOAT
    uniform = (0, 1, 2, 3)

    min_size: float = 0.0
    nms_threshold: float = 0.0
    post_nms_count: int = 0
    pre_nms_count: int = 0

    def infer(
        self, image: Operand, anchors: Operand, deltas: Operand, scores: Operand
    ) -> tuple[TensorType, TensorType]:
        if (image.rank, anchors.rank, deltas.rank, scores.rank) != (1, 2, 3, 3):
            types = f"{image.type}, {anchors.type}, {deltas.type}, {scores.type}"
            raise ShapeError(f"{self.type}: inputs must have rank 1, 2, 3, 3, got {types}")
        count = self.post_nms_count
        return TensorType(deltas.dtype, (count, 4)), TensorType(deltas.dtype, (count,))

    def conditions(self, image: Operand, anchors: Operand, deltas: Operand, scores: Operand) -> Sequence[Condition]:
        count, *sizes = scores.shape
        boxes = simplify(count * sizes[0] * sizes[1])
        pairs = alike("anchors, deltas and scores must fit each other", deltas.shape, (simplify(count * 4), *sizes))
        rows = alike("an anchor is 4 numbers and has a score", anchors.shape, (boxes, 4))
        return [*pairs, *rows, at_least("numbers of an image", image.shape[0], 3)]

    def _search(self, boxes: Dim) -> Search:
        return Search(1, boxes, self.pre_nms_count, self.post_nms_count, self.nms_threshold, 0.0)

    def nest(
        self, outs: tuple[Buffer, ...], image: Input, anchors: Input, deltas: Input, scores: Input
    ) -> tuple[Work, ...]:
        s = self._search(scores.shape[0] * scores.shape[1] * scores.shape[2])
        boxes, marks, *rest = buffers = temporaries(s)
        size = Image(image.buffer, 2)
        return (
            _refine(boxes, marks, anchors.buffer, deltas.buffer, scores.buffer, size, scores.shape, self.min_size),
            search_boxes(*buffers, s),
            _fill(*outs, boxes, marks, *rest[2:], s),
        )

    def reference(self, image: Array, anchors: Array, deltas: Array, scores: Array) -> tuple[Array, Array]:
        count = scores.shape[0]
        offsets = deltas.astype(np.float64).reshape(count, 4, -1).transpose(2, 0, 1).reshape(-1, 4)
        offsets[:, 2:] = np.minimum(offsets[:, 2:], LOG_LIMIT)
        limits = np.array([image[1], image[0]] * 2, np.float64) - 1
        boxes = np.clip(moved_array(anchors.astype(np.float64), offsets, 1.0, 1.0), 0, limits)
        marks = scores.reshape(count, -1).T.reshape(-1).astype(np.float64)
        marks = marks * (boxes[:, 2:] - boxes[:, :2] + 1 >= self.min_size).all(1)
        chosen = searched(boxes, marks, self._search(len(boxes)))
        out, out_scores = np.zeros((self.post_nms_count, 4)), np.zeros(self.post_nms_count)
        out[: len(chosen)], out_scores[: len(chosen)] = boxes[chosen], marks[chosen]
        return out.astype(deltas.dtype), out_scores.astype(deltas.dtype)


@loops
def _refine(
    boxes: Scripted,
    marks: Scripted,
    anchors: Scripted,
    deltas: Scripted,
    scores: Scripted,
    image: Scripted,
    shape: Scripted,
    least: float,
) -> None:
    count, height, width = shape
    for i in parallel(height):
        for j in range(width):
            for a in range(count):
                place = (i * width + j) * count + a
                delta = [deltas[a * 4 + k, i, j] for k in range(4)]
                delta = [v if k < 2 else min(v, LOG_LIMIT) for k, v in enumerate(delta)]
                found = moved_corners([anchors[place, k] for k in range(4)], delta, 1.0, 1.0)
                for k, v in enumerate(found):
                    boxes[0, place, k] = within(v, image.limit(k % 2) - 1.0)
                large = [boxes[0, place, k + 2] - boxes[0, place, k] + 1.0 >= least for k in (0, 1)]
                marks[0, place] = select(large[0], select(large[1], scores[a, i, j], 0.0), 0.0)


@loops
def _fill(
    out: Scripted, found: Scripted, boxes: Scripted, marks: Scripted, kept: Scripted, counts: Scripted, s: Scripted
) -> None:
    for k in parallel(s.keep):
        if k < counts[0]:
            for c in range(4):
                out[k, c] = boxes[0, kept[0, k], c]
            found[k] = marks[0, kept[0, k]]
        else:
            for c in range(4):
                out[k, c] = 0.0
            found[k] = 0.0
