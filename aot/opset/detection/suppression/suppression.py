"""NonMaxSuppression: outputs of the first operation sets are sized for the most boxes, later ones for those kept.

For each image and class the boxes in order of score, without those that overlap a better one; then all by score.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, Space, as_expr, cast, dense, prim
from aot.codegen.script.script import Scripted, loops, parallel, var
from aot.ir.op import Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType, numpy_dtype
from aot.opset.detection.boxes import (
    Measure,
    Ranking,
    check_limits,
    check_pairs,
    greedy,
    keep_apart,
    pairs,
    room_for,
    sort_by_score,
)
from aot.opset.detection.boxes import overlap as overlap_of
from aot.opset.detection.kept_rows import KeptRows
from aot.opset.detection.suppression.corners import Encoding, corner_array, corners_of
from aot.opset.detection.suppression.soft_suppression import kept_softly, limit, suppress_softly
from aot.opset.products.pool_windows import smaller
from aot.runtime.abi import DType


@dataclass(frozen=True)
class FixedSuppression(LoopOp):
    """Boxes [N, B, 4], scores [N, C, B], most boxes for each class, limits of overlap and of scores.

    Output rows (image, class, box); -1 after the last.
    """

    elements = Elements.FLOAT
    single = True
    uniform = (0, 1)

    box_encoding: Encoding = Encoding.CORNER
    sort_result_descending: bool = True

    @property
    def result(self) -> DType:
        return getattr(self, "output_type", DType.I64)

    def rows(self, images: Dim, classes: Dim, boxes: Dim, most: int) -> Dim:
        """Return the number of output rows."""
        return smaller(boxes, classes * most)

    def infer(
        self,
        boxes: Operand,
        scores: Operand,
        most: Operand | None = None,
        overlap: Operand | None = None,
        least: Operand | None = None,
    ) -> TensorType:
        check_pairs("NonMaxSuppression", boxes, scores)
        check_limits("NonMaxSuppression", overlap, least)
        keep = 0 if most is None else most.ints("NonMaxSuppression: number of boxes")[0]
        return TensorType(self.result, (self.rows(scores.shape[0], scores.shape[1], boxes.shape[1], keep), 3))

    def conditions(self, *operands: Operand) -> Sequence[tuple[Dim, Dim, str]]:
        return pairs(*operands)

    def nest(
        self,
        outs: tuple[Buffer, ...],
        boxes: Input,
        scores: Input,
        most: Input | None = None,
        overlap: Input | None = None,
        least: Input | None = None,
    ) -> tuple[Work, ...]:
        images, classes, count = scores.shape
        keep = 0 if most is None else most.operand().ints("NonMaxSuppression: number of boxes")[0]
        order = dense("order", images, classes, count, space=Space.ARENA, dtype=DType.I64)
        kept = dense("kept", images, classes, max(keep, 1), space=Space.ARENA, dtype=DType.I64)
        counts = dense("counts", images, classes, space=Space.ARENA, dtype=DType.I64)
        flat = dense("flat", images * classes * max(keep, 1), space=Space.ARENA, dtype=DType.I64)
        marks = dense("marks", images * classes * max(keep, 1), space=Space.ARENA)
        limits = [None if i is None else i.buffer for i in (overlap, least)]
        buffers = (boxes.buffer, scores.buffer, kept, counts)
        shape = (images, classes, count, keep)
        held = room_for(4, max(keep, 1), images, classes, dtype=boxes.dtype.compute)
        return (
            suppress(*buffers, order, limits, shape, (partial(corners_of, self.box_encoding), overlap_of, held)),
            list_kept(outs, scores.buffer, kept, counts, flat, marks, shape, self.sort_result_descending),
        )

    def reference(
        self,
        boxes: Array,
        scores: Array,
        most: Array | None = None,
        overlap: Array | None = None,
        least: Array | None = None,
    ) -> Array:
        keep = 0 if most is None else int(most.reshape(-1)[0])
        limits = [0.0 if v is None else float(v.reshape(-1)[0]) for v in (overlap, least)]
        corners = corner_array(boxes.astype(np.float64), self.box_encoding)
        selected: list[tuple[float, int, int, int]] = []
        for n, c in np.ndindex(*scores.shape[:2]):
            mine = scores[n, c].astype(np.float64)
            order = [i for i in np.lexsort((np.arange(len(mine)), -mine)) if mine[i] > limits[1]]
            chosen = greedy(corners[n], np.array(order, np.int64), limits[0], keep)
            selected += [(-mine[i], n, c, i) for i in chosen]
        rows = self.rows(scores.shape[0], scores.shape[1], boxes.shape[1], keep)
        assert isinstance(rows, int)
        out = np.full((rows, 3), -1, numpy_dtype(self.result))
        ordered = sorted(selected, key=lambda f: f[0]) if self.sort_result_descending else selected
        for row, (_, n, c, i) in zip(out, ordered, strict=False):
            row[:] = n, c, i
        return out


@loops
def suppress(
    boxes: Scripted,
    scores: Scripted,
    kept: Scripted,
    counts: Scripted,
    order: Scripted,
    limits: Scripted,
    shape: Scripted,
    measure: Scripted,
) -> None:
    """Suppress boxes by image and class.

    `measure`: f(boxes, image, i) gives the numbers of a box, g the overlap of two boxes, and room for kept boxes.
    """
    numbers, common, held = measure
    images, classes, count, keep = shape
    overlaps, least = limits
    for item in parallel(images * classes):
        n = item // classes
        c = item % classes
        counts[n, c] = 0
        if count > 0:
            found = var(0, DType.I64)
            for i in range(count):
                if scores[n, c, i] > limit(least):
                    order[n, c, found] = i
                    found += 1
            ranking = Ranking(order, (n, c), scores, (n, c))
            how = Measure(partial(numbers, boxes, n), common, held)
            keep_apart(ranking, kept, counts, (found, found, keep), how, limit(overlaps))


@loops
def list_kept(
    outs: Scripted,
    scores: Scripted,
    kept: Scripted,
    counts: Scripted,
    flat: Scripted,
    marks: Scripted,
    shape: Scripted,
    descending: bool,
) -> None:
    """Write all kept boxes, optionally by score; equal scores in the order of image, class and rank.

    `outs`: their indices and, if there are three, their scores and their number.
    """
    out = outs[0]
    images, classes, _, keep = shape
    total = var(0, DType.I64)
    for n in range(images):
        for c in range(classes):
            for k in range(counts[n, c]):
                place = (n * classes + c) * keep + k
                marks[place] = scores[n, c, kept[n, c, k]]
                flat[total] = place
                total += 1
    if descending:
        sort_by_score(flat, marks, (), total, ())
    for r in range(out.shape[0]):
        if r < total:
            place = flat[r]
            image = place // (classes * keep)
            label = place // keep % classes
            out[r, 0] = image
            out[r, 1] = label
            out[r, 2] = kept[image, label, place % keep]
            if len(outs) > 1:
                outs[1][r, 0] = cast(image, DType.F32)
                outs[1][r, 1] = cast(label, DType.F32)
                outs[1][r, 2] = marks[place]
        else:
            for k in range(3):
                out[r, k] = -1
                if len(outs) > 1:
                    outs[1][r, k] = -1.0
    if len(outs) > 1:
        outs[2][0] = total


@op("opset1", type="NonMaxSuppression")
class NonMaxSuppression_1(FixedSuppression):
    """NonMaxSuppression with at most as many rows as boxes; i64."""


@op("opset3", type="NonMaxSuppression")
class NonMaxSuppression_3(FixedSuppression):
    """NonMaxSuppression with at most as many rows as boxes."""

    output_type: DType = DType.I64


@op("opset4", type="NonMaxSuppression")
class NonMaxSuppression_4(FixedSuppression):
    """NonMaxSuppression with rows for all images and classes."""

    output_type: DType = DType.I64

    def rows(self, images: Dim, classes: Dim, boxes: Dim, most: int) -> Dim:
        return images * classes * smaller(boxes, most)


@op("opset5", "opset9")
class NonMaxSuppression(KeptRows):
    """Rows (image, class, box), one for each box kept, their scores (image, class, score), and their number.

    With a sigma above 0, input 5, an overlap iou with a kept box scales the score by exp(-iou^2 / 2 sigma), whatever
    the limit of overlap is.
    """

    arity = (2, 6)
    elements = Elements.FLOAT
    uniform = (0, 1)

    box_encoding: Encoding = Encoding.CORNER
    sort_result_descending: bool = True
    output_type: DType = DType.I64

    @property
    def within(self) -> SuppressionWithin:
        return SuppressionWithin(self.box_encoding, self.sort_result_descending, self.output_type)

    def infer(self, boxes: Operand, scores: Operand, *limits: Operand | None) -> tuple[TensorType, ...]:
        return self.kept(boxes, scores, *limits)


@op()
class SuppressionWithin(LoopOp):
    """NonMaxSuppression with outputs sized for the most rows, and -1 after the last."""

    elements = Elements.FLOAT
    single = True

    box_encoding: Encoding = Encoding.CORNER
    sort_result_descending: bool = True
    output_type: DType = DType.I64

    def infer(
        self,
        boxes: Operand,
        scores: Operand,
        most: Operand | None = None,
        overlap: Operand | None = None,
        least: Operand | None = None,
        sigma: Operand | None = None,
    ) -> tuple[TensorType, ...]:
        check_pairs("NonMaxSuppression", boxes, scores)
        check_limits("NonMaxSuppression", overlap, least, sigma)
        rows = scores.shape[0] * scores.shape[1] * kept_at_most(scores.shape[2], most)
        single = TensorType(self.output_type, (1,))
        return TensorType(self.output_type, (rows, 3)), TensorType(DType.F32, (rows, 3)), single

    def conditions(self, *operands: Operand) -> Sequence[tuple[Dim, Dim, str]]:
        return pairs(*operands)

    def nest(
        self,
        outs: tuple[Buffer, ...],
        boxes: Input,
        scores: Input,
        most: Input | None = None,
        overlap: Input | None = None,
        least: Input | None = None,
        sigma: Input | None = None,
    ) -> tuple[Work, ...]:
        images, classes, count = scores.shape
        each = kept_at_most(count, None if most is None else most.operand())
        room = max(each, 1) if isinstance(each, int) else prim("max", each, 1)
        order = dense("order", images, classes, count, space=Space.ARENA, dtype=DType.I64)
        kept = dense("kept", images, classes, room, space=Space.ARENA, dtype=DType.I64)
        counts = dense("counts", images, classes, space=Space.ARENA, dtype=DType.I64)
        flat = dense("flat", images * classes * room, space=Space.ARENA, dtype=DType.I64)
        marks = dense("marks", images * classes * room, space=Space.ARENA)
        limits = [None if i is None else i.buffer for i in (overlap, least, sigma)]
        shape = (images, classes, count, each)
        listed = (kept, counts, flat, marks, shape, self.sort_result_descending)
        if sigma is None or (sigma.value is not None and not np.any(sigma.value)):
            buffers = (boxes.buffer, scores.buffer, kept, counts)
            held = room_for(4, room, images, classes, dtype=boxes.dtype.compute)
            measure = (partial(corners_of, self.box_encoding), overlap_of, held)
            kept_boxes = suppress(*buffers, order, limits[:2], shape, measure)
            return kept_boxes, list_kept(outs, scores.buffer, *listed)
        lower = dense("lower", images, classes, count, space=Space.ARENA)
        seen = dense("seen", images, classes, count, space=Space.ARENA, dtype=DType.I64)
        buffers = (boxes.buffer, scores.buffer, kept, counts)
        return (
            suppress_softly(*buffers, (lower, seen), limits, shape, self.box_encoding),
            list_kept(outs, lower, *listed),
        )

    def reference(
        self,
        boxes: Array,
        scores: Array,
        most: Array | None = None,
        overlap: Array | None = None,
        least: Array | None = None,
        sigma: Array | None = None,
    ) -> tuple[Array, ...]:
        count = scores.shape[2]
        keep = 0 if most is None else min(max(int(most.reshape(-1)[0]), 0), count)
        limits = [0.0 if v is None else float(v.reshape(-1)[0]) for v in (overlap, least, sigma)]
        corners = corner_array(boxes.astype(np.float64), self.box_encoding)
        selected: list[tuple[float, int, int, int]] = []
        for n, c in np.ndindex(*scores.shape[:2]):
            chosen = kept_softly(corners[n], scores[n, c].astype(np.float64), keep, *limits)
            selected += [(-score, n, c, i) for i, score in chosen]
        ordered = sorted(selected, key=lambda f: f[0]) if self.sort_result_descending else selected
        rows = np.full((scores.shape[0] * scores.shape[1] * keep, 3), -1, numpy_dtype(self.output_type))
        scored = np.full(rows.shape, -1, np.float32)
        for r, (score, n, c, i) in enumerate(ordered):
            rows[r], scored[r] = (n, c, i), (n, c, -score)
        return rows, scored, np.array([len(selected)], rows.dtype)


def kept_at_most(count: Dim, most: Operand | None) -> Dim:
    """Return the most boxes of one class that are kept."""
    keep = 0 if most is None else most.dims("NonMaxSuppression: number of boxes")[0]
    if isinstance(keep, int) and isinstance(count, int):
        return min(max(keep, 0), count)
    return prim("min", prim("max", as_expr(keep, DType.I64), 0), count)
