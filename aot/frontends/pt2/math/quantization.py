"""Quantisation as PT2E writes it: integers with scales and zero points beside the operations.

dequantize_per_tensor(q, s, z)     ->     (q - z) s, the difference in i32
"""

from __future__ import annotations

from aot.frontends.pt2.registry import AtenNode, Number, aten
from aot.ir.graph import OutPort
from aot.opset.elementwise.conversion import Convert
from aot.runtime.abi import DType

SPACE = "quantized_decomposed::"
BYTES = (DType.U8, DType.I8)
PER_TENSOR = ("default", "tensor", "tensor2")


def along(node: AtenNode, p: OutPort | Number, x: OutPort, axis: int | None, dtype: DType) -> OutPort:
    """Return a scale or zero point that broadcasts to `x`: a number, or one for each slice of an axis."""
    port = node.port(p, dtype)
    if axis is None:
        return node.single(port)
    return node.build.Reshape(port, node.list([-1, *[1] * (x.type.rank - 1 - node.axis(axis, x.type.rank))]))


@aten(*(f"{SPACE}quantize_per_tensor.{o}" for o in PER_TENSOR), f"{SPACE}quantize_per_channel.default")
def quantize(
    node: AtenNode,
    x: OutPort,
    scale: OutPort | Number = 1.0,
    zero_point: OutPort | Number = 0,
    scales: OutPort | None = None,
    zero_points: OutPort | None = None,
    axis: int | None = None,
    quant_min: int | OutPort = 0,
    quant_max: int | OutPort = 0,
    dtype: DType | None = None,
) -> OutPort:
    """clamp(round(x / scale) + zero), halves to even."""
    build, x = node.build, node.cast(x, DType.F32)
    low, high = (
        v if isinstance(v, int) else node.ints(v, "quant_min and quant_max")[0] for v in (quant_min, quant_max)
    )
    factor = along(node, scale if scales is None else scales, x, axis, DType.F32)
    zero = along(node, zero_point if zero_points is None else zero_points, x, axis, DType.F32)
    whole = build.Add(build.Round(build.Divide(x, factor)), zero)
    return node.cast(build.Clamp(whole, min=float(low), max=float(high)), node.dtype())


@aten(*(f"{SPACE}dequantize_per_tensor.{o}" for o in PER_TENSOR), f"{SPACE}dequantize_per_channel.default")
def dequantize(
    node: AtenNode,
    x: OutPort,
    scale: OutPort | Number = 1.0,
    zero_point: OutPort | Number = 0,
    scales: OutPort | None = None,
    zero_points: OutPort | None = None,
    axis: int | None = None,
    quant_min: int | OutPort | None = None,
    quant_max: int | OutPort | None = None,
    dtype: DType | None = None,
    out_dtype: DType | None = None,
) -> OutPort:
    zero = along(node, _byte_of(zero_point if zero_points is None else zero_points), x, axis, DType.I32)
    factor = along(node, scale if scales is None else scales, x, axis, DType.F32)
    whole = node.build.Subtract(node.cast(x, DType.I32), zero)
    return node.build.Multiply(node.cast(whole, DType.F32), factor)


def _byte_of(p: OutPort | Number) -> OutPort | Number:
    """Return the byte that a zero point was made of: sums of integers take one that is known to fit."""
    node = p.node if isinstance(p, OutPort) else None
    if node is None or not isinstance(node.op, Convert) or node.source(0).type.dtype not in BYTES:
        return p
    return node.source(0)


# ---- by tokens: a scale for each row of the last axis


@aten(SPACE + "quantize_per_token.default")
def quantize_per_token(
    node: AtenNode, x: OutPort, scales: OutPort, zero_points: OutPort, quant_min: int, quant_max: int, dtype: DType
) -> OutPort:
    build = node.build
    scaled = build.Divide(node.cast(x, DType.F32), node.cast(scales, DType.F32))
    whole = build.Add(build.Round(scaled), node.cast(zero_points, DType.F32))
    return node.cast(build.Clamp(whole, min=float(quant_min), max=float(quant_max)), dtype)


