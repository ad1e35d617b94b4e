"""Common part of MatrixNms and MulticlassNms: the best boxes of all classes, image after image.

candidates of each image and class               (n, c) -> order[n, c, ..]
survivors of suppression, with their scores      kept, marks [n, c, ..], counts[n, c]
the best of each image                           best[n, ..]: places in `kept`
all of them in the requested order               rows
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, Expr, Space, as_expr, cast, dense, prim
from aot.codegen.script.script import Scripted, loops, parallel, var
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.op import DecomposedOp, Elements, LoopOp, Op, Work, late_symbol
from aot.ir.operand import Input, Operand
from aot.ir.types import Array, Dim, TensorType, numpy_dtype
from aot.opset.detection.boxes import check_pairs, pairs, sort_by_score
from aot.opset.movement.slicing import Prefix
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


class Sorting(StrEnum):
    """Order of the results."""

    CLASS = "classid"
    SCORE = "score"
    NONE = "none"


@dataclass(frozen=True)
class Selection(Op, ABC):
    """Attributes of both: boxes (x0, y0, x1, y1), the rules for choosing among them, and their number."""

    elements = Elements.FLOAT
    uniform = (0, 1)

    sort_result_type: Sorting = Sorting.NONE
    sort_result_across_batch: bool = False
    output_type: DType = DType.I64
    score_threshold: float = 0.0
    nms_top_k: int = -1
    keep_top_k: int = -1
    background_class: int = -1
    normalized: bool = True

    @property
    def offset(self) -> float:
        """Added to differences of corners: 1 if a box of whole pixels includes both corners."""
        return 0.0 if self.normalized else 1.0

    def results(self, boxes: Operand, scores: Operand, numbers: Operand | None) -> tuple[TensorType, ...]:
        """Return output types sized for the most results, and the type of their number."""
        check_pairs(self.type, boxes, scores, rank=3 if numbers is None else 2)
        if numbers is not None and numbers.rank != 1:
            raise ShapeError(f"{self.type}: the numbers of boxes must have rank 1, got {numbers.type}")
        x, index = Candidates(boxes, scores, numbers), self.output_type
        rows = self.most(x)
        return (
            TensorType(boxes.dtype, (rows, 6)),
            TensorType(index, (rows, 1)),
            TensorType(index, (x.images,)),
            TensorType(DType.I64, ()),
        )

    def most(self, x: Candidates) -> Dim:
        """Return the most results there can be."""
        return x.images * at_most(x.classes * at_most(x.count, self.nms_top_k), self.keep_top_k)

    @abstractmethod
    def chosen(self, boxes: Array, scores: Array) -> list[tuple[int, float]]:
        """Return the surviving boxes of one class and their scores, for references."""

    def rows_of(self, boxes: Array, scores: Array, numbers: Array | None) -> list[tuple[float, int, int, int]]:
        """Return score, image, class and box of the results in order, for references."""
        classes = scores.shape[-2]
        ends = None if numbers is None else np.cumsum(numbers.reshape(-1))
        rows: list[tuple[float, int, int, int]] = []
        for n in range(len(scores) if ends is None else len(ends)):
            image_rows: list[tuple[float, int, int, int]] = []
            for c in (c for c in range(classes) if c != self.background_class):
                start = 0 if ends is None or n == 0 else int(ends[n - 1])
                ranked = (boxes[n], scores[n, c]) if ends is None else (a[c, start : ends[n]] for a in (boxes, scores))
                found_here = self.chosen(*(a.astype(np.float64) for a in ranked))
                image_rows += [(score, n, c, start + i) for i, score in found_here]
            image_rows.sort(key=lambda f: -f[0])
            rows += image_rows if self.keep_top_k < 0 else image_rows[: self.keep_top_k]
        across = self.sort_result_across_batch
        if self.sort_result_type is Sorting.SCORE and across:
            rows.sort(key=lambda f: -f[0])
        if self.sort_result_type is Sorting.CLASS:
            rows.sort(key=lambda f: (f[2], f[1]) if across else (f[1], f[2]))
        return rows

    def selected(self, boxes: Array, scores: Array, numbers: Array | None) -> tuple[Array, Array, Array]:
        """Compute the outputs, for references."""
        rows = self.rows_of(boxes, scores, numbers)
        shared, images = numbers is None, len(scores) if numbers is None else numbers.size
        out, index = np.zeros((len(rows), 6), boxes.dtype), np.zeros((len(rows), 1), numpy_dtype(self.output_type))
        for r, (score, n, c, i) in enumerate(rows):
            out[r] = (c, score, *boxes[n if shared else c, i])
            index[r] = n * boxes.shape[1] + i if shared else i * len(boxes) + c
        counts = np.bincount([f[1] for f in rows], minlength=images)
        return out, index, counts.astype(numpy_dtype(self.output_type))


def at_most(size: Scripted, most: int) -> Scripted:
    """Return the smaller of the two; a negative `most` is no limit."""
    if most < 0:
        return size
    return min(size, most) if isinstance(size, int) else prim("min", size, most)


class Candidates:
    """Boxes and scores of each image and class: all classes of an image share its boxes, or each class has its own.

    In the second form boxes [C, B, 4] and scores [C, B] hold the images one after another, `numbers` boxes each.
    """

    def __init__(self, boxes: Any, scores: Any, numbers: Any) -> None:
        self.shared = numbers is None
        self.images: Dim = scores.shape[0] if numbers is None else numbers.shape[0]
        self.classes: Dim = scores.shape[-2]
        self.count: Dim = scores.shape[-1]
        self.boxes, self.scores = boxes, scores
        self.numbers: Any = numbers

    def row(self, n: Expr, c: Expr) -> tuple[Expr, ...]:
        """Return the index of the scores of an image and a class."""
        return (n, c) if self.shared else (c,)

    def part(self, n: Expr) -> Expr:
        """Return the number of boxes of image n, clamped to 0..count whatever `numbers` holds."""
        return prim("min", prim("max", cast(self.numbers[n], DType.I64), 0), as_expr(self.count, DType.I64))

    def corner(self, n: Expr, c: Expr, i: Expr, k: int) -> Expr:
        return self.boxes[n if self.shared else c, i, k]

    def corners(self, n: Expr, c: Expr, i: Expr) -> tuple[Expr, ...]:
        """Return (y0, x0, y1, x1)."""
        return tuple(self.corner(n, c, i, k) for k in (1, 0, 3, 2))

    def number(self, n: Expr, c: Expr, i: Expr) -> Expr:
        """Return the box's number in the second output: boxes that belong to one class are numbered as [B, C]."""
        return n * self.count + i if self.shared else i * self.classes + c


