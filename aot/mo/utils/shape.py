"""Nodes that compute with shapes."""

from __future__ import annotations

from typing import Any

from aot.mo.graph.graph import Node, Port
from aot.mo.ops.const import Const
from aot.mo.ops.library import library_class
from aot.mo.utils.arrays import int64_array
from aot.mo.utils.error import Error


def _make_node(graph: Any, module: str, name: str, attrs: dict[str, Any], *inputs: Node) -> Node:
    node = library_class(module, name)(graph, attrs).create_node()
    for idx, source in enumerate(inputs):
        source.out_port(0).connect(node.in_port(idx))
    return node


def _constant(graph: Any, name: str, value: Any) -> Node:
    return Const(graph, {"name": name, "value": int64_array(value)}).create_node()


def get_canonical_axis_index_node(rank: Node, axis: int) -> Node:
    """Return a node that gives an axis, counted from the front; `rank` gives the number of dimensions."""
    name = rank.soft_get("name", rank.id)
    if axis >= 0:
        return _constant(rank.graph, f"{name}/positive_axis", axis)
    negative = _constant(rank.graph, f"{name}/negative_axis", axis)
    return _make_node(rank.graph, "elementwise", "Add", {"name": f"{name}/positive_axis"}, rank, negative)


def get_range_node_of_idxs(
    rank: Node, begin: int, end: int, include_begin: bool = True, include_end: bool = False
) -> Node:
    """Return a node that gives the axes from `begin` to `end`; negative ones count from the end."""
    graph, name = rank.graph, rank.soft_get("name", rank.id)

    def successor(axis: Node, part: str) -> Node:
        one = _constant(graph, f"{name}/{part}/value", 1)
        return _make_node(graph, "elementwise", "Add", {"name": f"{name}/{part}"}, axis, one)

    start, stop = get_canonical_axis_index_node(rank, begin), get_canonical_axis_index_node(rank, end)
    if not include_begin:
        start = successor(start, "exclude_begin")
    if include_end:
        stop = successor(stop, "including_end")
    step = _constant(graph, f"{name}/delta", 1)
    return _make_node(graph, "range", "Range", {"name": f"{name}/range_idxs"}, start, stop, step)


def get_shape_values_by_indices_node(shape_node: Node, indices_node: Node) -> Node:
    """Return a node that gives those dimensions of a shape that `indices_node` names."""
    axis = _constant(shape_node.graph, f"{shape_node.name}/Axis", 0)
    attrs = {"name": f"{shape_node.name}/Gather"}
    return _make_node(shape_node.graph, "gather", "Gather", attrs, shape_node, indices_node, axis)


def node_to_get_shape_value_of_indices(shape_node: Node, indices: list[int]) -> Node:
    """Return a node that gives the dimensions `indices` of a shape."""
    indices_node = _constant(shape_node.graph, f"{shape_node.name}/Indices", indices)
    return get_shape_values_by_indices_node(shape_node, indices_node)


def get_shape_values_by_range_idxs(
    shape: Node, rank: Node, begin: int, end: int, include_begin: bool = True, include_end: bool = False
) -> Node:
    """Return a node that gives the dimensions of a shape from `begin` to `end`."""
    return get_shape_values_by_indices_node(shape, get_range_node_of_idxs(rank, begin, end, include_begin, include_end))


def node_to_get_batch_value(shape_node: Node) -> Node:
    return node_to_get_shape_value_of_indices(shape_node, [0])


def node_to_get_features_dimension_value(shape_node: Node) -> Node:
    """Return a node that gives the number of channels."""
    return node_to_get_shape_value_of_indices(shape_node, [1 if _is_nchw(shape_node) else -1])


def node_to_get_spatial_dimensions_value(shape_node: Node) -> Node:
    """Return a node that gives the sizes between batch and channels; the rank must be inferred."""
    source: Any = shape_node.in_port(0).get_source()
    shape = source.data.get_shape()
    assert shape is not None, f"{shape_node.name}: the shape must be inferred before"
    spatial_dims = range(2, len(shape)) if _is_nchw(shape_node) else range(1, len(shape) - 1)
    return node_to_get_shape_value_of_indices(shape_node, list(spatial_dims))


def _is_nchw(node: Node) -> bool:
    layout = node.graph.graph["layout"]
    if layout not in ("NCHW", "NHWC"):
        raise Error("layout: NCHW or NHWC, got {}", layout)
    return layout == "NCHW"


def new_shape_node_from_shape_nodes(input_shape_nodes: list[Node]) -> Node:
    """Return a node that gives the elements of all these nodes' outputs, one after the other."""
    assert input_shape_nodes, "new_shape_node_from_shape_nodes: a node at least, got none"
    first = input_shape_nodes[0]
    attrs = {"axis": 0, "name": f"{first.soft_get('name', first.id)}/shapes_concat"}
    result = library_class("concat", "Concat")(first.graph, attrs).create_node()
    for idx, source in enumerate(input_shape_nodes):
        result.add_input_port(idx)
        result.in_port(idx).connect(source.out_port(0))
    return result


def get_shape_and_rank_nodes_by_port(port: Port, return_as_a_scalar: bool = True) -> tuple[Node, Node]:
    """Return nodes that give the shape of an output, and its rank: a number, or a vector of one."""
    graph, name = port.node.graph, port.node.soft_get("name", port.node.id)
    shape_of = library_class("shape", "Shape")
    shape = shape_of(graph, {"name": f"{name}/ShapeOf"}).create_node()
    rank = shape_of(graph, {"name": f"{name}/1dRankOf"}).create_node()
    rank.in_port(0).connect(shape.out_port(0))
    shape.in_port(0).connect(port)
    if not return_as_a_scalar:
        return shape, rank
    scalar = _make_node(graph, "squeeze", "Squeeze", {"name": f"{name}/0dRankOf"}, rank)
    axes = _constant(graph, f"{scalar.name}/value", [0])
    axes.out_port(0).connect(scalar.in_port(1))
    if graph.stage != "front":
        axes["infer"](axes)
    return shape, scalar
