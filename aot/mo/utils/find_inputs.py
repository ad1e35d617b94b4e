"""Inputs and outputs of a network."""

from __future__ import annotations

from aot.mo.graph.graph import Graph, Node


def find_nodes_by_attribute_value(graph: Graph, attr: str, attr_name: str) -> list[str]:
    """Return the ids of nodes whose attribute `attr` is `attr_name`."""
    return [id for id, attrs in graph.nodes(data=True) if attr in attrs and attrs[attr] == attr_name]


def find_inputs(graph: Graph) -> list[str]:
    return find_nodes_by_attribute_value(graph, "type", "Parameter")


def find_outputs(graph: Graph) -> list[str]:
    """Return the ids of the nodes, or data nodes, that Results read."""
    sources = [Node(graph, id).in_nodes() for id in find_nodes_by_attribute_value(graph, "op", "Result")]
    assert all(len(found) == 1 for found in sources), "Result node should have exactly one input"
    return list(dict.fromkeys(found[0].id for found in sources))
