"""Quantisation as PT2E writes it: integers with scales and zero points beside the operations.

dequantize_per_tensor(q, s, z)     ->     (q - z) s, the difference in i32
"""

from __future__ import annotations

from aot.frontends.pt2.registry import Call, Number, aten
from aot.ir.graph import OutPort
from runtime.abi import DType

SPACE = "quantized_decomposed::"
PER_TENSOR = ("default", "tensor", "tensor2")


def along(node: Call, p: OutPort | Number, x: OutPort, axis: int | None, dtype: DType) -> OutPort:
    """A scale or zero point that broadcasts to `x`: a number, or one for each slice of an axis."""
    port = node.port(p, dtype)
    if axis is None:
        return node.single(port)
    return node.build.Reshape(port, node.list([-1, *[1] * (x.type.rank - 1 - node.axis(axis, x.type.rank))]))


@aten(*(f"{SPACE}quantize_per_tensor.{o}" for o in PER_TENSOR), f"{SPACE}quantize_per_channel.default")
def quantize(
    node: Call,
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
    node: Call,
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
    zero = along(node, zero_point if zero_points is None else zero_points, x, axis, DType.I32)
    factor = along(node, scale if scales is None else scales, x, axis, DType.F32)
    whole = node.build.Subtract(node.cast(x, DType.I32), zero)
    return node.build.Multiply(node.cast(whole, DType.F32), factor)


@aten(f"{SPACE}choose_qparams.tensor")
def choose_qparams(
    node: Call, x: OutPort, quant_min: int, quant_max: int, eps: float, dtype: DType | None = None
) -> tuple[OutPort, OutPort]:
    """Scale and zero point for the range of `x` and zero."""
    build = node.build
    axes = node.list(range(x.type.rank))
    low = build.Minimum(build.ReduceMin(x, axes), node.like(0, x))
    high = build.Maximum(build.ReduceMax(x, axes), node.like(0, x))
    scale = build.Divide(build.Subtract(high, low), node.like(quant_max - quant_min, x))
    scale = build.Maximum(scale, node.like(eps, x))
    zero = build.Subtract(node.like(quant_min, x), build.Round(build.Divide(low, scale)))
    return scale, build.Clamp(zero, min=float(quant_min), max=float(quant_max))
