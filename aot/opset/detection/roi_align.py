"""Means or maxima of bilinear samples in the cells of boxes: ROIAlign, ROIAlignRotated, and levels of a pyramid.

A box has pooled_h x pooled_w cells, a cell sampling_ratio x sampling_ratio samples (0: one for each pixel it covers). A
sample up to one pixel outside of the image takes the border's value, one further outside is zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial, reduce

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Expr, Space, Var, as_expr, cast, dense, prim, select
from aot.codegen.script.script import MAX_LANES, Scripted, lanes, loops, parallel, var
from aot.ir.conditions import Condition, alike
from aot.ir.op import Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, TensorType
from aot.opset.base.row_major import unravel
from aot.opset.products.pool_windows import channels_last
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

MAX_UNROLLED_CHANNELS = 4 * MAX_LANES  # channels whose vectors are unrolled
MAX_SAMPLES_PER_PIXEL = 4  # limit of a cell's samples along an axis, as a multiple of the image's extent


class Pooling(StrEnum):
    """Function that combines the samples of a cell."""

    AVG = "avg"
    MAX = "max"


class Aligned(StrEnum):
    """Position of pixels: at whole numbers; half a pixel off after scaling; the same for the box's corners."""

    ASYMMETRIC = "asymmetric"
    HALF_PIXEL_FOR_NN = "half_pixel_for_nn"
    HALF_PIXEL = "half_pixel"


@dataclass(frozen=True)
class Sampling:
    """Parameters of boxes and samples of one operation of the family."""

    cells: tuple[int, int]
    ratio: int
    scale: float
    pooling: Pooling = Pooling.AVG
    mode: Aligned = Aligned.ASYMMETRIC
    rotated: bool = False
    clockwise: bool = False
    least: float | None = None  # lower bound of the sizes of a box
    corners: bool = False  # the maximum is that of pixels times their weights, and of 0 for a sample outside

    def box(self, roi: Scripted) -> tuple[Scripted, ...]:
        """Return begin and size, (y, x, h, w), of roi(k), as Exprs or arrays."""
        if self.rotated:
            width, height = roi(2) * self.scale, roi(3) * self.scale
            return height * -0.5, width * -0.5, height, width
        before = 0.5 if self.mode is Aligned.HALF_PIXEL else 0.0
        after = 0.0 if self.mode is Aligned.ASYMMETRIC else -0.5
        x0, y0, x1, y1 = ((roi(k) + before) * self.scale + after for k in range(4))
        return y0, x0, y1 - y0, x1 - x0


def _placed(s: Sampling, roi: Scripted, y: Expr, x: Expr, turn: Scripted) -> tuple[Scripted, Scripted]:
    """Return the position in the image of a sample of the box."""
    if not s.rotated:
        return y, x
    sine, cosine = turn
    return y * cosine - x * sine + (roi(1) * s.scale - 0.5), y * sine + x * cosine + (roi(0) * s.scale - 0.5)


@loops
def _between(at: Scripted, extent: Scripted) -> Scripted:
    """Return the pixels before and after a position, and the weight of the latter."""
    place = max(at, 0.0)
    low = cast(prim("floor", place), DType.I64)
    last = extent - 1
    is_inside = prim("lt", cast(low, DType.U64), cast(prim("max", last, 0), DType.U64))  # one test of both ends
    first = select(is_inside, low, last)
    second = select(is_inside, low + 1, last)
    share = select(is_inside, place - cast(low, DType.F32), 0.0)
    return first, second, share


@loops
def _samples(size: Scripted, extent: Scripted, ratio: int) -> Scripted:
    whole: Scripted = cast(prim("ceil", size), DType.I64)
    return ratio if ratio else min(max(whole, 0), extent * MAX_SAMPLES_PER_PIXEL)


@loops
def pooled(acc: Scripted, levels: Scripted, rois: Scripted, batches: Scripted, level: Scripted) -> None:
    """Write acc[roi, cell, channel] from all samples of the cell.

    `levels`: images [N, H, W, C] and the sampling of each; `level(r)`: the level of box r, none if it is out of range.
    """
    boxes, cells_h, cells_w, channels = acc.shape
    for item in parallel(boxes * cells_h * cells_w):
        cell = unravel(item, (boxes, cells_h, cells_w))
        for c in range(channels):
            acc[(*cell, c)] = 0.0
        own = level(cell[0])
        for number, (x, s) in enumerate(levels):
            if own == number:
                _cell(acc, x, cell, _Roi(rois, cell[0]), 0 if batches is None else batches[cell[0]], s)


