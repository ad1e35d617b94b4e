"""Elements written by index."""

from __future__ import annotations

from aot.frontends.onnx.registry import Call, onnx
from aot.ir.graph import OutPort
from aot.opset.scatter import Combination

HOW = {
    "none": Combination.NONE, "add": Combination.SUM, "mul": Combination.PROD,
    "min": Combination.MIN, "max": Combination.MAX,
}  # fmt: skip


@onnx("Scatter", "ScatterElements")
def scatter_elements(node: Call, x: OutPort, indices: OutPort, updates: OutPort) -> OutPort:
    axis, how = node.scalar(node.integer("axis", 0)), node.choice("reduction", HOW, "none")
    return node.build.ScatterElementsUpdate(x, indices, updates, axis, reduction=how)


@onnx("ScatterND")
def scatter_nd(node: Call, x: OutPort, indices: OutPort, updates: OutPort) -> OutPort:
    return node.build.ScatterNDUpdate(x, indices, updates, reduction=node.choice("reduction", HOW, "none"))
