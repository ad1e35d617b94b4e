"""Pooling of the cells of boxes without means of bilinear samples: ROIPooling, and position-sensitive pooling.

Boxes are rows (batch, x0, y0, x1, y1). Position-sensitive: each cell of the output reads its own channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from aot.codegen.ir.loops import Buffer, Expr, cast, prim, select
from aot.codegen.script.script import Scripted, array, lanes, loops, parallel, var
from aot.ir.conditions import Condition
from aot.ir.op import Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType
from aot.opset.base.row_major import unravel
from aot.opset.products.pool_windows import channels_last
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

MAX_CHANNELS = 64  # channels per iteration


class Method(StrEnum):
    """Pooling of a cell by ROIPooling: the maximum of its pixels, or one bilinear sample."""

    MAX = "max"
    BILINEAR = "bilinear"


class Positioned(StrEnum):
    """Pooling of a cell by PSROIPooling: the mean of its pixels, or of one bilinear sample for each bin."""

    AVERAGE = "average"
    BILINEAR = "bilinear"


def check_boxes(what: str, x: Operand, rois: Operand) -> None:
    if x.rank != 4 or rois.rank != 2:
        raise ShapeError(f"{what}: inputs must be an image of rank 4 and boxes [R, 5], got {x.type} and {rois.type}")


def f32(x: Expr | Dim) -> Expr:
    return cast(x, DType.F32)


def whole_number(x: Expr) -> Scripted:
    return cast(x, DType.I64)


def image_of(number: float, images: int) -> int:
    """Return the image that a box names, for references; -1 if there is none, and nothing is pooled."""
    image = int(np.clip(np.nan_to_num(number), -1, images))
    return image if image < images else -1


@loops
def bilinear(x: Scripted, channel: Scripted, place: Scripted, extents: Scripted) -> Scripted:
    """Interpolate between four pixels: their indices are floor and ceil of the position, clamped to the image."""
    y, z = place
    top = whole_number(prim("floor", y))
    left = whole_number(prim("floor", z))
    bottom = min(whole_number(prim("ceil", y)), extents[0] - 1)
    right = min(whole_number(prim("ceil", z)), extents[1] - 1)
    u = z - f32(left)
    upper = x[(*channel, top, left)] + (x[(*channel, top, right)] - x[(*channel, top, left)]) * u
    lower = x[(*channel, bottom, left)] + (x[(*channel, bottom, right)] - x[(*channel, bottom, left)]) * u
    return upper + (lower - upper) * (y - f32(top))


def between(x: Array, y: float, z: float) -> float:
    top, left = int(np.floor(y)), int(np.floor(z))
    bottom, right = min(int(np.ceil(y)), x.shape[0] - 1), min(int(np.ceil(z)), x.shape[1] - 1)
    upper = x[top, left] + (x[top, right] - x[top, left]) * (z - left)
    lower = x[bottom, left] + (x[bottom, right] - x[bottom, left]) * (z - left)
    return float(upper + (lower - upper) * (y - top))


@loops
def _point(cell: Scripted, cells: int, begin: Scripted, size: Scripted, extent: Scripted) -> Scripted:
    """Return the sample position of a cell, if the cells' samples span a box from `begin` in fractions of the image."""
    last = f32(extent - 1)
    if cells > 1:
        return f32(cell) * (size * last / float(cells - 1)) + begin * last
    return (begin + begin + size) * last / 2.0


def _place(cell: int, cells: int, begin: float, size: float, extent: int) -> float:
    if cells > 1:
        return float(cell * (size * (extent - 1) / (cells - 1)) + begin * (extent - 1))
    return float((begin + begin + size) * (extent - 1) / 2)


