"""Col2Im: columns of patches summed back into an image."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from aot.codegen.ir.loops import Expr, Reduce, prim, select
from aot.ir.conditions import Condition
from aot.ir.op import ComputeOp, Element, Elements
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType, dim_text, simplify
from aot.opset.base.families import axis
from aot.opset.movement.blocks import dividing
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


@op("opset15")
class Col2Im(ComputeOp):
    """out[n, c, y, x] = sum of columns[n, (c, kh, kw), (i, j)] over the patches (i, j) whose element (kh, kw) is there.

    Element k of patch i is at i stride + k dilation - pad.
    """

    elements = Elements.NUMBER

    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    pads_begin: tuple[int, ...] = (0, 0)
    pads_end: tuple[int, ...] = (0, 0)

    def infer(self, x: Operand, size: Operand, kernel: Operand) -> TensorType:
        sizes, taps = size.dims("Col2Im: output size"), kernel.ints("Col2Im: kernel size")
        if x.rank not in (2, 3) or len(sizes) != 2 or len(taps) != 2:
            raise ShapeError(
                f"Col2Im: inputs must be columns [N, C k, L], an output size and a kernel of 2 numbers, got {x.type}"
            )
        column_rows, patches = x.shape[-2:]
        if isinstance(column_rows, int) and column_rows % prod(taps):
            raise ShapeError(f"Col2Im: {column_rows} rows must divide by the kernel's {prod(taps)} elements")
        rows, columns = self._counts(sizes, taps)
        count = rows * columns
        if isinstance(count, int) and isinstance(patches, int) and count != patches:
            raise ShapeError(f"Col2Im: {count} patches must be given, got {patches}")
        return TensorType(x.dtype, (*x.shape[:-2], column_rows // prod(taps), *sizes))

    def conditions(self, x: Operand, size: Operand, kernel: Operand) -> Sequence[Condition]:
        taps = kernel.ints("Col2Im: kernel size")
        rows, columns = self._counts(size.dims("Col2Im: output size"), taps)
        patches = (x.shape[-1], simplify(rows * columns), "there is a column for each patch")
        return [patches, *dividing((x.shape[-2], prod(taps)))]

    def _counts(self, sizes: tuple[Dim, ...], taps: tuple[int, ...]) -> list[Dim]:
        """Return the number of patches along each axis."""
        counts: list[Dim] = []
        for n, k, s, d, low, high in zip(
            sizes, taps, self.strides, self.dilations, self.pads_begin, self.pads_end, strict=True
        ):
            room = n + (low + high - (k - 1) * d - 1)
            if isinstance(room, int) and room < 0:
                raise ShapeError(f"Col2Im: a patch must fit into {dim_text(n)} elements and its padding")
            counts.append(room // s + 1)
        return counts

    def compute(self, out: TensorType, x: Input, size: Input, kernel: Input) -> Element:
        taps = kernel.operand().ints("Col2Im: kernel size")
        counts = self._counts(out.shape[-2:], taps)
        within = [axis("kh", taps[0]), axis("kw", taps[1])]

        def element(*index: Expr) -> Expr:
            *batch, c, row, column = index
            starts = [
                i + low - k * d
                for i, low, k, d in zip((row, column), self.pads_begin, within, self.dilations, strict=True)
            ]
            patch = [p // s for p, s in zip(starts, self.strides, strict=True)]
            column_row = (c * taps[0] + within[0]) * taps[1] + within[1]
            value = x(*batch, column_row, patch[0] * counts[1] + patch[1])
            for p, start, n, s in zip(patch, starts, counts, self.strides, strict=True):
                value = prim("within", p, n, value, 0)
                if s > 1:
                    value = select(prim("eq", start % s, 0), value, 0)
            return Reduce("add", tuple(within), value)

        return element

    def reference(self, x: Array, size: Array, kernel: Array) -> Array:
        height, width = (int(n) for n in size.reshape(-1))
        taps = [int(n) for n in kernel.reshape(-1)]
        batched = x if x.ndim == 3 else x[None]
        rows, columns = TensorType(DType.I64, tuple(self._counts((height, width), tuple(taps)))).static_shape
        wide = batched.astype(np.float64) if batched.dtype.kind not in "iu" else batched
        parts = wide.reshape(batched.shape[0], -1, *taps, rows, columns)
        (top, left), (bottom, right) = self.pads_begin, self.pads_end
        image = np.zeros((*parts.shape[:2], height + top + bottom, width + left + right), wide.dtype)
        for h, w in np.ndindex(*taps):
            y, z = h * self.dilations[0], w * self.dilations[1]
            positions = (
                slice(y, y + (rows - 1) * self.strides[0] + 1, self.strides[0]),
                slice(z, z + (columns - 1) * self.strides[1] + 1, self.strides[1]),
            )
            image[(..., *positions)] += parts[:, :, h, w]
        cropped = image[:, :, top : top + height, left : left + width].astype(x.dtype)
        return cropped if x.ndim == 3 else cropped[0]