@loops
def _cell(acc: Scripted, x: Scripted, cell: Scripted, roi: Scripted, batch: Scripted, s: Scripted) -> None:
    """Combine all samples of a cell of one box."""
    images, height, width, channels = x.shape
    _, cell_h, cell_w = cell
    picture: Scripted = cast(batch, DType.I64)
    known = picture >= 0 and picture < images and height > 0 and width > 0
    begin_y, begin_x, full_h, full_w = s.box(roi)
    box_h = var(full_h, DType.F32)
    box_w = var(full_w, DType.F32)
    if s.least is not None:
        box_h = max(box_h, s.least)
        box_w = max(box_w, s.least)
    bin_h = box_h / float(s.cells[0])
    bin_w = box_w / float(s.cells[1])
    count_h: Scripted = select(known, _samples(bin_h, height, s.ratio), 0)  # no samples if the image does not exist
    count_w = _samples(bin_w, width, s.ratio)
    step_h = bin_h / cast(count_h, DType.F32)
    step_w = bin_w / cast(count_w, DType.F32)
    angle = (roi(4) if s.clockwise else 0.0 - roi(4)) if s.rotated else 0.0
    turn = (0.0 - prim("sin", angle), prim("cos", angle)) if s.rotated else (0.0, 1.0)
    if s.corners:
        least = select(count_h > 0 and count_w > 0, as_expr(-math.inf, DType.F32), 0.0)
        for c in range(channels):
            acc[(*cell, c)] = least
    share = 1.0 if s.pooling is Pooling.MAX else 1.0 / cast(max(count_h * count_w, 1), DType.F32)
    for i in range(count_h):
        for j in range(count_w):
            in_y = begin_y + cast(cell_h, DType.F32) * bin_h + step_h * (cast(i, DType.F32) + 0.5)
            in_x = begin_x + cast(cell_w, DType.F32) * bin_w + step_w * (cast(j, DType.F32) + 0.5)
            y, x_ = _placed(s, roi, in_y, in_x, turn)
            if y >= -1.0 and y <= cast(height, DType.F32) and x_ >= -1.0 and x_ <= cast(width, DType.F32):
                top, bottom, v = _between(y, height)
                left, right, u = _between(x_, width)
                upper, lower = (1.0 - v) * share, v * share
                upper_left = upper * (1.0 - u)
                upper_right = upper * u
                lower_left = lower * (1.0 - u)
                lower_right = lower * u
                above = ((top, left, upper_left), (top, right, upper_right))
                below = ((bottom, left, lower_left), (bottom, right, lower_right))
                _blend(acc, x, cell, picture, (*above, *below), s)
            else:
                for c in range(channels if s.corners else 0):
                    acc[(*cell, c)] = max(acc[(*cell, c)], 0.0)


