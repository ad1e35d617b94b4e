"""Sub-graphs that have the form of a pattern, found through the isomorphisms of networkx.

A pattern's node fits one of the graph if the attributes named by it are equal, or a function given for one holds. An
edge fits if the attributes that the pattern's edge has are equal. Source of names and rules: Model Optimizer 2024.6.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from networkx.algorithms.isomorphism import MultiDiGraphMatcher

from aot.mo.graph.graph import Graph, Node, dict_includes
from aot.mo.middle.partial_match import WATCH
from aot.mo.utils.error import Error

_LOG = logging.getLogger(__name__)
_PORTS = ("_in_ports", "_out_ports")

Match = dict[str, Any]


def inverse_dict(d: dict[Any, Any]) -> dict[Any, Any]:
    return {value: key for key, value in d.items()}


def for_each_sub_graph(graph: Graph, func: Callable[[Graph], object]) -> None:
    """Call `func` with each body of the nodes of a graph; not with bodies inside of those."""
    for id in list(graph.nodes()):
        node = Node(graph, id)
        for name in node["sub_graphs"] if node.has_valid("sub_graphs") else ():
            if not isinstance(node.soft_get(name, None), Graph):
                raise Error("{}: attribute {} holds a graph, got none", node.soft_get("name", node.id), name)
            func(node[name])


def for_each_sub_graph_recursively(graph: Graph, func: Callable[[Graph], object]) -> None:
    """Call `func` with each body of the nodes of a graph, and with the bodies inside of those."""

    def visit(body: Graph) -> None:
        func(body)
        for_each_sub_graph(body, visit)

    for_each_sub_graph(graph, visit)


def for_graph_and_each_sub_graph_recursively(graph: Graph, func: Callable[[Graph], object]) -> None:
    """Call `func` with a graph and with all bodies in it."""
    func(graph)
    for_each_sub_graph_recursively(graph, func)


def all_edges_in_nodes(nodes: Iterable[str], edges: Iterable[tuple[Any, ...]]) -> bool:
    """True if a pattern's edges join the pattern's nodes."""
    known = set(nodes)
    return all(edge[0] in known and edge[1] in known for edge in edges)


def node_match(data1: dict[str, Any], data2: dict[str, Any]) -> bool:
    """True if a node of the graph fits one of the pattern."""
    return dict_includes(data1, data2, skip_attr_names=_PORTS)


def edge_match(datasets1: dict[Any, dict[str, Any]], datasets2: dict[Any, dict[str, Any]]) -> bool:
    """True if the edges between two nodes of the graph fit those between two of the pattern."""
    names = list(datasets2[next(iter(datasets2))])

    def values(edges: dict[Any, dict[str, Any]]) -> set[tuple[Any, ...]]:
        return {tuple(edge.get(name) for name in names) for edge in edges.values()}

    return values(datasets1) == values(datasets2)


def build_matcher(
    graph: Graph, nodes: Iterable[Any], edges: Iterable[Any], node_attrs: Any = None, edge_attrs: Any = None
) -> Any:
    """Return the matcher of networkx for a pattern. `node_attrs` and `edge_attrs` have no effect."""
    if node_attrs is not None or edge_attrs is not None:
        _LOG.warning("pattern: node_attrs and edge_attrs have no effect; nodes and edges say what must fit")
    pattern = Graph(name="pattern")
    pattern.add_nodes_from(nodes)
    pattern.add_edges_from(edges)
    return MultiDiGraphMatcher(graph, pattern, node_match, edge_match)


def find_pattern_matches(
    graph: Graph, nodes: Iterable[Any], edges: Iterable[Any], node_attrs: Any = None, edge_attrs: Any = None
) -> Iterator[dict[str, str]]:
    """Return all sub-graphs that have the pattern's form, each as ids of the graph with the pattern's."""
    return build_matcher(graph, nodes, edges, node_attrs, edge_attrs).subgraph_isomorphisms_iter()


def find_isomorphisms(graph: Graph, nodes: Iterable[Any], edges: Iterable[Any]) -> list[Match]:
    """Return the matches of a pattern with the whole graph, each as a dictionary from the pattern's ids to nodes."""
    isomorphisms = build_matcher(graph, nodes, edges).isomorphisms_iter()
    return [{name: Node(graph, id) for id, name in match.items()} for match in isomorphisms]


def apply_pattern(
    graph: Graph,
    nodes: Iterable[Any],
    edges: Iterable[Any],
    action: Callable[[Graph, Match], object],
    node_attrs: Any = None,
    edge_attrs: Any = None,
) -> None:
    """Find all matches of a pattern, then call `action` with each match that still has all its nodes."""
    nodes, edges = list(nodes), list(edges)
    if not all_edges_in_nodes([node[0] for node in nodes], edges):
        names: list[str] = sorted({end for edge in edges for end in edge[:2]} - {node[0] for node in nodes})
        raise Error("pattern: edges join nodes of the pattern, got edges of {}", ", ".join(names))
    matches = list(find_pattern_matches(graph, nodes, edges, node_attrs, edge_attrs))
    watch = WATCH.get()
    if watch is not None:
        watch(action, graph, nodes, edges, len(matches))
    for match in matches:
        if all(graph.has_node(id) for id in match):
            action(graph, {name: Node(graph, id) for id, name in match.items()})
        else:
            _LOG.info("pattern: a match is left out, an earlier one removed nodes of it: %s", ", ".join(match))


def check_node_usages_out_of_match(match: Match, node_name_in_match_group: str) -> bool:
    """True if all neighbours of a matched node belong to the match."""
    assert node_name_in_match_group in match
    node = match[node_name_in_match_group]
    own = {other.id for other in match.values()}
    around = [u for u, _ in node.graph.in_edges(node.id)] + [v for _, v in node.graph.out_edges(node.id)]
    return own.issuperset(around)


def check_value(v: Any, check: Callable[[Any], Any]) -> Any:
    """Return the result of `check` for a value that is there and real; False for another one."""
    return v is not None and bool(np.all(getattr(v, "imag", 0) == 0)) and check(v)
