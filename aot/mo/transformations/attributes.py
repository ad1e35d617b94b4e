"""Attributes of a framework's operations that the operation sets have as inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.formulas import take_place
from aot.mo.front.tf.graph_utils import create_op_with_const_inputs
from aot.mo.graph.graph import Graph
from aot.mo.implemented import transformation
from aot.mo.ops.const import Const
from aot.mo.ops.library import VALUES, library_class
from aot.mo.transformations.nodes import add, constant, move
from aot.mo.utils.arrays import float32_array, int64_array, mo_array
from aot.mo.utils.error import Error


def _replaced(
    node: Any, module: str, name: str, values: dict[int, Any], attrs: dict[str, Any] | None = None, outputs: int = 1
) -> Any:
    """Replace a node by an operation with constants at the inputs that `values` numbers; return that."""
    graph = node.graph
    new_node = create_op_with_const_inputs(graph, library_class(module, name), values, attrs or {})
    node.in_port(0).get_connection().set_destination(new_node.in_port(0))
    for idx in range(1, outputs):
        node.out_port(idx).get_connection().set_source(new_node.out_port(idx))
    take_place(node, new_node)
    graph.remove_node(node.id)
    return new_node


def _required(node: Any, attribute: str) -> Any:
    """Return an attribute. Error if there is none."""
    if not node.has_valid(attribute):
        raise Error("{}: attribute {} of {} must be given, got none", node.soft_get("name"), attribute, node.op)
    return node[attribute]


@transformation("front.AttributedPadToPad")
class AttributedPadToPad:
    """`pads` of Pad, a row of beginning and end for each dimension, and `fill_value`"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in graph.get_op_nodes(op="AttributedPad"):
            mode, name, fill = node.soft_get("mode", None), node.soft_get("name", node.id), None
            if mode == "constant":
                attrs = {"name": f"{name}/value"}
                fill = create_op_with_const_inputs(
                    graph, library_class("ConvertLike", "ConvertLike"), {0: node.fill_value}, attrs
                )
            new_node = _replaced(node, "pad", "Pad", {1: node.pads[:, 0], 2: node.pads[:, 1]}, {"mode": mode})
            if fill is not None:
                new_node.in_port(0).get_source().connect(fill.in_port(1))
                fill.out_port(0).connect(new_node.in_port(3))


@transformation("front.AttributedRollToRoll")
class AttributedRollToRoll:
    """`shift` and `axes` of Roll"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in graph.get_op_nodes(op="AttributedRoll"):
            axes = {2: node.axes} if node.has_valid("axes") else {}
            _replaced(node, "roll", "Roll", {1: node.shift, **axes})


@transformation("front.AttributedClampNormalizer")
class AttributedClampNormalizer:
    """`min` and `max` of Clamp"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        limits = np.finfo(np.float32)
        for node in graph.get_op_nodes(op="AttributedClamp"):
            bounds = node.soft_get("min", limits.min), node.soft_get("max", limits.max)
            _replaced(node, "clamp", "Clamp", {1: float32_array(bounds[0]), 2: float32_array(bounds[1])})


@transformation("front.AttributedRandomUniformToRandomUniform")
class AttributedRandomUniformToRandomUniform:
    """`shape`, `min_val` and `max_val` of RandomUniform"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in graph.get_op_nodes(op="AttributedRandomUniform"):
            dtype = _required(node, "output_type")
            bounds = [node[key] if node.has_valid(key) else dtype(i) for i, key in enumerate(("min_val", "max_val"))]
            seeds = {key: node.soft_get(key, 0) for key in ("global_seed", "op_seed")}
            values = {1: bounds[0], 2: bounds[1]}
            if not node.is_in_port_connected(0):
                values[0] = _required(node, "shape")
            new_node = create_op_with_const_inputs(
                graph, library_class("random_uniform", "RandomUniform"), values, {**seeds, "output_type": dtype}
            )
            if 0 not in values:
                node.in_port(0).get_connection().set_destination(new_node.in_port(0))
            take_place(node, new_node)
            graph.remove_node(node.id)


@transformation("front.split_normalizer")
class AttributedSplitToSplit:
    """`axis` of Split"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in graph.get_op_nodes(op="AttributedSplit"):
            axis, count = np.int64(_required(node, "axis")), _required(node, "num_splits")
            _replaced(node, "split", "Split", {1: axis}, {"num_splits": count}, len(node.out_ports()))


