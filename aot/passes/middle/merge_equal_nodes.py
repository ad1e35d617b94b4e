"""Common subexpression elimination: equal operations on equal inputs become one node."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from aot.ir.graph import Graph, Node
from aot.ir.op import Foreign
from aot.ir.types import Array
from aot.opset.control.infrastructure import Parameter, Result

SAMPLE = 64  # elements of a constant that go into its key, enough to tell most apart


def merge_equal_nodes(graph: Graph) -> bool:
    """Merge f(x), f(x) into one f(x); constants are equal by content. State and sub-graphs are left alone."""
    seen: dict[Hashable, list[Node]] = {}
    changed = False
    for node in graph.order():
        if not node.op.pure or node.regions or isinstance(node.op, Parameter | Result | Foreign):
            continue
        alike = seen.setdefault(_key(node), [])
        first = next((n for n in alike if node.data is None or _same_bytes(n.data, node.data)), None)
        if first is None:
            alike.append(node)
            continue
        _merge(first, node)
        changed = True
    return changed


def _merge(first: Node, node: Node) -> None:
    for old, new in zip(node.out_ports().values(), first.out_ports().values(), strict=True):
        old.replace_by(new)
    if first.data is None:
        first.origin = first.origin | node.origin
    node.graph.remove(node)


def _key(node: Node) -> Hashable:
    """Return a key that equal nodes share. Attributes are compared as text: 0.0 differs from -0.0, nan equals nan."""
    if node.data is not None:
        return (repr(node.op), node.data.dtype.str, node.data.shape, _bytes(node.data.reshape(-1)[:SAMPLE]))
    sources = tuple(None if s is None else (s.node.id, s.idx) for s in node.sources())
    return (type(node.op), repr(node.op), sources, len(node.out_ports()))


def _bytes(data: Array) -> bytes:
    return repr(data.tolist()).encode() if data.dtype == object else data.tobytes()


def _same_bytes(a: Array | None, b: Array) -> bool:
    """True if two arrays of one type and shape have the same bytes."""
    if a is None or a.dtype == object:
        return a is not None and a.tolist() == b.tolist()
    left, right = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (a, b))
    return np.array_equal(left, right)
