"""Copies of graphs: nodes and ports are new, operations and constant data are shared."""

from __future__ import annotations

from dataclasses import replace

from aot.ir.graph import Graph, Node, OutPort


def copy_graph(graph: Graph) -> Graph:
    """Return a copy of a graph and of its bodies, with the same numbers and orders; types are inferred anew."""
    copy = replace(
        graph,
        nodes={},
        parameters=[],
        results=[],
        sinks=[],
        rt_info=dict(graph.rt_info),
        defaults=dict(graph.defaults),
        strings=dict(graph.strings),
        taken=set(graph.taken),
    )
    copy.forget_order()
    for old in graph.nodes.values():
        new = Node(copy, old.id, old.op, old.name, len(old.inputs()), len(old.outputs()), old.origin)
        new.constant_data, new.rt_info = old.constant_data, dict(old.rt_info)
        new.regions = {key: copy_graph(body) for key, body in old.regions.items()}
        copy.nodes[new.id] = new
    for old in graph.nodes.values():
        for port, new_port in zip(old.outputs(), copy.nodes[old.id].outputs(), strict=True):
            new_port.names = port.names
            for consumer in port.destinations:
                end = copy.nodes[consumer.node.id].in_port(consumer.idx)
                end.source = new_port
                new_port.destinations.append(end)
    for copied, originals in (
        (copy.parameters, graph.parameters),
        (copy.results, graph.results),
        (copy.sinks, graph.sinks),
    ):
        copied += (copy.nodes[node.id] for node in originals)
    return copy


def copy_node(node: Node, graph: Graph, ports: dict[OutPort, OutPort]) -> Node:
    """Return a copy of a node in `graph`. `ports` maps old output ports to new ones; the copy's outputs are added."""
    sources = [None if p is None else ports[p] for p in node.sources()]
    count = len(node.out_ports())
    new_node = graph.add(node.op, *sources, name=node.name, origin=node.origin, outputs=count, data=node.constant_data)
    new_node.regions = {key: copy_graph(body) for key, body in node.regions.items()}
    ports |= dict(zip(node.out_ports().values(), new_node.out_ports().values(), strict=True))
    return new_node