@transformation("front.split_normalizer")
class AttributedVariadicSplitToVariadicSplit:
    """`axis` and `size_splits` of VariadicSplit"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in graph.get_op_nodes(op="AttributedVariadicSplit"):
            axis, sizes = np.int64(_required(node, "axis")), _required(node, "size_splits")
            values = {1: axis, 2: sizes}
            _replaced(node, "split", "VariadicSplit", values, {"out_ports_count": len(sizes)}, len(node.out_ports()))


@transformation("front.split_normalizer")
class SqueezeAxis:
    """`squeeze_axis` of Split: Squeeze after each output"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        squeeze = library_class("squeeze", "Squeeze")
        nodes: list[Any] = graph.get_op_nodes(squeeze_axis=True)
        for node in nodes:
            name = f"{node.soft_get('name', node.id)}/squeezed"
            if not node.has_valid("axis") and not node.is_in_port_connected(1):
                raise Error("{}: an attribute or an input gives the axis, got neither", node.soft_get("name", node.id))
            for port in node.out_ports().values():
                if node.has_valid("axis"):
                    new_node = create_op_with_const_inputs(graph, squeeze, {1: mo_array(node.axis)}, {"name": name})
                else:
                    new_node = squeeze(graph, {"name": name}).create_node()
                    node.in_port(1).get_source().connect(new_node.in_port(1))
                port.get_connection().insert_node(new_node)


@transformation("front.scatter_normalizer")
class ScatterNormalizer:
    """`axis` of Scatter operations"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in graph.get_op_nodes(is_scatter=True):
            name = node.soft_get("name", node.id)
            count = sum(not port.disconnected() for port in node.in_ports().values())
            wanted = 3 if node.has_valid("axis") else 4
            assert count == wanted, f"{node.op} {name}: {wanted} inputs, got {count}"
            if wanted == 3:
                _as_input(node, 3, np.int64(node.axis))
            if node.has_valid("reduction"):
                node.reduction = {"add": "sum", "mul": "prod"}.get(node.reduction, node.reduction)


@transformation("front.reduce_axis_normalizer")
class ReduceAxisNormalizer:
    """`axis` of reductions; without one, all dimensions"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in graph.get_op_nodes():
            if node.soft_get("op") not in VALUES["ReduceOps", "reduce_map"]:
                continue
            if sum(not port.disconnected() for port in node.in_ports().values()) != 1:
                continue
            if node.has_valid("axis"):
                _as_input(node, 1, node.axis)
            else:
                _over_all(node)


def _as_input(node: Any, idx: int, value: Any) -> None:
    """Give attribute `axis` to an input."""
    new_node = Const(node.graph, {"name": f"{node.soft_get('name', node.id)}/axis", "value": value}).create_node()
    node.add_input_port(idx, skip_if_exist=True)
    new_node.out_port(0).connect(node.in_port(idx))
    del node["axis"]


def _over_all(node: Any) -> None:
    """Let input 1 be the numbers of all dimensions of input 0."""
    name = node.soft_get("name", node.id)
    limits = {0: int64_array(0), 2: int64_array(1)}
    axes = create_op_with_const_inputs(node.graph, library_class("range", "Range"), limits, {"name": f"{name}/axes"})
    rank = library_class("rank", "Rank")(node.graph, {"name": f"{name}/rank"}).create_node()
    node.in_port(0).get_source().connect(rank.in_port(0))
    rank.out_port(0).connect(axes.in_port(1))
    node.add_input_port(1, skip_if_exist=True)
    axes.out_port(0).connect(node.in_port(1))


@transformation("front.onnx.AttributedSliceToSlice")
class AttributedSliceToSliceReplacer:
    """`starts`, `ends` and `axes` of Slice"""

    op = "AttributedSlice"

    def replace_sub_graph(self, graph: Graph, match: dict[str, Any]) -> None:
        node = match["op"]
        new_node = add(graph, "slice.Slice", None, node.starts, node.ends, node.axes)
        move(node, 0, new_node)
        take_place(node, new_node)


@transformation("front.onnx.pad_converter")
class ONNXPadToPad:
    """The one input of ONNX's Pad that has beginnings and ends: two"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in graph.get_op_nodes(op="ONNXPad"):
            if not node.is_in_port_connected(3) and node.soft_get("mode") != "wrap":  # input 3: axes, as MO has none
                self._replace(graph, node)

    @staticmethod
    def _replace(graph: Graph, node: Any) -> None:
        name, mode = node.soft_get("name", node.id), node.soft_get("mode", None)
        pads = add(graph, "split.Split", None, int64_array(0), num_splits=2, name=f"{name}/pads")
        move(node, 1, pads)
        new_node = add(graph, "pad.Pad", None, pads.out_port(0), pads.out_port(1), mode=mode)
        move(node, 0, new_node)
        if mode == "constant" and node.is_in_port_connected(2):
            move(node, 2, new_node, 3)
        elif mode == "constant":
            constant(graph, mo_array(0.0), f"{name}/value").out_port(0).connect(new_node.in_port(3))
        take_place(node, new_node)
        graph.remove_node(node.id)
