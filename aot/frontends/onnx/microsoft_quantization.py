"""Quantised operations of domain com.microsoft, as ONNX Runtime's quantiser writes them.

    integers -> numbers, (q - zero) scale -> the operation -> quantised again: round, add zero, saturate
"""

from __future__ import annotations

import numpy as np

from aot.frontends.onnx.attention import heads_last
from aot.frontends.onnx.microsoft import MS
from aot.frontends.onnx.microsoft_attention import attended, parted
from aot.frontends.onnx.pooling import average_pool
from aot.frontends.onnx.quantization import fitted, quantized, shifted
from aot.frontends.onnx.recurrent import lstm
from aot.frontends.onnx.registry import Call, onnx
from aot.frontends.onnx.softmax import weights
from aot.ir.graph import OutPort
from runtime.abi import DType


def numbers(node: Call, x: OutPort, scale: OutPort, zero: OutPort | None, axis: int = 0) -> OutPort:
    """(x - zero) scale in f32; a vector goes along an axis."""
    point = None if zero is None else fitted(node, zero, x, axis)
    return node.build.Multiply(node.cast(shifted(node, x, point), DType.F32), fitted(node, scale, x, axis))


def again(node: Call, y: OutPort, scale: OutPort, zero: OutPort | None, dtype: DType) -> OutPort:
    return quantized(node, node.build.Divide(y, scale), zero, dtype)


@onnx("QLinearAdd", "QLinearMul", domain=MS)
def qlinear_two(
    node: Call, a: OutPort, a_scale: OutPort, a_zero: OutPort | None, b: OutPort, b_scale: OutPort,
    b_zero: OutPort | None, y_scale: OutPort, y_zero: OutPort | None = None,
) -> OutPort:  # fmt: skip
    both = numbers(node, a, a_scale, a_zero), numbers(node, b, b_scale, b_zero)
    found = (node.build.Add if node.kind == "QLinearAdd" else node.build.Multiply)(*both)
    return again(node, found, y_scale, y_zero, a.type.dtype)


@onnx("QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", domain=MS)
def qlinear_one(
    node: Call, x: OutPort, x_scale: OutPort, x_zero: OutPort | None, y_scale: OutPort, y_zero: OutPort | None = None
) -> OutPort:
    build, wide = node.build, numbers(node, x, x_scale, x_zero)
    if node.kind == "QLinearSigmoid":
        found = build.Sigmoid(wide)
    elif node.kind == "QLinearLeakyRelu":
        found = build.PRelu(wide, node.like(node.number("alpha", 0.01), wide))
    else:
        axis = node.axis(node.integer("axis", -1), x.type.rank)
        node.refuse(node.integer("opset", 13) < 13 and axis != x.type.rank - 1, "softmax over several axes at once")
        found = weights(node, wide, axis)
    return again(node, found, y_scale, y_zero, x.type.dtype)


@onnx("QLinearAveragePool", "QLinearGlobalAveragePool", domain=MS)
def qlinear_average_pool(
    node: Call, x: OutPort, x_scale: OutPort, x_zero: OutPort | None, y_scale: OutPort, y_zero: OutPort | None = None
) -> OutPort:
    """Channels may be the last axis instead of the second."""
    build, rank, dtype = node.build, x.type.rank, x.type.dtype
    last = node.flag("channels_last")
    wide = numbers(node, x, x_scale, x_zero)
    if node.kind == "QLinearGlobalAveragePool":
        found = build.ReduceMean(wide, node.list(range(1, rank - 1) if last else range(2, rank)), keep_dims=True)
        return again(node, found, y_scale, y_zero, dtype)
    to_front, to_back = (0, rank - 1, *range(1, rank - 1)), (0, *range(2, rank), 1)
    found = average_pool(node, build.Transpose(wide, node.list(to_front)) if last else wide)
    found = build.Transpose(found, node.list(to_back)) if last else found
    return again(node, found, y_scale, y_zero, dtype)


@onnx("QLinearConcat", domain=MS)
def qlinear_concat(node: Call, y_scale: OutPort, y_zero: OutPort, *parts: OutPort) -> OutPort:
    """`parts`: tensor, scale, zero point; tensor, scale, ..; one that is quantised as the result stays as it is."""
    made: list[OutPort] = []
    for x, scale, zero in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        same = all(
            a.value is not None and b.value is not None and np.array_equal(a.value, b.value)
            for a, b in ((scale, y_scale), (zero, y_zero))
        )
        made.append(x if same else again(node, numbers(node, x, scale, zero), y_scale, y_zero, x.type.dtype))
    return node.build.Concat(*made, axis=node.integer("axis"))


@onnx("QLinearWhere", domain=MS)
def qlinear_where(
    node: Call, condition: OutPort, a: OutPort, a_scale: OutPort, a_zero: OutPort, b: OutPort, b_scale: OutPort,
    b_zero: OutPort, y_scale: OutPort, y_zero: OutPort,
) -> OutPort:  # fmt: skip
    found = node.build.Select(condition, numbers(node, a, a_scale, a_zero), numbers(node, b, b_scale, b_zero))
    return again(node, found, y_scale, y_zero, a.type.dtype)


