"""Sub-graphs that configuration files describe: by scopes of names, or by the points where they begin and end."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from typing import Any

from aot.mo.graph.graph import Graph, Node
from aot.mo.utils.error import Error
from aot.mo.utils.graph import nodes_matching_name_pattern, sub_graph_between_nodes

_LOG = logging.getLogger(__name__)

Ends = list[list[tuple[str, int]]]  # for each input of a sub-graph: expressions for names, and numbers of inputs


def find_object_by_pattern(names: Iterable[str], pattern: str) -> list[str]:
    """Return the names that begin as a regular expression says."""
    compiled = re.compile(pattern)
    return [name for name in names if compiled.match(name)]


class SubgraphMatch:
    """A sub-graph, with its inputs and outputs in the order of the configuration file."""

    def __init__(
        self,
        graph: Graph,
        replacement_desc: Any,
        matched_nodes: list[str],
        inputs_order: Ends,
        outputs_order: list[tuple[str, int]],
        prefix: str,
    ) -> None:
        """`prefix` is the scope before all expressions for names; empty for points."""
        self.graph, self.custom_replacement_desc, self.scope = graph, replacement_desc, prefix
        self._names = matched_nodes
        self._inputs: dict[int, list[tuple[Node, int]]] = {}
        self._outputs: dict[int, tuple[Node, int]] = {}
        for i, consumers in enumerate(inputs_order):
            for pattern, port in consumers:
                node = self.node_by_pattern(pattern)
                if node is not None:
                    self._inputs.setdefault(i, []).append((node, port))
        for i, (pattern, port) in enumerate(outputs_order):
            node = self.node_by_pattern(pattern)
            if node is not None:
                self._outputs[i] = node, port

    def matched_nodes_names(self) -> list[str]:
        return self._names

    def inputs_count(self) -> int:
        """Return the number of tensors that the sub-graph reads."""
        return len(self._inputs)

    def outputs_count(self) -> int:
        return len(self._outputs)

    def input_nodes(self, port: int) -> list[tuple[Node, int]]:
        """Return the nodes that read input `port` of the sub-graph, each with the number of its own input."""
        if port not in self._inputs:
            raise Error("{}: the sub-graph has inputs {}, got {}", self._id, sorted(self._inputs), port)
        return self._inputs[port]

    def single_input_node(self, port: int) -> tuple[Node, int]:
        """Return the one node that reads input `port`; Error if there are several."""
        input_nodes = self.input_nodes(port)
        if len(input_nodes) != 1:
            raise Error("{}: one node reads input {} of the sub-graph, got {}", self._id, port, len(input_nodes))
        return input_nodes[0]

    def output_node(self, port: int) -> tuple[Node, int]:
        """Return the node that gives output `port` of the sub-graph, with the number of its own output."""
        if port not in self._outputs:
            raise Error("{}: the sub-graph has outputs {}, got {}", self._id, sorted(self._outputs), port)
        return self._outputs[port]

    def node_by_pattern(self, pattern: str) -> Node | None:
        """Return the node of the sub-graph with a fitting name; None if there is none, Error if there are several."""
        expression = f"{self.scope.removesuffix('/')}/{pattern}" if self.scope else pattern
        names = find_object_by_pattern(self._names, expression)
        if len(names) > 1:
            raise Error("{}: {} fits one node, got {}", self._id, expression, ", ".join(names))
        return Node(self.graph, names[0]) if names else None

    @property
    def _id(self) -> str:
        return f"replacement {getattr(self.custom_replacement_desc, 'replacement_id', '')!r}"


class SubgraphMatcher:
    """Finds the sub-graphs that an entry of a configuration file describes."""

    def __init__(self, replacement_descriptor: Any) -> None:
        self.replacement_desc = replacement_descriptor

    def matched_sub_graph_instances(self, graph: Graph) -> Iterator[SubgraphMatch]:
        """Yield the sub-graphs; Error for an entry that describes none."""
        described = self.replacement_desc
        if described.match_kind == "points":
            subgraph_matches = [self._points(graph)]
        elif described.match_kind == "scope":
            subgraph_matches = (self._scope(graph, scope) for scope in described.sub_graph_instances())
        else:
            rule = "match_kind of a sub-graph is points or scope"
            raise Error("replacement {}: {}, got {}", described.id, rule, described.match_kind)
        return (match for match in subgraph_matches if match is not None)

    def _scope(self, graph: Graph, scope: str) -> SubgraphMatch | None:
        described = self.replacement_desc
        names = nodes_matching_name_pattern(graph, scope)
        if not names:
            _LOG.warning("replacement %s: no node fits the scope %s", described.id, scope)
            return None
        inputs, outputs = described.get_inputs_description(), described.get_outputs_description()
        for name, ports in (("inputs", inputs), ("outputs", outputs)):
            if ports is None:
                rule = f"a scope is replaced if its {name} are known; aot config writes them into the file"
                raise Error("replacement {}: {}, got none", described.id, rule)
        for pattern in (pattern for consumers in inputs for pattern, _ in consumers):
            if not find_object_by_pattern(graph.nodes(), f".*{pattern}"):
                _LOG.info("replacement %s: no node fits %s of its inputs", described.id, pattern)
                return None
        return SubgraphMatch(graph, described, names, inputs, outputs, scope)

    def _points(self, graph: Graph) -> SubgraphMatch | None:
        described = self.replacement_desc
        missing = [name for ends in described.instances.values() for name in ends if name not in graph]
        if missing:
            _LOG.info("replacement %s: the network has no node %s", described.id, missing[0])
            return None
        starts, ends = described.get_internal_input_nodes(graph), described.get_internal_output_nodes(graph)
        names = sub_graph_between_nodes(graph, starts, ends, include_control_flow=False)
        inputs, outputs = described.get_inputs_description(), described.get_outputs_description()
        return SubgraphMatch(graph, described, names, inputs, outputs, "")
