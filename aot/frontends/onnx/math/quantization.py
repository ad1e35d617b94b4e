"""Quantised operations, computed exactly: products of integers are summed in i32, scales are applied once."""

from __future__ import annotations

from collections.abc import Callable

from aot.frontends.onnx.math.elementwise import converted
from aot.frontends.onnx.neural.convolution import convolved
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.runtime.abi import DType


def limits(dtype: DType) -> tuple[float, float]:
    bits = dtype.bits
    return (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1) if dtype.is_signed else (0.0, 2.0**bits - 1)


def quantized(node: OnnxNode, x: OutPort, zero: OutPort | None, dtype: DType) -> OutPort:
    """Return saturate(round(x) + zero), halves to even; floats of 8 bits are converted."""
    build = node.build
    if dtype.is_float:
        return converted(node, x, dtype)
    x = build.Round(node.cast(x, DType.F32))
    if zero is not None:
        x = build.Add(x, node.cast(zero, DType.F32))
    low, high = limits(dtype)
    return node.cast(build.Clamp(x, min=low, max=high), dtype)


def shifted(node: OnnxNode, x: OutPort, zero: OutPort | None) -> OutPort:
    """Return x - zero in i32."""
    wide = node.cast(x, DType.I32)
    return wide if zero is None else node.build.Subtract(wide, node.cast(zero, DType.I32))


def fitted(node: OnnxNode, p: OutPort, x: OutPort, axis: int, block: int = 0) -> OutPort:
    """Return a scale or zero point that broadcasts to `x`: per tensor, per slice of an axis, or per block of slices."""
    if block:
        build, shape = node.build, p.type.static_shape
        times = [block if a == axis + 1 else 1 for a in range(p.type.rank + 1)]
        repeated = build.Tile(build.Unsqueeze(p, node.list([axis + 1])), node.list(times))
        repeated_blocks = node.reshape(repeated, [n * block if a == axis else n for a, n in enumerate(shape)])
        bounds = (node.list([0]), node.dims(x, [axis]), node.list([1]), node.list([axis]))
        return build.Slice(repeated_blocks, *bounds)
    if p.type.rank == 1 and p.shape[0] != 1:
        return node.reshape(p, (p.shape[0], *[1] * (x.type.rank - axis - 1)))
    return node.reshape(p, ()) if p.type.rank else p


def _axis(node: OnnxNode, x: OutPort) -> int:
    axis = node.integer("axis", 1)
    return node.axis(axis, x.type.rank) if x.type.rank > axis else 0


@onnx("QuantizeLinear")
@onnx("QuantizeLinear", domain="com.microsoft")
def quantize_linear(node: OnnxNode, x: OutPort, scale: OutPort, zero: OutPort | None = None) -> OutPort:
    dtype = node.dtype("output_dtype", DType.U8) if zero is None else zero.type.dtype
    axis, block = _axis(node, x), node.integer("block_size", 0)
    floats = DType.F32 if x.type.dtype is DType.I32 else node.float_type("precision", DType.F32)
    factor = fitted(node, scale, x, axis, block)
    divided = node.build.Divide(node.cast(x, floats), node.cast(factor, floats))
    return quantized(node, divided, None if zero is None else fitted(node, zero, x, axis, block), dtype)