@op("opset2")
class ROIPooling(LoopOp):
    """Data [N, C, H, W] and boxes to [R, C, pooled_h, pooled_w]; empty cells are zero."""

    elements = Elements.FLOAT
    single = True
    uniform = (0, 1)

    output_roi: tuple[int, ...] = ()
    output_size: tuple[int, ...] = ()
    pooled_h: int = 0
    pooled_w: int = 0
    spatial_scale: float = 1.0
    method: Method = Method.MAX

    @property
    def cells(self) -> tuple[int, int]:
        cells = self.output_roi or self.output_size
        return (self.pooled_h, self.pooled_w) if self.pooled_h else (cells[0], cells[1]) if len(cells) == 2 else (0, 0)

    def infer(self, x: Operand, rois: Operand) -> TensorType:
        check_boxes("ROIPooling", x, rois)
        if min(self.cells) < 1:
            raise ShapeError(f"ROIPooling: cells must be positive, got {self.cells[0]} x {self.cells[1]}")
        return TensorType(x.dtype, (rois.shape[0], x.shape[1], *self.cells))

    def conditions(self, x: Operand, rois: Operand) -> Sequence[Condition]:
        return [(rois.shape[1], 5, "a box is 5 numbers")]

    def nest(self, outs: tuple[Buffer, ...], x: Input, rois: Input) -> tuple[Work, ...]:
        settings = (rois.buffer, (*x.shape, rois.shape[0]), self.cells, self.spatial_scale)
        if self.method is not Method.MAX:
            return (_sample_pooled(outs[0], x.buffer, *settings),)
        pixels, copied = channels_last(x, "pixels", x.dtype)
        return copied, _max_pooled(outs[0], pixels, *settings)

    def reference(self, x: Array, rois: Array) -> Array:
        wide, boxes = x.astype(np.float64), rois.astype(np.float64)
        out = np.zeros((len(rois), x.shape[1], *self.cells))
        for r, c, i, j in np.ndindex(*out.shape):
            batch = image_of(boxes[r, 0], len(x))
            if batch >= 0:
                cell = self._largest if self.method is Method.MAX else self._sample
                out[r, c, i, j] = cell(wide[batch, c], boxes[r, 1:], (i, j))
        return out.astype(x.dtype)

    def _largest(self, x: Array, box: Array, cell: tuple[int, int]) -> float:
        parts: list[slice] = []
        for axis, at in enumerate(cell):
            first = int(np.floor(box[1 - axis] * self.spatial_scale + 0.5))
            last = int(np.floor(box[3 - axis] * self.spatial_scale + 0.5))
            step = max(last - first + 1, 1) / self.cells[axis]
            ends = [int(np.floor(at * step)) + first, int(np.ceil((at + 1) * step)) + first]
            parts.append(slice(*(min(max(e, 0), x.shape[axis]) for e in ends)))
        pixels = x[parts[0], parts[1]]
        return float(pixels.max()) if pixels.size else 0.0

    def _sample(self, x: Array, box: Array, cell: tuple[int, int]) -> float:
        y = _place(cell[0], self.cells[0], box[1], box[3] - box[1], x.shape[0])
        z = _place(cell[1], self.cells[1], box[0], box[2] - box[0], x.shape[1])
        inside = 0 <= y <= x.shape[0] - 1 and 0 <= z <= x.shape[1] - 1
        return between(x, y, z) if inside else 0.0


@loops
def _range(first: Scripted, last: Scripted, cell: Scripted, cells: int, extent: Scripted) -> Scripted:
    """Return the pixels that a cell of a box of whole pixels covers."""
    step = f32(max(last - first + 1, 1)) / float(cells)
    begin = whole_number(prim("floor", f32(cell) * step)) + first
    end = whole_number(prim("ceil", (f32(cell) + 1.0) * step)) + first
    return max(min(begin, extent), 0), max(min(end, extent), 0)


