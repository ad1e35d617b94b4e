"""The order of nodes: producers before consumers, as ONNX requires and ONNX Runtime ensures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnx import GraphProto, ModelProto, NodeProto

from aot.ir.topological import producers_first
from aot.runtime.errors import CorruptError, ModelError


def order_nodes(model: ModelProto, file: str) -> None:
    """Bring the nodes of all graphs and functions into order, which stays as it is where it is free.

    CorruptError for nodes that read each other's results.
    """
    try:
        for function in model.functions:
            _order(function.node)
        _order(model.graph.node)
    except ModelError as error:
        raise CorruptError(f"{file}: {error}") from None


def _order(nodes: Any) -> None:
    """Order a repeated field of nodes, and the nodes of graphs in their attributes."""
    unordered: list[NodeProto] = list(nodes)
    for node in unordered:
        for graph in _graphs(node):
            _order(graph.node)
    positions = {name: i for i, node in enumerate(unordered) for name in node.output if name}
    reads = {id(node): sorted({positions[name] for name in _read(node) if name in positions}) for node in unordered}
    if all(max(reads[id(node)], default=-1) < i for i, node in enumerate(unordered)):
        return
    ordered = list(producers_first(unordered, lambda n: (unordered[i] for i in reads[id(n)]), _name))
    copies = [NodeProto.FromString(node.SerializeToString()) for node in ordered]
    del nodes[:]
    nodes.extend(copies)


def _name(node: NodeProto) -> str:
    return str(node.name or next(filter(None, node.output), node.op_type))


def _graphs(node: NodeProto) -> Iterator[GraphProto]:
    for a in node.attribute:
        if a.HasField("g"):
            yield a.g
        yield from a.graphs


def _read(node: NodeProto) -> set[str]:
    """Return the names that a node reads, those that its graphs take from outside included."""
    names = set(node.input)
    for graph in _graphs(node):
        inside = {i.name for i in graph.input} | {t.name for t in graph.initializer}
        inside |= {t.values.name for t in graph.sparse_initializer}
        inside |= {name for n in graph.node for name in n.output}
        read = {name for n in graph.node for name in _read(n)} | {o.name for o in graph.output}
        names |= read - inside
    return names
