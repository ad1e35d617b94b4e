"""Neighbours of a node over edges, by the numbers of ports.

In the front phase the neighbours of an operation are operations; afterwards they are data nodes, and those of a data
node are operations, in lists. The keys are numbers of ports, or `control_flow_N` of control-flow edges.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Self

from aot.mo.graph.attributes import Attributes, dict_includes

Edge = dict[str, Any]
Port = int | str
CONTROL_FLOW = "control_flow_"


def by_port(by_number: dict[Port, Any]) -> OrderedDict[Port, Any]:
    """Return the items in the order of the numbers of ports."""
    return OrderedDict(sorted(by_number.items(), key=lambda item: number_of(item[0])))


def number_of(port: Port) -> int:
    return int(str(port).removeprefix(CONTROL_FLOW))


def _is_control_flow(edge: Edge) -> bool:
    return bool(edge.get("control_flow_edge"))


def _fits(edge: Edge, attrs: Edge | None) -> bool:
    return all(k in edge and edge[k] == v for k, v in (attrs or {}).items())


class Neighbours(Attributes):
    """A node with its edges."""

    def get_inputs(self, edge_attr: Edge | None = None, control_flow: bool = False) -> list[tuple[str, Edge]]:
        """Return the ids of producers, each with its edge, in the order of the edges' creation."""
        edges = self.graph.in_edges(self.id, data=True)
        return [(u, d) for u, _, d in edges if (control_flow or not _is_control_flow(d)) and _fits(d, edge_attr)]

    def get_outputs(self, edge_attr: Edge | None = None, control_flow: bool = False) -> list[tuple[str, Edge]]:
        """Return the ids of consumers, each with its edge, in the order of the edges' creation."""
        edges = self.graph.out_edges(self.id, data=True)
        return [(v, d) for _, v, d in edges if (control_flow or not _is_control_flow(d)) and _fits(d, edge_attr)]

    def get_sorted_inputs(self, control_flow: bool = False) -> list[tuple[str, Edge]]:
        edges = [pair for pair in self.get_inputs(control_flow=control_flow) if "in" in pair[1]]
        return sorted(edges, key=lambda pair: pair[1]["in"])

    def get_sorted_outputs(self, control_flow: bool = False) -> list[tuple[str, Edge]]:
        edges = [pair for pair in self.get_outputs(control_flow=control_flow) if "out" in pair[1]]
        return sorted(edges, key=lambda pair: pair[1]["out"])

    def in_nodes_edges(self, control_flow: bool = False) -> OrderedDict[Port, tuple[Self, Edge]]:
        return by_port({d["in"]: (self.other(n), d) for n, d in self.get_inputs(control_flow=control_flow)})

    def out_nodes_edges(self, control_flow: bool = False) -> OrderedDict[Port, tuple[Self, Edge]]:
        return by_port({d["out"]: (self.other(n), d) for n, d in self.get_outputs(control_flow=control_flow)})

    def in_nodes(self, control_flow: bool = False) -> Any:
        """Return the producers: by number of port for an operation, a list for a data node."""
        return self._nodes(self.get_inputs(control_flow=control_flow), "in")

    def out_nodes(self, control_flow: bool = False) -> Any:
        """Return the consumers, of each port the last one: by number for an operation, a list for a data node."""
        return self._nodes(self.get_outputs(control_flow=control_flow), "out")

    def in_edges(self, control_flow: bool = False) -> Any:
        """Return the attributes of incoming edges: by number of port for an operation, a list for a data node."""
        return self._edges(self.get_inputs(control_flow=control_flow), "in")

    def out_edges(self, control_flow: bool = False) -> Any:
        """Return the attributes of outgoing edges: by number of port for an operation, a list for a data node."""
        return self._edges(self.get_outputs(control_flow=control_flow), "out")

    def _nodes(self, neighbours: list[tuple[str, Edge]], side: str) -> Any:
        if self._is_data():
            return [self.other(n) for n, _ in neighbours]
        return by_port({d[side]: self.other(n) for n, d in neighbours})

    def _edges(self, neighbours: list[tuple[str, Edge]], side: str) -> Any:
        if self._is_data():
            return [d for _, d in neighbours]
        return by_port({d[side]: d for _, d in neighbours})

    def _is_data(self) -> bool:
        kind = self["kind"]
        assert kind in ("op", "data"), f"{self.id}: kind is op or data, got {kind}"
        return kind == "data"

    def in_node(self, key: Port = 0, control_flow: bool = False) -> Self:
        return self.in_nodes(control_flow=control_flow)[key]

    def out_node(self, key: Port = 0, control_flow: bool = False) -> Self:
        return self.out_nodes(control_flow=control_flow)[key]

    def in_edge(self, key: Port = 0, control_flow: bool = False) -> Edge:
        return self.in_edges(control_flow=control_flow)[key]

    def out_edge(self, key: Port = 0, control_flow: bool = False) -> Edge:
        return self.out_edges(control_flow=control_flow)[key]

    def edges(self, attrs: Edge | None = None) -> list[tuple[str, str, Edge]]:
        """Return all edges from and to the node with `attrs` among their attributes."""
        around = [*self.graph.in_edges([self.id], data=True), *self.graph.out_edges([self.id], data=True)]
        return [(u, v, d) for u, v, d in around if dict_includes(d, attrs or {})]

    def edge(self, attrs: Edge | None = None) -> tuple[str, str, Edge]:
        """Return the one edge with `attrs` among its attributes."""
        edges = self.edges(attrs)
        assert len(edges) == 1, f"edges: {edges}, required attributes: {attrs}"
        return edges[0]

    def input_ports_with(self, node: Attributes) -> list[int]:
        """Return the numbers of the inputs that `node` is connected to."""
        return [i for i in range(len(self.in_nodes())) if self.in_node(i).id == node.id]
