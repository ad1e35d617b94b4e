"""Softmax and its relatives; in short floats with the roundings of ONNX's definition.

top = ReduceMax(x)    power = Exp(x - top)    y = power / ReduceSum(power)      each rounded to the type of x
"""

from __future__ import annotations

from math import prod

from aot.frontends.onnx.registry import SHORT_FLOATS, OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.opset.reduction.sorting import Mode
from aot.runtime.abi import DType

MAX_SERIAL_TERMS = 16  # elements at most that are summed in bf16; of more, the last would be lost (256 + 1 = 256)


@onnx("Softmax", "LogSoftmax", "Hardmax")
def softmax(node: OnnxNode, x: OutPort) -> OutPort:
    """Softmax along one axis; before opset 13 over all axes from `axis` on."""
    axis = node.axis(node.integer("axis", -1 if node.opset >= 13 else 1), x.type.rank)
    if node.opset >= 13 or axis == x.type.rank - 1:
        return _soft(node, x, axis)
    tail = x.shape[axis:]
    numbers = [d for d in tail if isinstance(d, int)]
    size = prod(numbers) if len(numbers) == len(tail) else -1
    head = [0] * axis
    flat = node.build.Reshape(x, node.list([*head, size]), special_zero=True)
    return node.build.Reshape(_soft(node, flat, axis), node.dims(x, range(x.type.rank)))


def _soft(node: OnnxNode, x: OutPort, axis: int) -> OutPort:
    build = node.build
    if node.kind == "Softmax":
        return weights(node, x, axis)
    if node.kind == "LogSoftmax":
        return build.LogSoftmax(x, axis=axis)
    top = build.TopK(x, node.scalar(1), axis=axis, mode=Mode.MAX, stable=True, index_element_type=DType.I64, outputs=2)
    position = build.Squeeze(top.node.out_port(1), node.list([axis]))
    depth = build.Squeeze(node.dims(x, [axis]), node.list([0]))
    return build.OneHot(position, depth, node.like(1, x), node.like(0, x), axis=axis)


def weights(node: OnnxNode, x: OutPort, axis: int) -> OutPort:
    """Return the softmax along an axis, in the type of `x`."""
    build = node.build
    if x.type.dtype not in SHORT_FLOATS or not x.type.rank:
        return build.Softmax(x, axis=axis)
    top = build.ReduceMax(x, node.list([axis]), keep_dims=True)
    powers = node.rounded(build.Exp(node.rounded(build.Subtract(x, top))))
    return node.rounded(build.Divide(powers, _total(node, powers, axis)))


def _total(node: OnnxNode, x: OutPort, axis: int) -> OutPort:
    """Return the sum along an axis; a few numbers of bf16 are summed in sequence and rounded each time, as in ONNX."""
    build, count = node.build, x.shape[axis]
    if x.type.dtype is not DType.BF16 or not isinstance(count, int) or not 1 < count <= MAX_SERIAL_TERMS:
        return node.rounded(build.ReduceSum(x, node.list([axis]), keep_dims=True))
    parts = build.Split(x, node.scalar(axis), num_splits=count, outputs=count)
    total, *rest = parts.node.out_ports().values()
    for part in rest:
        total = node.rounded(build.Add(total, part))
    return total