@onnx("QGemm", domain=MS)
def qgemm(
    node: Call, a: OutPort, a_scale: OutPort, a_zero: OutPort | None, b: OutPort, b_scale: OutPort,
    b_zero: OutPort | None, c: OutPort | None = None, y_scale: OutPort | None = None, y_zero: OutPort | None = None,
) -> OutPort:  # fmt: skip
    """alpha a b + c in i32, where c is in units of the product; f32 where the result has no scale."""
    build, columns = node.build, 0 if node.flag("transB") else 1
    whole_a = shifted(node, a, None if a_zero is None else fitted(node, a_zero, a, 0))
    whole_b = shifted(node, b, None if b_zero is None else fitted(node, b_zero, b, columns))
    total = build.MatMul(whole_a, whole_b, transpose_a=node.flag("transA"), transpose_b=node.flag("transB"))
    total = total if c is None else build.Add(total, c)
    unit = build.Multiply(build.Multiply(a_scale, b_scale), node.number("alpha", 1.0))
    found = build.Multiply(node.cast(total, DType.F32), unit)
    return found if y_scale is None else again(node, found, y_scale, y_zero, a.type.dtype)


@onnx("QAttention", domain=MS)
def qattention(
    node: Call, x: OutPort, w: OutPort, bias: OutPort, x_scale: OutPort, w_scale: OutPort,
    mask: OutPort | None = None, x_zero: OutPort | None = None, w_zero: OutPort | None = None,
    past: OutPort | None = None,
) -> OutPort:  # fmt: skip
    """The first product is of integers; all that follows is in f32."""
    node.refuse(past is not None, "past states are not supported")
    build = node.build
    x_point, w_point = (
        None if zero is None else fitted(node, zero, p, axis) for zero, p, axis in ((x_zero, x, 2), (w_zero, w, 1))
    )
    total = build.MatMul(shifted(node, x, x_point), shifted(node, w, w_point))
    wide = build.Multiply(node.cast(total, DType.F32), build.Multiply(x_scale, w_scale))
    q, k, v = parted(node, build.Add(wide, bias))
    return heads_last(node, attended(node, q, k, v, mask, None))


@onnx("DynamicQuantizeLSTM", domain=MS)
def dynamic_quantize_lstm(
    node: Call, x: OutPort, w: OutPort, r: OutPort, b: OutPort | None, lengths: OutPort | None, h: OutPort | None,
    c: OutPort | None, p: OutPort | None, w_scale: OutPort, w_zero: OutPort, r_scale: OutPort, r_zero: OutPort,
) -> tuple[OutPort, ...]:  # fmt: skip
    """The weights as numbers, [directions, gates, inputs]; inputs and states are not quantised on the way."""

    def plain(q: OutPort, scale: OutPort, zero: OutPort) -> OutPort:
        """Scales are [directions], or [directions, gates]."""
        last = node.list([1] if scale.type.rank == 2 else [1, 2])
        factor, point = (node.build.Unsqueeze(v, last) for v in (scale, zero))
        wide = node.build.Multiply(node.cast(shifted(node, q, point), DType.F32), factor)
        return node.build.Transpose(wide, node.list([0, 2, 1]))

    return lstm(node, x, plain(w, w_scale, w_zero), plain(r, r_scale, r_zero), b, lengths, h, c, p)


@onnx("MatMulNBits", domain=MS)
def matmul_nbits(
    node: Call, a: OutPort, b: OutPort, scales: OutPort, zeros: OutPort | None = None, order: OutPort | None = None,
    bias: OutPort | None = None,
) -> OutPort:  # fmt: skip
    """a [.., K] times weights [N, K] of few bits, with a scale for each block of a row. The weights become f32."""
    node.refuse(order is not None, "blocks in another order (g_idx) are not supported")
    bits, block, inner, outer = (node.integer(name) for name in ("bits", "block_size", "K", "N"))
    node.refuse(bits not in (2, 4, 8), f"weights of 2, 4 and 8 bits are supported, got {bits}")
    count = -(-inner // block)
    levels = _unpacked(node.known(b, "weights"), bits).reshape(outer, count, -1)[:, :, :block].astype(np.float32)
    if zeros is None:
        points = np.full((outer, count), 2.0 ** (bits - 1), np.float32)
    else:
        given = node.known(zeros, "zero points")
        if given.dtype == np.uint8:
            given = _unpacked(given.reshape(outer, -1), bits)[:, :count]
        points = given.reshape(outer, count).astype(np.float32)
    factors = node.known(scales, "scales").reshape(outer, count, 1).astype(np.float32)
    whole = ((levels - points[:, :, None]) * factors).reshape(outer, -1)[:, :inner]
    y = node.build.MatMul(a, node.build.const(whole, a.type.dtype), transpose_b=True)
    return y if bias is None else node.build.Add(y, bias)


def _unpacked(packed: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], bits: int) -> np.ndarray[
    tuple[int, ...], np.dtype[np.uint8]
]:
    """Each byte holds 8 / bits numbers, the first one lowest; along the last axis."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    apart = (packed[..., None] >> shifts) & np.uint8(2**bits - 1)
    return apart.reshape(*packed.shape[:-1], -1)
