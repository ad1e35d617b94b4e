"""Quantised operations of domain com.microsoft, as ONNX Runtime's quantiser generates them.

integers -> numbers, (q - zero) scale -> the operation -> quantised again: round, add zero, saturate
"""

from __future__ import annotations

import numpy as np

from aot.frontends.onnx.arrays.generators import indices
from aot.frontends.onnx.math.quantization import fitted, qlinear_conv, quantized, shifted
from aot.frontends.onnx.microsoft.attention import attended_with_past
from aot.frontends.onnx.microsoft.operations import MS, embedded
from aot.frontends.onnx.neural.pooling import average_pool, max_pool
from aot.frontends.onnx.neural.softmax import weights
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.runtime.abi import DType


def numbers(node: OnnxNode, x: OutPort, scale: OutPort, zero: OutPort | None, axis: int = 0) -> OutPort:
    """Return (x - zero) scale in f32; a vector is along an axis."""
    point = None if zero is None else fitted(node, zero, x, axis)
    return node.build.Multiply(node.cast(shifted(node, x, point), DType.F32), fitted(node, scale, x, axis))


def again(node: OnnxNode, y: OutPort, scale: OutPort, zero: OutPort | None, dtype: DType) -> OutPort:
    return quantized(node, node.build.Divide(y, scale), zero, dtype)


@onnx("QLinearAdd", "QLinearMul", domain=MS)
def qlinear_two(
    node: OnnxNode,
    a: OutPort,
    a_scale: OutPort,
    a_zero: OutPort | None,
    b: OutPort,
    b_scale: OutPort,
    b_zero: OutPort | None,
    y_scale: OutPort,
    y_zero: OutPort | None = None,
) -> OutPort:
    both = numbers(node, a, a_scale, a_zero), numbers(node, b, b_scale, b_zero)
    result = (node.build.Add if node.kind == "QLinearAdd" else node.build.Multiply)(*both)
    return again(node, result, y_scale, y_zero, a.type.dtype)


@onnx("QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", domain=MS)
def qlinear_one(
    node: OnnxNode,
    x: OutPort,
    x_scale: OutPort,
    x_zero: OutPort | None,
    y_scale: OutPort,
    y_zero: OutPort | None = None,
) -> OutPort:
    build, wide = node.build, numbers(node, x, x_scale, x_zero)
    if node.kind == "QLinearSigmoid":
        result = build.Sigmoid(wide)
    elif node.kind == "QLinearLeakyRelu":
        result = build.PRelu(wide, node.like(node.number("alpha", 0.01), wide))
    else:
        axis = node.axis(node.integer("axis", -1), x.type.rank)
        node.refuse(node.integer("opset", 13) < 13 and axis != x.type.rank - 1, "softmax over several axes at once")
        result = weights(node, wide, axis)
    return again(node, result, y_scale, y_zero, x.type.dtype)


@onnx("QLinearAveragePool", "QLinearGlobalAveragePool", domain=MS)
def qlinear_average_pool(
    node: OnnxNode,
    x: OutPort,
    x_scale: OutPort,
    x_zero: OutPort | None,
    y_scale: OutPort,
    y_zero: OutPort | None = None,
) -> OutPort:
    """Average pooling; channels may be the last axis instead of the second."""
    rank, last = x.type.rank, node.flag("channels_last")
    wide = numbers(node, x, x_scale, x_zero)
    if node.kind == "QLinearGlobalAveragePool":
        axes = node.list(range(1, rank - 1) if last else range(2, rank))
        mean = node.build.ReduceMean(wide, axes, keep_dims=True)
    else:
        mean = (
            node.to_channels_last(average_pool(node, node.to_channels_first(wide)))
            if last
            else average_pool(node, wide)
        )
    return again(node, mean, y_scale, y_zero, x.type.dtype)


@onnx("NhwcMaxPool", domain=MS)
def nhwc_max_pool(node: OnnxNode, x: OutPort) -> OutPort:
    return node.to_channels_last(max_pool(node, node.to_channels_first(x))[0])