@loops
def _max_pooled(out: Scripted, x: Scripted, rois: Scripted, shape: Scripted, cells: Scripted, scale: float) -> None:
    """Pool by maximum; `x` has its channels last, so that they are vectors."""
    _, channels, height, width, boxes = shape
    for item in parallel(boxes * cells[0] * cells[1]):
        r, i, j = unravel(item, (boxes, *cells))
        batch = whole_number(rois[r, 0])
        left, top, right, bottom = (whole_number(prim("floor", rois[r, k] * scale + 0.5)) for k in range(1, 5))
        rows = _range(top, bottom, i, cells[0], height)
        columns = _range(left, right, j, cells[1], width)
        some = var(0, DType.I64)
        if batch >= 0 and batch < x.shape[0] and rows[0] < rows[1] and columns[0] < columns[1]:
            some = 1
        size = min(channels, MAX_CHANNELS) if isinstance(channels, int) else 1
        for part in range(channels // size):
            _largest(out, x, ((r, i, j), batch, rows, columns), some, (part * size, size))
        if size > 1 and channels % size:
            _largest(out, x, ((r, i, j), batch, rows, columns), some, (channels - channels % size, channels % size))


@loops
def _largest(out: Scripted, x: Scripted, cell: Scripted, some: Scripted, part: Scripted) -> None:
    """Write the channels `part` (first, count) of a cell; zeros if it has no pixels."""
    (r, i, j), batch, rows, columns = cell
    first, size = part
    best = array(size, dtype=out.dtype.compute)
    for v in lanes(size):
        best[v] = 0.0
    if some == 1:
        for v in lanes(size):
            best[v] = x[batch, rows[0], columns[0], first + v]
        for h in range(rows[0], rows[1]):
            for w in range(columns[0], columns[1]):
                for v in lanes(size):
                    best[v] = max(best[v], x[batch, h, w, first + v])
    for v in lanes(size):
        out[r, first + v, i, j] = best[v]


@loops
def _sample_pooled(out: Scripted, x: Scripted, rois: Scripted, shape: Scripted, cells: Scripted, scale: float) -> None:
    _, channels, height, width, boxes = shape
    for item in parallel(boxes * cells[0] * cells[1]):
        r, i, j = unravel(item, (boxes, *cells))
        batch = whole_number(rois[r, 0])
        y = _point(i, cells[0], rois[r, 2], rois[r, 4] - rois[r, 2], height)
        z = _point(j, cells[1], rois[r, 1], rois[r, 3] - rois[r, 1], width)
        for c in range(channels):
            out[r, c, i, j] = 0.0
        known = batch >= 0 and batch < x.shape[0]
        if known and y >= 0.0 and z >= 0.0 and y <= f32(height - 1) and z <= f32(width - 1):
            for c in range(channels):
                out[r, c, i, j] = bilinear(x, (batch, c), (y, z), (height, width))


@op("opset1")
class PSROIPooling(LoopOp):
    """Data [N, C, H, W] and boxes to [R, output_dim, group_size, group_size].

    average: C = output_dim * group_size^2; bilinear: C = bins * output_dim, boxes in fractions of the image.
    """

    elements = Elements.FLOAT
    single = True
    uniform = (0, 1)

    output_dim: int = 0
    spatial_scale: float = 0.0
    group_size: int = 0
    spatial_bins_x: int = 1
    spatial_bins_y: int = 1
    mode: Positioned = Positioned.AVERAGE

    def infer(self, x: Operand, rois: Operand) -> TensorType:
        check_boxes("PSROIPooling", x, rois)
        return TensorType(x.dtype, (rois.shape[0], self.output_dim, self.group_size, self.group_size))

    def conditions(self, x: Operand, rois: Operand) -> Sequence[Condition]:
        parts = self.group_size**2 if self.mode is Positioned.AVERAGE else self.spatial_bins_x * self.spatial_bins_y
        channels = (x.shape[1], parts * self.output_dim, "channels must be those of all parts")
        return [channels, (rois.shape[1], 5, "a box is 5 numbers")]

    def nest(self, outs: tuple[Buffer, ...], x: Input, rois: Input) -> tuple[Work, ...]:
        pool = _mean_positioned if self.mode is Positioned.AVERAGE else _bins_positioned
        return (pool(outs[0], x.buffer, rois.buffer, (*x.shape[2:], rois.shape[0]), self),)

    def reference(self, x: Array, rois: Array) -> Array:
        wide, boxes = x.astype(np.float64), rois.astype(np.float64)
        out = np.zeros((len(rois), self.output_dim, self.group_size, self.group_size))
        for r, c, i, j in np.ndindex(*out.shape):
            cell, batch = self._mean if self.mode is Positioned.AVERAGE else self._bins, image_of(boxes[r, 0], len(x))
            if batch >= 0:
                out[r, c, i, j] = cell(wide[batch], boxes[r, 1:], (c, i, j))
        return out.astype(x.dtype)

    def _mean(self, x: Array, box: Array, at: tuple[int, int, int]) -> float:
        c, *cell = at
        channel = (c * self.group_size + cell[0]) * self.group_size + cell[1]
        parts: list[slice] = []
        for axis in (0, 1):
            begin = np.floor(box[1 - axis] + 0.5) * self.spatial_scale
            end = (np.floor(box[3 - axis] + 0.5) + 1) * self.spatial_scale
            step, n = (end - begin) / self.group_size, x.shape[axis + 1]
            first = int(np.floor(begin + cell[axis] * step))
            last = int(np.ceil(begin + (cell[axis] + 1) * step))
            parts.append(slice(min(max(first, 0), n), min(max(last, 0), n)))
        pixels = x[channel, parts[0], parts[1]]
        return float(pixels.mean()) if pixels.size else 0.0

    def _bins(self, x: Array, box: Array, at: tuple[int, int, int]) -> float:
        c, i, j = at
        bins, total, n = (self.spatial_bins_y, self.spatial_bins_x), 0.0, self.group_size
        sizes = [(box[3 - a] - box[1 - a]) * self.spatial_scale / bins[a] for a in (0, 1)]
        for b, (by, bx) in enumerate(np.ndindex(*bins)):
            begins = [box[1 - a] * self.spatial_scale + k * sizes[a] for a, k in enumerate((by, bx))]
            y = _place(i, n, begins[0], sizes[0], x.shape[1])
            z = _place(j, n, begins[1], sizes[1], x.shape[2])
            if 0 <= y < x.shape[1] and 0 <= z < x.shape[2]:
                total += between(x[b * self.output_dim + c], y, z)
        return total / (bins[0] * bins[1])


@loops
def _covered(box: Scripted, cell: Scripted, cells: int, scale: float, extent: Scripted) -> Scripted:
    begin = prim("floor", box[0] + 0.5) * scale
    step = ((prim("floor", box[1] + 0.5) + 1.0) * scale - begin) / float(cells)
    first = whole_number(prim("floor", begin + f32(cell) * step))
    last = whole_number(prim("ceil", begin + (f32(cell) + 1.0) * step))
    return max(min(first, extent), 0), max(min(last, extent), 0)


@loops
def _mean_positioned(out: Scripted, x: Scripted, rois: Scripted, shape: Scripted, op: Scripted) -> None:
    height, width, boxes = shape
    n = op.group_size
    for item in parallel(boxes * n * n):
        r, i, j = unravel(item, (boxes, n, n))
        batch = whole_number(rois[r, 0])
        first, below = _covered((rois[r, 2], rois[r, 4]), i, n, op.spatial_scale, height)
        last: Scripted = select(batch >= 0 and batch < x.shape[0], below, first)
        begin, end = _covered((rois[r, 1], rois[r, 3]), j, n, op.spatial_scale, width)
        for c in range(op.output_dim):
            total = var(0.0, DType.F32)
            for h in range(first, last):
                for w in range(begin, end):
                    total += x[batch, (c * n + i) * n + j, h, w]
            if first < last and begin < end:
                total = total / f32((last - first) * (end - begin))
            out[r, c, i, j] = total


@loops
def _bins_positioned(out: Scripted, x: Scripted, rois: Scripted, shape: Scripted, op: Scripted) -> None:
    height, width, boxes = shape
    n = op.group_size
    bins = op.spatial_bins_y * op.spatial_bins_x
    for item in parallel(boxes * op.output_dim * n * n):
        r, c, i, j = unravel(item, (boxes, op.output_dim, n, n))
        batch = whole_number(rois[r, 0])
        size_y = (rois[r, 4] - rois[r, 2]) * op.spatial_scale / float(op.spatial_bins_y)
        size_z = (rois[r, 3] - rois[r, 1]) * op.spatial_scale / float(op.spatial_bins_x)
        total = var(0.0, DType.F32)
        for b in range(bins):
            from_y = rois[r, 2] * op.spatial_scale + f32(b // op.spatial_bins_x) * size_y
            from_z = rois[r, 1] * op.spatial_scale + f32(b % op.spatial_bins_x) * size_z
            y = _point(i, n, from_y, size_y, height)
            z = _point(j, n, from_z, size_z, width)
            known = batch >= 0 and batch < x.shape[0]
            if known and y >= 0.0 and z >= 0.0 and y < f32(height) and z < f32(width):
                total += bilinear(x, (batch, b * op.output_dim + c), (y, z), (height, width))
        out[r, c, i, j] = total / float(bins)
