"""Position-sensitive cells of boxes, moved by offsets that are an input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.codegen.ir.loops import Buffer, as_expr, prim
from aot.codegen.script.script import Scripted, loops, parallel, var
from aot.ir.conditions import Condition, alike
from aot.ir.op import Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, TensorType, simplify
from aot.opset.base.row_major import unravel
from aot.opset.detection.roi_pooling import between, bilinear, check_boxes, f32, image_of, whole_number
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


@op("opset1")
class DeformablePSROIPooling(LoopOp):
    """Data [N, output_dim * group_size^2, H, W], boxes [R, 5], offsets [R, 2 * parts, part_size, part_size] or none.

    A cell is the mean of spatial_bins bilinear samples, those outside of the image left out; its corner moves by
    offset * trans_std * size of the box.
    """

    elements = Elements.FLOAT
    single = True
    uniform = (0, 1, 2)

    output_dim: int = 0
    spatial_scale: float = 0.0
    group_size: int = 1
    mode: str = "bilinear_deformable"
    spatial_bins_x: int = 1
    spatial_bins_y: int = 1
    trans_std: float = 1.0
    part_size: int = 1

    def infer(self, x: Operand, rois: Operand, offsets: Operand | None = None) -> TensorType:
        check_boxes("DeformablePSROIPooling", x, rois)
        if offsets is not None and offsets.rank != 4:
            raise ShapeError(f"{self.type}: offsets must have rank 4, got {offsets.type}")
        return TensorType(x.dtype, (rois.shape[0], self.output_dim, self.group_size, self.group_size))

    def conditions(self, x: Operand, rois: Operand, offsets: Operand | None = None) -> Sequence[Condition]:
        fits = [
            (x.shape[1], self.output_dim * self.group_size**2, "channels must be those of all cells"),
            (rois.shape[1], 5, "a box is 5 numbers"),
        ]
        if offsets is not None:
            parts = (rois.shape[0], self.part_size, self.part_size)
            fits += alike("offsets must fit boxes and parts", (offsets.shape[0], *offsets.shape[2:]), parts)
            count = offsets.shape[1]
            classes = prim("max", as_expr(count, DType.I64) // 2, 1)
            rule = "offsets are two for each class, and classes have equally many channels"
            fits += [(simplify(classes * 2), count, rule), (simplify(self.output_dim % classes), 0, rule)]
        return fits

    def nest(self, outs: tuple[Buffer, ...], x: Input, rois: Input, offsets: Input | None = None) -> tuple[Work, ...]:
        offset_buffer = None if offsets is None else offsets.buffer
        return (_deformed(outs[0], x.buffer, rois.buffer, offset_buffer, (*x.shape[2:], rois.shape[0]), self),)

    def reference(self, x: Array, rois: Array, offsets: Array | None = None) -> Array:
        wide, n = x.astype(np.float64), self.group_size
        out = np.zeros((len(rois), self.output_dim, n, n))
        for r, box in enumerate(rois.astype(np.float64)):
            corners = np.floor(box[1:] + 0.5) + np.array([0, 0, 1, 1])
            x0, y0, x1, y1 = corners * self.spatial_scale - 0.5
            size = np.maximum([y1 - y0, x1 - x0], 0.1)
            for c, i, j in np.ndindex(*out.shape[1:]) if image_of(box[0], len(x)) >= 0 else ():
                begin = np.array([y0, x0]) + np.array([i, j]) * size / n
                if offsets is not None:
                    k = c // (self.output_dim // (offsets.shape[1] // 2))
                    at = (i * self.part_size // n, j * self.part_size // n)
                    both = offsets[(r, slice(2 * k, 2 * k + 2), *at)][::-1]
                    begin = begin + both.astype(np.float64) * self.trans_std * size
                out[r, c, i, j] = self._mean(wide[int(box[0]), (c * n + i) * n + j], begin, size / n)
        return out.astype(x.dtype)

    def _mean(self, image: Array, begin: Array, size: Array) -> float:
        samples: list[float] = []
        for k, m in np.ndindex(self.spatial_bins_y, self.spatial_bins_x):
            y, z = begin + size * np.array([k / self.spatial_bins_y, m / self.spatial_bins_x])
            if -0.5 <= y <= image.shape[0] - 0.5 and -0.5 <= z <= image.shape[1] - 0.5:
                y, z = (min(max(v, 0.0), n - 1.0) for v, n in zip((y, z), image.shape, strict=True))
                samples.append(between(image, y, z))
        return float(np.mean(samples)) if samples else 0.0


@loops
def _deformed(out: Scripted, x: Scripted, rois: Scripted, offsets: Scripted, shape: Scripted, op: Scripted) -> None:
    height, width, boxes = shape
    n = op.group_size
    for item in parallel(boxes * op.output_dim * n * n):
        r, c, i, j = unravel(item, (boxes, op.output_dim, n, n))
        left, top, right, bottom = (prim("floor", rois[r, k] + 0.5) for k in range(1, 5))
        size_y = max((bottom + 1.0) * op.spatial_scale - top * op.spatial_scale, 0.1)
        size_z = max((right + 1.0) * op.spatial_scale - left * op.spatial_scale, 0.1)
        from_y = var(top * op.spatial_scale - 0.5 + f32(i) * (size_y / float(n)), DType.F32)
        from_z = var(left * op.spatial_scale - 0.5 + f32(j) * (size_z / float(n)), DType.F32)
        if offsets is not None:
            k = c * (offsets.shape[1] // 2) // op.output_dim
            part = (i * op.part_size // n, j * op.part_size // n)
            from_y += offsets[(r, k * 2 + 1, *part)] * op.trans_std * size_y
            from_z += offsets[(r, k * 2, *part)] * op.trans_std * size_z
        total = var(0.0, DType.F32)
        count = var(0.0, DType.F32)
        batch = whole_number(rois[r, 0])
        if batch >= 0 and batch < x.shape[0]:
            for b in range(op.spatial_bins_y * op.spatial_bins_x):
                y = from_y + f32(b // op.spatial_bins_x) * (size_y / float(n * op.spatial_bins_y))
                z = from_z + f32(b % op.spatial_bins_x) * (size_z / float(n * op.spatial_bins_x))
                if y >= -0.5 and z >= -0.5 and y <= f32(height) - 0.5 and z <= f32(width) - 0.5:
                    at = (max(min(y, f32(height - 1)), 0.0), max(min(z, f32(width - 1)), 0.0))  # pyrefly: ignore[bad-specialization]  of a script
                    total += bilinear(x, (batch, (c * n + i) * n + j), at, (height, width))
                    count += 1.0
        if count > 0.0:
            total = total / count
        out[r, c, i, j] = total
