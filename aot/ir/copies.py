"""Copies of graphs: nodes, ports and names are new, operations and constant data are shared."""

from __future__ import annotations

from aot.ir.graph import Graph, Node, OutPort


def copy_graph(graph: Graph) -> Graph:
    """Return a copy of a graph and of its bodies; types are inferred anew."""
    copy = Graph(graph.name, graph.file, scope=graph.scope, rt_info=dict(graph.rt_info))
    ports: dict[OutPort, OutPort] = {}
    ends = {id(node) for node in (*graph.parameters, *graph.results)}
    inner = [node for node in graph.order() if id(node) not in ends]
    for node in (*graph.parameters, *inner, *graph.results):
        one = copy_node(node, copy, ports)
        one.rt_info = dict(node.rt_info)
        if node.id in graph.defaults:
            copy.defaults[one.id] = graph.defaults[node.id]
        if node.id in graph.strings:
            copy.strings[one.id] = graph.strings[node.id]
        for old, new in zip(node.out_ports().values(), one.out_ports().values(), strict=True):
            new.add_tensor_names(old.names)
    return copy


def copy_node(node: Node, graph: Graph, ports: dict[OutPort, OutPort]) -> Node:
    """Return a copy of a node in `graph`. `ports` maps old output ports to new ones; the copy's outputs are added."""
    sources = [None if p is None else ports[p] for p in node.sources()]
    count = len(node.out_ports())
    made = graph.add(node.op, *sources, name=node.name, origin=node.origin, outputs=count, data=node.held)
    made.regions = {key: copy_graph(body) for key, body in node.regions.items()}
    ports |= dict(zip(node.out_ports().values(), made.out_ports().values(), strict=True))
    return made