@onnx("QLinearConv", domain=MS)
def qlinear_conv_nhwc(
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
    last = node.flag("channels_last")
    x = node.to_channels_first(x) if last else x
    y = qlinear_conv(node, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b)
    return node.to_channels_last(y) if last else y


@onnx("QEmbedLayerNormalization", domain=MS)
def qembed_layer_normalization(
    node: OnnxNode,
    ids: OutPort,
    segments: OutPort | None,
    words: OutPort,
    positions: OutPort,
    kinds: OutPort | None,
    gamma: OutPort,
    beta: OutPort,
    mask: OutPort | None,
    *parameters: OutPort | None,
) -> tuple[OutPort, ...]:
    """`parameters`: scales, then zero points, of words, positions, segments, gamma and beta. Tables stay quantised."""
    scales, zeros = parameters[:5], (*parameters[5:], *[None] * 5)[:5]

    def plain(x: OutPort, which: int, at: OutPort | None = None) -> OutPort:
        scale, rows = scales[which], x if at is None else node.build.Gather(x, at, node.scalar(0))
        node.refuse(scale is None, "each quantised input needs a scale")
        return rows if scale is None else numbers(node, rows, scale, zeros[which])

    lookups = [plain(words, 0, ids), plain(positions, 1, indices(node, node.size(ids, 1)))]
    if kinds is not None and segments is not None:
        lookups.append(plain(kinds, 2, segments))
    return embedded(node, ids, lookups, plain(gamma, 3), plain(beta, 4), mask)[:2]


@onnx("QLinearConcat", domain=MS)
def qlinear_concat(node: OnnxNode, y_scale: OutPort, y_zero: OutPort, *parts: OutPort) -> OutPort:
    """`parts`: tensor, scale, zero point; tensor, scale, ..; a part with the result's parameters is not requantised."""
    inputs: list[OutPort] = []
    for x, scale, zero in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        same = all(
            a.value is not None and b.value is not None and np.array_equal(a.value, b.value)
            for a, b in ((scale, y_scale), (zero, y_zero))
        )
        inputs.append(x if same else again(node, numbers(node, x, scale, zero), y_scale, y_zero, x.type.dtype))
    return node.build.Concat(*inputs, axis=node.integer("axis"))


@onnx("QLinearWhere", domain=MS)
def qlinear_where(
    node: OnnxNode,
    condition: OutPort,
    a: OutPort,
    a_scale: OutPort,
    a_zero: OutPort,
    b: OutPort,
    b_scale: OutPort,
    b_zero: OutPort,
    y_scale: OutPort,
    y_zero: OutPort,
) -> OutPort:
    selected = node.build.Select(condition, numbers(node, a, a_scale, a_zero), numbers(node, b, b_scale, b_zero))
    return again(node, selected, y_scale, y_zero, a.type.dtype)


@onnx("QGemm", domain=MS)
def qgemm(
    node: OnnxNode,
    a: OutPort,
    a_scale: OutPort,
    a_zero: OutPort | None,
    b: OutPort,
    b_scale: OutPort,
    b_zero: OutPort | None,
    c: OutPort | None = None,
    y_scale: OutPort | None = None,
    y_zero: OutPort | None = None,
) -> OutPort:
    """alpha a b + c in i32, where c is in units of the product; f32 if the result has no scale."""
    build, columns = node.build, 0 if node.flag("transB") else 1
    whole_a = shifted(node, a, None if a_zero is None else fitted(node, a_zero, a, 0))
    whole_b = shifted(node, b, None if b_zero is None else fitted(node, b_zero, b, columns))
    total = build.MatMul(whole_a, whole_b, transpose_a=node.flag("transA"), transpose_b=node.flag("transB"))
    total = total if c is None else build.Add(total, c)
    unit = build.Multiply(build.Multiply(a_scale, b_scale), node.number("alpha", 1.0))
    result = build.Multiply(node.cast(total, DType.F32), unit)
    return result if y_scale is None else again(node, result, y_scale, y_zero, a.type.dtype)


@onnx("QAttention", domain=MS)
def qattention(
    node: OnnxNode,
    x: OutPort,
    w: OutPort,
    bias: OutPort,
    x_scale: OutPort,
    w_scale: OutPort,
    mask: OutPort | None = None,
    x_zero: OutPort | None = None,
    w_zero: OutPort | None = None,
    past: OutPort | None = None,
) -> tuple[OutPort, ...]:
    """Attention with a first product of integers; the rest is in f32."""
    build = node.build
    x_point, w_point = (
        None if zero is None else fitted(node, zero, p, axis) for zero, p, axis in ((x_zero, x, 2), (w_zero, w, 1))
    )
    total = build.MatMul(shifted(node, x, x_point), shifted(node, w, w_point))
    wide = build.Multiply(node.cast(total, DType.F32), build.Multiply(x_scale, w_scale))
    return attended_with_past(node, build.Add(wide, bias), mask, past, None)
