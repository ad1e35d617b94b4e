"""Names of operations in the files that are written, and cycles, which loops of TensorFlow 1 are at first."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import networkx as nx

from aot.mo.graph.graph import Graph, rename_node, rename_nodes
from aot.mo.implemented import transformation
from aot.mo.transformations.nodes import add, name_of, nodes_of
from aot.mo.utils.arrays import int64_array
from aot.mo.utils.error import Error


@transformation("back.ResultRename")
class ResultRename:
    """Each Result has the name of a tensor that it reads, unless an operation has it"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        taken = {node.name for node in nodes_of(graph) if node.has_valid("name")}
        renamed: dict[str, str] = {}
        results = nodes_of(graph, type="Result")
        for node in results:
            source = node.in_port(0).get_source() if node.in_ports() else None
            names: list[str] = [] if source is None else source.get_tensor_names()
            if source is None or node.soft_get("name") in names:
                continue
            name = next((n for n in names if n not in taken), None)
            if name is not None:
                taken.discard(node.soft_get("name"))
                taken.add(name)
            renamed[node.name] = name or f"{name_of(source.node)}/sink_port_{source.idx}"
            node["name"] = renamed[node.name]
        order = graph.outputs_order
        order[:] = [renamed.get(name, name) for name in order]


@transformation("back.names_uniqueness_check")
class NamesUniquenessCheck:
    """Names are unique: operations of one name get numbers, except the first Result, or the first of all"""

    def find_and_replace_pattern(self, graph: Graph) -> None:
        groups: dict[str, list[Any]] = defaultdict(list)
        for node in nodes_of(graph):
            groups[name_of(node)].append(node)
        taken = set(groups)
        for name, nodes in groups.items():
            kept = next((i for i, node in enumerate(nodes) if node.op == "Result"), 0)
            for i, node in enumerate(nodes):
                if i != kept:
                    unique = f"{name}_{i}"
                    while unique in taken:
                        unique = f"{unique}_{i}"
                    taken.add(unique)
                    rename_node(node, unique)


@transformation("back.FakeOutputResolver")
class FakeOutputResolver:
    """FakeOutput, which gives an output a second name: Add of 0"""

    force_clean_up = True

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for node in nodes_of(graph, op="FakeOutput"):
            new_node = add(graph, "elementwise.Add", None, int64_array(0), can_be_fused=False)
            rename_nodes([(node, f"{name_of(node)}/replaced"), (new_node, name_of(node))])
            source = node.in_port(0).get_source()
            names = source.get_tensor_names()
            source.remove_tensor_names()
            node.in_port(0).get_connection().set_destination(new_node.in_port(0))
            node.out_port(0).get_connection().set_source(new_node.out_port(0))
            if names:
                new_node.out_port(0).add_tensor_names(names)


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