@dataclass(frozen=True)
class PaddedSelection(Selection, LoopOp):
    """Loops of both, with outputs sized for the most results."""

    strict: ClassVar[bool] = False  # a score must exceed the threshold, not just reach it

    def infer(self, boxes: Operand, scores: Operand, numbers: Operand | None = None) -> tuple[TensorType, ...]:
        return self.results(boxes, scores, numbers)

    def conditions(self, boxes: Operand, scores: Operand, *_: Operand | None) -> Sequence[tuple[Dim, Dim, str]]:
        return pairs(boxes, scores)

    def nest(
        self, outs: tuple[Buffer, ...], boxes: Input, scores: Input, numbers: Input | None = None
    ) -> tuple[Work, ...]:
        x = Candidates(boxes.buffer, scores.buffer, None if numbers is None else numbers.buffer)
        each = at_most(x.count, self.nms_top_k)
        room = max(each, 1) if isinstance(each, int) else prim("max", each, 1)
        shape = (x.images, x.classes)
        order = dense("order", *shape, x.count, space=Space.ARENA, dtype=DType.I64)
        found, counts = (dense(name, *shape, space=Space.ARENA, dtype=DType.I64) for name in ("found", "counts"))
        kept = dense("kept", *shape, room, space=Space.ARENA, dtype=DType.I64)
        marks = dense("marks", x.images * x.classes * room, space=Space.ARENA)
        best = dense("best", x.images, x.classes * room, space=Space.ARENA, dtype=DType.I64)
        rows = dense("rows", outs[0].shape[0], space=Space.ARENA, dtype=DType.I64)
        return (
            _list_candidates(x, order, found, self),
            self.suppress(x, order, found, (kept, marks, counts), room),
            _rank_boxes(x, marks, counts, best, outs[2], room, self),
            _order_results(x, best, outs[2], marks, rows, outs[3], room, self),
            _write_results(x, rows, kept, marks, outs, room),
        )

    @abstractmethod
    def suppress(self, x: Candidates, order: Buffer, buffer: Buffer, left: tuple[Buffer, ...], room: Dim) -> Work:
        """Fill `left` for each image and class: the surviving boxes, their scores, and their number."""

    def reference(self, boxes: Array, scores: Array, numbers: Array | None = None) -> tuple[Array, ...]:
        out, index, counts = self.selected(boxes, scores, numbers)
        most = self.most(Candidates(boxes, scores, numbers))
        assert isinstance(most, int)
        rest = ((0, most - len(out)), (0, 0))
        return np.pad(out, rest), np.pad(index, rest), counts, np.array(len(out), np.int64)


