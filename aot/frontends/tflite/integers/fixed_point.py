"""LiteRT's requantisation: a 32-bit product with a factor in 0.5..1, then a shift, both rounded.

    factor = m 2^(shift - 31)    y = round_half_away(floor((x 2^left m + 2^30) / 2^31) / 2^right)

From tensorflow/lite/kernels: QuantizeMultiplier, MultiplyByQuantizedMultiplier (with two roundings, as it is built),
CalculateActivationRangeQuantized.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from aot.frontends.tflite.registry import RANGES, TfliteNode
from aot.frontends.tflite.tensors import Quantization
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.runtime.abi import DType

BITS = 31


def multiplier(factor: float) -> tuple[int, int]:
    """Return a factor as m 2^(shift - 31): m, shift. One that is too small is 0."""
    if not factor:
        return 0, 0
    mantissa, shift = math.frexp(factor)
    m = math.floor(mantissa * (1 << BITS) + 0.5)
    if m == 1 << BITS:
        m, shift = m // 2, shift + 1
    return (0, 0) if shift < -BITS else (m, shift)


def _divided(m: int, shift: int, count: int) -> tuple[int, int]:
    """Return a factor divided by a count, as MEAN does it: with as many bits as the count has."""
    if count == 1:
        return m, shift
    bits = min(count.bit_length() - 1, 32, BITS + shift)
    return (m << bits) // count, shift - bits


def single(x: float) -> float:
    """`x`, rounded to f32."""
    return float(np.float32(x))


def scaled(
    node: TfliteNode, x: OutPort, factors: Sequence[float], shape: Sequence[int] = (), count: int = 1
) -> OutPort:
    """`x` in i32 or i64 times a factor, or an array of factors of `shape`, as LiteRT rounds it; divided by `count`."""
    pairs = [_divided(*multiplier(f), count) for f in factors]
    m = np.array([p[0] for p in pairs], np.int64)
    left = np.array([max(p[1], 0) for p in pairs], np.int64)
    right = np.array([max(-p[1], 0) for p in pairs], np.int64)
    build = node.build

    def spread(values: Array) -> OutPort:
        same = values if (values != values[0]).any() else values[:1]
        return build.const(same.reshape(shape if same.size > 1 else ()), x.type.dtype)

    if x.type.dtype is DType.I64:
        return node.cast(_of_wide(node, x, spread(m << left), spread(right)), DType.I32)

    if left.any():
        x = build.Multiply(x, spread(1 << left))
    return build.FixedPointProduct(x, spread(m), spread(right))


def _of_wide(node: TfliteNode, x: OutPort, m: OutPort, right: OutPort) -> OutPort:
    """`x` in i64 by the same formula."""
    build = node.build
    high = build.BitwiseRightShift(build.Add(build.Multiply(x, m), 1 << (BITS - 1)), BITS)
    half = build.BitwiseRightShift(build.BitwiseLeftShift(build.const(1, DType.I64), right), 1)
    below = build.Multiply(build.BitwiseRightShift(high, 63), build.Minimum(right, 1))
    return build.BitwiseRightShift(build.Add(build.Add(high, half), below), right)


def requantized(node: TfliteNode, x: OutPort, q: Quantization) -> OutPort:
    """`x` with the output's scale and zero point, in its type; in i64 if 32 bits may not hold a product."""
    build, out = node.build, whole(node)
    factor, bits = q.scales[0] / out.scales[0], x.type.dtype.bits + 1
    m, shift = multiplier(factor)
    if (
        x.type.dtype is not DType.I32
        and bits + shift <= BITS
        and not (out.zeros[0] and node.output_type() is DType.I32)
    ):
        return saturated(node, scaled(node, shifted(node, x, q), [factor]), out)
    integers = build.Subtract(node.cast(x, DType.I64), q.zeros[0])
    if shift > 0:  # numbers beyond these saturate, and would not fit
        least, most = (math.ceil(abs(limit - out.zeros[0]) / factor) for limit in limits(node.output_type()))
        integers = build.Minimum(build.Maximum(integers, -least), most)
    if shift > BITS:  # all but 0 saturate
        m, shift = 1 << BITS, BITS
    product = _of_wide(node, integers, node.scalar(m << max(shift, 0)), node.scalar(max(-shift, 0)))
    return saturated(node, product, out)


def limits(dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest number of a type."""
    return (-(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1) if dtype.is_signed else (0, (1 << dtype.bits) - 1)


def saturated(node: TfliteNode, x: OutPort, q: Quantization) -> OutPort:
    """`x` in i32 or i64 plus the zero point, within the fused activation's range, in the output's type."""
    build, dtype = node.build, node.output_type()
    low, high = limits(dtype)
    kind = node.integer("fused_activation_function", 0)
    node.refuse(kind != 0 and kind not in RANGES, f"fused activation {kind} of quantised tensors is not supported")
    if kind:
        least, most = RANGES[kind]
        low = max(low, _stored(least, q))
        high = high if most is None else min(high, _stored(most, q))
    wide = x.type.dtype
    offset_x = build.Add(x, build.const(q.zeros[0], wide)) if q.zeros[0] else x
    clamped = build.Minimum(build.Maximum(offset_x, build.const(low, wide)), build.const(high, wide))
    return node.cast(clamped, dtype)


def _stored(x: float, q: Quantization) -> int:
    ratio = single(single(x) / q.scales[0])
    return q.zeros[0] + int(math.copysign(math.floor(abs(ratio) + 0.5), ratio))


def shifted(node: TfliteNode, x: OutPort, q: Quantization) -> OutPort:
    """x - zero in i32"""
    wide = node.cast(x, DType.I32)
    if not any(q.zeros):
        return wide
    return node.build.Subtract(wide, node.along(q.zeros, q, x.type.rank, DType.I32))


def whole(node: TfliteNode) -> Quantization:
    """Return the output's scale and zero point, which must count for the whole tensor."""
    q = node.output_quantization()
    node.refuse(q is None or q.is_by_axis or not q.scales[0], "outputs have one scale above 0")
    assert q is not None
    return q


def of_input(node: TfliteNode, i: int) -> Quantization:
    """Scale and zero point of input i."""
    q = node.quantization(i)
    node.refuse(q is None, f"input {i} is quantised, as input 0 is")
    assert q is not None
    return q
