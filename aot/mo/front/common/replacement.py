"""Base classes of the front phase's transformations: patterns, sub-graphs and single operations."""

from __future__ import annotations

import logging
from typing import Any, cast

from aot.mo.graph.graph import Graph, Node, merge_edge_props
from aot.mo.middle.pattern_match import apply_pattern
from aot.mo.middle.replacement import OfPhase
from aot.mo.replacement_pattern import base
from aot.mo.utils.error import Error

_LOG = logging.getLogger(__name__)

Port = tuple[str, int]  # a node's id and the number of an input or output
Edges = dict[Any, Any]  # from an old port to the new one; an id alone is port 0


@base
class FrontReplacementPattern(OfPhase):
    """A transformation of the graph before shapes are known."""

    mo_phase = "Front"

    def pattern(self) -> dict[str, Any]:
        raise Error("{}: a transformation has pattern or find_and_replace_pattern, got neither", type(self).__name__)


@base
class FrontReplacementSubgraph(FrontReplacementPattern):
    """Replaces each sub-graph of a pattern by another one."""

    replacement_id = "None"

    @staticmethod
    def extract_port(node_port: Any) -> Port:
        return cast("Port", node_port) if isinstance(node_port, tuple) else (node_port, 0)

    @staticmethod
    def replace_input_edges(graph: Graph, input_edges_match: Edges) -> None:
        """Connect inputs of new nodes to the sources of inputs of old ones."""
        for old, new in input_edges_match.items():
            (old_id, old_in), (new_id, new_in) = map(FrontReplacementSubgraph.extract_port, (old, new))
            inputs: list[tuple[str, dict[str, Any]]] = Node(graph, old_id).get_sorted_inputs()
            if old_in >= len(inputs):
                raise Error("input_edges_match: {} has {} inputs, got input {}", old_id, len(inputs), old_in)
            source, edge = inputs[int(old_in)]
            Node(graph, new_id).add_input_port(new_in, skip_if_exist=True)
            graph.add_edge(source, new_id, **{**edge, "in": new_in})

    @staticmethod
    def replace_output_edges(graph: Graph, output_edges_match: Edges) -> None:
        """Let the consumers of old outputs read new ones, too; the old edges go with the old nodes."""
        for old, new in output_edges_match.items():
            (old_id, old_out), (new_id, new_out) = map(FrontReplacementSubgraph.extract_port, (old, new))
            for _, consumer, edge in list(graph.out_edges(old_id, data=True)):
                if edge["out"] != old_out:
                    continue
                if edge.get("control_flow_edge") is True:
                    Node(graph, new_id).add_output_port(
                        f"control_flow_{new_out}", control_flow=True, skip_if_exist=True
                    )
                    Node(graph, consumer).add_input_port(
                        f"control_flow_{edge['in']}", control_flow=True, skip_if_exist=True
                    )
                else:
                    Node(graph, new_id).add_output_port(new_out, skip_if_exist=True)
                graph.add_edge(new_id, consumer, **{**edge, "out": new_out})

    def input_edges_match(self, graph: Graph, match: Any, new_sub_graph: Any) -> Edges:
        """Return, for inputs of old nodes, the inputs of new ones that read the same; none by default."""
        return {}

    def output_edges_match(self, graph: Graph, match: Any, new_sub_graph: Any) -> Edges:
        """Return, for outputs of old nodes, the outputs of new ones that replace them; none by default."""
        return {}

    def generate_sub_graph(self, graph: Graph, match: Any) -> Any:
        name = type(self).__name__
        raise Error("{}: a transformation has generate_sub_graph or replace_sub_graph, got neither", name)

    def nodes_to_remove(self, graph: Graph, match: Any) -> list[str]:
        """Return the ids of nodes to be removed; all matched ones by default."""
        return [node.id for node in match.values()]

    def replace_sub_graph(self, graph: Graph, match: Any) -> None:
        """Make the new sub-graph, connect it, and remove the old one."""
        subgraph = self.generate_sub_graph(graph, match)
        self.replace_input_edges(graph, self.input_edges_match(graph, match, subgraph))
        self.replace_output_edges(graph, self.output_edges_match(graph, match, subgraph))
        removed = self.nodes_to_remove(graph, match)
        _LOG.debug("%s: removes %s", self.replacement_id, removed)
        graph.remove_nodes_from(removed)

    def find_and_replace_pattern(self, graph: Graph) -> None:
        apply_pattern(graph, action=self.replace_sub_graph, **self.pattern())


@base
class FrontReplacementOp(FrontReplacementSubgraph):
    """Replaces each operation with the class's `op` as its attribute `op`."""

    op = "UnknownOp"

    def pattern(self) -> dict[str, Any]:
        return {"nodes": [("op", {"op": type(self).op})], "edges": []}

    def replace_op(self, graph: Graph, node: Node) -> Any:
        """Make the new operations; return, for each output of `node`, an id or (id, number of output)."""
        raise Error("{}: replace_op says what replaces an operation, got none", type(self).__name__)

    @staticmethod
    def gen_output_edges_match(node: Node, out_node_replace: Any) -> Edges:
        """Return the new output for each old one, in the order of the list."""
        return {(node.id, i): FrontReplacementSubgraph.extract_port(new) for i, new in enumerate(out_node_replace)}

    @staticmethod
    def update_input_edges_attrs(graph: Graph, node: Node, added_nodes: list[str]) -> None:
        """Add the attributes of the old operation's incoming edges to the edges of new nodes that read the same."""
        for old_source, _, old in graph.in_edges(node.id, data=True):
            for source, _, edge in graph.in_edges(added_nodes, data=True):
                if source not in added_nodes and source == old_source and old.get("out") == edge.get("out"):
                    merge_edge_props(edge, old)

    def replace_sub_graph(self, graph: Graph, match: Any) -> None:
        node: Node = match["op"]
        before = set(graph.nodes())
        replacing = self.replace_op(graph, node)
        if not isinstance(replacing, (tuple, list)):
            rule = "replace_op returns a list with the node that replaces each output"
            raise Error("{}: {}, got {}", type(self).__name__, rule, replacing)
        self.replace_output_edges(graph, self.gen_output_edges_match(node, replacing))
        self.update_input_edges_attrs(graph, node, [id for id in graph.nodes() if id not in before])
        graph.remove_nodes_from(self.nodes_to_remove(graph, match))
