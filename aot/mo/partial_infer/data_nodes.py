"""Data nodes, which replace the front phase's edges between operations in the later phases."""

from __future__ import annotations

from typing import Any

from aot.mo.graph.data import with_properties
from aot.mo.graph.graph import Graph, Node


def create_tensor_nodes(graph: Graph) -> Graph:
    """Put a data node behind each output that is read; return the graph, whose nodes are all operations before.

    The edges' lists `out_attrs`, `in_attrs` and `data_attrs` name the attributes that go to the edge into the data
    node, to the one out of it, and to the data node itself.
    """
    for id in list(graph.nodes()):
        graph.nodes[id]["kind"] = "op"
        if graph.nodes[id]["op"] != "Result":
            _split(graph, id)
    return graph


def _split(graph: Graph, id: str) -> None:
    name = str(Node(graph, id).soft_get("name", id))
    edges = list(graph.out_edges(id, data=True, keys=True))
    made: dict[Any, str] = {}
    for _, target, key, edge in edges:
        idx = edge["out"]
        if idx not in made:
            made[idx] = data = graph.unique_id(f"{name}/Output_{idx}/Data_")
            attrs = {"name": data, "kind": "data", "shape": None, "value": None, "data_type": None, "infer": None}
            graph.add_node(data, **with_properties({**attrs, **get_specific_edge_attrs(edge, "data_attrs")}))
            graph.add_edge(id, data, **get_specific_edge_attrs(edge, "out_attrs"))
        graph.remove_edge(id, target, key=key)
        graph.add_edge(made[idx], target, **get_specific_edge_attrs(edge, "in_attrs"))


def get_specific_edge_attrs(
    attrs: dict[str, Any], attrs_type: str, additional_attrs: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return those of an edge's attributes that its list `attrs_type` names, and the additional ones."""
    return {**{k: attrs[k] for k in attrs.get(attrs_type, []) if k in attrs}, **(additional_attrs or {})}
