"""Removal of nodes that are not needed: those that no Result reaches, and those whose value is known."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable
from typing import Any

import networkx as nx

from aot.mo.graph.known import operation_class
from aot.mo.graph.node import Node
from aot.mo.utils.arrays import compatible_shapes, is_fully_defined
from aot.mo.utils.error import Error

log = logging.getLogger(__name__)

KEPT_SHAPES = ("ShapeOf", "Shape", "slice_like")  # stay, so that the sizes of inputs may change later
KEPT_ATTRIBUTES = ("nchw_layout", "force_shape", "force_type")  # attributes of a Const that its data node keeps
DATA_SUFFIX = re.compile(r"\/Output_\d+\/Data_(.?)+")


def clean_up(graph: Any, undead_node_types: list[str]) -> None:
    """Remove the nodes that no Result needs and those whose value is known; infer those that ask for it."""
    if not getattr(graph.graph.get("cmd_params"), "static_shape", False):
        undead_node_types = [*undead_node_types, *KEPT_SHAPES]
    mark_output_reachable_nodes(graph)
    _infer_marked(graph, lambda node: node.has_and_set("is_output_reachable"))
    mark_undead_nodes(graph, undead_node_types)
    mark_const_producer_nodes(graph)
    eliminate_dead_nodes(graph)
    add_constant_operations(graph)


def reverse_dfs(
    graph: Any, node_name: str, update_func: Callable[[Any, str], None], visited: set[str] | None = None
) -> None:
    """Call `update_func` for a node and all that it needs; extend `visited`."""
    visited = set() if visited is None else visited
    visited.add(node_name)
    waiting = deque([node_name])
    while waiting:
        id = waiting.popleft()
        update_func(graph, id)
        for source, _ in graph.in_edges(id):
            if source not in visited:
                visited.add(source)
                waiting.append(source)


def mark_output_reachable_nodes(graph: Any) -> None:
    """Set attribute `is_output_reachable`: True if a Result needs the node."""
    nx.set_node_attributes(graph, False, "is_output_reachable")
    visited: set[str] = set()

    def mark(graph: Any, id: str) -> None:
        graph.nodes[id]["is_output_reachable"] = True

    for id in graph.get_nodes_with_attributes(op="Result"):
        reverse_dfs(graph, id, mark, visited)


def mark_undead_nodes(graph: Any, undead_types: list[str]) -> None:
    """Set attribute `is_undead`: True for nodes of these types, for their constant consumers, for inputs."""
    nx.set_node_attributes(graph, False, "is_undead")
    types = {*undead_types, "Result"}
    waiting = deque([n.id for n in graph.get_op_nodes() if n.soft_get("type", n.soft_get("op")) in types])
    for id in waiting:
        graph.nodes[id]["is_undead"] = True
    while waiting:
        for _, target in graph.out_edges(waiting.popleft()):
            attrs = graph.nodes[target]
            known = attrs.get("kind") == "op" or (attrs.get("kind") == "data" and attrs.get("value") is not None)
            if known and not attrs["is_undead"]:
                attrs["is_undead"] = True
                waiting.append(target)
    for id in graph.get_nodes_with_attributes(is_input=True):
        graph.nodes[id]["is_undead"] = True


def mark_const_producer_nodes(graph: Any) -> None:
    """Set attribute `is_const_producer`: True if all that the node makes has a known value."""
    nx.set_node_attributes(graph, True, "is_const_producer")
    for source, target, edge in graph.edges(data=True):
        if edge.get("control_flow_edge"):
            graph.nodes[source]["is_const_producer"] = graph.nodes[target]["is_const_producer"] = False
        read = graph.nodes[target]  # an operation of a file may have an attribute of this name
        if read.get("kind") == "op" or not is_fully_defined(read.get("value")):
            graph.nodes[source]["is_const_producer"] = False


def eliminate_dead_nodes(graph: Any) -> None:
    """Remove the nodes that are marked as not needed."""
    removed: set[str] = set()
    for id, attrs in graph.nodes(data=True):
        if attrs.get("type") == "Const":
            _keep_attributes(Node(graph, id))
        forced = not attrs["is_undead"] or attrs.get("force_dead_node", False)
        if not attrs["is_output_reachable"] or (attrs["is_const_producer"] and forced):
            removed.add(id)
    log.debug("removed: %s", ", ".join(sorted(map(str, removed))))
    graph.remove_nodes_from(removed)


def _keep_attributes(constant: Node) -> None:
    attributes = {k: constant[k] for k in KEPT_ATTRIBUTES if constant.has_valid(k) and constant[k] is not False}
    for node in constant.out_nodes().values() if attributes else ():
        node.attrs().update(attributes)


def add_constant_operations(graph: Any) -> None:
    """Give a Const to data nodes with a value that nothing makes."""
    for node in graph.get_data_nodes(has_value=True):
        if node.in_nodes() or not node.out_nodes():
            continue
        attrs = {
            "value": node.value,
            "name": DATA_SUFFIX.sub("", str(node.soft_get("name", node.id))),
            "force_shape": node.soft_get("force_shape", None),
            "override_output_shape": node.has_valid("force_shape"),
            "force_type": node.soft_get("force_type", None),
            "correct_data_type": node.soft_get("correct_data_type", False),
        }
        if node.has_valid("rt_info"):
            attrs["rt_info"] = node.rt_info
        new_node = operation_class("Const")(graph, attrs).create_node()
        graph.add_edges_from([(new_node.id, node.id, {"out": 0})])


def shape_inference(graph: Any) -> None:
    """Infer the nodes whose attribute `need_shape_inference` is set; Error if a shape contradicts the one before."""
    _infer_marked(graph, lambda node: True)


def _infer_marked(graph: Any, is_marked: Callable[[Node], bool]) -> None:
    for node in graph.pseudo_topological_sort():
        if node.has_and_set("need_shape_inference") and is_marked(node):
            _infer_again(node)


def _infer_again(node: Node) -> None:
    before = [p.data.get_shape() for p in node.out_ports().values() if not p.disconnected()]
    node.infer(node)
    after = [p.data.get_shape() for p in node.out_ports().values() if not p.disconnected()]
    if node.has_and_set("override_output_shape"):
        del node["override_output_shape"]
    else:
        for old, new in zip(before, after, strict=False):
            if old is not None and not compatible_shapes(old, new):
                rule = "{}: the shape that is inferred now contradicts the one before, {}, got {}"
                raise Error(rule, node.name, old, new)
    node["need_shape_inference"] = False


def merge_data_nodes(graph: Any, survived: Node, removed: Node) -> None:
    """Move edges and attributes of one data node to another; names of tensors are united."""
    if survived.soft_get("op") == "Result":
        removed["op"] = "Result"
    for source, _, key, edge in list(graph.in_edges(removed.id, data=True, keys=True)):
        graph.add_edges_from([(source, survived.id, edge)])
        graph.remove_edge(source, removed.id, key=key)
    for _, target, key, edge in list(graph.out_edges(removed.id, data=True, keys=True)):
        graph.add_edges_from([(survived.id, target, edge)])
        graph.remove_edge(removed.id, target, key=key)
    for attr, value in removed.attrs().items():
        if attr == "fw_tensor_debug_info":
            survived[attr] = [*survived.soft_get(attr, []), *value]
        elif attr != "name":
            survived[attr] = value


def remove_op_node_with_data_node(graph: Any, node_to_remove: Node, input_data_node: Node | None = None) -> None:
    """Remove an operation with one output, and its input's data node; the one of its output takes its place."""
    assert node_to_remove.kind == "op", f"{node_to_remove.id}: an operation, got a data node"
    data = node_to_remove.in_node() if input_data_node is None else input_data_node
    outputs = [v for _, v in graph.out_edges(node_to_remove.id)]
    assert len(outputs) == 1, "Cannot remove node producing two or more output tensors"
    output = Node(graph, outputs[0])
    assert output.kind == "data", "The function must be used after partial infer"
    graph.remove_edge(data.id, node_to_remove.id)
    graph.remove_edge(node_to_remove.id, output.id)
    merge_data_nodes(graph, output, data)
    graph.remove_nodes_from([node_to_remove.id, data.id])


def remove_op_nodes(graph: Any, attrs: dict[str, Any]) -> None:
    """Remove the operations with these attributes, each with its input's data node."""
    for node in graph.get_op_nodes(**attrs):
        remove_op_node_with_data_node(graph, node)


def remove_edges_for_nodes(graph: Any, node_attrs: dict[str, Any], edge_attrs: dict[str, Any]) -> None:
    """Remove the edges with the attributes into nodes with the attributes."""
    for id in list(graph.nodes()):
        node = Node(graph, id)
        if all(node.has(k) and node[k] == v for k, v in node_attrs.items()):
            for source, edge in node.in_nodes_edges().values():
                if all(k in edge and edge[k] == v for k, v in edge_attrs.items()):
                    graph.remove_edge(source.id, node.id)
