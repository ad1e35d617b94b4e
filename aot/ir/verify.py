"""Rules that a legal graph keeps.

links      an input's source lists it as a destination, once, and the other way round; both are in this graph
ports      are numbered in their order and belong to their node
inputs     every one is connected, or the operation takes None for it
lists      parameters, results and sinks are the graph's nodes of these types, each once
order      there is no cycle
names      of nodes differ
data       Constants have it, nothing else does; its element type is the operation's
regions    RegionOps have them, and foreign operations may; each is a legal graph
types      can be inferred
"""

from __future__ import annotations

from collections import Counter

from aot.ir.graph import Graph, Node
from aot.ir.op import Foreign, RegionOp
from aot.ir.types import numpy_dtype
from runtime.errors import InternalError


def verify(graph: Graph, types: bool = True) -> None:
    """Raise InternalError for a graph that passes broke, ModelError for a model that is wrong; both name the node.

    `types=False` leaves inference out: for graphs that still hold operations without inference.
    """
    for id, node in graph.nodes.items():
        _check(node.id == id and node.graph is graph, node, "is listed under another id or belongs to another graph")
        _links(graph, node)
        _content(node)
    _lists(graph)
    graph.order()
    for node in graph.nodes.values():
        for region in node.regions.values():
            verify(region, types=False)  # types in it are inferred with those of the node around it
    if types:
        _types(graph)


def _links(graph: Graph, node: Node) -> None:
    for i, port in node.in_ports().items():
        own = port.idx == i and port.node is node
        _check(own, node, f"input {i} is numbered {port.idx} or belongs to another node")
        source = port.source
        if source is None:
            continue
        above = source.node
        _check(graph.nodes.get(above.id) is above, node, f"input {i} reads {above.name!r}, which is not in the graph")
        own = above.out_ports().get(source.idx) is source
        _check(own, node, f"input {i} reads a port that {above.name!r} does not have")
        times = sum(d is port for d in source.destinations)
        _check(times == 1, node, f"input {i} is listed {times} times at {above.name!r}")
    for i, port in node.out_ports().items():
        own = port.idx == i and port.node is node
        _check(own, node, f"output {i} is numbered {port.idx} or belongs to another node")
        for reader in port.destinations:
            _check(reader.source is port, node, f"output {i} lists {reader}, which reads something else")
            known = graph.nodes.get(reader.node.id) is reader.node
            _check(known, node, f"output {i} is read by {reader.node.name!r}, which is not in the graph")


def _content(node: Node) -> None:
    constant = node.type == "Constant"
    _check((node.data is not None) == constant, node, "has data without being a Constant, or is one without data")
    if constant and node.data is not None:
        declared = getattr(node.op, "element_type", None)
        fits = declared is not None and numpy_dtype(declared) == node.data.dtype
        _check(fits, node, f"is declared {declared} but holds {node.data.dtype}")
    whole = bool(node.regions) == isinstance(node.op, RegionOp) or isinstance(node.op, Foreign)
    _check(whole, node, "has regions without being a RegionOp, or the other way round")


def _lists(graph: Graph) -> None:
    listed = {"Parameter": graph.parameters, "Result": graph.results, "Assign": graph.sinks}
    for type, nodes in listed.items():
        ids = {n.id for n in graph.nodes.values() if n.type == type}
        if sorted(n.id for n in nodes) != sorted(ids):
            listed_ids = {n.id for n in nodes}
            wrong = [n.name for n in nodes if n.id not in ids] or [graph.nodes[i].name for i in ids - listed_ids]
            what = wrong or "a node listed twice"
            raise InternalError(f"graph {graph.name}: its list of {type} nodes is wrong about {what}")
    for name, count in Counter(n.name for n in graph.nodes.values()).items():
        if count > 1:
            raise InternalError(f"graph {graph.name}: names must differ, got {count} nodes named {name!r}")


def _types(graph: Graph) -> None:
    for node in graph.order():
        node.operands()


def _check(holds: bool, node: Node, text: str) -> None:
    if not holds:
        raise InternalError(f"{node.name} ({node.type}): {text}")
