"""Functions for edges, names and results of a graph."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from aot.mo.graph.known import operation_class
from aot.mo.graph.node import Node
from aot.mo.graph.tensor_names import INFO

Graph = Any  # of a module above this one
log = logging.getLogger(__name__)


def rename_node(node: Node, name: str) -> None:
    """Rename a node, unless another one has the name."""
    if not node.graph.get_nodes_with_attributes(name=name):
        node.name = name


def rename_nodes(nodes: Iterable[tuple[Node, str]]) -> None:
    """Rename nodes one after another, so that a name may pass from one to the next."""
    for node, name in nodes:
        rename_node(node, name)


def merge_edge_props(attrs: dict[str, Any], additional_attrs: dict[str, Any]) -> dict[str, Any]:
    """Add attributes of another edge to `attrs`, but `in` and `out`; lists are united."""
    for key, value in additional_attrs.items():
        if key in ("in", "out"):
            continue
        united: list[Any] = [*attrs.get(key, []), *value] if isinstance(value, list) else []
        attrs[key] = list(dict.fromkeys(united)) if isinstance(value, list) else value
    return attrs


def get_edge_attribute_between_nodes(node1: Node, node2: Node, attr_name: str) -> Any:
    """Return an attribute of the edge from `node1` to `node2`; None if either is absent. Front phase only."""
    values = (e[attr_name] for e in _edges_between(node1, node2) if attr_name in e)
    return next(values, None)


def set_edge_attribute_between_nodes(node1: Node, node2: Node, attr_name: str, new_value: Any) -> None:
    """Set an attribute of the edges from `node1` to `node2`. Front phase only."""
    for edge in _edges_between(node1, node2):
        edge[attr_name] = new_value


def _edges_between(node1: Node, node2: Node) -> list[dict[str, Any]]:
    return [edge for consumer, edge in node1.out_nodes_edges().values() if consumer.id == node2.id]


def add_opoutput(
    graph: Graph,
    node_name: str,
    port: int,
    cut: bool = True,
    keep_output_port: bool = False,
    user_defined_name: str | None = None,
) -> str:
    """Add a Result that reads output `port` of the node with id `node_name`; return its id.

    `cut`: the Result takes over the edge of the output; `keep_output_port`: it is written to IR as it is;
    `user_defined_name`: one more name of the tensor.
    """
    node = Node(graph, node_name)
    result = operation_class("Result")(graph)
    attrs = {"name": f"{node_name}/sink_port_{port}", "keep_output_port": keep_output_port}
    if cut and node.out_edges():
        new_node = result.create_node_on_port(node, port, attrs)
    else:
        new_node = result.create_node([(node, port)], attrs)
        new_node.in_edge()["data_attrs"] = [INFO]
    if user_defined_name is not None and graph.stage in ("front", None):
        _add_name(graph, new_node, user_defined_name)
    return new_node.id


def _add_name(graph: Graph, result: Node, name: str) -> None:
    edge = result.in_edge()
    if name in [pair[1] for pair in edge.get(INFO, [])]:
        return
    if graph.has_tensor_name(name):
        log.warning("output %s: another tensor has the name %s", result.soft_get("name"), name)
        return
    edge.setdefault(INFO, []).append([name, name])
