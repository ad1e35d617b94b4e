"""Deformable convolution: each kernel element reads the data at a position shifted by an offset, which is an input.

columns[n, c, kh, kw, oh, ow] = mask * data[n, c] at (oh * stride - pad + kh * dilation + offset), bilinear out[n, o,
oh, ow] = sum over ic, kh, kw of columns[n, ic, kh, kw, oh, ow] * w[o, ic, kh, kw]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Expr, Space, Var, as_expr, cast, dense, prim, select
from aot.ir.conditions import Condition, alike
from aot.ir.op import Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, Shape, TensorType, simplify
from aot.opset.products.pool_windows import (
    AutoPad,
    Windows,
    channels_last,
    kernel_axes,
    reduce_over,
    reduction_axis,
    windows,
)
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


@dataclass(frozen=True)
class Deformable(LoopOp):
    """Base of deformable convolutions; D deformable groups.

    Data [N, C, H, W], offsets [N, 2 * D * KH * KW, OH, OW], weights [OC, C / group, KH, KW].
    """

    elements = Elements.FLOAT
    uniform = (0, 1, 2, 3)
    single = True

    strides: tuple[int, ...] = ()
    pads_begin: tuple[int, ...] = ()
    pads_end: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    auto_pad: AutoPad = AutoPad.EXPLICIT
    group: int = 1
    deformable_group: int = 1

    @property
    def is_zero_outside(self) -> bool:
        """True if points less than a pixel outside of the data blend with zeros. Otherwise all points outside are 0."""
        return bool(getattr(self, "bilinear_interpolation_pad", False))

    def windows(self, extents: Shape, kernel: Shape) -> Windows:
        pads = (self.pads_begin, self.pads_end)
        return windows(self.type, extents, kernel, self.strides, self.dilations, pads, self.auto_pad)

    def result(self, x: Operand, offsets: Operand, w: Operand, mask: Operand | None) -> TensorType:
        if (x.rank, offsets.rank, w.rank) != (4, 4, 4):
            raise ShapeError(f"{self.type}: inputs must have rank 4, got {x.rank}, {offsets.rank} and {w.rank}")
        for n, parts in self._parted(x, w):
            if isinstance(n, int) and n % parts:
                raise ShapeError(f"{self.type}: groups must divide the channels: {parts} and {n}")
        return TensorType(x.dtype, (x.shape[0], w.shape[0], *self.windows(x.shape[2:], w.shape[2:]).counts))

    def _parted(self, x: Operand, w: Operand) -> list[tuple[Dim, int]]:
        """Return numbers of channels, each with the number of groups that it is parted into."""
        return [(x.shape[1], self.group), (w.shape[0], self.group), (x.shape[1], self.deformable_group)]

    def conditions(self, x: Operand, offsets: Operand, w: Operand, mask: Operand | None = None) -> Sequence[Condition]:
        batch, channels, *sizes = x.shape
        points = w.shape[2] * w.shape[3] * self.deformable_group
        kernels = self.windows(tuple(sizes), w.shape[2:])
        counts = kernels.counts
        rules = kernels.fitting()
        rules += [
            (simplify(n % parts), 0, f"{parts} groups must divide the channels") for n, parts in self._parted(x, w)
        ]
        rules += [(channels, simplify(w.shape[1] * self.group), "channels of data and weights must be equal")]
        rules += alike("offsets must fit data and weights", offsets.shape, (batch, simplify(points * 2), *counts))
        if mask is not None:
            rules += alike("the mask must fit data and weights", mask.shape, (batch, simplify(points), *counts))
        return rules

    def loops(self, out: Buffer, x: Input, offsets: Input, w: Input, mask: Input | None) -> tuple[Work, ...]:
        geometry = self.windows(x.shape[2:], w.shape[2:])
        shape = (*x.shape[:2], *w.shape[2:], *out.shape[2:])
        columns = dense("columns", *shape, space=Space.ARENA, dtype=out.dtype.compute)
        axes = n, c, kh, kw, oh, ow = tuple(Var(name, e) for name, e in zip("nckljm", columns.shape, strict=True))
        point = c // (x.shape[1] // self.deformable_group) * (w.shape[2] * w.shape[3]) + kh * w.shape[3] + kw
        coordinates = [
            cast(geometry.position(a, i, k), DType.F32) + cast(offsets(n, point * 2 + a, oh, ow), DType.F32)
            for a, (i, k) in enumerate(((oh, kh), (ow, kw)))
        ]
        pixels, copied = channels_last(x, "pixels", x.dtype.compute)
        value = self._sampled(pixels, n, c, coordinates[0], coordinates[1])
        weight = value if mask is None else value * mask(n, point, oh, ow)
        return copied, Definition(columns, axes, weight), self._product(out, columns, w)

    def _product(self, out: Buffer, columns: Buffer, w: Input) -> Definition:
        n, o, oh, ow = point = tuple(Var(name, e) for name, e in zip("nojm", out.shape, strict=True))
        ic, ks = reduction_axis("ic", w.shape[1]), kernel_axes(w.shape[2:])
        first = o // (w.shape[0] // self.group) * w.shape[1] if self.group > 1 else 0
        product = columns[n, first + ic, *ks, oh, ow] * w(o, ic, *ks)
        return Definition(out, point, reduce_over("add", (ic, *ks), product))

    def _sampled(self, x: Buffer, n: Expr, c: Expr, y: Expr, z: Expr) -> Expr:
        """Return x[n, .., c] at the point (y, z), interpolated between its four neighbours."""
        height, width = (as_expr(e, DType.I64) for e in x.shape[1:3])
        low = [prim("floor", v) for v in (y, z)]
        part = [v - f for v, f in zip((y, z), low, strict=True)]
        i, j = (cast(f, DType.I64) for f in low)

        def read(row: Expr, column: Expr) -> Expr:
            pairs = ((row, height), (column, width))
            value: Expr = x[(n, *(prim("max", prim("min", v, e - 1), 0) for v, e in pairs), c)]
            if self.is_zero_outside:
                for v, e in pairs:
                    value = select(prim("and", prim("ge", v, 0), prim("lt", v, e)), value, 0.0)
            return value

        rows = [read(r, j) * (1.0 - part[1]) + read(r, j + 1) * part[1] for r in (i, i + 1)]
        value = rows[0] * (1.0 - part[0]) + rows[1] * part[0]
        if self.is_zero_outside:
            return value
        for v, e in ((y, height), (z, width)):
            value = select(prim("and", prim("ge", v, 0.0), prim("lt", v, cast(e, DType.F32))), value, 0.0)
        return value

    def computed(self, x: Array, offsets: Array, w: Array, mask: Array | None) -> Array:
        """Compute for references, in double precision."""
        geometry = self.windows(x.shape[2:], w.shape[2:])
        oh, ow = geometry.sizes
        (kh, kw), shares = w.shape[2:], self.deformable_group
        shifts = offsets.astype(np.float64).reshape(x.shape[0], shares, kh, kw, 2, oh, ow)
        shape = (x.shape[0], shares, kh, kw, oh, ow)
        weight = np.ones(shape) if mask is None else mask.reshape(shape)
        parts = np.split(x.astype(np.float64), shares, 1)
        total = np.zeros((x.shape[0], w.shape[0], oh, ow))
        for a, b in np.ndindex(kh, kw):
            y = np.arange(oh)[:, None] * geometry.strides[0] - int(geometry.before[0]) + a * geometry.dilations[0]  # type: ignore[arg-type]
            z = np.arange(ow)[None] * geometry.strides[1] - int(geometry.before[1]) + b * geometry.dilations[1]  # type: ignore[arg-type]
            samples = np.concatenate(
                [
                    self._blend(p, y + shifts[:, s, a, b, 0], z + shifts[:, s, a, b, 1]) * weight[:, s, a, b][:, None]
                    for s, p in enumerate(parts)
                ],
                1,
            ).reshape(x.shape[0], self.group, -1, oh, ow)
            kernel = w[:, :, a, b].astype(np.float64).reshape(self.group, -1, w.shape[1])
            total += np.einsum("ngchw,goc->ngohw", samples, kernel).reshape(total.shape)
        return total.astype(x.dtype)

    def _blend(self, x: Array, y: Array, z: Array) -> Array:
        """Return x [N, C, H, W], interpolated at points [N, OH, OW], as [N, C, OH, OW]."""
        height, width = x.shape[2:]
        rows, columns = np.floor(y).astype(int), np.floor(z).astype(int)
        batch, total = np.arange(len(x))[:, None, None], np.zeros((*x.shape[:2], *y.shape[1:]))
        for r in (0, 1):
            for c in (0, 1):
                i, j = rows + r, columns + c
                share = np.abs(1 - r - (y - rows)) * np.abs(1 - c - (z - columns))
                if self.is_zero_outside:
                    share = share * ((i >= 0) & (i < height) & (j >= 0) & (j < width))
                value = x[batch, :, np.clip(i, 0, height - 1), np.clip(j, 0, width - 1)]
                total += np.moveaxis(value, -1, 1) * share[:, None]
        inside = (y >= 0) & (y < height) & (z >= 0) & (z < width)
        return total if self.is_zero_outside else total * inside[:, None]


@op("opset8", type="DeformableConvolution")
class DeformableConvolution(Deformable):
    """Deformable convolution with an optional mask [N, D * KH * KW, OH, OW] that weighs each sample."""

    bilinear_interpolation_pad: bool = False

    def infer(self, x: Operand, offsets: Operand, w: Operand, mask: Operand | None = None) -> TensorType:
        return self.result(x, offsets, w, mask)

    def nest(
        self, outs: tuple[Buffer, ...], x: Input, offsets: Input, w: Input, mask: Input | None = None
    ) -> tuple[Work, ...]:
        return self.loops(outs[0], x, offsets, w, mask)

    def reference(self, x: Array, offsets: Array, w: Array, mask: Array | None = None) -> Array:
        return self.computed(x, offsets, w, mask)


@op("opset1", type="DeformableConvolution")
class DeformableConvolution_1(Deformable):
    """Deformable convolution without a mask; points outside of the data are zero."""

    def infer(self, x: Operand, offsets: Operand, w: Operand) -> TensorType:
        return self.result(x, offsets, w, None)

    def nest(self, outs: tuple[Buffer, ...], x: Input, offsets: Input, w: Input) -> tuple[Work, ...]:
        return self.loops(outs[0], x, offsets, w, None)

    def reference(self, x: Array, offsets: Array, w: Array) -> Array:
        return self.computed(x, offsets, w, None)
