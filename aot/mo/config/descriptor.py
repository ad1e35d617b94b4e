"""Entries of a configuration file, as transformations see them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from aot.mo.graph.graph import Graph
from aot.mo.utils.error import Error
from aot.mo.utils.graph import nodes_matching_name_pattern, sub_graph_between_nodes

Attrs = dict[str, Any]


class CustomReplacementDescriptor:
    """One entry: its fields are attributes, and those that are there may be set."""

    replacement_id: str
    custom_attributes: Attrs
    _replacement_desc: Attrs

    def __init__(self, replacement_id: str, attrs: Attrs | None = None) -> None:
        attributes: Attrs = {} if attrs is None else attrs
        attributes.setdefault("custom_attributes", {})
        known = {"replacement_id": replacement_id, "custom_attributes": attributes["custom_attributes"]}
        vars(self).update(known, _replacement_desc=dict(attributes))

    @staticmethod
    def create_instance(
        match_kind: str, replacement_id: str, attrs: Attrs | None = None
    ) -> CustomReplacementDescriptor:
        """Return the entry as an object of the class of its kind; Error for a kind that does not exist."""
        if match_kind not in _KINDS:
            raise Error("match_kind: one of {}, got {}", ", ".join(_KINDS), match_kind)
        return _KINDS[match_kind](replacement_id, attrs)

    def __getattr__(self, k: str) -> Any:
        fields = vars(self).get("_replacement_desc", {})
        if k not in fields:
            raise AttributeError(f"replacement {vars(self).get('replacement_id')!r} has no field {k}")
        return fields[k]

    def __setattr__(self, k: str, v: Any) -> None:
        if k not in self._replacement_desc:
            raise AttributeError(f"replacement {self.replacement_id!r} has no field {k}")
        self._replacement_desc[k] = v

    def has(self, attr: str) -> bool:
        return attr in self._replacement_desc

    def sub_graph_instances(self) -> Any:
        """Return the positions of the sub-graphs, as the file gives them."""
        return self.instances if self.has("instances") else []

    def get_inputs_description(self) -> Any:
        """Return, for each input, expressions for the nodes that read it, with numbers of inputs; None: not known."""
        if not self.has("inputs"):
            return None
        return [[(end["node"], end["port"]) for end in consumers] for consumers in self.inputs]

    def get_outputs_description(self) -> Any:
        """Return, for each output, an expression for the node that gives it, with a number; None: not known."""
        return [(end["node"], end["port"]) for end in self.outputs] if self.has("outputs") else None

    def update_custom_replacement_attributes(self, graph: Graph) -> None:
        """Set the fields `inputs` and `outputs`, where they are absent, from the graph."""

    def get_config_file_representation(self) -> Attrs:
        """Return the entry as the file has it."""
        return dict(self._replacement_desc)

    def _set_ends(self, graph: Graph, names: list[str], expression: Callable[[str], str]) -> None:
        inputs, outputs = _ends(graph, names)
        if not self._replacement_desc.get("inputs"):
            consumers = sorted(sorted((expression(id), port) for id, port in ends) for ends in inputs)
            self._replacement_desc["inputs"] = [[{"node": n, "port": p} for n, p in ends] for ends in consumers]
        if not self._replacement_desc.get("outputs"):
            found = sorted((expression(id), port) for id, port in outputs)
            self._replacement_desc["outputs"] = [{"node": node, "port": port} for node, port in found]


class CustomReplacementDescriptorPoints(CustomReplacementDescriptor):
    """A sub-graph between nodes where it begins and nodes where it ends."""

    def __init__(self, replacement_id: str, attrs: Attrs | None = None) -> None:
        super().__init__(replacement_id, attrs)
        for name in ("include_inputs_to_sub_graph", "include_outputs_to_sub_graph"):
            if not self.has(name):
                vars(self)[name] = True

    def get_inputs_description(self) -> Any:
        return [[(f"^{re.escape(name)}$", 0)] for name in self.instances["start_points"]]

    def get_outputs_description(self) -> Any:
        return [(f"^{re.escape(name)}$", 0) for name in self.instances["end_points"]]

    def get_internal_input_nodes(self, graph: Graph) -> list[str]:
        """Return the first nodes of the sub-graph: the start points, or the nodes that read them."""
        starts: list[str] = self.instances["start_points"]
        if self.include_inputs_to_sub_graph:
            return starts
        return list(dict.fromkeys(v for name in starts for _, v in graph.out_edges(name)))

    def get_internal_output_nodes(self, graph: Graph) -> list[str]:
        """Return the last nodes of the sub-graph: the end points, or the nodes that they read."""
        ends: list[str] = self.instances["end_points"]
        if self.include_outputs_to_sub_graph:
            return ends
        return list(dict.fromkeys(u for name in ends for u, _ in graph.in_edges(name)))

    def sub_graph_instances(self) -> Any:
        return [self.instances]

    def update_custom_replacement_attributes(self, graph: Graph) -> None:
        for name in (*self.instances["start_points"], *self.instances["end_points"]):
            if name not in graph:
                raise Error("replacement {}: points are nodes of the network, got {}", self.id, name)
        starts, ends = self.get_internal_input_nodes(graph), self.get_internal_output_nodes(graph)
        names = sub_graph_between_nodes(graph, starts, ends, include_control_flow=False)
        self._set_ends(graph, names, _whole)


class CustomReplacementDescriptorScope(CustomReplacementDescriptor):
    """Sub-graphs with names that begin with a scope."""

    def update_custom_replacement_attributes(self, graph: Graph) -> None:
        scope: str = self.instances[0]
        names = nodes_matching_name_pattern(graph, scope)
        if not names:
            raise Error("replacement {}: a scope fits nodes of the network by their names, got {}", self.id, scope)
        self._set_ends(graph, names, partial(generate_pattern_for_node, graph, scope))


class CustomReplacementDescriptorGeneral(CustomReplacementDescriptor):
    """Attributes of a transformation of the whole graph."""


_KINDS = {
    "points": CustomReplacementDescriptorPoints,
    "scope": CustomReplacementDescriptorScope,
    "general": CustomReplacementDescriptorGeneral,
}


def _whole(id: str) -> str:
    return f"^{re.escape(id)}$"


def _ends(graph: Graph, names: list[str]) -> tuple[list[list[tuple[str, int]]], set[tuple[str, int]]]:
    """Return the consumers of each tensor from outside, and the outputs with consumers outside or with none."""
    own = set(names)
    inputs: dict[tuple[str, int], list[tuple[str, int]]] = {}
    outputs: set[tuple[str, int]] = set()
    for source, consumer, edge in graph.edges(data=True):
        if source not in own and consumer in own:
            inputs.setdefault((source, edge["out"]), []).append((consumer, edge["in"]))
        elif source in own and consumer not in own:
            outputs.add((source, edge["out"]))
    unread = (id for id in names if not graph.out_edges(id) and graph.nodes[id].get("op") != "Const")
    return list(inputs.values()), outputs | {(id, 0) for id in unread}


def generate_pattern_for_node(graph: Graph, sub_graph_pattern: str, node_name: str) -> str:
    """Return the expression that, after a scope, matches only this node; Error if none does."""
    if not sub_graph_pattern:
        return node_name
    parts = node_name.split("/")
    compiled = re.compile(sub_graph_pattern)
    lengths: Iterable[int] = range(1, len(parts) + 1)
    length = next((i for i in lengths if compiled.match("/".join(parts[:i]) + "/")), None)
    scope = f"{sub_graph_pattern.removesuffix('/')}/"
    suffix = "" if length is None else f"{re.escape('/'.join(parts[length:]))}$"
    if length is None or len([id for id in graph.nodes() if re.match(scope + suffix, id)]) != 1:
        raise Error("scope {}: an expression fits node {} alone, got none", sub_graph_pattern, node_name)
    return suffix
