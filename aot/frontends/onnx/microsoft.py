"""Operations of domain com.microsoft that exports contain."""

from __future__ import annotations

import math

import numpy as np

from aot.frontends.onnx.attention import heads_first, heads_last
from aot.frontends.onnx.matmul import gemm
from aot.frontends.onnx.normalization import layer_normalized, rms_normalized
from aot.frontends.onnx.quantization import dynamic_quantize_linear, quantized, shifted
from aot.frontends.onnx.registry import Call, onnx
from aot.ir.graph import OutPort
from aot.opset.activation import Approximation
from runtime.abi import DType

MS = "com.microsoft"


@onnx("Gelu", domain=MS)
def gelu(node: Call, x: OutPort) -> OutPort:
    return node.build.Gelu(x)


@onnx("FastGelu", domain=MS)
def fast_gelu(node: Call, x: OutPort, bias: OutPort | None = None) -> OutPort:
    x = x if bias is None else node.build.Add(x, bias)
    return node.build.Gelu(x, approximation_mode=Approximation.TANH)


@onnx("BiasGelu", domain=MS)
def bias_gelu(node: Call, x: OutPort, bias: OutPort) -> OutPort:
    return node.build.Gelu(node.build.Add(x, bias))


@onnx("QuickGelu", domain=MS)
def quick_gelu(node: Call, x: OutPort) -> OutPort:
    """x sigmoid(alpha x)"""
    return node.build.Swish(x, node.like(node.number("alpha", 1.702), x))


@onnx("LayerNormalization", domain=MS)
def layer_normalization(node: Call, x: OutPort, scale: OutPort, bias: OutPort | None = None) -> tuple[OutPort, ...]:
    first = node.axis(node.integer("axis", -1), x.type.rank)
    return layer_normalized(node, x, scale, bias, first, node.number("epsilon", 1e-5))


@onnx("SimplifiedLayerNormalization")
@onnx("SimplifiedLayerNormalization", domain=MS)
def simplified_layer_normalization(node: Call, x: OutPort, scale: OutPort) -> OutPort:
    first = node.axis(node.integer("axis", -1), x.type.rank)
    return rms_normalized(node, x, scale, first, node.number("epsilon", 1e-5))


@onnx("SkipLayerNormalization", domain=MS)
def skip_layer_normalization(
    node: Call, x: OutPort, skip: OutPort, gamma: OutPort, beta: OutPort | None = None, bias: OutPort | None = None
) -> tuple[OutPort | None, ...]:
    """Of the sum of both inputs, which is output 3."""
    total = _summed(node, x, skip, bias)
    y, *more = layer_normalized(node, total, gamma, beta, total.type.rank - 1, node.number("epsilon", 1e-12))
    return y, *(more or (None, None)), total


@onnx("SkipSimplifiedLayerNormalization", domain=MS)
def skip_simplified_layer_normalization(
    node: Call, x: OutPort, skip: OutPort, gamma: OutPort, bias: OutPort | None = None
) -> tuple[OutPort | None, ...]:
    total = _summed(node, x, skip, bias)
    y = rms_normalized(node, total, gamma, total.type.rank - 1, node.number("epsilon", 1e-12))
    return y, None, None, total


def _summed(node: Call, x: OutPort, skip: OutPort, bias: OutPort | None) -> OutPort:
    total = node.build.Add(x, skip)
    return total if bias is None else node.build.Add(total, bias)


@onnx("EmbedLayerNormalization", domain=MS)
def embed_layer_normalization(
    node: Call, ids: OutPort, segments: OutPort | None, words: OutPort, positions: OutPort,
    kinds: OutPort | None, gamma: OutPort, beta: OutPort, mask: OutPort | None = None, places: OutPort | None = None,
) -> tuple[OutPort, ...]:  # fmt: skip
    """Words, positions and segments added and normalised; also how many tokens are valid."""
    build, zero = node.build, node.scalar(0)
    total = build.Gather(words, ids, zero)
    if places is None:
        size = build.Squeeze(node.dims(ids, [1]), node.list([0]))
        places = build.Range(zero, size, node.scalar(1), output_type=DType.I64)
    total = build.Add(total, build.Gather(positions, places, zero))
    if kinds is not None and segments is not None:
        total = build.Add(total, build.Gather(kinds, segments, zero))
    y = layer_normalized(node, total, gamma, beta, 2, node.number("epsilon", 1e-12))[0]
    if mask is None:
        valid = build.Broadcast(build.const(0, DType.I32), node.dims(ids, [0]))
    else:
        valid = build.ReduceSum(node.cast(mask, DType.I32), node.list([1]))
    return y, valid, total


@onnx("FusedMatMul", domain=MS)
def fused_matmul(node: Call, a: OutPort, b: OutPort) -> OutPort:
    """alpha a b"""
    node.refuse(node.flag("transBatchA") or node.flag("transBatchB"), "transposed batches are not supported")
    y = node.build.MatMul(a, b, transpose_a=node.flag("transA"), transpose_b=node.flag("transB"))
    alpha = node.number("alpha", 1.0)
    return y if alpha == 1 else node.build.Multiply(y, node.like(alpha, y))


