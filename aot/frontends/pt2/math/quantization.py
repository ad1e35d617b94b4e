"""Quantised tensors, as PT2E's exports have them: numbers, scales and zero points.

q = clamp(round(x / scale) + zero point)         x = (q - zero point) scale
"""

from __future__ import annotations

from aot.frontends.onnx.math.quantization import limits
from aot.frontends.pt2.registry import Call, aten
from aot.ir.graph import OutPort
from runtime.abi import DType

SPACE = "quantized_decomposed::"


def scales_of(
    node: Call, scale: OutPort | float, zero_point: OutPort | int | None, dtype: DType
) -> tuple[OutPort, OutPort | None]:
    """The scale in f32, and the zero point in the type of the quantised numbers."""
    return node.port(scale, DType.F32), None if zero_point is None else node.port(zero_point, dtype)


def quantized(
    node: Call,
    x: OutPort,
    parameters: tuple[OutPort | float, OutPort | int | None],
    axis: int,
    ends: tuple[int, int],
    dtype: DType,
) -> OutPort:
    scale, zero = scales_of(node, *parameters, dtype)
    zero = zero if zero is not None else node.build.Broadcast(node.build.const(0, dtype), node.build.ShapeOf(scale))
    found = node.onnx("QuantizeLinear", node.cast(x, DType.F32), scale, zero, axis=axis)
    if ends == limits(dtype):
        return found
    low, high = (node.build.const(v, dtype) for v in ends)
    return node.build.Minimum(node.build.Maximum(found, low), high)


def dequantized(node: Call, x: OutPort, parameters: tuple[OutPort | float, OutPort | int | None], axis: int) -> OutPort:
    scale, zero = scales_of(node, *parameters, x.type.dtype)
    return node.onnx("DequantizeLinear", x, scale, *([] if zero is None else [zero]), axis=axis)


@aten(SPACE + "quantize_per_tensor.default", SPACE + "quantize_per_tensor.tensor")
def quantize_per_tensor(
    node: Call,
    x: OutPort,
    scale: OutPort | float,
    zero_point: OutPort | int,
    quant_min: int,
    quant_max: int,
    dtype: DType,
) -> OutPort:
    return quantized(node, x, _single(node, scale, zero_point), 0, (quant_min, quant_max), dtype)


def _single(node: Call, scale: OutPort | float, zero_point: OutPort | int) -> tuple[OutPort | float, OutPort | int]:
    """Parameters of a tensor without axes."""
    a = node.build.Reshape(scale, node.list([])) if isinstance(scale, OutPort) else scale
    b = node.build.Reshape(zero_point, node.list([])) if isinstance(zero_point, OutPort) else zero_point
    return a, b


@aten(SPACE + "dequantize_per_tensor.default", SPACE + "dequantize_per_tensor.tensor")
def dequantize_per_tensor(
    node: Call,
    x: OutPort,
    scale: OutPort | float,
    zero_point: OutPort | int,
    quant_min: int,
    quant_max: int,
    dtype: DType,
    out_dtype: DType | None = None,
) -> OutPort:
    return dequantized(node, x, _single(node, scale, zero_point), 0)


@aten(SPACE + "quantize_per_channel.default")
def quantize_per_channel(
    node: Call,
    x: OutPort,
    scales: OutPort,
    zero_points: OutPort | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: DType,
) -> OutPort:
    return quantized(node, x, (scales, zero_points), node.axis(axis, x.type.rank), (quant_min, quant_max), dtype)


@aten(SPACE + "dequantize_per_channel.default")
def dequantize_per_channel(
    node: Call,
    x: OutPort,
    scales: OutPort,
    zero_points: OutPort | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: DType,
    out_dtype: DType | None = None,
) -> OutPort:
    return dequantized(node, x, (scales, zero_points), node.axis(axis, x.type.rank))


# ---- by tokens: a scale for each row of the last axis


@aten(SPACE + "quantize_per_token.default")
def quantize_per_token(
    node: Call,
    x: OutPort,
    scales: OutPort,
    zero_points: OutPort,
    quant_min: int,
    quant_max: int,
    dtype: DType,
) -> OutPort:
    build = node.build
    scaled = build.Divide(node.cast(x, DType.F32), node.cast(scales, DType.F32))
    whole = build.Add(build.Round(scaled), node.cast(zero_points, DType.F32))
    return node.cast(build.Clamp(whole, min=float(quant_min), max=float(quant_max)), dtype)


