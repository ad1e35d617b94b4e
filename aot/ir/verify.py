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
from aot.ir.values.deferred import Deferred
from aot.runtime.errors import InternalError


def verify(graph: Graph, types: bool = True) -> None:
    """Raise InternalError for a graph that passes broke, ModelError for a model that is wrong; both name the node.

    `types=False` leaves inference out: for graphs that still hold operations without inference.
    """
    listed = Counter(id(d) for node in graph.nodes.values() for p in node.outputs() for d in p.destinations)
    for key, node in graph.nodes.items():
        if node.id != key or node.graph is not graph:
            raise _broken(node, "is listed under another id or belongs to another graph")
        _inputs(graph, node, listed)
        _outputs(graph, node)
        _content(node)
    _lists(graph)
    graph.order()
    for node in graph.nodes.values():
        for region in node.regions.values():
            verify(region, types=False)  # types in it are inferred with those of the node around it
    if types:
        infer_types(graph)


def _inputs(graph: Graph, node: Node, listed: Counter[int]) -> None:
    """Check the inputs of a node; `listed`: how often each input of the graph is a destination, by its id.

    `_outputs` checks that a destination reads the port that lists it.
    """
    for i, port in enumerate(node.inputs()):
        if port.idx != i or port.node is not node:
            raise _broken(node, f"input {i} is numbered {port.idx} or belongs to another node")
        source = port.source
        if source is None:
            continue
        above = source.node
        if graph.nodes.get(above.id) is not above:
            raise _broken(node, f"input {i} reads {above.name!r}, which is not in the graph")
        outputs = above.outputs()
        if not (0 <= source.idx < len(outputs) and outputs[source.idx] is source):
            raise _broken(node, f"input {i} reads a port that {above.name!r} does not have")
        if (times := listed[id(port)]) != 1:
            raise _broken(node, f"input {i} is listed {times} times at {above.name!r}")


def _outputs(graph: Graph, node: Node) -> None:
    for i, port in enumerate(node.outputs()):
        if port.idx != i or port.node is not node:
            raise _broken(node, f"output {i} is numbered {port.idx} or belongs to another node")
        for consumer in port.destinations:
            if consumer.source is not port:
                raise _broken(node, f"output {i} lists {consumer}, which reads something else")
            if graph.nodes.get(consumer.node.id) is not consumer.node:
                raise _broken(node, f"output {i} is read by {consumer.node.name!r}, which is not in the graph")


def _content(node: Node) -> None:
    constant = node.type == "Constant"
    if (node.constant_data is not None) != constant:
        raise _broken(node, "has data without being a Constant, or is one without data")
    if constant and node.constant_data is not None:
        declared = getattr(node.op, "element_type", None)
        dtype = (
            numpy_dtype(node.constant_data.type.dtype)
            if isinstance(node.constant_data, Deferred)
            else node.constant_data.dtype
        )
        if declared is None or numpy_dtype(declared) != dtype:
            raise _broken(node, f"is declared {declared} but holds {dtype}")
    if bool(node.regions) != isinstance(node.op, RegionOp) and not isinstance(node.op, Foreign):
        raise _broken(node, "has regions without being a RegionOp, or the other way round")


def _lists(graph: Graph) -> None:
    listed = {"Parameter": graph.parameters, "Result": graph.results, "Assign": graph.sinks}
    ids_by_type: dict[str, list[int]] = {type: [] for type in listed}
    for node in graph.nodes.values():
        if (same := ids_by_type.get(node.type)) is not None:
            same.append(node.id)
    for type, nodes in listed.items():
        ids = set(ids_by_type[type])
        if sorted(n.id for n in nodes) != sorted(ids):
            listed_ids = {n.id for n in nodes}
            wrong = [n.name for n in nodes if n.id not in ids] or [graph.nodes[i].name for i in ids - listed_ids]
            what = wrong or "a node listed twice"
            raise InternalError(f"graph {graph.name}: its list of {type} nodes is wrong about {what}")
    if len({n.name for n in graph.nodes.values()}) < len(graph.nodes):
        name, count = Counter(n.name for n in graph.nodes.values()).most_common(1)[0]
        raise InternalError(f"graph {graph.name}: names must differ, got {count} nodes named {name!r}")


def infer_types(graph: Graph) -> None:
    """Infer the types of all nodes. ModelError for a graph that has none."""
    if any(not node.is_inferred for node in graph.nodes.values()):
        for node in graph.order():
            node.operands()


def _broken(node: Node, text: str) -> InternalError:
    return InternalError(f"{node.name} ({node.type}): {text}")
