"""Transformations that a configuration file gives their attributes, or the sub-graphs that they replace."""

from __future__ import annotations

import logging
from typing import Any

from aot.mo.config.registry import CustomReplacementRegistry
from aot.mo.front.common.replacement import Edges, FrontReplacementPattern, FrontReplacementSubgraph
from aot.mo.front.subgraph_matcher import SubgraphMatch, SubgraphMatcher
from aot.mo.front.tf.custom_subgraph_call import merge_nodes
from aot.mo.graph.graph import Graph
from aot.mo.middle.pattern_match import for_each_sub_graph_recursively
from aot.mo.ops.op import Op
from aot.mo.replacement_pattern import base
from aot.mo.utils.error import Error
from aot.mo.utils.graph import is_connected_component

_LOG = logging.getLogger(__name__)
KINDS = {
    "scope": "a scope fits nodes",
    "points": "points fit nodes",
}  # values of match_kind, with their words in errors


@base
class FrontReplacementFromConfigFileGeneral(FrontReplacementPattern):
    """Changes the graph once for each entry of the configuration file with its `replacement_id`."""

    replacement_id = ""

    def transform_graph(self, graph: Graph, replacement_descriptions: Any) -> None:
        """Change the graph; `replacement_descriptions` are the `custom_attributes` of an entry."""
        raise Error("{}: transform_graph says what changes, got none", type(self).__name__)

    def find_and_replace_pattern(self, graph: Graph) -> None:
        for entry in CustomReplacementRegistry().get_custom_replacement_description(self.replacement_id) or ():
            self.transform_graph(graph, entry.custom_attributes)


@base
class FrontReplacementFromConfigFileSubGraph(FrontReplacementSubgraph):
    """Replaces the sub-graphs that the entries of the configuration file with its `replacement_id` describe."""

    replacement_id = ""

    def nodes_to_remove(self, graph: Graph, match: SubgraphMatch) -> list[str]:
        return match.matched_nodes_names()

    def find_and_replace_pattern(self, graph: Graph) -> None:
        """Replace all sub-graphs; Error if an entry fits nothing."""
        for entry in CustomReplacementRegistry().get_custom_replacement_description(self.replacement_id) or ():
            matches = list(SubgraphMatcher(entry).matched_sub_graph_instances(graph))
            if not matches:
                _no_match(graph, entry)
            for match in matches:
                if not is_connected_component(graph, match.matched_nodes_names()):
                    _LOG.warning("replacement %s: not all of its nodes are connected", self.replacement_id)
                self.replace_sub_graph(graph, match)


def mark_bodies(graph: Graph) -> None:
    """Mark the bodies in a network: they need not have a sub-graph that a configuration file describes."""

    def mark(body: Graph) -> None:
        body.graph["is_body"] = True

    for_each_sub_graph_recursively(graph, mark)


def _no_match(graph: Graph, entry: Any) -> None:
    """Error for an entry that fits nothing in the network itself."""
    if not graph.graph.get("is_body"):
        rule = f"{KINDS[entry.match_kind]} of the network by their names"
        raise Error("replacement {}: {}, got {}", entry.id, rule, entry.instances)


@base
class FrontReplacementFromConfigFileOp(FrontReplacementFromConfigFileSubGraph):
    """Replaces each sub-graph by one operation, named by `op` in the configuration file."""

    replacement_id = ""

    def input_edges_match(self, graph: Graph, match: SubgraphMatch, new_sub_graph: Any) -> Edges:
        if new_sub_graph.get("connected"):
            return {}
        new_id = new_sub_graph["new_node"].id
        first = [match.input_nodes(i)[0] for i in range(match.inputs_count())]
        return {(node.id, port): (new_id, i) for i, (node, port) in enumerate(first)}

    def output_edges_match(self, graph: Graph, match: SubgraphMatch, new_sub_graph: Any) -> Edges:
        if new_sub_graph.get("connected"):
            return {}
        new_id = new_sub_graph["new_node"].id
        ends = [match.output_node(i) for i in range(match.outputs_count())]
        return {(node.id, port): (new_id, i) for i, (node, port) in enumerate(ends)}

    def generate_sub_graph(self, graph: Graph, match: SubgraphMatch) -> Any:
        """Make the operation; one without `infer` takes over the edges of the sub-graph."""
        entry = match.custom_replacement_desc
        if not entry.has("op"):
            raise Error("replacement {}: op names the operation that replaces the sub-graph, got none", entry.id)
        try:
            cls = Op.get_op_class_by_name(entry.op)
        except KeyError:
            rule = "op is an operation of the library or of the extensions"
            raise Error("replacement {}: {}, got {}", entry.id, rule, entry.op) from None
        replacement = cls(graph, dict(entry.custom_attributes))
        replacement.default_backend_attrs = list(entry.custom_attributes)
        if "infer" in replacement.attrs:
            node = replacement.add_node({"name": graph.unique_id(f"{replacement.attrs['type']}_")})
            return {"new_node": node}
        replacement.substitute_ie_attrs(replacement.attrs)
        names = match.matched_nodes_names()
        node = merge_nodes(graph, names, entry.get_inputs_description(), entry.get_outputs_description())
        node["name"] = graph.unique_id(replacement.attrs["type"])
        for key, value in replacement.attrs.items():
            if key not in ("name", "op"):
                node[key] = value
        return {"new_node": node, "connected": True}
