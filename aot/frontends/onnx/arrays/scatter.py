"""Operations that write elements by index."""

from __future__ import annotations

from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.opset.movement.scatter import Combination
from aot.runtime.abi import DType

REDUCTIONS = {
    "none": Combination.NONE,
    "add": Combination.SUM,
    "mul": Combination.PROD,
    "min": Combination.MIN,
    "max": Combination.MAX,
}


@onnx("Scatter", "ScatterElements")
def scatter_elements(node: OnnxNode, x: OutPort, indices: OutPort, updates: OutPort, *, axis: int = 0) -> OutPort:
    how = node.choice("reduction", REDUCTIONS, "none")
    return node.build.ScatterElementsUpdate(x, indices, updates, node.scalar(axis), reduction=how)


@onnx("ScatterND")
def scatter_nd(node: OnnxNode, x: OutPort, indices: OutPort, updates: OutPort) -> OutPort:
    return node.build.ScatterNDUpdate(x, indices, updates, reduction=node.choice("reduction", REDUCTIONS, "none"))


@onnx("TensorScatter")
def tensor_scatter(
    node: OnnxNode, x: OutPort, update: OutPort, starts: OutPort | None = None, *, axis: int = -2
) -> OutPort:
    """Write `update` into `x` from a start index for each batch on, which may wrap around the end."""
    build, rank = node.build, x.type.rank
    axis = node.axis(axis, rank)
    circular = node.choice("mode", {"linear": False, "circular": True}, "linear")
    size = build.Squeeze(node.dims(update, [axis]), node.list([0]))
    steps = build.Range(node.scalar(0), size, node.scalar(1), output_type=DType.I64)
    positions = build.Unsqueeze(steps, node.list([a for a in range(rank) if a != axis]))
    if starts is not None:
        positions = build.Add(positions, build.Unsqueeze(starts, node.list(range(1, rank))))
    if circular:
        positions = build.FloorMod(positions, build.Squeeze(node.dims(x, [axis]), node.list([0])))
    all_positions = build.Broadcast(positions, node.dims(update, range(rank)))
    return build.ScatterElementsUpdate(x, all_positions, update, node.scalar(axis))