@aten(SPACE + "dequantize_per_token.default")
def dequantize_per_token(
    node: AtenNode,
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


def _ranges(node: AtenNode, x: OutPort, axes: list[int], keep: bool) -> tuple[OutPort, OutPort]:
    """Return the least and the largest element, at most and at least 0."""
    build, wide, at = node.build, node.cast(x, DType.F32), node.list(axes)
    low = build.Minimum(build.ReduceMin(wide, at, keep_dims=keep), 0.0)
    return low, build.Maximum(build.ReduceMax(wide, at, keep_dims=keep), 0.0)


def _parameters(
    node: AtenNode, low: OutPort, high: OutPort, ends: tuple[int, int], eps: float
) -> tuple[OutPort, OutPort]:
    """Return the scale and the zero point that spread a range over integers."""
    build = node.build
    first, last = ends
    scale = build.Divide(build.Subtract(high, low), float(last - first))
    scale = build.Maximum(scale, node.like(eps, scale))
    zero = build.Subtract(node.like(first, low), build.Round(build.Divide(low, scale)))
    return scale, build.Clamp(zero, min=float(first), max=float(last))


@aten(SPACE + "choose_qparams.tensor")
def choose_qparams(
    node: AtenNode, x: OutPort, quant_min: int, quant_max: int, eps: float, dtype: DType
) -> tuple[OutPort, OutPort]:
    low, high = _ranges(node, x, list(range(x.type.rank)), False)
    scale, zero = _parameters(node, low, high, (quant_min, quant_max), eps)
    one = node.list([1])
    zero = node.cast(zero, dtype) if dtype in BYTES else zero  # within quant_min to quant_max
    return node.build.Reshape(scale, one), node.build.Reshape(zero, one)


@aten(SPACE + "choose_qparams_per_token_asymmetric.default")
def choose_qparams_per_token(node: AtenNode, x: OutPort, dtype: DType) -> tuple[OutPort, OutPort]:
    """Parameters of i8; the zero point is the one with the smaller error at the ends."""
    build, first, last = node.build, -128.0, 127.0
    low, high = _ranges(node, x, [-1], True)
    scale = build.Divide(build.Subtract(high, low), last - first)
    scale = build.Maximum(scale, node.like(1.1920928955078125e-07, scale))
    below, above = build.Divide(low, scale), build.Divide(high, scale)
    nearer = build.Greater(build.Add(build.Add(below, first), build.Add(above, last)), 0.0)
    zero = build.Select(
        nearer, build.Subtract(node.like(first, low), below), build.Subtract(node.like(last, low), above)
    )
    return scale, build.Round(build.Clamp(zero, min=first, max=last))


# ---- quantised and back in one operation, as in training


@aten("fake_quantize_per_tensor_affine.default", "fake_quantize_per_tensor_affine.tensor_qparams")
def fake_quantize(
    node: AtenNode, x: OutPort, scale: OutPort | float, zero_point: OutPort | int, quant_min: int, quant_max: int
) -> OutPort:
    return _faked(node, x, node.port(scale, DType.F32), node.port(zero_point, DType.F32), (quant_min, quant_max))


@aten("fake_quantize_per_channel_affine.default")
def fake_quantize_per_channel(
    node: AtenNode, x: OutPort, scale: OutPort, zero_point: OutPort, axis: int, quant_min: int, quant_max: int
) -> OutPort:
    shape = node.list([-1, *[1] * (x.type.rank - 1 - node.axis(axis, x.type.rank))])
    parts = [node.build.Reshape(node.cast(v, DType.F32), shape) for v in (scale, zero_point)]
    return _faked(node, x, parts[0], parts[1], (quant_min, quant_max))


def _faked(node: AtenNode, x: OutPort, scale: OutPort, zero: OutPort, ends: tuple[int, int]) -> OutPort:
    build = node.build
    whole = build.Add(build.Round(build.Divide(node.cast(x, DType.F32), scale)), zero)
    whole = build.Clamp(whole, min=float(ends[0]), max=float(ends[1]))
    return build.Multiply(build.Subtract(whole, zero), scale)
