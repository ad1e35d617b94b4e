"""Functions that add operations with constant inputs, and the small sub-graphs of detection networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from aot.mo.graph.graph import Graph, Node
from aot.mo.ops.const import Const
from aot.mo.ops.library import library_class
from aot.mo.utils.arrays import int64_array, mo_array
from aot.mo.utils.error import Error


def create_op_with_const_inputs(
    graph: Graph, op: Any, port_value_dict: Mapping[int, Any], op_attrs: Any = None, input_node: Node | None = None
) -> Node:
    """Return a new operation with constants at the inputs that `port_value_dict` numbers.

    Its input 0 is output 0 of `input_node`, if one is given.
    """
    return _created(graph, op, port_value_dict, op_attrs, input_node, "{}_input_port_{}/value")


def create_op_node_with_second_input(
    graph: Graph, op: Any, second_input_value: Any, op_attrs: Any = None, input_node: Node | None = None
) -> Node:
    """Return a new operation with a constant at input 1."""
    return _created(graph, op, {1: second_input_value}, op_attrs, input_node, "{}/value")


def _created(graph: Graph, op: Any, values: Mapping[int, Any], attrs: Any, source: Node | None, name: str) -> Node:
    node: Node = op(graph, attrs).create_node()
    if source is not None:
        node.add_input_port(0, skip_if_exist=True)
        source.out_port(0).connect(node.in_port(0))
    for idx, value in values.items():
        node.add_input_port(idx, skip_if_exist=True)
        new_node = Const(graph, {"name": name.format(node.name, idx), "value": value}).create_node()
        new_node.out_port(0).connect(node.in_port(idx))
        if graph.stage != "front":
            new_node["infer"](new_node)
    return node


def _op(module: str, name: str) -> Any:
    return library_class(module, name)


def add_activation_function_after_node(graph: Graph, node: Node, activation_function: str) -> Node:
    """Add SOFTMAX, SIGMOID or IDENTITY (nothing) after a node; return the node of the result."""
    if activation_function == "IDENTITY":
        return node
    if activation_function == "SOFTMAX":
        new_node = _op("softmax", "Softmax")(graph, {"axis": -1, "nchw_layout": True})
    elif activation_function == "SIGMOID":
        new_node = _op("activation_ops", "Sigmoid")(graph, {"nchw_layout": True})
    else:
        raise Error("activation: one of SOFTMAX, SIGMOID, IDENTITY, got {}", activation_function)
    return new_node.create_node([node], {"name": f"{node.name}/{activation_function.lower()}"})


def add_constant_to_negative_values(node: Node, port_idx: int, added_value: Any) -> None:
    """Let an input of a node read its value with `added_value` added where it is negative."""
    graph = node.graph
    source = node.in_port(port_idx).get_source()
    assert source is not None, f"{node.id}: input {port_idx} is not connected"
    name = source.node.soft_get("name", source.node.id)
    zero = mo_array(0, dtype=added_value.dtype)
    less = create_op_with_const_inputs(graph, _op("elementwise", "Less"), {1: zero}, {"name": f"{name}/Less"})
    times = create_op_with_const_inputs(graph, _op("elementwise", "Mul"), {1: added_value}, {"name": f"{name}/Mul"})
    added = _op("elementwise", "Add")(graph, {}).create_node()
    node.in_port(port_idx).get_connection().set_destination(less.in_port(0))
    less.out_port(0).connect(times.in_port(0))
    times.out_port(0).connect(added.in_port(1))
    source.connect(added.in_port(0))
    added.out_port(0).connect(node.in_port(port_idx))


def add_fake_background_loc(graph: Graph, input_node: Node) -> Node:
    """Put a copy of the first box before all boxes, as the background that DetectionOutput expects."""
    crop = {"axis": mo_array([1]), "offset": mo_array([0]), "dim": mo_array([1]), "nchw_layout": True}
    first = _op("crop", "Crop")(graph, crop).create_node([input_node], {"name": "crop_locs"})
    joined = _op("concat", "Concat")(graph, {"axis": 1, "in_ports_count": 2, "nchw_layout": True})
    return joined.create_node([first, input_node], {"name": f"{input_node.id}/locs_with_fake_background"})


def add_convolution_to_swap_xy_coordinates(graph: Graph, input_node: Node, coordinates_size: int) -> Node:
    """Swap x and y of boxes of 4 coordinates, or of 5, when the first one stays; return the node of the result."""
    assert coordinates_size in (4, 5), f"boxes have 4 or 5 coordinates, got {coordinates_size}"
    order = [1, 0, 3, 2] if coordinates_size == 4 else [0, 2, 1, 4, 3]
    shaped = create_op_node_with_second_input(
        graph,
        _op("reshape", "Reshape"),
        int64_array([-1, 1, 1, coordinates_size]),
        {"name": f"{input_node.name}/reshape_4d"},
        input_node,
    )
    weights = np.eye(coordinates_size, dtype=np.float32)[order].reshape(1, 1, coordinates_size, coordinates_size)
    constant = Const(graph, {"value": mo_array(weights.transpose(2, 3, 0, 1))})
    attrs: dict[str, Any] = {
        "bias_addable": True,
        "channel_dims": mo_array([3]),
        "batch_dims": mo_array([0]),
        "input_feature_channel": 0,
        "output_feature_channel": 1,
        "group": 1,
        "layout": "NHWC",
    }
    inputs = [shaped, constant.create_node([], {"name": f"{input_node.name}/weights"})]
    return _op("convolution", "Convolution")(graph, attrs).create_node(inputs, {"name": f"{input_node.name}/conv"})
