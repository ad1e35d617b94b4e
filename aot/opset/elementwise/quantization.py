"""Fake quantisation: quantise and dequantise in the type of the data."""

from __future__ import annotations

from enum import StrEnum

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from aot.codegen.ir.loops import Expr, prim, select
from aot.ir.op import ComputeOp, Element, Elements
from aot.ir.operand import Input, Operand
from aot.ir.registry import attr, op
from aot.ir.types import Array, Shape, TensorType
from aot.opset.base.families import Elementwise, rounded_once
from aot.opset.elementwise.binary import PDPD_ALIGNED, START_AXIS, AutoBroadcast, read_aligned
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError, UnsupportedError

ON_STEP = 1e-4  # fraction of a step: rounding error by which a whole number of steps may be missed


@op()
class FixedPointProduct(Elementwise):
    """round_half_away(floor((x m + 2^30) / 2^31) / 2^right), the requantisation of TensorFlow Lite.

    Inputs are i32: x, a factor m of 31 bits, a shift `right` of 0 to 31. Internal: not in IR files.
    """

    elements = Elements.NUMBER

    def infer(self, x: Operand, m: Operand, right: Operand) -> TensorType:
        for operand in (x, m, right):
            if operand.dtype is not DType.I32:
                raise ShapeError(f"FixedPointProduct: inputs must be i32, got {operand.type}")
        return super().infer(x, m, right)

    def scalar(self, x: Expr, m: Expr, right: Expr) -> Expr:
        return prim("fixed_product", x, m, right)

    def reference(self, x: Array, m: Array, right: Array) -> Array:
        return self.rounded(x, m, right)

    @staticmethod
    def rounded(x: Array, m: Array, right: Array) -> Array:
        """Return the result in i32."""
        high = (x.astype(np.int64) * m + (1 << 30)) >> 31
        half = (np.int64(1) << right.astype(np.int64)) >> 1
        return ((high + half - ((high < 0) & (right > 0))) >> right).astype(np.int32)


@op("opset1")
class FakeQuantize(ComputeOp):
    """round((x - il) / (ih - il) * (levels - 1)) / (levels - 1) * (oh - ol) + ol; ol below, oh above the input range.

    Inputs: x, input low il, input high ih, output low ol, output high oh. NaN gives ol, as in OpenVINO's kernels.
    """

    elements = Elements.FLOAT

    levels: int = attr()
    auto_broadcast: AutoBroadcast = AutoBroadcast.NUMPY
    start_axis: int = attr(default=-1, xml=START_AXIS, only=PDPD_ALIGNED)

    def infer(self, x: Operand, *limits: Operand) -> TensorType:
        if len(limits) != 4:
            raise ShapeError(f"FakeQuantize: there must be 5 inputs, got {1 + len(limits)}")
        if self.levels < 2:
            raise ShapeError(f"FakeQuantize: levels must be at least 2, got {self.levels}")
        shape = x.shape
        for limit in limits:
            if limit.dtype is not x.dtype:
                raise ShapeError(
                    f"FakeQuantize: element types must be equal, got {x.dtype.value} and {limit.dtype.value}"
                )
            shape = self.auto_broadcast.shape(shape, limit.shape, self.start_axis, "FakeQuantize")
        return TensorType(x.dtype, shape)

    def has_jumps(self, result: DType) -> bool:
        return True

    def compute(self, out: TensorType, x: Input, *limits: Input) -> Element:
        shapes = [x.shape, *(self.auto_broadcast.aligned(out.shape, i.shape, self.start_axis) for i in limits)]
        inputs = list(zip((x, *limits), shapes, strict=True))
        return lambda *index: self.scalar(*(read_aligned(i, s, index) for i, s in inputs))

    def scalar(self, x: Expr, low: Expr, high: Expr, out_low: Expr, out_high: Expr) -> Expr:
        steps = float(self.levels - 1)
        level = prim("round_even", (x - low) / (high - low) * steps)
        inside = level / steps * (out_high - out_low) + out_low
        above = select(prim("gt", x, prim("max", low, high)), out_high, inside)
        return select(prim("gt", x, prim("min", low, high)), above, out_low)

    def reference(self, x: Array, *limits: Array) -> Array:
        shape: Shape = x.shape
        for limit in limits:
            shape = self.auto_broadcast.shape(shape, limit.shape, self.start_axis, "FakeQuantize")
        fitted = (self.auto_broadcast.fit(i, shape, self.start_axis) for i in limits)
        return rounded_once(self._quantized, x, *fitted)

    def _quantized(self, x: Array, low: Array, high: Array, out_low: Array, out_high: Array) -> Array:
        steps = x.dtype.type(self.levels - 1)
        level = np.rint((x - low) / (high - low) * steps)
        step, zero = steps_of(out_low, out_high, self.levels)
        exact: Array = ((level - zero) * step).astype(x.dtype)  # products, as quantised weights are recognised by
        inside: Array = np.where(np.isnan(zero), level / steps * (out_high - out_low) + out_low, exact)
        above = np.where(x > np.maximum(low, high), out_high, inside)
        return np.where(x > np.minimum(low, high), above, out_low)


