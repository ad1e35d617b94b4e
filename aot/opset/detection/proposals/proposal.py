"""Proposals of a region network: anchors moved by deltas; the best survive suppression of overlaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, Expr, Space, cast, dense, prim, select
from aot.codegen.script.script import Scripted, loops, parallel
from aot.ir.conditions import Condition, alike, at_least, in_range
from aot.ir.op import Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, TensorType
from aot.opset.detection.proposals.moved_boxes import (
    Image,
    Search,
    moved_array,
    moved_corners,
    search_boxes,
    searched,
    temporaries,
    within,
)
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


@dataclass(frozen=True)
class Proposals(LoopOp):
    """Proposals of a region network; coordinates are (x, y), in the framework "tensorflow" (y, x).

    Scores [N, 2 A, H, W] (background, object), deltas [N, 4 A, H, W], image (height, width, one scale or two).

    Output [N * post_nms_topn, 5]: (image, x0, y0, x1, y1); after the last box of an image one row that begins with -1,
    then zeros.
    """

    elements = Elements.FLOAT
    uniform = (0, 1, 2)
    single = True

    base_size: int = 0
    pre_nms_topn: int = 0
    post_nms_topn: int = 0
    nms_thresh: float = 0.0
    feat_stride: int = 1
    min_size: int = 1
    ratio: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    clip_before_nms: bool = True
    clip_after_nms: bool = False
    normalize: bool = False
    box_size_scale: float = 1.0
    box_coordinate_scale: float = 1.0
    framework: str = ""

    @property
    def is_tensorflow(self) -> bool:
        return self.framework == "tensorflow"

    @property
    def offset(self) -> float:
        """Added to differences of corners: 1 if a box of whole pixels includes both corners."""
        return 0.0 if self.is_tensorflow else 1.0

    def anchors(self) -> Array:
        """Return the corners (x0, y0, x1, y1) of the anchors of the first cell."""
        anchors: list[list[float]] = []
        middle = 0.5 * (self.base_size - self.offset) - (0.5 * self.base_size if self.is_tensorflow else 0.0)
        for ratio in self.ratio:
            width = float(np.sqrt(self.base_size * self.base_size / ratio))
            width = width if self.is_tensorflow else float(np.floor(width + 0.5))
            height = width * ratio if self.is_tensorflow else float(np.floor(width * ratio + 0.5))
            for scale in self.scale:
                half = [0.5 * (n * scale - self.offset) for n in (width, height)]
                anchors.append([middle - half[0], middle - half[1], middle + half[0], middle + half[1]])
        return np.array(anchors)

    def results(self, x: Operand, deltas: Operand, image: Operand) -> tuple[TensorType, TensorType]:
        if (x.rank, deltas.rank) != (4, 4) or image.rank not in (1, 2):
            raise ShapeError(f"Proposal: scores and deltas must have rank 4, got {x.type} and {deltas.type}")
        count = x.shape[0] * self.post_nms_topn
        return TensorType(x.dtype, (count, 5)), TensorType(x.dtype, (count,))

    def conditions(self, x: Operand, deltas: Operand, image: Operand) -> Sequence[Condition]:
        anchors, (batch, channels, *sizes) = len(self.ratio) * len(self.scale), x.shape
        rule = f"scores and deltas of {anchors} anchors must fit each other"
        pairs = alike(rule, (channels, *deltas.shape), (2 * anchors, batch, 4 * anchors, *sizes))
        if not isinstance(image.shape[-1], int):
            pairs.append(in_range("numbers of an image must be three or four", image.shape[-1], 3, 4))
            return pairs
        return [*pairs, at_least("numbers of an image", image.shape[-1], 3)]

    def search(self, x: Operand | Input) -> Search:
        boxes = x.shape[2] * x.shape[3] * (len(self.ratio) * len(self.scale))
        return Search(x.shape[0], boxes, self.pre_nms_topn, self.post_nms_topn, self.nms_thresh, self.offset)

    def nest(self, outs: tuple[Buffer, ...], x: Input, deltas: Input, image: Input) -> tuple[Work, ...]:
        s = self.search(x)
        boxes, scores, order, held, kept, counts = temporaries(s)
        values = tuple(float(v) for v in self.anchors().astype(np.float32).ravel())
        anchors = dense("anchors", len(values) // 4, 4, space=Space.TABLE, values=values)
        numbers = image.shape[-1]
        last = prim("min", numbers - 1, 3) if isinstance(numbers, Expr) else 3 if numbers == 4 else 2
        size = Image(image.buffer, last, self.is_tensorflow)
        chosen, *rest = outs
        results = (chosen, rest[0] if rest else None)
        return (
            _enumerate(boxes, scores, x.buffer, deltas.buffer, anchors, size, x.shape, self),
            search_boxes(boxes, scores, order, held, kept, counts, s),
            _retrieve(results, boxes, scores, kept, counts, size, s, self),
        )

    def computed(self, x: Array, deltas: Array, image: Array) -> tuple[Array, Array]:
        s = self.search(Operand(TensorType(DType.F32, x.shape)))
        anchors, h, w = self.anchors(), int(x.shape[2]), int(x.shape[3])
        numbers = image.reshape(-1).astype(np.float64)
        limits = np.array([numbers[0], numbers[1]] * 2 if self.is_tensorflow else [numbers[1], numbers[0]] * 2)
        least = self.min_size * np.array([numbers[3] if len(numbers) > 3 else numbers[2], numbers[2]])
        i, j = np.meshgrid(np.arange(h), np.arange(w), indexing="ij")
        cell_corners = np.stack([i, j] if self.is_tensorflow else [j, i], -1).reshape(-1, 1, 2) * self.feat_stride
        start = (anchors[None] + np.tile(cell_corners, 2)).reshape(-1, 4)
        start = np.clip(start, 0, limits) if self.is_tensorflow else start
        out = np.zeros((x.shape[0], self.post_nms_topn, 5))
        probabilities = np.zeros((x.shape[0], self.post_nms_topn))
        for n in range(x.shape[0]):
            offsets = deltas[n].astype(np.float64).reshape(len(anchors), 4, -1).transpose(2, 0, 1).reshape(-1, 4)
            offsets = offsets / np.array([self.box_coordinate_scale] * 2 + [self.box_size_scale] * 2)
            boxes = moved_array(start, offsets, self.offset, 0.0)
            boxes = np.clip(boxes, 0, limits - self.offset) if self.clip_before_nms else boxes
            scores = x[n, len(anchors) :].reshape(len(anchors), -1).T.reshape(-1).astype(np.float64)
            scores = scores * (boxes[:, 2:] - boxes[:, :2] + self.offset >= least).all(1)
            chosen = searched(boxes, scores, s)
            clipped = np.clip(boxes[chosen], 0, limits) if self.clip_after_nms else boxes[chosen]
            out[n, : len(chosen), 0], out[n, : len(chosen), 1:] = n, clipped / limits if self.normalize else clipped
            probabilities[n, : len(chosen)] = scores[chosen]
            if len(chosen) < self.post_nms_topn:
                out[n, len(chosen), 0] = -1
        return out.reshape(-1, 5).astype(x.dtype), probabilities.reshape(-1).astype(x.dtype)


@loops
def _enumerate(
    boxes: Scripted,
    scores: Scripted,
    x: Scripted,
    deltas: Scripted,
    anchors: Scripted,
    image: Scripted,
    shape: Scripted,
    op: Scripted,
) -> None:
    images, _, height, width = shape
    count = anchors.shape[0]
    for item in parallel(images * height):
        n = item // height
        i = item % height
        for j in range(width):
            for a in range(count):
                cell = (i, j) if op.is_tensorflow else (j, i)
                start = [anchors[a, k] + cast(cell[k % 2], DType.F32) * float(op.feat_stride) for k in range(4)]
                start = [within(v, image.limit(k % 2)) for k, v in enumerate(start)] if op.is_tensorflow else start
                scale = [op.box_coordinate_scale] * 2 + [op.box_size_scale] * 2
                delta = [deltas[n, a * 4 + k, i, j] / scale[k] for k in range(4)]
                found = moved_corners(start, delta, op.offset, 0.0)
                if op.clip_before_nms:
                    found = [within(v, image.limit(k % 2) - op.offset) for k, v in enumerate(found)]
                place = (i * width + j) * count + a
                for k, v in enumerate(found):
                    boxes[n, place, k] = v
                size = [boxes[n, place, k + 2] - boxes[n, place, k] + op.offset for k in (0, 1)]
                large = [v >= image.scale(k) * float(op.min_size) for k, v in enumerate(size)]
                scores[n, place] = select(large[0], select(large[1], x[n, count + a, i, j], 0.0), 0.0)


@loops
def _retrieve(
    outs: Scripted,
    boxes: Scripted,
    scores: Scripted,
    kept: Scripted,
    counts: Scripted,
    image: Scripted,
    s: Scripted,
    op: Scripted,
) -> None:
    out, probabilities = outs
    for item in parallel(s.images * s.keep):
        n = item // s.keep
        k = item % s.keep
        if k < counts[n]:
            here = kept[n, k]
            out[item, 0] = n
            for c in (0, 1, 2, 3):
                edge = boxes[n, here, c]
                cut = within(edge, image.limit(c % 2)) if op.clip_after_nms else edge
                out[item, c + 1] = cut / image.limit(c % 2) if op.normalize else cut
            if probabilities is not None:
                probabilities[item] = scores[n, here]
        else:
            for c in range(5):
                out[item, c] = 0.0
            if k == counts[n]:
                out[item, 0] = -1.0
            if probabilities is not None:
                probabilities[item] = 0.0


@op("opset4")
class Proposal(Proposals):
    """Proposals and their scores."""

    def infer(self, x: Operand, deltas: Operand, image: Operand) -> tuple[TensorType, TensorType]:
        return self.results(x, deltas, image)

    def reference(self, x: Array, deltas: Array, image: Array) -> tuple[Array, Array]:
        return self.computed(x, deltas, image)


@op("opset1", type="Proposal")
class Proposal_1(Proposals):
    """Proposals without scores."""

    def infer(self, x: Operand, deltas: Operand, image: Operand) -> TensorType:
        return self.results(x, deltas, image)[0]

    def reference(self, x: Array, deltas: Array, image: Array) -> Array:
        return self.computed(x, deltas, image)[0]
