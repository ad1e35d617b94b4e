"""NonMaxSuppression: outputs of the first operation sets are sized for the most boxes, later ones for those kept.

For each image and class the boxes in order of score, without those that overlap a better one; then all by score.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, Space, as_expr, cast, dense, prim
from aot.codegen.script.script import Scripted, loops, parallel, var
from aot.ir.op import Elements, LoopOp, Op, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType, numpy_dtype
from aot.opset.detection.boxes import (
    Measure,
    Ranking,
    check_limits,
    check_pairs,
    keep_apart,
    pairs,
    room_for,
    sort_by_score,
)
from aot.opset.detection.boxes import overlap as overlap_of
from aot.opset.detection.selected_rows import SelectedRows
from aot.opset.detection.suppression.corners import Encoding, corner_array, corners_of
from aot.opset.detection.suppression.soft_suppression import limit, select_softly, suppress_softly
from aot.opset.products.pool_windows import smaller
from aot.runtime.abi import DType


@dataclass(frozen=True)
class NonMaxSuppressionBase(LoopOp, ABC):
    """Boxes [N, B, 4], scores [N, C, B], most boxes for each class, limits of overlap and of scores, perhaps a sigma.

    Output rows (image, class, box), sized for the most there can be, -1 after the last; perhaps scores and a number.
    """

    arity = (2, 6)
    elements = Elements.FLOAT
    single = True
    name: ClassVar[str] = "NonMaxSuppression"  # in errors
    numbers: ClassVar[int] = 4  # of a box
    held: ClassVar[int] = 4  # of a kept box

    @property
    @abstractmethod
    def order(self) -> tuple[bool, DType]:
        """True if the rows are sorted by score, and their element type."""

    @abstractmethod
    def measure(self, held: Buffer) -> Scripted:
        """Return the measure of overlaps of `suppress`. `held`: room for the numbers of kept boxes."""

    @abstractmethod
    def chosen(self, boxes: Array, scores: Array, most: int, *limits: float) -> list[tuple[int, float]]:
        """Return the boxes of a class that are kept and their scores, for references."""

    def most(self, count: Dim, most: Operand | None) -> Dim:
        """Return the most boxes of one class that are kept."""
        keep = 0 if most is None else most.dims(f"{self.name}: number of boxes")[0]
        if isinstance(keep, int) and isinstance(count, int):
            return min(max(keep, 0), count)
        return prim("min", prim("max", as_expr(keep, DType.I64), 0), count)

    def infer(self, boxes: Operand, scores: Operand, *limits: Operand | None) -> TensorType | tuple[TensorType, ...]:
        check_pairs(self.name, boxes, scores, numbers=self.numbers)
        check_limits(self.name, *limits[1:])
        rows = scores.shape[0] * scores.shape[1] * self.most(scores.shape[2], limits[0] if limits else None)
        _, dtype = self.order
        return TensorType(dtype, (rows, 3)), TensorType(DType.F32, (rows, 3)), TensorType(dtype, (1,))

    def conditions(self, *operands: Operand) -> Sequence[tuple[Dim, Dim, str]]:
        return pairs(*operands, numbers=self.numbers)

    def nest(self, outs: tuple[Buffer, ...], boxes: Input, scores: Input, *limits: Input | None) -> tuple[Work, ...]:
        most, overlap, least, sigma = (*limits, None, None, None, None)[:4]
        images, classes, count = scores.shape
        each = self.most(count, None if most is None else most.operand())
        room = max(each, 1) if isinstance(each, int) else prim("max", each, 1)
        order = dense("order", images, classes, count, space=Space.ARENA, dtype=DType.I64)
        kept = dense("kept", images, classes, room, space=Space.ARENA, dtype=DType.I64)
        counts = dense("counts", images, classes, space=Space.ARENA, dtype=DType.I64)
        flat = dense("flat", images * classes * room, space=Space.ARENA, dtype=DType.I64)
        marks = dense("marks", images * classes * room, space=Space.ARENA)
        bounds = [None if i is None else i.buffer for i in (overlap, least, sigma)]
        shape = (images, classes, count, each)
        buffers, listed = (boxes.buffer, scores.buffer, kept, counts), (kept, counts, flat, marks, shape, self.order[0])
        if sigma is None or (sigma.value is not None and not np.any(sigma.value)):
            held = room_for(self.held, room, images, classes, dtype=boxes.dtype.compute)
            suppression = suppress(*buffers, order, bounds[:2], shape, self.measure(held))
            return suppression, list_selected(outs, scores.buffer, *listed)
        lower = dense("lower", images, classes, count, space=Space.ARENA)
        seen = dense("seen", images, classes, count, space=Space.ARENA, dtype=DType.I64)
        return (
            suppress_softly(*buffers, (lower, seen), bounds, shape, self.measure(lower)[0]),
            list_selected(outs, lower, *listed),
        )

    def reference(self, boxes: Array, scores: Array, *limits: Array | None) -> Array | tuple[Array, ...]:
        (descending, dtype), count = self.order, scores.shape[2]
        most, *bounds = [0.0 if v is None else float(v.reshape(-1)[0]) for v in (*limits, *[None] * 4)[:4]]
        keep = min(max(int(most), 0), count)
        selected: list[tuple[float, int, int, int]] = []
        for n, c in np.ndindex(*scores.shape[:2]):
            chosen = self.chosen(boxes[n].astype(np.float64), scores[n, c].astype(np.float64), keep, *bounds)
            selected += [(-score, n, c, i) for i, score in chosen]
        ordered = sorted(selected, key=lambda f: f[0]) if descending else selected
        rows: Array = np.full((scores.shape[0] * scores.shape[1] * keep, 3), -1, numpy_dtype(dtype))
        scored = np.full(rows.shape, -1, np.float32)
        for r, (score, n, c, i) in enumerate(ordered):
            rows[r], scored[r] = (n, c, i), (n, c, -score)
        return rows, scored, np.array([len(selected)], rows.dtype)


@dataclass(frozen=True)
class NonMaxSuppressionAttributes(Op):
    """Attributes of NonMaxSuppression."""

    box_encoding: Encoding = Encoding.CORNER
    sort_result_descending: bool = True


@dataclass(frozen=True)
class CornerNonMaxSuppression(NonMaxSuppressionBase, NonMaxSuppressionAttributes):
    """NonMaxSuppression by the corners of boxes."""

    @property
    def order(self) -> tuple[bool, DType]:
        return self.sort_result_descending, getattr(self, "output_type", DType.I64)

    def measure(self, held: Buffer) -> Scripted:
        return partial(corners_of, self.box_encoding), overlap_of, held

    def chosen(self, boxes: Array, scores: Array, most: int, *limits: float) -> list[tuple[int, float]]:
        return select_softly(corner_array(boxes, self.box_encoding), scores, most, *limits)


@dataclass(frozen=True)
class FixedNonMaxSuppression(CornerNonMaxSuppression):
    """Rows (image, class, box) only, of a number that is known at compile time."""

    arity = (2, 5)
    single = True
    uniform = (0, 1)

    def rows(self, images: Dim, classes: Dim, boxes: Dim, most: int) -> Dim:
        """Return the number of output rows."""
        return smaller(boxes, classes * most)

    def most(self, count: Dim, most: Operand | None) -> Dim:
        return 0 if most is None else most.ints("NonMaxSuppression: number of boxes")[0]

    def infer(self, boxes: Operand, scores: Operand, *limits: Operand | None) -> TensorType:
        check_pairs("NonMaxSuppression", boxes, scores)
        check_limits("NonMaxSuppression", *limits[1:])
        most = self.most(boxes.shape[1], limits[0] if limits else None)
        assert isinstance(most, int)
        return TensorType(self.order[1], (self.rows(scores.shape[0], scores.shape[1], boxes.shape[1], most), 3))

    def reference(self, boxes: Array, scores: Array, *limits: Array | None) -> Array:
        selected = super().reference(boxes, scores, *limits)[0]
        most = 0 if not limits or limits[0] is None else int(limits[0].reshape(-1)[0])
        rows = self.rows(scores.shape[0], scores.shape[1], boxes.shape[1], most)
        assert isinstance(rows, int)
        return np.pad(selected, ((0, max(rows - len(selected), 0)), (0, 0)), constant_values=-1)[:rows]


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
def list_selected(
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
class NonMaxSuppression_1(FixedNonMaxSuppression):
    """NonMaxSuppression with at most as many rows as boxes; i64."""


@op("opset3", type="NonMaxSuppression")
class NonMaxSuppression_3(FixedNonMaxSuppression):
    """NonMaxSuppression with at most as many rows as boxes."""

    output_type: DType = DType.I64


@op("opset4", type="NonMaxSuppression")
class NonMaxSuppression_4(FixedNonMaxSuppression):
    """NonMaxSuppression with rows for all images and classes."""

    output_type: DType = DType.I64

    def rows(self, images: Dim, classes: Dim, boxes: Dim, most: int) -> Dim:
        return images * classes * smaller(boxes, most)


@op("opset5", "opset9")
class NonMaxSuppression(SelectedRows, NonMaxSuppressionAttributes):
    """Rows (image, class, box), one for each box kept, their scores (image, class, score), and their number.

    With a sigma above 0, input 5, an overlap iou with a kept box scales the score by exp(-iou^2 / 2 sigma), whatever
    the limit of overlap is.
    """

    arity = (2, 6)
    elements = Elements.FLOAT
    uniform = (0, 1)

    output_type: DType = DType.I64

    @property
    def padded(self) -> PaddedNonMaxSuppression:
        return PaddedNonMaxSuppression(**vars(self))

    def infer(self, boxes: Operand, scores: Operand, *limits: Operand | None) -> tuple[TensorType, ...]:
        return self.row_types(boxes, scores, *limits)


@op()
class PaddedNonMaxSuppression(CornerNonMaxSuppression):
    """NonMaxSuppression with outputs sized for the most rows, and -1 after the last."""

    output_type: DType = DType.I64