@aten(SPACE + "dequantize_per_token.default")
def dequantize_per_token(
    node: Call,
    x: OutPort,
    scales: OutPort,
    zero_points: OutPort,
    quant_min: int,
    quant_max: int,
    dtype: DType,
    output_dtype: DType,
) -> OutPort:
    gap = node.build.Subtract(node.cast(x, DType.F32), node.cast(zero_points, DType.F32))
    return node.build.Multiply(gap, node.cast(scales, DType.F32))


# ---- scales by the range of the data


def _ranges(node: Call, x: OutPort, axes: list[int], keep: bool) -> tuple[OutPort, OutPort]:
    """The least and the largest element, at most and at least 0."""
    build, wide, at = node.build, node.cast(x, DType.F32), node.list(axes)
    low = build.Minimum(build.ReduceMin(wide, at, keep_dims=keep), 0.0)
    return low, build.Maximum(build.ReduceMax(wide, at, keep_dims=keep), 0.0)


def _parameters(node: Call, low: OutPort, high: OutPort, ends: tuple[int, int], eps: float) -> tuple[OutPort, OutPort]:
    """The scale and the zero point that spread a range over integers."""
    build = node.build
    first, last = ends
    scale = build.Divide(build.Subtract(high, low), float(last - first))
    scale = build.Maximum(scale, node.like(eps, scale))
    zero = build.Subtract(node.like(first, low), build.Round(build.Divide(low, scale)))
    return scale, build.Clamp(zero, min=float(first), max=float(last))


@aten(SPACE + "choose_qparams.tensor")
def choose_qparams(
    node: Call, x: OutPort, quant_min: int, quant_max: int, eps: float, dtype: DType
) -> tuple[OutPort, OutPort]:
    low, high = _ranges(node, x, list(range(x.type.rank)), False)
    found = _parameters(node, low, high, (quant_min, quant_max), eps)
    one = node.list([1])
    return node.build.Reshape(found[0], one), node.build.Reshape(found[1], one)


@aten(SPACE + "choose_qparams_per_token_asymmetric.default")
def choose_qparams_per_token(node: Call, x: OutPort, dtype: DType) -> tuple[OutPort, OutPort]:
    """Of i8; the zero point is the one with the smaller error at the ends."""
    build, first, last = node.build, -128.0, 127.0
    low, high = _ranges(node, x, [-1], True)
    scale = build.Divide(build.Subtract(high, low), last - first)
    scale = build.Maximum(scale, node.like(1.1920928955078125e-07, scale))
    below, above = build.Divide(low, scale), build.Divide(high, scale)
    nearer = build.Greater(build.Add(build.Add(below, first), build.Add(above, last)), 0.0)
    zero = build.Select(
        nearer,
        build.Subtract(node.like(first, low), below),
        build.Subtract(node.like(last, low), above),
    )
    return scale, build.Round(build.Clamp(zero, min=first, max=last))


# ---- quantised and back in one operation, as in training


@aten("fake_quantize_per_tensor_affine.default", "fake_quantize_per_tensor_affine.tensor_qparams")
def fake_quantize(
    node: Call, x: OutPort, scale: OutPort | float, zero_point: OutPort | int, quant_min: int, quant_max: int
) -> OutPort:
    return _faked(node, x, node.port(scale, DType.F32), node.port(zero_point, DType.F32), (quant_min, quant_max))


@aten("fake_quantize_per_channel_affine.default")
def fake_quantize_per_channel(
    node: Call, x: OutPort, scale: OutPort, zero_point: OutPort, axis: int, quant_min: int, quant_max: int
) -> OutPort:
    shape = node.list([-1, *[1] * (x.type.rank - 1 - node.axis(axis, x.type.rank))])
    parts = [node.build.Reshape(node.cast(v, DType.F32), shape) for v in (scale, zero_point)]
    return _faked(node, x, parts[0], parts[1], (quant_min, quant_max))


def _faked(node: Call, x: OutPort, scale: OutPort, zero: OutPort, ends: tuple[int, int]) -> OutPort:
    build = node.build
    whole = build.Add(build.Round(build.Divide(node.cast(x, DType.F32), scale)), zero)
    whole = build.Clamp(whole, min=float(ends[0]), max=float(ends[1]))
    return build.Multiply(build.Subtract(whole, zero), scale)
