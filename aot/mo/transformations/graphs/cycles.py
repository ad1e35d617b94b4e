"""Cycles, which loops of TensorFlow 1 are before they become TensorIterator."""

from __future__ import annotations

import networkx as nx

from aot.mo.graph.graph import Graph
from aot.mo.implemented import transformation
from aot.mo.utils.error import Error


@transformation("middle.AddIsCyclicAttribute")
class AddIsCyclicAttribute:
    """`graph.graph["is_cyclic"]`: True if the graph has a cycle"""

    @staticmethod
    def find_and_replace_pattern(graph: Graph) -> None:
        graph.graph["is_cyclic"] = not nx.is_directed_acyclic_graph(graph)


@transformation("middle.CheckForCycle")
class CheckForCycle:
    """Error for a graph with a cycle"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        if not nx.is_directed_acyclic_graph(graph):
            nodes = ", ".join(str(edge[0]) for edge in nx.find_cycle(graph))
            raise Error("Graph contains a cycle: the operations of a network are in an order, got {}", nodes)
