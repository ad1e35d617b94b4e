"""Operations of domain com.microsoft that exporters generate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from aot.frontends.onnx.arrays.generators import indices
from aot.frontends.onnx.math.matmul import gemm
from aot.frontends.onnx.math.quantization import dynamic_quantize_linear, shifted
from aot.frontends.onnx.neural.convolution import conv
from aot.frontends.onnx.neural.normalization import (
    layer_normalization,
    layer_normalized,
    rms_normalization,
    rms_normalized,
)
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.opset.elementwise.activation import Approximation
from aot.runtime.abi import DType

MS = "com.microsoft"


@onnx("Gelu", domain=MS)
def gelu(node: OnnxNode, x: OutPort) -> OutPort:
    return node.build.Gelu(x)


@onnx("FastGelu", domain=MS)
def fast_gelu(node: OnnxNode, x: OutPort, bias: OutPort | None = None) -> OutPort:
    x = x if bias is None else node.build.Add(x, bias)
    return node.build.Gelu(x, approximation_mode=Approximation.TANH)


@onnx("BiasGelu", domain=MS)
def bias_gelu(node: OnnxNode, x: OutPort, bias: OutPort) -> OutPort:
    return node.build.Gelu(node.build.Add(x, bias))


@onnx("QuickGelu", domain=MS)
def quick_gelu(node: OnnxNode, x: OutPort, *, alpha: float = 1.702) -> OutPort:
    """x sigmoid(alpha x)"""
    return node.build.Swish(x, node.like(alpha, x))


onnx("LayerNormalization", domain=MS)(layer_normalization)
onnx("SimplifiedLayerNormalization")(rms_normalization)  # by ONNX Runtime's optimiser, in either domain
onnx("SimplifiedLayerNormalization", domain=MS)(rms_normalization)


@onnx("SkipLayerNormalization", domain=MS)
def skip_layer_normalization(
    node: OnnxNode, x: OutPort, skip: OutPort, gamma: OutPort, beta: OutPort | None = None, bias: OutPort | None = None
) -> tuple[OutPort | None, ...]:
    """Normalise the sum of both inputs, which is output 3."""
    total = _summed(node, x, skip, bias)
    y, *more = layer_normalized(node, total, gamma, beta, total.type.rank - 1, node.number("epsilon", 1e-12))
    return y, *(more or (None, None)), total


@onnx("SkipSimplifiedLayerNormalization", domain=MS)
def skip_simplified_layer_normalization(
    node: OnnxNode, x: OutPort, skip: OutPort, gamma: OutPort, bias: OutPort | None = None
) -> tuple[OutPort | None, ...]:
    total = _summed(node, x, skip, bias)
    y = rms_normalized(node, total, gamma, total.type.rank - 1, node.number("epsilon", 1e-12))
    return y, None, None, total


def _summed(node: OnnxNode, x: OutPort, skip: OutPort, bias: OutPort | None) -> OutPort:
    total = node.build.Add(x, skip)
    return total if bias is None else node.build.Add(total, bias)


@onnx("EmbedLayerNormalization", domain=MS)
def embed_layer_normalization(
    node: OnnxNode,
    ids: OutPort,
    segments: OutPort | None,
    words: OutPort,
    positions: OutPort,
    kinds: OutPort | None,
    gamma: OutPort,
    beta: OutPort,
    mask: OutPort | None = None,
    places: OutPort | None = None,
) -> tuple[OutPort, ...]:
    lookups = [(words, ids), (positions, indices(node, node.size(ids, 1)) if places is None else places)]
    if kinds is not None and segments is not None:
        lookups.append((kinds, segments))
    rows = [node.build.Gather(table, at, node.scalar(0)) for table, at in lookups]
    return embedded(node, ids, rows, gamma, beta, mask)


def embedded(
    node: OnnxNode, ids: OutPort, rows: Sequence[OutPort], gamma: OutPort, beta: OutPort, mask: OutPort | None
) -> tuple[OutPort, ...]:
    """Return rows of tables, added and normalised; the numbers of valid tokens; and the sum."""
    build, total = node.build, reduce(node.build.Add, rows)
    y = layer_normalized(node, total, gamma, beta, 2, node.number("epsilon", 1e-12))[0]
    if mask is None:
        valid = build.Broadcast(build.const(0, DType.I32), node.dims(ids, [0]))
    else:
        valid = build.ReduceSum(node.cast(mask, DType.I32), node.list([1]))
    return y, valid, total


def _rows_behind(node: OnnxNode, x: OutPort) -> OutPort:
    """Transpose [rows, .., columns] to [.., rows, columns]."""
    return node.build.Transpose(x, node.list([*range(1, x.type.rank - 1), 0, x.type.rank - 1]))


@onnx("FusedMatMul", "TransposeMatMul", domain=MS)
def fused_matmul(node: OnnxNode, a: OutPort, b: OutPort) -> OutPort:
    """alpha a b; an input with a transposed batch has its rows first."""
    if node.flag("transBatchA"):
        a = _rows_behind(node, a)
    if node.flag("transBatchB"):
        b = _rows_behind(node, b)
    y = node.build.MatMul(a, b, transpose_a=node.flag("transA"), transpose_b=node.flag("transB"))
    alpha = node.number("alpha", 1.0)
    return y if alpha == 1 else node.build.Multiply(y, node.like(alpha, y))


@onnx("FusedGemm", domain=MS)
def fused_gemm(node: OnnxNode, a: OutPort, b: OutPort, c: OutPort | None = None) -> OutPort:
    return _activated(node, gemm(node, a, b, c))


def _activated(node: OnnxNode, y: OutPort) -> OutPort:
    build, name = node.build, node.text("activation", "")
    parameters = node.numbers("activation_params", ())
    slope = node.number("activation_alpha", parameters[0] if parameters else 0.01)
    table: dict[str, Callable[[OutPort], OutPort]] = {
        "": lambda p: p,
        "Relu": build.Relu,
        "Tanh": build.Tanh,
        "Sigmoid": build.Sigmoid,
        "LeakyRelu": lambda p: build.PRelu(p, node.like(slope, p)),
        "Clip": lambda p: build.Clamp(p, min=parameters[0], max=parameters[1]),
        "HardSigmoid": lambda p: build.HardSigmoid(p, node.like(parameters[0], p), node.like(parameters[1], p)),
    }
    node.refuse(name not in table, f"activation {name} is not supported")
    return table[name](y)


@onnx("MatMulIntegerToFloat", domain=MS)
def matmul_integer_to_float(
    node: OnnxNode,
    a: OutPort,
    b: OutPort,
    a_scale: OutPort,
    b_scale: OutPort,
    a_zero: OutPort | None = None,
    b_zero: OutPort | None = None,
    bias: OutPort | None = None,
) -> OutPort:
    """(a - zero) (b - zero) in i32, scaled."""
    build = node.build
    total = node.cast(build.MatMul(shifted(node, a, a_zero), shifted(node, b, b_zero)), a_scale.type.dtype)
    y = build.Multiply(total, build.Multiply(a_scale, b_scale))
    return y if bias is None else build.Add(y, bias)


@onnx("DynamicQuantizeMatMul", domain=MS)
def dynamic_quantize_matmul(
    node: OnnxNode, a: OutPort, b: OutPort, b_scale: OutPort, b_zero: OutPort | None = None, bias: OutPort | None = None
) -> OutPort:
    quantized, scale, zero = dynamic_quantize_linear(node, a)
    return matmul_integer_to_float(node, quantized, b, scale, b_scale, zero, b_zero, bias)


@onnx("FusedConv", domain=MS)
def fused_conv(
    node: OnnxNode, x: OutPort, w: OutPort, b: OutPort | None = None, added: OutPort | None = None
) -> OutPort:
    y = conv(node, x, w, b)
    return _activated(node, y if added is None else node.build.Add(y, added))
