"""GenerateProposals: anchors moved by deltas, for each image the best that do not overlap better ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, Expr, Space, dense, prim
from aot.codegen.script.script import Scripted, loops, parallel, var
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.op import DecomposedOp, Elements, LoopOp, Op, Work, late_symbol
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType, numpy_dtype
from aot.opset.detection.boxes import Measure, Ranking, greedy, keep_apart, overlap, room_for
from aot.opset.detection.proposals.moved_boxes import LOG_LIMIT, corners, moved_array, moved_corners, within
from aot.opset.detection.suppression.selection import at_most
from aot.opset.movement.slicing import Prefix
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


@dataclass(frozen=True)
class Proposing(Op):
    """Attributes of GenerateProposals."""

    elements = Elements.FLOAT

    min_size: float = 0.0
    nms_threshold: float = 0.0
    pre_nms_count: int = 0
    post_nms_count: int = 0
    normalized: bool = True
    nms_eta: float = 1.0
    roi_num_type: DType = DType.I64


@op("opset9")
class GenerateProposals(Proposing, DecomposedOp):
    """Boxes (x0, y0, x1, y1) of all images one after the other, their scores, how many each image has.

    Images [N, 3 or 4] (height, width, one scale or two), anchors [H, W, A, 4], deltas [N, 4 A, H, W], scores
    [N, A, H, W]. A box that is too small counts towards `pre_nms_count` and is then dropped.
    """

    uniform = (0, 1, 2, 3)

    @property
    def padded(self) -> PaddedGenerateProposals:
        return PaddedGenerateProposals(**vars(self))

    def infer(self, images: Operand, anchors: Operand, deltas: Operand, scores: Operand) -> tuple[TensorType, ...]:
        rows, marks, numbers, _ = self.padded.infer(images, anchors, deltas, scores)
        count = late_symbol(self, "count", rows.shape[0], images, anchors, deltas, scores)
        return TensorType(rows.dtype, (count, 4)), TensorType(marks.dtype, (count,)), numbers

    def decompose(self, build: Builder, *inputs: OutPort) -> tuple[OutPort, ...]:
        rows, marks, numbers, count = build.node(self.padded, *inputs, outputs=4).out_ports().values()
        return build(Prefix(0), rows, count), build(Prefix(0), marks, count), numbers

    def reference(self, images: Array, anchors: Array, deltas: Array, scores: Array) -> tuple[Array, ...]:
        rows, marks, numbers, count = self.padded.reference(images, anchors, deltas, scores)
        return rows[: int(count)], marks[: int(count)], numbers


@op()
class PaddedGenerateProposals(Proposing, LoopOp):
    """GenerateProposals with room for the maximum number of boxes; the last output is their actual number."""

    single = True

    @property
    def offset(self) -> float:
        """Addition to widths and heights: 1 for boxes in whole pixels, which include both corners, else 0."""
        return 0.0 if self.normalized else 1.0

    def most(self, boxes: Dim) -> Dim:
        """Return the maximum number of boxes of one image."""
        return at_most(at_most(boxes, max(self.pre_nms_count, 0)), max(self.post_nms_count, 0))

    def infer(self, images: Operand, anchors: Operand, deltas: Operand, scores: Operand) -> tuple[TensorType, ...]:
        if (images.rank, anchors.rank, deltas.rank, scores.rank) != (2, 4, 4, 4):
            types = f"{images.type}, {anchors.type}, {deltas.type}, {scores.type}"
            raise ShapeError(f"GenerateProposals: inputs must have rank 2, 4, 4, 4, got {types}")
        if isinstance(images.shape[1], int) and images.shape[1] not in (3, 4):
            raise ShapeError(f"GenerateProposals: images must have 3 or 4 numbers, got {images.type}")
        n, a, h, w = scores.shape
        rows = n * self.most(a * h * w)
        return (
            TensorType(scores.dtype, (rows, 4)),
            TensorType(scores.dtype, (rows,)),
            TensorType(self.roi_num_type, (n,)),
            TensorType(DType.I64, ()),
        )

    def conditions(
        self, images: Operand, anchors: Operand, deltas: Operand, scores: Operand
    ) -> Sequence[tuple[Dim, Dim, str]]:
        n, a, h, w = scores.shape
        shapes = ((images, (n,), "images"), (anchors, (h, w, a, 4), "anchors"), (deltas, (n, a * 4, h, w), "deltas"))
        rows = [(x.shape, sizes, f"sizes of {what} must be as scores say") for x, sizes, what in shapes]
        least = prim("max", prim("min", images.shape[1], 4), 3)
        alike = [(p, q, rule) for shape, sizes, rule in rows for p, q in zip(shape, sizes, strict=False)]
        return [*alike, (images.shape[1], least, "images have 3 or 4 numbers")]

    def nest(
        self, outs: tuple[Buffer, ...], images: Input, anchors: Input, deltas: Input, scores: Input
    ) -> tuple[Work, ...]:
        n, a, h, w = scores.shape
        count = a * h * w
        boxes = dense("boxes", n, count, 4, space=Space.ARENA)
        marks = dense("marks", n, count, space=Space.ARENA)
        order = dense("order", n, count, space=Space.ARENA, dtype=DType.I64)
        kept = dense("kept", n, count, space=Space.ARENA, dtype=DType.I64)
        held = room_for(4, self.most(count), n)
        return (
            _move(boxes, marks, images.buffer, anchors.buffer, deltas.buffer, scores.buffer, self),
            _keep(boxes, marks, images.buffer, order, held, kept, outs[2], self),
            _write_results(outs, boxes, marks, kept),
        )

    def reference(self, images: Array, anchors: Array, deltas: Array, scores: Array) -> tuple[Array, ...]:
        n, a = scores.shape[:2]
        most = self.most(scores[0].size)
        assert isinstance(most, int)
        rows, marks = np.zeros((n * most, 4), scores.dtype), np.zeros(n * most, scores.dtype)
        numbers = np.zeros(n, numpy_dtype(self.roi_num_type))
        for m in range(n):
            limits = np.array([images[m, 1], images[m, 0]] * 2, np.float64) - self.offset
            offsets = deltas[m].astype(np.float64).reshape(a, 4, -1).transpose(2, 0, 1).reshape(-1, 4)
            offsets[:, 2:] = np.minimum(offsets[:, 2:], LOG_LIMIT)
            start = anchors.astype(np.float64).reshape(-1, 4)
            boxes = np.clip(moved_array(start, offsets, self.offset, self.offset), 0, limits)
            own_scores = scores[m].reshape(a, -1).T.reshape(-1)
            least = self.min_size * images[m, [-1, 2]]
            large: Array = np.all(boxes[:, 2:] - boxes[:, :2] + self.offset >= least, 1)
            order = [i for i in np.argsort(-own_scores, kind="stable")[: self.pre_nms_count] if large[i]]
            corners = boxes[:, [1, 0, 3, 2]]
            chosen = greedy(
                corners, np.array(order, int), self.nms_threshold, self.post_nms_count, self.offset, self.nms_eta
            )
            total, numbers[m] = int(numbers.sum()), len(chosen)
            rows[total : total + len(chosen)], marks[total : total + len(chosen)] = boxes[chosen], own_scores[chosen]
        return rows, marks, numbers, np.array(numbers.sum(), np.int64)


@loops
def _move(
    boxes: Scripted,
    marks: Scripted,
    images: Scripted,
    anchors: Scripted,
    deltas: Scripted,
    scores: Scripted,
    op: Scripted,
) -> None:
    number, count, height, width = scores.shape
    for item in parallel(number * height):
        n = item // height
        i = item % height
        for j in range(width):
            for a in range(count):
                place = (i * width + j) * count + a
                delta = [deltas[n, a * 4 + k, i, j] for k in range(4)]
                delta = [v if k < 2 else min(v, LOG_LIMIT) for k, v in enumerate(delta)]
                found = moved_corners([anchors[i, j, a, k] for k in range(4)], delta, op.offset, op.offset)
                for k, v in enumerate(found):
                    boxes[n, place, k] = within(v, images[n, 1 - k % 2] - op.offset)
                marks[n, place] = scores[n, a, i, j]


@loops
def _keep(
    boxes: Scripted,
    marks: Scripted,
    images: Scripted,
    order: Scripted,
    held: Scripted,
    kept: Scripted,
    numbers: Scripted,
    op: Scripted,
) -> None:
    """Keep the best boxes of each image, without those that are too small or overlap a better one."""
    for n in parallel(marks.shape[0]):
        for m in range(marks.shape[1]):
            order[n, m] = m
        least = [images[n, images.shape[1] - 1] * op.min_size, images[n, 2] * op.min_size]
        span = (marks.shape[1], at_most(marks.shape[1], max(op.pre_nms_count, 0)), op.post_nms_count)
        measure = Measure(partial(corners, boxes, n), partial(overlap, offset=op.offset), held)
        ranking, fits = Ranking(order, (n,), marks, (n,)), partial(_is_large, boxes, n, least, op.offset)
        keep_apart(ranking, kept, numbers, span, measure, op.nms_threshold, op.nms_eta, fits)


def _is_large(boxes: Buffer, n: Expr, least: Sequence[Expr], offset: float, i: Expr) -> Expr:
    """True if box i is at least as wide and high as `least`."""
    sizes = [boxes[n, i, k + 2] - boxes[n, i, k] + offset for k in (0, 1)]
    return prim("and", *(prim("ge", size, limit) for size, limit in zip(sizes, least, strict=True)))


@loops
def _write_results(outs: Scripted, boxes: Scripted, marks: Scripted, kept: Scripted) -> None:
    rows, scores, numbers, count = outs
    total = var(0, DType.I64)
    for n in range(marks.shape[0]):
        for k in range(numbers[n]):
            for c in range(4):
                rows[total, c] = boxes[n, kept[n, k], c]
            scores[total] = marks[n, kept[n, k]]
            total += 1
    count[()] = total