@loops
def _blend(acc: Scripted, x: Scripted, cell: Scripted, picture: Scripted, near: Scripted, s: Sampling) -> None:
    """Combine one sample of all channels, from four pixels (row, column, weight), with `acc`."""
    channels = x.shape[3]
    size = max(min(channels, MAX_UNROLLED_CHANNELS), 1) if isinstance(channels, int) else MAX_LANES
    for part in range(channels // size):
        for v in lanes(size):
            c = part * size + v
            acc[(*cell, c)] = _combined(acc[(*cell, c)], [x[picture, i, j, c] * w for i, j, w in near], s)
    for c in range(channels - channels % size, channels):
        acc[(*cell, c)] = _combined(acc[(*cell, c)], [x[picture, i, j, c] * w for i, j, w in near], s)


def _combined(before: Expr, parts: Sequence[Expr], s: Sampling) -> Expr:
    larger = partial(prim, "max")
    if s.corners:
        return reduce(larger, parts, before)
    value = parts[0] + parts[1] + (parts[2] + parts[3])
    return larger(before, value) if s.pooling is Pooling.MAX else before + value


def _only(_: Expr) -> int:
    """Return the level of a box if there is only one level."""
    return 0


class _Roi:
    """One box; roi(k) is its k-th number."""

    def __init__(self, rois: Buffer, r: Expr) -> None:
        self.rois, self.r = rois, r

    def __call__(self, k: int) -> Expr:
        return self.rois[self.r, k]


def sampled(x: Array, rois: Array, batches: Array, s: Sampling) -> Array:
    """Compute the reference, in double precision."""
    rois, wide, height, width = rois.astype(np.float64), x.astype(np.float64), x.shape[2], x.shape[3]
    out = np.zeros((len(rois), x.shape[1], *s.cells))
    for r, roi in enumerate(rois):
        y0, x0, full_h, full_w = s.box(lambda k, roi=roi: roi[k])
        size = [n if s.least is None else max(n, s.least) for n in (full_h, full_w)]
        bins = [n / c for n, c in zip(size, s.cells, strict=True)]
        most = [n * MAX_SAMPLES_PER_PIXEL for n in (height, width)]
        counts = [s.ratio or int(np.clip(np.nan_to_num(np.ceil(b)), 0, m)) for b, m in zip(bins, most, strict=True)]
        angle = (-1 if s.clockwise else 1) * (roi[4] if s.rotated else 0.0)
        for ph, pw in np.ndindex(*s.cells) if 0 <= batches[r] < len(x) else ():
            values: list[Array] = []
            for i, j in np.ndindex(*counts):
                y = y0 + ph * bins[0] + bins[0] / counts[0] * (i + 0.5)
                z = x0 + pw * bins[1] + bins[1] / counts[1] * (j + 0.5)
                if s.rotated:
                    y, z = y * np.cos(angle) - z * np.sin(angle), y * np.sin(angle) + z * np.cos(angle)
                    y, z = y + roi[1] * s.scale - 0.5, z + roi[0] * s.scale - 0.5
                near = _corners(wide[int(batches[r])], y, z, height, width)
                values.append(near.max(0) if s.corners else near.sum(0))
            if values:
                samples = np.stack(values)
                out[r, :, ph, pw] = samples.mean(0) if s.pooling is Pooling.AVG else samples.max(0)
    if s.pooling is Pooling.MAX and not s.corners:
        out = np.maximum(out, 0)
    return out.astype(x.dtype)


def _corners(image: Array, y: float, x: float, height: int, width: int) -> Array:
    """Return the four pixels [4, C] around a sample, times their weights."""
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros((4, len(image)))
    y, x = min(max(y, 0.0), height - 1), min(max(x, 0.0), width - 1)
    i, j = int(y), int(x)
    k, m = min(i + 1, height - 1), min(j + 1, width - 1)
    down, right = y - i, x - j
    upper = image[:, i, j] * (1 - right) * (1 - down), image[:, i, m] * right * (1 - down)
    lower = image[:, k, j] * (1 - right) * down, image[:, k, m] * right * down
    return np.stack((*upper, *lower))


def written(out: Buffer, acc: Buffer) -> Definition:
    """Return the definition that copies acc[roi, h, w, channel] to out[roi, channel, h, w]."""
    r, c, h, w = axes = tuple(Var(name, n) for name, n in zip("rchw", out.shape, strict=True))
    return Definition(out, axes, acc[r, h, w, c])


@dataclass(frozen=True)
class BoxAlign(LoopOp):
    """Base of the family: data [N, C, H, W], boxes [R, 4 or 5], batch indices [R]."""

    elements = Elements.FLOAT
    single = True
    uniform = (0, 1)

    pooled_h: int = 0
    pooled_w: int = 0
    sampling_ratio: int = 0
    spatial_scale: float = 0.0

    @property
    def sampling(self) -> Sampling:
        mode = getattr(self, "aligned_mode", Aligned.ASYMMETRIC)
        rotated, clockwise = self.type == "ROIAlignRotated", bool(getattr(self, "clockwise_mode", False))
        cells, how = (self.pooled_h, self.pooled_w), getattr(self, "mode", Pooling.AVG)
        least = 1.0 if mode is Aligned.ASYMMETRIC and not rotated else None
        return Sampling(cells, self.sampling_ratio, self.spatial_scale, how, mode, rotated, clockwise, least)

    def infer(self, x: Operand, rois: Operand, batches: Operand) -> TensorType:
        numbers = 5 if self.sampling.rotated else 4
        if (x.rank, rois.rank, batches.rank) != (4, 2, 1):
            types = f"{x.type}, {rois.type}"
            raise ShapeError(
                f"{self.type}: inputs must be an image of rank 4, boxes [R, {numbers}], indices [R], got {types}"
            )
        if self.pooled_h < 1 or self.pooled_w < 1 or self.sampling_ratio < 0:
            raise ShapeError(f"{self.type}: cells must be positive, got {self.pooled_h} x {self.pooled_w}")
        return TensorType(x.dtype, (rois.shape[0], x.shape[1], self.pooled_h, self.pooled_w))

    def conditions(self, x: Operand, rois: Operand, batches: Operand) -> Sequence[Condition]:
        numbers = 5 if self.sampling.rotated else 4
        rule = f"a box is {numbers} numbers and has an index of its picture"
        return alike(rule, rois.shape, (batches.shape[0], numbers))

    def nest(self, outs: tuple[Buffer, ...], x: Input, rois: Input, batches: Input) -> tuple[Work, ...]:
        boxes, channels, height, width = outs[0].shape
        acc = dense("acc", boxes, height, width, channels, space=Space.ARENA)
        pixels, copied = channels_last(x, "pixels", DType.F32)
        sums = pooled(acc, ((pixels, self.sampling),), rois.buffer, batches.buffer, _only)
        return copied, sums, written(outs[0], acc)

    def reference(self, x: Array, rois: Array, batches: Array) -> Array:
        return sampled(x, rois, batches, self.sampling)


@op("opset3", type="ROIAlign")
class ROIAlign_3(BoxAlign):
    """ROIAlign of boxes of at least one pixel; pixels are at whole numbers."""

    mode: Pooling = Pooling.AVG


@op("opset9")
class ROIAlign(BoxAlign):
    """ROIAlign of boxes (x0, y0, x1, y1)."""

    mode: Pooling = Pooling.AVG
    aligned_mode: Aligned = Aligned.ASYMMETRIC


@op()
class CornerMaxAlign(ROIAlign):
    """ROIAlign of ONNX in mode max: the maximum of pixels times weights, not of their sums. Not in IR files."""

    mode: Pooling = Pooling.MAX

    @property
    def sampling(self) -> Sampling:
        return replace(super().sampling, corners=True)


@op("opset15")
class ROIAlignRotated(BoxAlign):
    """ROIAlign of boxes (centre x, centre y, width, height, angle in radians)."""

    clockwise_mode: bool = False
