"""Elements picked by index, and indices found by value."""

from __future__ import annotations

import numpy as np

from aot.frontends.onnx.registry import Call, onnx
from aot.ir.graph import OutPort
from aot.opset.gather import NegativeIndices
from aot.opset.sorting import Mode, Order
from runtime.abi import DType


@onnx("Gather")
def gather(node: Call, x: OutPort, indices: OutPort) -> OutPort:
    return node.build.Gather(x, indices, node.scalar(node.integer("axis", 0)))


@onnx("GatherElements")
def gather_elements(node: Call, x: OutPort, indices: OutPort) -> OutPort:
    return node.build.GatherElements(x, indices, axis=node.integer("axis", 0))


@onnx("GatherND")
def gather_nd(node: Call, x: OutPort, indices: OutPort) -> OutPort:
    return node.build.GatherND(x, indices, batch_dims=node.integer("batch_dims", 0))


@onnx("OneHot")
def one_hot(node: Call, indices: OutPort, depth: OutPort, values: OutPort) -> OutPort:
    """values[1] at the index, values[0] elsewhere; an index below 0 counts from the end."""
    build = node.build
    off, on = (build.Gather(values, node.scalar(i), node.scalar(0)) for i in (0, 1))
    size = node.cast(build.Squeeze(depth) if depth.type.rank else depth, DType.I64)
    places = node.cast(indices, DType.I64)
    return build.OneHot(
        places, size, on, off, axis=node.integer("axis", -1), negative_indices_mode=NegativeIndices.NORMALIZE
    )


@onnx("TopK")
def top_k(node: Call, x: OutPort, k: OutPort) -> tuple[OutPort, ...]:
    count = node.build.Squeeze(k) if k.type.rank else k
    mode = Mode.MAX if node.flag("largest", True) else Mode.MIN
    values = node.build.TopK(
        x, count, axis=node.integer("axis", -1), mode=mode, sort=Order.VALUE, stable=True,
        index_element_type=DType.I64, outputs=2,
    )  # fmt: skip
    return values, values.node.out_port(1)


@onnx("Compress")
def compress(node: Call, x: OutPort, condition: OutPort) -> OutPort:
    places = node.list(np.flatnonzero(node.known(condition, "condition")).tolist())
    if not node.has("axis"):
        return node.build.Gather(node.reshape(x, (-1,)), places, node.scalar(0))
    return node.build.Gather(x, places, node.scalar(node.integer("axis")))


@onnx("NonZero")
def non_zero(node: Call, x: OutPort) -> OutPort:
    """Of a value that is known at compile time."""
    return node.build.const(np.array(np.nonzero(node.known(x, "input"))), DType.I64)


@onnx("CumSum")
def cum_sum(node: Call, x: OutPort, axis: OutPort) -> OutPort:
    along = node.build.Squeeze(axis) if axis.type.rank else axis
    return node.build.CumSum(x, along, exclusive=node.flag("exclusive"), reverse=node.flag("reverse"))
