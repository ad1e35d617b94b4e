"""Inputs that name axes or shapes of another tensor, and follow it where its layout changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import networkx as nx

from aot.mo.graph.graph import Node
from aot.mo.ops.const import Const
from aot.mo.ops.library import library_class
from aot.mo.ops.op import PermuteAttrs
from aot.mo.utils.arrays import int64_array

LEAST_RANK = 4  # smaller tensors keep their layout


def get_node_with_permutation(node: Node, port_info: str) -> Node:
    """Return the data node of port `input:N` or `output:N`."""
    side, _, number = port_info.partition(":")
    return node.in_node(int(number)) if side == "input" else node.out_node(int(number))


def _permutation(node: Node, port_info: str) -> Any:
    data = get_node_with_permutation(node, port_info)
    name = node.soft_get("name", node.id)
    assert data.has_and_set("permutation"), f"{name}: the data node of {port_info} has no permutation"
    return data.permutation


def _gather(node: Node, input_port: int, part: str, permutation: Any, chosen: bool) -> None:
    """Read the input through a Gather: of the input by `permutation`, or of `permutation` by the input if `chosen`."""
    graph, data = node.graph, node.in_node(input_port)
    name = f"{node.soft_get('name', node.id)}/{part}"

    def constant(label: str, value: Any) -> Node:
        attrs = {"name": f"{name}/{label}", "value": int64_array(value), "need_shape_inference": True}
        return Const(graph, attrs).create_node_with_data()

    inputs = [constant("const", permutation), data] if chosen else [data, constant("const", permutation)]
    attrs = {"name": name, "need_shape_inference": True}
    new_node = library_class("gather", "Gather")(graph, attrs).create_node_with_data([*inputs, constant("axis", 0)])
    edge = node.in_port(input_port).get_in_edge_attrs(data=True)
    graph.remove_edge(edge[1], edge[2], key=edge[3])
    graph.add_edge(new_node.id, node.id, **edge[0])
    node["need_shape_inference"] = True


def axis(op_node: Node, port_info: str, input_port: int) -> None:
    """Permute an input that holds axes."""
    permutation = _permutation(op_node, port_info)
    if len(permutation.perm):
        _gather(op_node, input_port, "AxisGather", permutation.inv, True)


def order(op_node: Node, port_info: str, input_port: int) -> None:
    """Permute an input that holds an order of axes."""
    permutation = _permutation(op_node, port_info)
    if len(permutation.perm):
        _gather(op_node, input_port, "OrderGather_1", permutation.perm, False)
        _gather(op_node, input_port, "OrderGather_2", permutation.inv, True)


def shape(op_node: Node, port_info: str, input_port: int) -> None:
    """Permute an input that holds a number for each axis."""
    permutation = _permutation(op_node, port_info)
    if len(permutation.perm):
        _gather(op_node, input_port, "ShapeGather", permutation.perm, False)


def strided_slice(op_node: Node, port_info: str, input_port: int) -> None:
    """Permute an input that holds bounds for as many axes as it has elements."""
    if len(_permutation(op_node, port_info).perm):
        count = int(op_node.in_port(input_port).data.get_shape()[0])
        _gather(op_node, input_port, "ShapeGather", PermuteAttrs.get_nhwc_to_nchw_permutation(count).perm, False)


def _transpose(op_node: Node, input_port: int, perm: Any) -> None:
    graph, name = op_node.graph, f"{op_node.soft_get('name', op_node.id)}/Transpose"
    attrs = {"name": name, "override_output_shape": True}
    new_node = library_class("transpose", "Transpose")(graph, attrs).create_node()
    given = Const(graph, {"name": f"{name}/order", "value": int64_array(perm)}).create_node()
    new_node.in_port(1).connect(given.out_port(0))
    given["infer"](given)
    op_node.in_port(input_port).get_connection().insert_node(new_node)
    new_node["infer"](new_node)


def transpose(op_node: Node, port_info: str, input_port: int) -> None:
    """Transpose an input to the new layout."""
    permutation = _permutation(op_node, port_info)
    if len(permutation.perm):
        _transpose(op_node, input_port, permutation.perm)


def transpose_nchw_to_nhwc(op_node: Node, port_info: str, input_port: int) -> None:
    """Transpose an input to the old layout, with its channels last."""
    rank = len(get_node_with_permutation(op_node, port_info).shape)
    assert rank >= LEAST_RANK, f"{op_node.id}: a tensor of {LEAST_RANK} dimensions or more, got {rank}"
    _transpose(op_node, input_port, [0, *range(2, rank), 1])


def _has_rank(port: Any) -> bool:
    return len(port.data.get_shape()) >= LEAST_RANK


def _has_size(port: Any) -> bool:
    return int(port.data.get_shape()[0]) >= LEAST_RANK


Rule = Callable[[Node, str, int], None]


class PermuteInputs:
    """Rules for inputs, by the kind of their content."""

    input_permutes: ClassVar[dict[str, Rule]] = {
        "axis": axis,
        "slice": strided_slice,
        "order": order,
        "shape": shape,
        "transpose": transpose,
        "transpose_nchw_to_nhwc": transpose_nchw_to_nhwc,
    }
    shape_check_rules: ClassVar[dict[str, Callable[[Any], bool]]] = {"rank": _has_rank, "dim_size": _has_size}

    def set_input_permutation(
        self, node1: Node, node2: Node, port_info: str, permutation_rule: str, shape_check_rule: str = "rank"
    ) -> None:
        """Say on the edge from a data node to an operation that the input follows the tensor of `port_info`."""
        for rule, known in ((permutation_rule, self.input_permutes), (shape_check_rule, self.shape_check_rules)):
            assert rule in known, f"a rule is one of {', '.join(known)}, got {rule}"
        mark = self.input_permutes[permutation_rule], port_info, self.shape_check_rules[shape_check_rule]
        nx.set_edge_attributes(node1.graph, {(node1.id, node2.id, 0): mark}, "input_permutation")