@onnx("FusedGemm", domain=MS)
def fused_gemm(node: Call, a: OutPort, b: OutPort, c: OutPort | None = None) -> OutPort:
    return _activated(node, gemm(node, a, b, c))


def _activated(node: Call, y: OutPort) -> OutPort:
    name = node.text("activation", "")
    table = {"": None, "Relu": node.build.Relu, "Tanh": node.build.Tanh, "Sigmoid": node.build.Sigmoid}
    node.refuse(name not in table, f"activation {name} is not supported")
    function = table[name]
    return y if function is None else function(y)


@onnx("MatMulIntegerToFloat", domain=MS)
def matmul_integer_to_float(
    node: Call, a: OutPort, b: OutPort, a_scale: OutPort, b_scale: OutPort, a_zero: OutPort | None = None,
    b_zero: OutPort | None = None, bias: OutPort | None = None,
) -> OutPort:  # fmt: skip
    """(a - zero) (b - zero) in i32, scaled."""
    build = node.build
    total = node.cast(build.MatMul(shifted(node, a, a_zero), shifted(node, b, b_zero)), a_scale.type.dtype)
    y = build.Multiply(total, build.Multiply(a_scale, b_scale))
    return y if bias is None else build.Add(y, bias)


@onnx("DynamicQuantizeMatMul", domain=MS)
def dynamic_quantize_matmul(
    node: Call, a: OutPort, b: OutPort, b_scale: OutPort, b_zero: OutPort | None = None, bias: OutPort | None = None
) -> OutPort:
    quantised, scale, zero = dynamic_quantize_linear(node, a)
    return matmul_integer_to_float(node, quantised, b, scale, b_scale, zero, b_zero, bias)


@onnx("QLinearAdd", "QLinearMul", domain=MS)
def qlinear_two(
    node: Call, a: OutPort, a_scale: OutPort, a_zero: OutPort | None, b: OutPort, b_scale: OutPort,
    b_zero: OutPort | None, y_scale: OutPort, y_zero: OutPort | None = None,
) -> OutPort:  # fmt: skip
    """Both as numbers, added or multiplied, and quantised again."""
    build = node.build
    numbers = [
        build.Multiply(node.cast(shifted(node, x, zero), DType.F32), scale)
        for x, zero, scale in ((a, a_zero, a_scale), (b, b_zero, b_scale))
    ]
    found = (build.Add if node.kind == "QLinearAdd" else build.Multiply)(*numbers)
    return quantized(node, build.Divide(found, y_scale), y_zero, a.type.dtype)


@onnx("Attention", domain=MS)
def attention(
    node: Call, x: OutPort, w: OutPort, bias: OutPort | None = None, mask: OutPort | None = None,
    past: OutPort | None = None, score_bias: OutPort | None = None,
) -> OutPort:  # fmt: skip
    """Queries, keys and values from one product; `mask` is [batch, keys], or the number of keys of each sequence."""
    build, heads = node.build, node.integer("num_heads")
    node.refuse(past is not None, "past states are not supported")
    total = build.MatMul(x, w)
    total = total if bias is None else build.Add(total, bias)
    sizes = node.integers("qkv_hidden_sizes", ()) or (int(str(total.shape[2])) // 3,) * 3
    parts = build.VariadicSplit(total, node.scalar(2), node.list(sizes), outputs=3)
    q, k, v = (heads_first(node, p, heads) for p in parts.node.out_ports().values())
    scale = node.number("scale", 0.0) or 1 / math.sqrt(sizes[0] // heads)
    scores = build.Multiply(build.MatMul(q, k, transpose_b=True), scale)
    scores = scores if score_bias is None else build.Add(scores, score_bias)
    low = node.number("mask_filter_value", -10000.0)
    if mask is not None:
        scores = build.Add(scores, _key_mask(node, mask, k, low, x.type.dtype))
    if node.flag("unidirectional"):
        rows, columns = (np.arange(int(str(p.shape[2]))) for p in (q, k))
        seen = build.const(columns[None] <= rows[:, None], DType.BOOL)
        scores = build.Select(seen, scores, node.like(low, scores))
    return heads_last(node, build.MatMul(build.Softmax(scores, axis=-1), v))


def _key_mask(node: Call, mask: OutPort, k: OutPort, low: float, dtype: DType) -> OutPort:
    """What is added to scores [batch, heads, queries, keys]: `low` for keys that do not count."""
    build = node.build
    if mask.type.rank == 1:
        node.refuse(mask.shape != k.shape[:1], "masks of starts and ends are not supported")
        size = build.Squeeze(node.dims(k, [2]), node.list([0]))
        keys = build.Range(node.scalar(0), size, node.scalar(1), output_type=DType.I64)
        ends = build.Unsqueeze(node.cast(mask, DType.I64), node.list([1, 2, 3]))
        valid = node.cast(build.Less(keys, ends), dtype)
    else:
        node.refuse(mask.type.rank > 3, "masks of rank 4 are not supported")
        axes = [1, 2] if mask.type.rank == 2 else [1]
        valid = build.Unsqueeze(node.cast(mask, dtype), node.list(axes))
    return build.Multiply(build.Subtract(node.like(1, valid), valid), low)
