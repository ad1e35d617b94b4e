"""Search in a graph: nodes by attributes, names and order, and checks of the whole."""

from __future__ import annotations

import collections
import logging
from typing import Any

import networkx as nx
import numpy as np

from aot.mo.graph.cleaning import clean_up
from aot.mo.graph.node import Node
from aot.mo.graph.tensor_names import INFO
from aot.mo.utils.error import Error

log = logging.getLogger(__name__)


class Lookup:
    """A graph's methods that find nodes."""

    unique_id_count: int

    def get_nodes_with_attributes(self: Any, **attrs: Any) -> list[str]:
        """Return the ids of nodes with all these attributes."""
        nodes = self.nodes(data=True)
        return [
            id for id, node_attrs in nodes if all(k in node_attrs and _same(node_attrs[k], v) for k, v in attrs.items())
        ]

    def get_op_nodes(self: Any, **attrs: Any) -> list[Node]:
        """Return the operations with all these attributes."""
        return [Node(self, id) for id in self.get_nodes_with_attributes(kind="op", **attrs)]

    def get_data_nodes(self: Any, has_value: bool | None = None) -> list[Node]:
        """Return the data nodes; with `has_value`, those with a value, or those without one."""
        nodes = [Node(self, id) for id in self.get_nodes_with_attributes(kind="data")]
        return [n for n in nodes if has_value is None or n.has_valid("value") == has_value]

    def get_node_id_by_name(self: Any, name: str) -> str:
        """Return the id of the one node of a name; Error if there is none, or several."""
        nodes = self.get_nodes_with_attributes(name=name)
        if len(nodes) != 1:
            raise Error("{} with name {}", "Multiple nodes" if nodes else "No node", name)
        return nodes[0]

    def unique_id(self: Any, prefix: str = "") -> str:
        """Return an id that no node has: `prefix` itself, or followed by a number."""
        self.unique_id_count = max(self.unique_id_count, self.number_of_nodes()) + 1
        if prefix and not self.has_node(prefix):
            return str(prefix)
        while self.has_node(f"{prefix}{self.unique_id_count}"):
            self.unique_id_count += 1
        return f"{prefix}{self.unique_id_count}"

    def get_inputs_with_ports(
        self: Any, match: dict[str, Any], pattern_edges: list[Any], input_names_in_pattern: list[str]
    ) -> list[tuple[Any, int]]:
        """Return the matched nodes of the names, each with the output that its one consumer in the pattern reads."""
        inputs: list[tuple[Any, int]] = []
        for name in input_names_in_pattern:
            assert name in match, f"node named {name} not in match {match}"
            consumers = [edge[1] for edge in pattern_edges if edge[0] == name]
            assert all(r in match for r in consumers), f"nodes {consumers} of the edges: some not in match {match}"
            if len(consumers) != 1:
                raise Error("Multiple output ports detected for node {} as {} in pattern", match[name].id, name)
            edge = self.get_edge_data(match[name].id, match[consumers[0]].id)[0]
            inputs.append((match[name], edge["out"]))
        return inputs

    def get_tensor_names_set(self: Any) -> set[str]:
        """Return the names of all tensors."""
        names: set[str] = set()
        for node in self.get_op_nodes():
            if self.stage is None:
                for edge in node.out_edges().values():
                    names.update(pair[1] for pair in edge.get(INFO, []))
            else:
                for port in node.out_ports().values():
                    names.update(port.get_tensor_names())
        return names

    def has_tensor_name(self, tensor_name: str) -> bool:
        return tensor_name in self.get_tensor_names_set()

    def set_node_attributes(self: Any, name: str, values: Any) -> None:
        """Set an attribute of all nodes to a value, or of some to the values of a dictionary."""
        nx.set_node_attributes(self, values=values, name=name)

    def clean_up(self: Any, undead_node_types: list[str] | None = None) -> None:
        """Remove the nodes that no Result needs and those whose value is known; infer those that ask for it."""
        clean_up(self, undead_node_types or [])

    def check_empty_graph(self: Any, description: str) -> None:
        """Raise Error for a graph of one node or none."""
        if len(self.nodes()) <= 1:
            rule = "Graph contains {} node after executing {}: the model would be empty"
            raise Error(rule, len(self.nodes()), description)

    def check_shapes_consistency(self) -> None:
        """Raise Error for data nodes without attribute `shape`, or with one that is no array."""
        wrong: list[Any] = []
        for node in self.get_data_nodes():
            if not node.has("shape"):
                wrong.append((node.name, "no shape attribute"))
            elif node.shape is not None and not isinstance(node.shape, np.ndarray):
                wrong.append((node.name, type(node.shape)))
        if wrong:
            raise Error("Graph contains data nodes ({}) with inconsistent shapes: {}", len(wrong), wrong)

    def check_nodes_ports_are_consecutive(self) -> None:
        """Raise Error for an operation with gaps in the numbers of its ports."""
        for node in self.get_op_nodes():
            for side, ports in (("in", node.in_ports()), ("out", node.out_ports())):
                if list(ports) != list(range(len(ports))):
                    raise Error("Node {} has not consecutive {} ports indexes: {}", node.name, side, list(ports))

    def print_graph_stat(self: Any) -> None:
        """Log how many nodes of each kind there are."""
        kinds: collections.Counter[str] = collections.Counter()
        for id, attrs in self.nodes(data=True):
            kinds[f"op/{attrs['op']}" if "op" in attrs else attrs.get("kind", "<UNDEFINED>")] += 1
            shape = attrs.get("shape")
            if shape is not None and np.any(np.asarray(shape) == 0):
                log.error("Found bad shape: '%s' for node '%s'", shape, id)
        log.debug("nodes: %d, edges: %d", self.number_of_nodes(), self.number_of_edges())
        for kind, count in kinds.items():
            log.debug("   %s : %d", kind, count)

    def dfs(self: Any, node_name: str, visited: set[str]) -> list[str]:
        """Return the ids reached from a node, each after the ids that are reached from it; extend `visited`."""
        order: list[str] = []
        stack = [(node_name, iter(list(self.out_edges(node_name))))]
        visited.add(node_name)
        while stack:
            id, edges = stack[-1]
            reached = next((target for _, target in edges if target not in visited), None)
            if reached is None:
                order.append(id)
                stack.pop()
            else:
                visited.add(reached)
                stack.append((reached, iter(list(self.out_edges(reached)))))
        return order

    def pseudo_topological_sort(self: Any, reverse: bool = False) -> list[Node]:
        """Return the nodes, producers first; of a graph with a cycle, some order."""
        order: list[str] = []
        visited: set[str] = set()
        for id in self.nodes():
            if not self.in_edges(id) and id not in visited:
                order.extend(self.dfs(id, visited))
        return self._as_nodes(order if reverse else order[::-1])

    def pseudo_topological_sort_with_start_node(self: Any, start_node: Node, reverse: bool = False) -> list[Node]:
        """Return the nodes that are reached from a node, producers first."""
        order = self.dfs(start_node.soft_get("name"), set())
        return self._as_nodes(order if reverse else order[::-1])

    def topological_sort(self: Any, reverse: bool = False) -> list[Node]:
        """Return the nodes, producers first; networkx's error for a graph with a cycle."""
        order = list(nx.topological_sort(self))
        return self._as_nodes(order[::-1] if reverse else order)

    def _as_nodes(self: Any, ids: list[str]) -> list[Node]:
        return [Node(self, id) for id in ids]


def _same(value: Any, expected: Any) -> bool:
    equal = value is expected or value == expected
    return equal if isinstance(equal, bool) else bool(np.all(equal))