@loops
def _list_candidates(x: Scripted, order: Scripted, found: Scripted, op: Scripted) -> None:
    """Write the candidates of each image and class, and their number to `found`."""
    for item in parallel(x.images * x.classes):
        n = item // x.classes
        c = item % x.classes
        total = var(0, DType.I64)
        start = var(0, DType.I64)
        stop = var(x.count, DType.I64)
        if not x.shared:
            for m in range(n):
                start = min(start + x.part(m), x.count)
            stop = min(start + x.part(n), x.count)
        if c == op.background_class:
            stop = start
        for i in range(start, stop):
            score = x.scores[(*x.row(n, c), i)]
            if score > op.score_threshold if op.strict else score >= op.score_threshold:
                order[n, c, total] = i
                total += 1
        found[n, c] = total


@loops
def _rank_boxes(
    x: Scripted, marks: Scripted, counts: Scripted, best: Scripted, numbers: Scripted, room: Scripted, op: Scripted
) -> None:
    """Write the best boxes of each image by score; equal ones in the order of classes."""
    for n in parallel(x.images):
        total = var(0, DType.I64)
        for c in range(x.classes):
            for k in range(counts[n, c]):
                best[n, total] = (n * x.classes + c) * room + k
                total += 1
        numbers[n] = at_most(total, op.keep_top_k)
        sort_by_score(best, marks, (n,), total, (), at_most(total, op.keep_top_k))


@loops
def _order_results(
    x: Scripted,
    best: Scripted,
    numbers: Scripted,
    marks: Scripted,
    rows: Scripted,
    count: Scripted,
    room: Scripted,
    op: Scripted,
) -> None:
    """Write all results in the requested order."""
    total = var(0, DType.I64)
    across = op.sort_result_across_batch
    if op.sort_result_type is Sorting.CLASS:
        for outer in range(x.classes if across else x.images):
            for inner in range(x.images if across else x.classes):
                n, c = (inner, outer) if across else (outer, inner)
                for k in range(numbers[n]):
                    if best[n, k] // room % x.classes == c:
                        rows[total] = best[n, k]
                        total += 1
    else:
        for n in range(x.images):
            for k in range(numbers[n]):
                rows[total] = best[n, k]
                total += 1
        if across and op.sort_result_type is Sorting.SCORE:
            sort_by_score(rows, marks, (), total, ())
    count[()] = total


@loops
def _write_results(
    x: Scripted, rows: Scripted, kept: Scripted, marks: Scripted, outs: Scripted, room: Scripted
) -> None:
    out, index, _, count = outs
    for r in parallel(rows.shape[0]):
        if r < count[()]:
            n = rows[r] // (x.classes * room)
            c = rows[r] // room % x.classes
            i = kept[n, c, rows[r] % room]
            out[r, 0] = cast(c, DType.F32)
            out[r, 1] = marks[rows[r]]
            for k in (0, 1, 2, 3):
                out[r, k + 2] = x.corner(n, c, i, k)
            index[r, 0] = x.number(n, c, i)


@dataclass(frozen=True)
class Selecting(Selection, DecomposedOp):
    """Boxes [N, B, 4], scores [N, C, B] to rows (class, score, box), box numbers, and the count for each image."""

    @property
    @abstractmethod
    def padded(self) -> PaddedSelection:
        """The operation with outputs sized for the most results."""

    def infer(self, boxes: Operand, scores: Operand, numbers: Operand | None = None) -> tuple[TensorType, ...]:
        rows, index, counts, _ = self.results(boxes, scores, numbers)
        count = late_symbol(self, "count", rows.shape[0], boxes, scores, numbers)
        return TensorType(rows.dtype, (count, 6)), TensorType(index.dtype, (count, 1)), counts

    def decompose(self, build: Builder, *inputs: OutPort | None) -> tuple[OutPort, ...]:
        rows, index, counts, count = build.node(self.padded, *inputs, outputs=4).out_ports().values()
        return build(Prefix(0), rows, count), build(Prefix(0), index, count), counts

    def reference(self, boxes: Array, scores: Array, numbers: Array | None = None) -> tuple[Array, ...]:
        return self.selected(boxes, scores, numbers)
