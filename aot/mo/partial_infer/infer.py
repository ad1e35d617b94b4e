"""Partial inference: shapes, values and element types of all data nodes, by the nodes' own functions."""

from __future__ import annotations

import logging
from typing import Any

import networkx as nx

from aot.mo.graph.graph import Graph, Node
from aot.mo.utils.arrays import is_fully_defined
from aot.mo.utils.error import Error

log = logging.getLogger(__name__)


def partial_infer(graph: Graph, start_node: str | None = None) -> Graph:
    """Call `infer` of all operations, producers first, from `start_node` on if it is given; return the graph.

    Constants are inferred first, so that shapes of inputs can be inferred from their consumers, by `reverse_infer`.
    Error for a cycle, for an operation without `infer`, and for an output without a shape.
    """
    try:
        order = list(nx.topological_sort(graph))
    except Exception as error:
        raise Error("Graph contains a cycle. Can not proceed. {}", error) from error
    for id in order if start_node is None else order[order.index(start_node) :]:
        graph.nodes[id]["is_partial_inferred"] = False
    infer_nodes(graph, order, constant_subgraph_only=True)
    if any(node.soft_get("shape", None) is None for node in graph.get_op_nodes(op="Parameter")):
        reverse_infer(graph, order)
    infer_nodes(graph, order)
    for id in graph.get_nodes_with_attributes(is_not_fully_inferred=True):
        node = Node(graph, id)
        if node.has_and_set("infer"):
            node["infer"](node)
    return graph


def infer_nodes(graph: Graph, nodes: list[str], constant_subgraph_only: bool = False) -> None:
    """Call `infer` of the nodes that are not inferred; with `constant_subgraph_only`, of those with known inputs."""
    for id in nodes:
        node = Node(graph, id)
        if node.kind != "op" or node.soft_get("is_partial_inferred", True):
            continue
        if constant_subgraph_only and not _is_constant(node):
            continue
        name = node.soft_get("name", id)
        try:
            _infer(node, name, not constant_subgraph_only)
        except Exception as error:
            rule = 'Stopped shape/value propagation at "{}" node: {}: {}'
            raise Error(rule, name, type(error).__name__, error) from error
        node["is_partial_inferred"] = True


def _is_constant(node: Node) -> bool:
    if node.soft_get("op") == "Parameter":
        return False
    if node.soft_get("op") == "ShapeOf":
        return node.in_port(0).data.get_shape() is not None
    return all(port.data.get_attr("value") is not None for port in node.in_ports().values())


def _infer(node: Node, name: str, whole: bool) -> None:
    if not node.has_valid("infer"):
        raise Error('there is no registered "infer" function for node "{}" with op = "{}"', name, node.soft_get("op"))
    node["infer"](node)
    outputs: dict[int, Node] = node.out_nodes()
    for idx, data in outputs.items():
        if node.has("nchw_layout"):
            data["nchw_layout"] = node.nchw_layout
        if whole and not data.has_valid("shape"):
            raise Error('the shape of output {} of node "{}" is not inferred', idx, name)


def reverse_infer(graph: Graph, nodes: list[str]) -> None:
    """Call `reverse_infer` of the nodes, consumers first; Error if an input of the network has no shape then."""
    for id in reversed(nodes):
        node = Node(graph, id)
        if node.has_and_set("reverse_infer"):
            node["reverse_infer"](node)
    shapeless = [node for node in graph.get_op_nodes(op="Parameter") if not node.has_valid("shape")]
    if shapeless:
        missing: list[str] = [node.soft_get("name", node.id) for node in shapeless]
        raise Error("shapes of inputs must be known; give them by --shape, for {}", ", ".join(missing))


def type_infer(graph: Graph) -> None:
    """Set the element types of all outputs, producers first, and of the inputs that read them."""
    for id in list(nx.topological_sort(graph)):
        node = Node(graph, id)
        if node.kind != "op":
            continue
        node_type_infer(node)
        for port in node.out_ports().values():
            for consumer in port.get_destinations():
                if not consumer.node.has_valid("_in_port_precision"):
                    consumer.node["_in_port_precision"] = {}
                consumer.node["_in_port_precision"][consumer.idx] = port.get_data_type()


def node_type_infer(node: Node) -> None:
    """Set the element types of a node's outputs: by `type_infer`, attribute `data_type`, or as input 0."""
    if node.has_valid("type_infer"):
        node["type_infer"](node)
    elif node.has_valid("data_type"):
        node.out_port(0).set_data_type(node.data_type)
    else:
        copy_type_infer(node)


def copy_type_infer(node: Node) -> None:
    """Give the outputs the element type of the first connected input."""
    for port in node.out_ports().values():
        connected = [p for p in node.in_ports().values() if not p.disconnected()]
        if not connected:
            raise Error("No input ports of node {} to determine data type", node.soft_get("name"))
        if not connected[0].is_data_type_defined():
            source: Any = connected[0].get_source()
            node_type_infer(source.node)
        port.set_data_type(connected[0].get_data_type())


def override_placeholder_shapes(graph: Graph, user_shapes: dict[str, Any] | None, batch: int | None = None) -> None:
    """Set the shapes of inputs to those that the user gave, {id: [{shape}]}, and their first dimensions to `batch`."""
    for id in graph.get_nodes_with_attributes(kind="op", op="Parameter") if user_shapes is not None else []:
        attrs = graph.nodes[id]
        shapes = [v for v in (user_shapes or {}).get(id, []) if "in" not in v and "out" not in v]
        if shapes and shapes[0]["shape"] is not None:
            attrs["shape"] = shapes[0]["shape"]
        if batch is not None and attrs.get("shape") is not None and len(attrs["shape"]) > 0:
            attrs["shape"][0] = batch


def override_batch(graph: Graph, batch: int | None) -> None:
    """Set the first dimension of all inputs but those with attribute `fixed_batch`; Error for one that is above 1."""
    for node in graph.get_op_nodes(op="Parameter") if batch is not None else []:
        if node.soft_get("fixed_batch", False):
            continue
        shape, name = node.soft_get("shape", None), node.soft_get("name", node.id)
        if shape is None or len(shape) == 0 or (is_fully_defined(shape[0]) and shape[0] not in (-1, 0, 1)):
            raise Error("{}: the first dimension must be 1 or unknown for --batch, got {}", name, shape)
        node.shape[0] = batch


def exit_bound_edges(graph: Graph, sources: list[str], end_node_attrs: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return an edge from each source to each node below it that has the attributes."""
    fitting = set(graph.get_nodes_with_attributes(**end_node_attrs))
    return [(id, end, 0, {}) for id in sources for end in nx.descendants(graph, id) if end in fitting]
