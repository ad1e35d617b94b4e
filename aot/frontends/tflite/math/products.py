"""Products of matrices, and Fourier transforms."""

from __future__ import annotations

from typing import Any

from aot.frontends.tflite.registry import TfliteNode, tflite
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError


def rows(node: TfliteNode, x: OutPort, width: OutPort) -> OutPort:
    """`x` as rows that are as wide as the weights [outputs, inputs] say."""
    inputs = width.shape[1]
    if x.type.rank == 2 and x.shape[1] == inputs:
        return x
    size = node.dims(width, [1])
    return node.build.Reshape(x, node.build.Concat(node.list([-1]), size, axis=0))


def with_axes(node: TfliteNode, y: OutPort, x: OutPort) -> OutPort:
    """[rows, outputs] with the axes of `x` in front if `keep_num_dims` is set."""
    if not node.flag("keep_num_dims") or x.type.rank == 2:
        return y
    front = [node.dims(x, [a]) for a in range(x.type.rank - 1)]
    return node.build.Reshape(y, node.build.Concat(*front, node.dims(y, [1]), axis=0))


@tflite("FULLY_CONNECTED")
def fully_connected(node: TfliteNode, x: OutPort, w: OutPort, bias: OutPort | None = None) -> OutPort:
    """Weights [outputs, inputs]."""
    build = node.build
    node.refuse(node.integer("weights_format", 0) != 0, "shuffled weights are not supported")
    if w.type.rank != 2:
        raise ModelError(f"{node.kind}: weights must be [outputs, inputs], got {w.type}")
    y = build.MatMul(rows(node, x, w), node.cast(w, x.type.dtype), transpose_b=True)
    if bias is not None:
        y = build.Add(y, node.cast(bias, y.type.dtype))
    return with_axes(node, y, x)


@tflite("BATCH_MATMUL")
def batch_matmul(node: TfliteNode, a: OutPort, b: OutPort) -> OutPort:
    return node.build.MatMul(a, b, transpose_a=node.flag("adj_x"), transpose_b=node.flag("adj_y"))


@tflite("RFFT2D", stored=True)
def rfft2d(node: TfliteNode, x: OutPort, length: OutPort) -> Any:
    return node.tf("RFFT2D", x, node.cast(length, DType.I64))