@onnx("DequantizeLinear")
@onnx("DequantizeLinear", domain="com.microsoft")
def dequantize_linear(node: OnnxNode, x: OutPort, scale: OutPort, zero: OutPort | None = None) -> OutPort:
    """(x - zero) scale"""
    axis, block = _axis(node, x), node.integer("block_size", 0)
    result_type = node.float_type("output_dtype", scale.type.dtype)
    shape = x.type.static_shape if x.type.is_static else ()
    if block and shape and scale.type.rank == len(shape) and shape[axis] == scale.shape[axis] * block:
        parts = node.reshape(x, (*shape[:axis], shape[axis] // block, block, *shape[axis + 1 :]))
        block_axis = node.list([axis + 1])
        value = _dequantized(node, parts, scale, zero, lambda p: node.build.Unsqueeze(p, block_axis))
        return node.cast(node.reshape(value, shape), result_type)
    value = _dequantized(node, x, scale, zero, lambda p: fitted(node, p, x, axis, block))
    return node.cast(value, result_type)


def _dequantized(
    node: OnnxNode, x: OutPort, scale: OutPort, zero: OutPort | None, fit: Callable[[OutPort], OutPort]
) -> OutPort:
    """Return (x - zero) scale in f32; `fit` makes scale and zero point broadcast to x."""
    zero = None if zero is None else fit(zero)
    if x.type.dtype.is_float:
        value = node.cast(x, DType.F32)
        value = value if zero is None else node.build.Subtract(value, node.cast(zero, DType.F32))
    else:
        value = node.cast(shifted(node, x, zero), DType.F32)
    return node.build.Multiply(value, node.cast(fit(scale), DType.F32))


@onnx("DynamicQuantizeLinear")
def dynamic_quantize_linear(node: OnnxNode, x: OutPort) -> tuple[OutPort, ...]:
    """Quantise to u8, by the range of the data and zero; the scale of zeros is 1."""
    build, axes = node.build, node.list(range(x.type.rank))
    low = build.Minimum(build.ReduceMin(x, axes), 0.0)
    high = build.Maximum(build.ReduceMax(x, axes), 0.0)
    span = build.Subtract(high, low)
    scale = build.Select(build.Equal(span, 0.0), node.like(1, x), build.Divide(span, 255.0))
    start = build.Clamp(build.Divide(build.Negative(low), scale), min=0.0, max=255.0)
    zero = node.cast(build.Round(start), DType.U8)
    return quantized(node, build.Divide(x, scale), zero, DType.U8), scale, zero


@onnx("MatMulInteger")
def matmul_integer(
    node: OnnxNode, a: OutPort, b: OutPort, a_zero: OutPort | None = None, b_zero: OutPort | None = None
) -> OutPort:
    """Product in i32; zero points are per tensor, per row of a, or per column of b."""
    return node.build.MatMul(shifted(node, a, _row(node, a_zero, a)), shifted(node, b, b_zero))


def _row(node: OnnxNode, p: OutPort | None, a: OutPort) -> OutPort | None:
    """Reshape a vector with one entry for each row to a column."""
    if p is None or p.type.rank != 1 or p.shape[0] == 1 or a.type.rank < 2:
        return p
    return node.reshape(p, (p.shape[0], 1))


@onnx("QLinearMatMul")
def qlinear_matmul(
    node: OnnxNode,
    a: OutPort,
    a_scale: OutPort,
    a_zero: OutPort,
    b: OutPort,
    b_scale: OutPort,
    b_zero: OutPort,
    y_scale: OutPort,
    y_zero: OutPort,
) -> OutPort:
    build = node.build
    total = build.MatMul(shifted(node, a, _row(node, a_zero, a)), shifted(node, b, b_zero))
    row = _row(node, a_scale, a)
    scale = build.Multiply(a_scale if row is None else row, b_scale)
    return _requantized(node, total, scale, y_scale, y_zero)


def _requantized(node: OnnxNode, total: OutPort, scale: OutPort, y_scale: OutPort, y_zero: OutPort) -> OutPort:
    build = node.build
    factor = build.Divide(node.cast(scale, DType.F32), node.cast(y_scale, DType.F32))
    return quantized(node, build.Multiply(node.cast(total, DType.F32), factor), y_zero, y_zero.type.dtype)


def _per_filter(node: OnnxNode, p: OutPort, rank: int) -> OutPort:
    """Reshape a vector along the first axis of the weights to broadcast; a scalar stays."""
    if p.type.rank == 1 and p.shape[0] != 1:
        return node.reshape(p, (p.shape[0], *[1] * (rank - 1)))
    return node.reshape(p, ()) if p.type.rank else p


@onnx("ConvInteger")
def conv_integer(
    node: OnnxNode, x: OutPort, w: OutPort, x_zero: OutPort | None = None, w_zero: OutPort | None = None
) -> OutPort:
    w_point = None if w_zero is None else _per_filter(node, w_zero, w.type.rank)
    x_point = None if x_zero is None else _per_filter(node, x_zero, x.type.rank)
    return convolved(node, shifted(node, x, x_point), shifted(node, w, w_point))


@onnx("QLinearConv")
def qlinear_conv(
    node: OnnxNode,
    x: OutPort,
    x_scale: OutPort,
    x_zero: OutPort,
    w: OutPort,
    w_scale: OutPort,
    w_zero: OutPort,
    y_scale: OutPort,
    y_zero: OutPort,
    b: OutPort | None = None,
) -> OutPort:
    """Convolution in i32; the bias is i32, in units of x_scale w_scale."""
    rank = x.type.rank
    weights = shifted(node, w, _per_filter(node, w_zero, rank))
    total = convolved(node, shifted(node, x, _per_filter(node, x_zero, rank)), weights)
    if b is not None:
        total = node.build.Add(total, node.reshape(b, (b.shape[0], *[1] * (rank - 2))))
    scale = w_scale
    if w_scale.type.rank == 1 and w_scale.shape[0] != 1:
        scale = node.reshape(w_scale, (w_scale.shape[0], *[1] * (rank - 2)))
    return _requantized(node, total, node.build.Multiply(scale, x_scale), y_scale, y_zero)
