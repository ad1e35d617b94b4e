"""Quantised networks of Paddle and PaddleSlim: numbers of 8 or 16 bits, scaled by the largest magnitude.

    quantize_linear: round(x (2^(bits - 1) - 1) / scale)        dequantize_linear: x scale / (2^(bits - 1) - 1)

Halves are rounded to even; the operations with `round_type` 1 have them away from zero in Paddle.
"""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.conversion.node_context import StaticSequence
from aot.frontends.paddle.registry import PaddleNode, paddle
from aot.ir.graph import OutPort
from aot.runtime.abi import DType

TYPES = {8: DType.I8, 16: DType.I16}
SMALLEST = 1e-30  # scale of a tensor of zeros


def _levels(node: PaddleNode, bits: int) -> int:
    node.refuse(bits not in TYPES, f"numbers of 8 or 16 bits, got {bits}")
    return (1 << (bits - 1)) - 1


def _step(node: PaddleNode, scale: OutPort, bits: int, axis: int) -> OutPort:
    """Return the distance of two levels: one, or one for each slice of an axis that is not negative."""
    one = node.single(scale) if axis < 0 else node.reshape(scale, (-1,))
    return node.build.Divide(node.build.Maximum(one, SMALLEST), float(_levels(node, bits)))


def _quantized(node: PaddleNode, x: OutPort, scale: OutPort, bits: int, axis: int) -> OutPort:
    step = _step(node, scale, bits, axis)
    return node.onnx("QuantizeLinear", x, step, node.build.const(0, TYPES[bits]), axis=max(axis, 0))


def _dequantized(node: PaddleNode, x: OutPort, scale: OutPort, bits: int, axis: int) -> OutPort:
    return node.onnx("DequantizeLinear", x, _step(node, scale, bits, axis), axis=max(axis, 0))


@paddle("quantize_linear")
def quantize_linear(
    node: PaddleNode, x: OutPort, scale: OutPort, *rest: object, quant_axis: int = -1, bit_length: int = 8
) -> OutPort:
    return _quantized(node, x, scale, bit_length, quant_axis)


@paddle("dequantize_linear")
def dequantize_linear(
    node: PaddleNode, x: OutPort, scale: OutPort, *rest: object, quant_axis: int = -1, bit_length: int = 8
) -> OutPort:
    return _dequantized(node, x, scale, bit_length, quant_axis)


def _rounded(node: PaddleNode, x: OutPort, scale: OutPort, axis: int = -1, *, is_scaled: bool = True) -> OutPort:
    """Return numbers rounded to levels; the levels themselves, as floats, unless they are scaled."""
    build, most = node.build, _levels(node, node.integer("bit_length", 8))
    is_even = node.integer("round_type", 1) == 0  # then there is one level more below zero
    one = node.single(scale) if axis < 0 else node.reshape(scale, (-1, *[1] * (x.type.rank - axis - 1)))
    high = build.Maximum(one, SMALLEST)
    low = build.Multiply(high, -1.0 - is_even / most)
    ends = (low, high) if is_scaled else (node.like(-most - is_even, x), node.like(most, x))
    return build.FakeQuantize(x, low, high, *ends, levels=2 * most + 1 + is_even)


@paddle("fake_quantize_dequantize_moving_average_abs_max")
def rounded(node: PaddleNode, x: OutPort, scale: OutPort, *rest: object) -> tuple[OutPort, OutPort]:
    return _rounded(node, x, scale), scale


@paddle("fake_quantize_dequantize_abs_max")
def rounded_by_itself(node: PaddleNode, x: OutPort) -> tuple[OutPort, OutPort]:
    scale = node.reshape(_largest(node, x, range(x.type.rank)), (1,))
    return _rounded(node, x, scale), scale


@paddle("fake_channel_wise_quantize_dequantize_abs_max")
def rounded_by_channels(node: PaddleNode, x: OutPort, *, quant_axis: int = 0) -> tuple[OutPort, OutPort]:
    scale = _largest(node, x, [a for a in range(x.type.rank) if a != quant_axis])
    return _rounded(node, x, scale, quant_axis), scale


def _largest(node: PaddleNode, x: OutPort, axes: Sequence[int]) -> OutPort:
    return node.build.ReduceMax(node.build.Abs(x), node.list(axes))


@paddle("fake_quantize_moving_average_abs_max", "fake_quantize_range_abs_max")
def levels_of(node: PaddleNode, x: OutPort, scale: OutPort, *rest: object) -> tuple[OutPort, OutPort]:
    """Return integers as floats."""
    return _rounded(node, x, scale, is_scaled=False), scale


@paddle("fake_dequantize_max_abs")
def scaled(node: PaddleNode, x: OutPort, scale: OutPort, *, max_range: float) -> OutPort:
    return node.build.Multiply(x, node.build.Divide(node.single(scale), max_range))


@paddle("fake_channel_wise_dequantize_max_abs")
def scaled_by_channels(
    node: PaddleNode, x: OutPort, scales: OutPort | StaticSequence, *, quant_axis: int = 0, x_num_col_dims: int = 1
) -> OutPort:
    """Multiply the integers of weights, or of sums, which have the scale of the data, too."""
    factors = scales if isinstance(scales, tuple) else (scales,)
    bits = node.integers("quant_bits", (8,) * len(factors))
    axis = quant_axis if len(factors) == 1 else x_num_col_dims
    factor = node.reshape(_step(node, factors[0], bits[0], 0), (-1, *[1] * (x.type.rank - axis - 1)))
    for scale, own in zip(factors[1:], bits[1:], strict=False):
        factor = node.build.Multiply(factor, _step(node, scale, own, -1))
    return node.build.Multiply(node.cast(x, DType.F32), factor)
