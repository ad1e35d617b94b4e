"""Convolutions: weighted sums of the windows of an [N, C, ...] tensor.

out[n, o, i] = sum over ic, k of x[n, ic, i * stride + k * dilation - pad] * w[o, ic, k]
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Expr
from aot.ir.build import Builder
from aot.ir.conditions import Condition
from aot.ir.graph import OutPort
from aot.ir.op import ComputeOp, DecomposedOp, Element, Elements, Op
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, Shape, TensorType, dim_text, dtype_of, numpy_dtype, simplify
from aot.opset.elementwise.conversion import converted
from aot.opset.products.pool_windows import (
    AutoPad,
    Windows,
    kernel_axes,
    pad_spatial,
    reduce_over,
    reduction_axis,
    windows,
)
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError, UnsupportedError

CHANNELS_RULE = "channels of data and weights must be equal"


@dataclass(frozen=True)
class Windowed(Op):
    """Attributes that all convolutions share; empty lists stand for ones (strides, dilations) and zeros (pads)."""

    elements = Elements.NUMBER

    strides: tuple[int, ...] = ()
    pads_begin: tuple[int, ...] = ()
    pads_end: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    auto_pad: AutoPad = AutoPad.EXPLICIT

    def windows(self, extents: Shape, kernel: Shape) -> Windows:
        pads = (self.pads_begin, self.pads_end)
        return windows(self.type, extents, kernel, self.strides, self.dilations, pads, self.auto_pad)


@op("opset1")
class Convolution(Windowed, ComputeOp):
    """Data [N, IC, spatial...], weights [OC, IC, kernel...] give [N, OC, spatial...]."""

    def infer(self, x: Operand, w: Operand) -> TensorType:
        check_data(self.type, x, w, x.rank)
        return TensorType(x.dtype, (x.shape[0], w.shape[0], *self.windows(x.shape[2:], w.shape[2:]).counts))

    def conditions(self, x: Operand, w: Operand) -> Sequence[Condition]:
        return [(x.shape[1], w.shape[1], CHANNELS_RULE), *self.windows(x.shape[2:], w.shape[2:]).fitting()]

    def compute(self, out: TensorType, x: Input, w: Input) -> Element:
        geometry = self.windows(x.shape[2:], w.shape[2:])
        ic, ks = reduction_axis("ic", w.shape[1]), kernel_axes(w.shape[2:])

        def element(n: Expr, o: Expr, *at: Expr) -> Expr:
            positions = [geometry.position(a, i, k) for a, (i, k) in enumerate(zip(at, ks, strict=True))]
            return reduce_over("add", (ic, *ks), geometry.read(x, (n, ic), positions) * w(o, ic, *ks))

        return element

    def reference(self, x: Array, w: Array) -> Array:
        return convolve(self.windows(x.shape[2:], w.shape[2:]), x, w[None])


@op("opset1")
class GroupConvolution(Windowed, ComputeOp):
    """Data [N, G * IC, spatial...], weights [G, OC, IC, kernel...] give [N, G * OC, ...], each group by itself."""

    def infer(self, x: Operand, w: Operand) -> TensorType:
        check_data(self.type, x, w, x.rank + 1)
        counts = self.windows(x.shape[2:], w.shape[3:]).counts
        return TensorType(x.dtype, (x.shape[0], w.shape[0] * w.shape[1], *counts))

    def conditions(self, x: Operand, w: Operand) -> Sequence[Condition]:
        geometry = self.windows(x.shape[2:], w.shape[3:])
        return [(x.shape[1], simplify(w.shape[0] * w.shape[2]), CHANNELS_RULE), *geometry.fitting()]

    def compute(self, out: TensorType, x: Input, w: Input) -> Element:
        geometry = self.windows(x.shape[2:], w.shape[3:])
        oc, icg = w.shape[1:3]
        ic, ks = reduction_axis("ic", icg), kernel_axes(w.shape[3:])

        def element(n: Expr, c: Expr, *at: Expr) -> Expr:
            group = c // oc
            positions = [geometry.position(a, i, k) for a, (i, k) in enumerate(zip(at, ks, strict=True))]
            value = geometry.read(x, (n, group * icg + ic), positions)
            return reduce_over("add", (ic, *ks), value * w(group, c % oc, ic, *ks))

        return element

    def reference(self, x: Array, w: Array) -> Array:
        return convolve(self.windows(x.shape[2:], w.shape[3:]), x, w)


class BinaryMode(StrEnum):
    XNOR_POPCOUNT = "xnor-popcount"


@op("opset1")
class BinaryConvolution(Windowed, DecomposedOp):
    """Convolution of signs: data above 0 and bits 1 are +1, the others -1; padding is the number `pad_value`.

    Weights are u1, or their bits as u8: every number but 0 is a bit 1.
    """

    mode: BinaryMode = BinaryMode.XNOR_POPCOUNT
    pad_value: float = 0.0

    def infer(self, x: Operand, w: Operand) -> TensorType:
        if w.dtype not in (DType.U1, DType.U8):
            raise ShapeError(f"BinaryConvolution: weights must be u1, got {w.dtype.value}")
        if x.rank != 4 or w.rank != 4:
            raise ShapeError(f"BinaryConvolution: data and weights must have rank 4, got {x.rank} and {w.rank}")
        return TensorType(x.dtype, (x.shape[0], w.shape[0], *self.windows(x.shape[2:], w.shape[2:]).counts))

    def conditions(self, x: Operand, w: Operand) -> Sequence[Condition]:
        return [(x.shape[1], w.shape[1], CHANNELS_RULE), *self.windows(x.shape[2:], w.shape[2:]).fitting()]

    def decompose(self, build: Builder, x: OutPort, w: OutPort) -> OutPort:
        wide = x.type.dtype.compute if x.type.dtype.is_float else DType.F32
        one, minus = build.const(1.0, wide), build.const(-1.0, wide)
        signs = build.Select(build.Greater(x, build.const(0, x.type.dtype)), one, minus)
        weights = build.Select(build.Greater(build.Convert(w, destination_type=wide), build.const(0, wide)), one, minus)
        geometry = self.windows(x.shape[2:], w.shape[2:])
        convolution = Convolution(self.strides, self.pads_begin, self.pads_end, self.dilations, self.auto_pad)
        if self.pad_value and geometry.is_padded:
            begin, end = ([_known(self.type, n) for n in pads] for pads in (geometry.before, geometry.after))
            pads = (build.const([0, 0, *p], DType.I64) for p in (begin, end))
            signs = build.Pad(signs, *pads, build.const(self.pad_value, wide))
            convolution = Convolution(self.strides, dilations=self.dilations, auto_pad=AutoPad.VALID)
        return build.Convert(build(convolution, signs, weights), destination_type=x.type.dtype)

    def reference(self, x: Array, w: Array) -> Array:
        geometry = self.windows(x.shape[2:], w.shape[2:])
        signs = pad_spatial(np.where(x > 0, 1.0, -1.0), geometry.padding(geometry.sizes), self.pad_value)
        within = Windows(signs.shape[2:], geometry.kernel, geometry.strides, geometry.dilations, (0, 0), (0, 0))
        return converted(convolve(within, signs, np.where(w != 0, 1.0, -1.0)[None]), dtype_of(x))


def _known(what: str, n: Dim) -> int:
    if not isinstance(n, int):
        raise UnsupportedError(f"{what}: padding must be known at compile time, got {dim_text(n)}")
    return n


def check_data(what: str, x: Operand, w: Operand, weight_rank: int) -> None:
    """Raise ShapeError unless element types are equal and ranks fit."""
    if x.dtype is not w.dtype:
        raise ShapeError(f"{what}: element types must be equal, got {x.dtype.value} and {w.dtype.value}")
    if not 3 <= x.rank <= 5:
        raise ShapeError(f"{what}: the data's rank must be 3, 4 or 5, got {x.rank}")
    if w.rank != weight_rank:
        raise ShapeError(f"{what}: the weights' rank must be {weight_rank}, got {w.rank}")


def convolve(geometry: Windows, x: Array, w: Array) -> Array:
    """Convolve data [N, G * IC, ...] by weights [G, OC, IC, kernel...], for references, in f64 or wrapping i64."""
    groups, oc, ic = w.shape[:3]
    counts = geometry.sizes
    wide = accumulator(x.dtype)
    padded = pad_spatial(x, geometry.padding(counts), 0).astype(wide)
    padded = padded.reshape(x.shape[0], groups, ic, *padded.shape[2:])
    total = np.zeros((x.shape[0], groups, oc, *counts), wide)
    for k in np.ndindex(*w.shape[3:]):
        window, weights = padded[(..., *geometry.slices(counts, k))], w[(slice(None),) * 3 + k].astype(wide)
        total += np.einsum("ngi...,goi->ngo...", window, weights)
    return total.reshape(x.shape[0], groups * oc, *counts).astype(x.dtype)


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of sums in references."""
    return np.dtype(np.int64) if dtype.kind in "iu" else numpy_dtype(DType.F64)


__all__: Sequence[str] = ["AutoPad", "BinaryConvolution", "BinaryMode", "Convolution", "GroupConvolution", "Windowed"]
