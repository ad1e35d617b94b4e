"""Searches over a graph."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import networkx as nx

from aot.mo.graph.edges import get_edge_attribute_between_nodes, set_edge_attribute_between_nodes
from aot.mo.graph.graph import Graph, Node
from aot.mo.graph.tensor_names import INFO
from aot.mo.utils.error import Error

Detect = Callable[[Node], bool] | None


def backward_bfs_for_operation(
    start_node: Node, op_names: list[str], skip_op_list: list[str] | None = None
) -> list[Node]:
    """Return the nearest operations of these names above a node; the search ends at those in `skip_op_list`."""
    names: list[str] = []
    waiting, seen = deque([start_node]), {start_node.id}
    while waiting:
        node = waiting.popleft()
        sources: list[Node] = [node.other(id) for id, _ in node.get_inputs()]
        for source in sources:
            if source.kind == "op" and source.soft_get("op") in op_names:
                if source.id not in names:
                    names.append(source.id)
                continue
            passed = source.op not in (skip_op_list or []) if source.kind == "op" else source.value is None
            if passed and source.id not in seen:
                seen.add(source.id)
                waiting.append(source)
    return [Node(start_node.graph, id) for id in names]


def bfs_search(graph: Graph, start_nodes: Iterable[str] = ()) -> list[str]:
    """Return the ids that are reached from nodes, breadth first; without nodes, from those that have no inputs."""
    ids = list(dict.fromkeys(start_nodes)) or [id for id in graph.nodes() if not graph.in_edges(id)]
    visited = set(ids)
    for id in ids:  # which grows meanwhile
        for _, target in graph.out_edges(id):
            if target not in visited:
                visited.add(target)
                ids.append(target)
    return ids


def nodes_matching_name_pattern(graph: Graph, pattern: str) -> list[str]:
    """Return the ids that begin with a match of a regular expression."""
    return [id for id in graph.nodes() if re.match(pattern, id)]


def is_connected_component(graph: Graph, node_names: list[str]) -> bool:
    """True if the nodes are connected by edges among them, whatever their direction."""
    if not node_names:
        return True
    inside = set(node_names)
    names = [node_names[0]]
    for id in names:  # which grows meanwhile
        around = [u for u, _ in graph.in_edges(id)] + [v for _, v in graph.out_edges(id)]
        names.extend(n for n in dict.fromkeys(around) if n in inside and n not in names)
    return inside <= set(names)


def sub_graph_between_nodes(
    graph: Graph,
    start_nodes: list[str],
    end_nodes: list[str],
    detect_extra_start_node: Detect = None,
    include_control_flow: bool = True,
    allow_non_reachable_end_nodes: bool = False,
) -> Any:
    """Return the ids between start and end nodes, both included, with all that the nodes between read.

    With `detect_extra_start_node` the search does not go above nodes for which it is true: they are returned as a
    second list. Error for an end node that is not reached, unless that is allowed, and for a Parameter among the nodes.
    """
    nx.set_node_attributes(graph, None, "prev")
    members, extra, visited = list(start_nodes), list[str](), set(start_nodes)

    def add(id: str, reached_from: str, edge: dict[str, Any]) -> None:
        if id not in visited and (include_control_flow or not edge.get("control_flow_edge", False)):
            visited.add(id)
            members.append(id)
            graph.nodes[id]["prev"] = reached_from

    for id in members:  # which grows meanwhile
        if id not in end_nodes:
            for _, target, edge in graph.out_edges(id, data=True):
                add(target, id, edge)
        for source, _, edge in graph.in_edges(id, data=True):
            if id in start_nodes or source in visited:
                continue
            if detect_extra_start_node is not None and detect_extra_start_node(Node(graph, id)):
                extra.append(id)
            else:
                add(source, id, edge)
    if not allow_non_reachable_end_nodes:
        _check_reached(graph, start_nodes, end_nodes)
    _refuse_parameters(graph, members)
    return members if detect_extra_start_node is None else (members, extra)


def _check_reached(graph: Graph, start_nodes: list[str], end_nodes: list[str]) -> None:
    reached: set[str] = set()
    for id in start_nodes:
        graph.dfs(id, reached)
    for id in end_nodes:
        if id not in reached:
            raise Error('End node "{}" is not reachable from start nodes: {}. ', id, start_nodes)


def _refuse_parameters(graph: Graph, ids: Iterable[str]) -> None:
    for id in ids:
        if graph.nodes[id].get("op", "") == "Parameter":
            raise Error('The matched sub-graph contains network input node "{}". ', id)


def invert_sub_graph_between_nodes(
    graph: Graph, start_nodes: list[str], end_nodes: list[str], detect_extra_start_node: Detect = None
) -> Any:
    """Return the ids from start nodes up to end nodes, against the edges; Error for a Parameter among them."""
    nx.set_node_attributes(graph, None, "prev")
    reached, extra, visited = list(start_nodes), list[str](), set(start_nodes)
    for id in reached:  # which grows meanwhile
        if id not in start_nodes and detect_extra_start_node is not None and detect_extra_start_node(Node(graph, id)):
            extra.append(id)
        elif id not in end_nodes:
            for source, _ in graph.in_edges(id):
                if source not in visited:
                    visited.add(source)
                    reached.append(source)
                    graph.nodes[id]["prev"] = source
    _refuse_parameters(graph, reached)
    return reached if detect_extra_start_node is None else (reached, extra)


def node_neighbourhood(node_name: str, depth: int, next_node_fn: Callable[[str], list[str]]) -> list[str]:
    """Return the ids that are reached from a node in `depth` steps at most."""
    distances, ring = {node_name: 0}, [node_name]
    for step in range(depth):
        ring = [n for id in ring for n in next_node_fn(id)]
        ring = [n for n in dict.fromkeys(ring) if n not in distances]
        distances.update(dict.fromkeys(ring, step + 1))
    return list(distances)


def node_incoming_neighbourhood(graph: Graph, node_name: str, depth: int) -> list[str]:
    return node_neighbourhood(node_name, depth, lambda id: [u for u, _ in graph.in_edges([id])])


def node_outcoming_neighbourhood(graph: Graph, node_name: str, depth: int) -> list[str]:
    return node_neighbourhood(node_name, depth, lambda id: [v for _, v in graph.out_edges([id])])


def scope_output_nodes(graph: Graph, scope: str, scope_delimiter: str = "/") -> list[Node]:
    """Return the nodes with ids that begin with a scope and a consumer outside of it."""
    inside = scope if scope.endswith(scope_delimiter) else scope + scope_delimiter
    within = [id for id in graph.nodes() if id.startswith(inside)]
    return [Node(graph, id) for id in within if any(not v.startswith(inside) for _, v in graph.out_edges(id))]


def clear_tensor_names_info(nodes: list[Node]) -> None:
    """Mark the tensor names of the outputs of nodes as not theirs, by a third element None. Front phase only."""
    for node in nodes:
        for consumer in node.out_nodes().values():
            info: list[Any] = get_edge_attribute_between_nodes(node, consumer, INFO) or []
            cleared: list[Any] = [(pair[0], pair[1], None) for pair in info if pair is not None and len(pair) >= 2]
            set_edge_attribute_between_nodes(node, consumer, INFO, cleared)
