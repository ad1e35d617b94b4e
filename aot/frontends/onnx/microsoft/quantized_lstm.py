"""DynamicQuantizeLSTM: weights are bytes, and the input and each state are quantised by their range."""

from __future__ import annotations

import numpy as np

from aot.frontends.onnx.math.quantization import dynamic_quantize_linear, shifted
from aot.frontends.onnx.microsoft.operations import MS
from aot.frontends.onnx.neural.recurrent import RecurrentLayer, lstm, ports_of
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.opset.recurrent.quantized import QuantisedLSTMRecurrence
from aot.opset.recurrent.recurrent import is_full, one_each
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

GATES = "2031"  # f i c o among i o f c


@onnx("DynamicQuantizeLSTM", domain=MS)
def dynamic_quantize_lstm(
    node: OnnxNode,
    x: OutPort,
    w: OutPort,
    r: OutPort,
    b: OutPort | None,
    lengths: OutPort | None,
    h: OutPort | None,
    c: OutPort | None,
    p: OutPort | None,
    w_scale: OutPort,
    w_zero: OutPort,
    r_scale: OutPort,
    r_zero: OutPort,
) -> tuple[OutPort, ...]:
    """Convert an LSTM with 8-bit weights [directions, inputs, gates].

    Scales and zero points are [directions], or [directions, gates].

    Weights are dequantised if there are peepholes or coupled gates, or if weights less zero points do not fit i8.
    """
    _check_types(node, w, w_zero)
    _check_types(node, r, r_zero)
    numbers = _small(r, r_zero)
    if numbers is None or p is not None or node.flag("input_forget"):
        outer, inner = _dequantized(node, w, w_scale, w_zero), _dequantized(node, r, r_scale, r_zero)
        return lstm(node, x, outer, inner, b, lengths, h, c, p)
    build = node.build
    gates_first = node.list([0, 2, 1])
    inner = build.Transpose(build.const(numbers, DType.I8), gates_first)
    layer = RecurrentLayer(node, x, build.Transpose(w, gates_first), inner, 4)
    ends = layer.lengths(lengths)
    short = None if is_full(layer.x, ends) else ends
    count, rows = layer.directions, 4 * layer.hidden

    small, scale, zero = dynamic_quantize_linear(node, layer.x)
    data = shifted(node, small, zero)
    outer = shifted(node, build.Transpose(w, gates_first), _column(node, w_zero))
    weights, inside = (one_each(build, layer.sorted(q, GATES), (rows, -1), count, 0) for q in (outer, layer.r))
    biases = one_each(build, layer.sorted(build.Add(*layer.biases(b)), GATES), (rows,), count, 0)
    states = [one_each(build, layer.state(s), (0, layer.hidden), count, 1) for s in (h, c)]
    fields = layer.fields(3)
    del fields["direction"]
    outputs_by_direction: list[list[OutPort]] = []
    scales = zip(_by_direction(node, layer, w_scale), _by_direction(node, layer, r_scale), strict=True)
    for d, (outer_scale, inner_scale) in enumerate(scales):
        total = node.cast(build.MatMul(data, weights[d], transpose_b=True), DType.F32)
        a = build.Add(build.Multiply(total, build.Multiply(scale, outer_scale)), biases[d])
        cell = QuantisedLSTMRecurrence(**fields, reverse=layer.reversals[d], bound=node.number("clip", 0.0))
        sums = build.ReduceSum(node.cast(inside[d], DType.I32), node.list([1]))
        first = build(cell, a, states[0][d], states[1][d], inside[d], inner_scale, sums, short, outputs=3)
        outputs_by_direction.append([build.Unsqueeze(q, node.list([1])) for q in ports_of(first)])
    joined = [q[0] if count == 1 else build.Concat(*q, axis=1) for q in zip(*outputs_by_direction, strict=True)]
    return layer.arranged(joined)


def _check_types(node: OnnxNode, weights: OutPort, zero: OutPort) -> None:
    if weights.type.dtype not in (DType.I8, DType.U8) or zero.type.dtype is not weights.type.dtype:
        rule = "weights are i8 or u8, and their zero points are of the same type"
        raise ModelError(f"{node.kind}: {rule}, got {weights.type} and {zero.type}")


def _by_direction(node: OnnxNode, layer: RecurrentLayer, q: OutPort) -> list[OutPort]:
    """Return the gates of each direction of scales [directions] or [directions, gates]."""
    rows, build = 4 * layer.hidden, node.build
    if q.type.rank != 2:
        q = build.Broadcast(build.Unsqueeze(q, node.list([1])), node.list([layer.directions, rows]))
    return one_each(build, layer.sorted(q, GATES), (rows,), layer.directions, 0)


def _small(r: OutPort, zero: OutPort) -> Array | None:
    """Return constant weights less their zero points if all are i8."""
    if r.value is None or zero.value is None or r.value.ndim != 3 or zero.value.ndim not in (1, 2):
        return None
    point = np.asarray(zero.value, np.int32)
    if point.shape not in (r.value.shape[:1], (r.value.shape[0], r.value.shape[2])):
        return None
    numbers = np.asarray(r.value, np.int32) - (point[:, None] if point.ndim == 2 else point[:, None, None])
    return numbers.astype(np.int8) if numbers.min(initial=0) >= -128 and numbers.max(initial=0) <= 127 else None


def _column(node: OnnxNode, p: OutPort) -> OutPort:
    """Reshape [directions] or [directions, gates] to broadcast to [directions, gates, inputs]."""
    return node.build.Unsqueeze(p, node.list([2] if p.type.rank == 2 else [1, 2]))


def _dequantized(node: OnnxNode, q: OutPort, scale: OutPort, zero: OutPort) -> OutPort:
    """Return [directions, gates, inputs] in f32."""
    rows = node.build.Transpose(q, node.list([0, 2, 1]))
    numbers = node.cast(shifted(node, rows, _column(node, zero)), DType.F32)
    return node.build.Multiply(numbers, _column(node, scale))
