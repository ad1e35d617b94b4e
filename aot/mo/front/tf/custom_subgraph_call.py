"""A sub-graph merged into one node that has its inputs and outputs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from aot.mo.graph.graph import Graph, Node, merge_edge_props
from aot.mo.utils.error import Error


def merge_nodes(
    graph: Graph, nodes_to_merge_names: list[str], inputs_desc: Any = None, outputs_desc: Any = None
) -> Node:
    """Replace the nodes by one and return it.

    `inputs_desc`: for each input, expressions for the names of nodes that read it, each with the number of their input;
    `outputs_desc`: for each output, an expression and a number. None: in the order of the edges.
    """
    own = set(nodes_to_merge_names)
    id = graph.unique_id("TFSubgraphCall_")
    graph.add_node(id, name=id, kind="op", op="TFCustomSubgraphCall", type="TFCustomSubgraphCall", pbs={})
    merged = Node(graph, id)
    read: set[tuple[str, Any]] = set()
    numbers: dict[tuple[str, Any], int] = {}
    for name in nodes_to_merge_names:
        node = Node(graph, name)
        for source, edge in node.get_inputs():
            if source in own or (source, edge["out"]) in read:
                continue
            read.add((source, edge["out"]))
            number = _input(merged, inputs_desc, name, edge["in"])
            merged.add_input_port(number, skip_if_exist=True)
            graph.add_edge(source, id, **merge_edge_props({"in": number, "out": edge["out"]}, edge))
        for consumer, edge in node.get_outputs():
            if consumer in own:
                continue
            number = numbers.setdefault((name, edge["out"]), _output(len(numbers), outputs_desc, name, edge["out"]))
            merged.add_output_port(number, skip_if_exist=True)
            graph.add_edge(id, consumer, **merge_edge_props({"in": edge["in"], "out": number}, edge))
    graph.remove_nodes_from([name for name in nodes_to_merge_names if name in graph])
    return merged


def _input(node: Node, described: Any, name: str, port: int) -> int:
    if described is None:
        return len(node.in_nodes())
    for number, consumers in enumerate(described):
        if any(re.search(pattern, name) and port == wanted for pattern, wanted in consumers):
            return number
    raise Error("inputs: each node that reads from outside is described, got input {} of {}", port, name)


def _output(count: int, described: Any, name: str, port: int) -> int:
    if described is None:
        return count
    for number, (pattern, wanted) in enumerate(described):
        if re.search(pattern, name) and port == wanted:
            return number
    raise Error("outputs: each node that is read outside is described, got output {} of {}", port, name)


def skip_nodes_by_condition(current_node: Node, condition: Callable[[Node], Any], forward: bool = False) -> Node:
    """Return the first node, upwards from this one or forward, that does not satisfy the condition."""
    while condition(current_node):
        current_node = current_node.out_node() if forward else current_node.in_node()
    return current_node
