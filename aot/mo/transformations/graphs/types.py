"""Element types that the wanted type of the network asks for."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.graph.graph import Graph
from aot.mo.implemented import transformation
from aot.mo.transformations.nodes import add, name_of, nodes_of, producer
from aot.mo.utils.error import Error
from aot.mo.utils.types import data_type_str_to_np

SHAPES = {  # inputs that are shapes, sizes, scales or counts
    "Interpolate": (1, 2),
    "Reshape": (1,),
    "Broadcast": (1,),
    "ConvolutionBackpropData": (2,),
    "GroupConvolutionBackpropData": (2,),
    "BatchToSpace": (1, 2, 3),
    "SpaceToBatch": (1, 2, 3),
    "StridedSlice": (1, 2, 3),
    "VariadicSplit": (2,),
    "Tile": (1,),
    "TopK": (1,),
    "Pad": (1, 2),
    "OneHot": (1,),
}
TYPED = {"Cast": ("dst_type", (0,)), "Range": ("output_type", (0, 1, 2))}  # attribute, and inputs of that type


def _wanted(graph: Graph) -> Any:
    return data_type_str_to_np(graph.graph["cmd_params"].data_type)


def _is_fp16(graph: Graph) -> bool:
    return graph.graph["cmd_params"].data_type == "FP16"


@transformation("back.MarkNodesWithShapeValues")
class MarkNodesWithShapeValues:
    """`returns_shape_value` on computations of shapes, from ShapeOf on: it keeps f32 where the network gets f16"""

    graph_condition = (_is_fp16,)

    def find_and_replace_pattern(self, graph: Graph) -> None:
        nodes = nodes_of(graph)
        waiting = [producer(n, i) for n in nodes for i in SHAPES.get(n.soft_get("type"), ())]
        seen: set[str] = set()
        while waiting:
            node = waiting.pop()
            if node is None or node.id in seen or node.soft_get("type") == "ShapeOf":
                continue
            seen.add(node.id)
            node["returns_shape_value"] = True
            if node.soft_get("type") == "Const" and node.value.dtype == np.float32:
                node.out_node(0)["correct_data_type"] = True
            waiting += [producer(node, i) for i in node.in_ports()]


@transformation("back.ChangeRandomUniformOutputType")
class ChangeRandomUniformOutputType:
    """RandomUniform of another floating type than the network's: Convert after it; its type decides the numbers"""

    force_shape_inference = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        dtype = _wanted(graph)
        for node in nodes_of(graph, op="RandomUniform"):
            assert node.has_valid("output_type"), f"{name_of(node)}: attribute output_type must be given"
            floating = np.issubdtype(node.output_type, np.floating)
            if not node.has_and_set("returns_shape_value") and node.output_type != dtype and floating:
                new_node = add(graph, "Cast.Cast", dst_type=dtype, name=f"{name_of(node)}/converted")
                node.out_port(0).get_connection().insert_node(new_node)


@transformation("back.ChangeOutputTypeAttributes")
class ChangeOutputTypeAttributes:
    """Convert and Range to f64: to f32; to f32 in a network of f16: to f16, except shapes, which keep f32"""

    force_shape_inference = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        narrow = _wanted(graph) == np.float16
        nodes = nodes_of(graph)
        for node in nodes:
            if node.op not in TYPED:
                continue
            attribute, inputs = TYPED[node.op]
            assert node.has_valid(attribute), f"{name_of(node)}: attribute {attribute} must be given"
            shape, dtype = node.has_and_set("returns_shape_value"), node[attribute]
            if narrow and not shape and dtype in (np.float32, np.float64):
                node[attribute] = np.float16
                _check_range(node, inputs)
            elif dtype == np.float64 or (shape and dtype == np.float16):
                node[attribute] = np.float32


def _check_range(node: Any, inputs: tuple[int, ...]) -> None:
    """Convert known inputs to f16. Error for values that f16 does not hold, and for a Range of another length."""
    limits, rule = np.finfo(np.float16), f"{name_of(node)}: --data_type=FP32 is needed"
    for idx in inputs:
        value = node.in_port(idx).data.get_value()
        if value is None:
            return
        if np.any(value > limits.max) or np.any(value < limits.min):
            raise Error("{}: f16 holds numbers from {} to {}, got {}", rule, limits.min, limits.max, value)
        node.in_port(idx).data.set_value(value.astype(np.float16))
    before = np.size(node.out_port(0).data.get_value())
    node["infer"](node)
    after = np.size(node.out_port(0).data.get_value())
    if before != after:
        raise Error("{}: in f16 its output has {} elements, got {}", rule, after, before)
