"""NonMaxSuppression of the first operation sets: outputs have the size of the most boxes there may be.

For each image and class the boxes by score, without those that overlap a better one; then all of them by score.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from aot.ir.op import Input, LoopOp, Operand, Work, absent, op
from aot.ir.types import Array, Dim, TensorType, differs, numpy_dtype
from aot.opset.boxes import greedy, overlap, sort_by_score
from codegen.loops import Buffer, Expr, Space, dense, prim
from codegen.script import Scripted, loops, parallel, var
from runtime.abi import DType
from runtime.errors import ShapeError


class Encoding(StrEnum):
    """What the numbers of a box are: two opposite corners (y, x, y, x), or (middle x, middle y, width, height)."""

    CORNER = "corner"
    CENTER = "center"


@dataclass(frozen=True)
class FixedSuppression(LoopOp):
    """Boxes [N, B, 4], scores [N, C, B], most boxes for each class, limits of overlap and of scores.

    Output rows (image, class, box); -1 behind the last.
    """

    box_encoding: Encoding = Encoding.CORNER
    sort_result_descending: bool = True

    @property
    def result(self) -> DType:
        return getattr(self, "output_type", DType.I64)

    def rows(self, images: Dim, classes: Dim, boxes: Dim, most: int) -> Dim:
        """How many there are at most."""
        found = classes * most
        return min(boxes, found) if isinstance(boxes, int) and isinstance(found, int) else found

    def infer(
        self, boxes: Operand, scores: Operand, most: Operand | None = None, overlap: Operand | None = None,
        least: Operand | None = None,
    ) -> TensorType:  # fmt: skip
        if boxes.rank != 3 or scores.rank != 3 or differs(boxes.shape[2], 4):
            found = f"{boxes.type} and {scores.type}"
            raise ShapeError(f"NonMaxSuppression: boxes [N, B, 4] and scores [N, C, B], got {found}")
        keep = 0 if most is None else most.ints("NonMaxSuppression: number of boxes")[0]
        return TensorType(self.result, (self.rows(scores.shape[0], scores.shape[1], boxes.shape[1], keep), 3))

    def nest(
        self, outs: tuple[Buffer, ...], boxes: Input, scores: Input, most: Input | None = None,
        overlap: Input | None = None, least: Input | None = None,
    ) -> tuple[Work, ...]:  # fmt: skip
        images, classes, count = scores.shape
        keep = 0 if most is None else most.operand().ints("NonMaxSuppression: number of boxes")[0]
        order = dense("order", images, classes, count, space=Space.ARENA, dtype=DType.I64)
        kept = dense("kept", images, classes, max(keep, 1), space=Space.ARENA, dtype=DType.I64)
        counts = dense("counts", images, classes, space=Space.ARENA, dtype=DType.I64)
        flat = dense("flat", images * classes * max(keep, 1), space=Space.ARENA, dtype=DType.I64)
        marks = dense("marks", images * classes * max(keep, 1), space=Space.ARENA)
        limits = [None if i is None else i.buffer for i in (overlap, least)]
        found = (boxes.buffer, scores.buffer, kept, counts)
        shape = (images, classes, count, keep)
        return (
            _suppress(*found, order, limits, shape, self.box_encoding),
            _list(outs[0], scores.buffer, kept, counts, flat, marks, shape, self.sort_result_descending),
        )

    def reference(
        self, boxes: Array, scores: Array, most: Array | None = None, overlap: Array | None = None,
        least: Array | None = None,
    ) -> Array:  # fmt: skip
        keep = 0 if most is None else int(most.reshape(-1)[0])
        limits = [0.0 if v is None else float(v.reshape(-1)[0]) for v in (overlap, least)]
        corners = _corner_array(boxes.astype(np.float64), self.box_encoding)
        found: list[tuple[float, int, int, int]] = []
        for n, c in np.ndindex(*scores.shape[:2]):
            mine = scores[n, c].astype(np.float64)
            order = [i for i in np.lexsort((np.arange(len(mine)), -mine)) if mine[i] > limits[1]]
            chosen = greedy(corners[n], np.array(order, np.int64), limits[0], keep)
            found += [(-mine[i], n, c, i) for i in chosen]
        rows = self.rows(scores.shape[0], scores.shape[1], boxes.shape[1], keep)
        assert isinstance(rows, int)
        out = np.full((rows, 3), -1, numpy_dtype(self.result))
        ordered = sorted(found, key=lambda f: f[0]) if self.sort_result_descending else found
        for row, (_, n, c, i) in zip(out, ordered, strict=False):
            row[:] = n, c, i
        return out


def _corner_array(boxes: Array, encoding: Encoding) -> Array:
    if encoding is Encoding.CENTER:
        middle, half = boxes[..., [1, 0]], boxes[..., [3, 2]] / 2
        return np.concatenate([middle - half, middle + half], -1)
    return np.concatenate([np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])], -1)


def _corners(boxes: Buffer, n: Expr, i: Expr, encoding: Encoding) -> tuple[Expr, Expr, Expr, Expr]:
    a, b, c, d = (boxes[n, i, k] for k in range(4))
    if encoding is Encoding.CENTER:
        return b - d / 2.0, a - c / 2.0, b + d / 2.0, a + c / 2.0
    return prim("min", a, c), prim("min", b, d), prim("max", a, c), prim("max", b, d)


@loops
def _limit(held: Scripted) -> Scripted:
    return 0.0 if held is None else held[(0,) * len(held.shape)]


@loops
def _suppress(
    boxes: Scripted, scores: Scripted, kept: Scripted, counts: Scripted, order: Scripted, limits: Scripted,
    shape: Scripted, encoding: Encoding,
) -> None:  # fmt: skip
    images, classes, count, keep = shape
    overlaps, least = limits
    for item in parallel(images * classes):
        n = item // classes
        c = item % classes
        found = var(0, DType.I64)
        for i in range(count):
            if scores[n, c, i] > _limit(least):
                order[n, c, found] = i
                found += 1
        sort_by_score(order, scores, (n, c), found, (n, c))
        counts[n, c] = 0
        k = var(0, DType.I64)
        while k < found and counts[n, c] < keep:
            mine = order[n, c, k]
            free = var(1, DType.I64)
            j = var(0, DType.I64)
            while free == 1 and j < counts[n, c]:
                other = kept[n, c, j]
                if overlap(_corners(boxes, n, mine, encoding), _corners(boxes, n, other, encoding)) > _limit(overlaps):
                    free = 0
                j += 1
            if free == 1:
                kept[n, c, counts[n, c]] = mine
                counts[n, c] += 1
            k += 1


@loops
def _list(
    out: Scripted, scores: Scripted, kept: Scripted, counts: Scripted, flat: Scripted, marks: Scripted, shape: Scripted,
    descending: bool,
) -> None:  # fmt: skip
    """All that were kept, perhaps by score; equal scores in the order of image, class and rank."""
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
        else:
            for k in range(3):
                out[r, k] = -1


@op("opset1", type="NonMaxSuppression")
class NonMaxSuppression_1(FixedSuppression):
    """At most as many rows as there are boxes; i64."""


@op("opset3", type="NonMaxSuppression")
class NonMaxSuppression_3(FixedSuppression):
    """At most as many rows as there are boxes."""

    output_type: DType = DType.I64


@op("opset4", type="NonMaxSuppression")
class NonMaxSuppression_4(FixedSuppression):
    """Rows for all images and classes."""

    output_type: DType = DType.I64

    def rows(self, images: Dim, classes: Dim, boxes: Dim, most: int) -> Dim:
        each = min(boxes, most) if isinstance(boxes, int) else most
        return images * classes * each


# Their outputs have as many rows as there are boxes.
absent("NonMaxSuppression", "opset5", "opset9")
