"""Operations of Detectron's second stage: the best boxes, and their features from the level of a pyramid that fits."""

from __future__ import annotations

import numpy as np

from aot.ir.op import Input, LoopOp, Operand, Work, op
from aot.ir.types import Array, TensorType
from aot.opset.boxes import sort_by_score
from aot.opset.roi_align import Aligned, Sampling, pooled, sampled
from codegen.define import Definition
from codegen.loops import Buffer, Const, Expr, Space, Var, cast, dense, prim, select
from codegen.script import Scripted, loops
from runtime.abi import DType
from runtime.errors import ShapeError

CANONICAL = 224.0  # size of the boxes that belong to level 2


@op("opset6")
class ExperimentalDetectronTopKROIs(LoopOp):
    """The `max_rois` boxes of [R, 4] with the largest of the probabilities [R], best first."""

    max_rois: int = 0

    def infer(self, rois: Operand, probabilities: Operand) -> TensorType:
        if rois.rank != 2 or probabilities.rank != 1:
            raise ShapeError(f"{self.type}: boxes [R, 4] and scores [R], got {rois.type} and {probabilities.type}")
        if isinstance(rois.shape[0], int) and rois.shape[0] < self.max_rois:
            raise ShapeError(f"{self.type}: max_rois must be at most {rois.shape[0]}, got {self.max_rois}")
        return TensorType(rois.dtype, (self.max_rois, 4))

    def nest(self, outs: tuple[Buffer, ...], rois: Input, probabilities: Input) -> tuple[Work, ...]:
        order = dense("order", rois.shape[0], space=Space.ARENA, dtype=DType.I64)
        return (_best(outs[0], rois.buffer, probabilities.buffer, order, rois.shape[0], self.max_rois),)

    def reference(self, rois: Array, probabilities: Array) -> Array:
        return rois[np.argsort(-probabilities.astype(np.float64), kind="stable")[: self.max_rois]]


@loops
def _best(out: Scripted, rois: Scripted, scores: Scripted, order: Scripted, count: Scripted, most: int) -> None:
    for r in range(count):
        order[r] = r
    sort_by_score(order, scores, (), count, ())
    for r in range(most):
        place = order[r]
        for k in range(4):
            out[r, k] = rois[place, k]


@op("opset6")
class ExperimentalDetectronROIFeatureExtractor(LoopOp):
    """Boxes [R, 4] and the levels [1, C, H, W] of a pyramid: each box aligned on the level for its size; and the boxes.

    level = floor(2 + log2(sqrt(area) / 224)), between the first and the last; a box without area gives zeros.
    """

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
            raise ShapeError(f"{self.type}: a level for each of {len(self.pyramid_scales)} scales, got {len(levels)}")
        if any(f.rank != 4 for f in levels):
            raise ShapeError(f"{self.type}: levels have rank 4, got {', '.join(str(f.type) for f in levels)}")
        shape = (rois.shape[0], levels[0].shape[1], self.output_size, self.output_size)
        return TensorType(rois.dtype, shape), TensorType(rois.dtype, rois.shape)

    def nest(self, outs: tuple[Buffer, ...], rois: Input, *levels: Input) -> tuple[Work, ...]:
        boxes, channels, height, width = outs[0].shape
        works: list[Work] = []
        r, c, h, w = axes = tuple(Var(name, n) for name, n in zip("rchw", outs[0].shape, strict=True))
        level = self._level(rois, r, len(levels))
        value: Expr = Const(0.0, DType.F32)
        for n, features in enumerate(levels):
            acc = dense(f"level{n}", boxes, height, width, channels, space=Space.ARENA)
            works.append(pooled(acc, features.buffer, rois.buffer, None, (*features.shape, boxes), self._sampling(n)))
            value = select(prim("eq", level, n), acc[r, h, w, c], value)
        works.append(Definition(outs[0], axes, value))
        i, k = copied = Var("i", rois.shape[0]), Var("k", 4)
        return (*works, Definition(outs[1], copied, rois(i, k)))

    def _level(self, rois: Input, r: Expr, count: int) -> Expr:
        """The level of a box; `count` if it has no area."""
        area = (rois(r, 2) - rois(r, 0)) * (rois(r, 3) - rois(r, 1))
        size = prim("sqrt", prim("max", area, 0.0)) / CANONICAL
        level = prim("floor", prim("log", size + 1e-6) / float(np.log(2)) + 2.0)
        level = prim("max", prim("min", cast(level, DType.I64), count - 1), 0)
        return select(prim("gt", area, 0.0), level, count)

    def reference(self, rois: Array, *levels: Array) -> tuple[Array, Array]:
        out = np.zeros((len(rois), levels[0].shape[1], self.output_size, self.output_size), rois.dtype)
        for r, (x0, y0, x1, y1) in enumerate(rois.astype(np.float64)):
            area = (x1 - x0) * (y1 - y0)
            if area > 0:
                level = int(np.clip(np.floor(2 + np.log2(np.sqrt(area) / CANONICAL + 1e-6)), 0, len(levels) - 1))
                out[r] = sampled(levels[level], rois[r : r + 1], np.zeros(1, np.int64), self._sampling(level))[0]
        return out, rois