def steps_of(low: Array, high: Array, levels: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the step between levels of an output range, and the level of the number 0: NaN where none has it."""
    low, high = low.astype(np.float64), high.astype(np.float64)
    step = (high - low) / (levels - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        zero = -low / step
        whole = np.rint(zero)
        return step, np.where(np.abs(zero - whole) < ON_STEP, whole, np.nan)


class Float8(StrEnum):
    F8E4M3 = "f8e4m3"
    F8E5M2 = "f8e5m2"


_MAX_FINITE = {Float8.F8E4M3: 448.0, Float8.F8E5M2: 57344.0}
_MANTISSA_BITS = {Float8.F8E4M3: 3, Float8.F8E5M2: 2}
_MIN_NORMAL = {Float8.F8E4M3: 2.0**-6, Float8.F8E5M2: 2.0**-14}  # least normal number
_NUMPY_TYPES = {Float8.F8E4M3: ml_dtypes.float8_e4m3fn, Float8.F8E5M2: ml_dtypes.float8_e5m2}


@op("opset13")
class FakeConvert(Elementwise):
    """(f8(x scale - shift) + shift) / scale, where f8 rounds to `destination_type`, half to even, and saturates."""

    elements = Elements.FLOAT

    destination_type: Float8 = Float8.F8E4M3

    def infer(self, x: Operand, scale: Operand, shift: Operand | None = None) -> TensorType:
        if x.dtype is DType.F64:
            raise UnsupportedError("FakeConvert: elements must be f32, f16 or bf16, got f64")
        result = super().infer(x, scale, *([] if shift is None else [shift]))
        if result.rank != x.rank:
            raise ShapeError(f"FakeConvert: scale must broadcast to {x.type}, got {scale.type}")
        return x.type

    def has_jumps(self, result: DType) -> bool:
        return True

    def scalar(self, x: Expr, scale: Expr, shift: Expr | None = None) -> Expr:
        if shift is None:
            return self._rounded(x * scale) / scale
        return (self._rounded(x * scale - shift) + shift) / scale

    def _rounded(self, x: Expr) -> Expr:
        size = prim("min", prim("abs", x), _MAX_FINITE[self.destination_type])
        exponent = prim("and", prim("bits", size, dtype=DType.I32), 0x7F800000)
        power = prim("max", prim("bits", exponent, dtype=DType.F32), _MIN_NORMAL[self.destination_type])
        step = power * 2.0 ** -_MANTISSA_BITS[self.destination_type]
        rounded = prim("round_even", size / step) * step
        return select(prim("lt", x, 0.0), -rounded, rounded)

    def reference(self, x: Array, scale: Array, shift: Array | None = None) -> Array:
        return rounded_once(self._through, x, scale, *([] if shift is None else [shift]))

    def _through(self, x: Array, scale: Array, shift: Array | float = 0.0) -> Array:
        largest = np.float32(_MAX_FINITE[self.destination_type])
        scaled = np.clip(x * scale - np.float32(shift), -largest, largest)
        return (scaled.astype(_NUMPY_TYPES[self.destination_type]).astype(np.float32) + np.float32(shift)) / scale
