"""Common subexpression elimination: equal operations on equal inputs become one node."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from aot.ir.graph import Graph, Node
from aot.ir.op import Foreign
from aot.ir.types import Array
from aot.ir.values.deferred import Deferred
from aot.opset.control.infrastructure import Constant, Parameter, Result

SAMPLE = 64  # elements of a constant that go into its key, enough to tell most apart


def merge_equal_nodes(graph: Graph) -> bool:
    """Merge f(x), f(x) into one f(x); constants are equal by content. State and sub-graphs are left alone."""
    seen: dict[Hashable, list[Node]] = {}
    changed = False
    for node in graph.order():
        op = node.op
        if not op.pure or node.regions or isinstance(op, Parameter | Result | Foreign):
            continue
        alike = seen.setdefault(_key(node), [])
        first = next(
            (n for n in alike if node.constant_data is None or _are_equal(n.constant_data, node.constant_data)), None
        )
        if first is None:
            alike.append(node)
            continue
        _merge(first, node)
        changed = True
    return changed


def _merge(first: Node, node: Node) -> None:
    for old, new in zip(node.out_ports().values(), first.out_ports().values(), strict=True):
        old.replace_by(new)
    if first.constant_data is None:
        first.origin = first.origin | node.origin
    node.graph.remove(node)


def _key(node: Node) -> Hashable:
    """Return a key that equal nodes share. Attributes are compared as text: 0.0 differs from -0.0, nan equals nan."""
    op, data = node.op, node.constant_data
    if data is not None:
        return (op.element_type if isinstance(op, Constant) else repr(op), *_sample(data))
    sources = tuple([None if (s := p.source) is None else (s.node.id, s.idx) for p in node.inputs()])
    return (type(op), repr(op), sources, len(node.outputs()))


def _sample(data: Array | Deferred) -> tuple[Hashable, ...]:
    if isinstance(data, Deferred):
        return (repr(data.op), *map(str, (data.type, *data.types)), *map(_sample, data.inputs))
    return (data.dtype.str, data.shape, _bytes(data.reshape(-1)[:SAMPLE]))


def _bytes(data: Array) -> bytes:
    return repr(data.tolist()).encode() if data.dtype == object else data.tobytes()


def _are_equal(a: Array | Deferred | None, b: Array | Deferred) -> bool:
    """True if two constants with one key have the same bytes."""
    if isinstance(a, Deferred) and isinstance(b, Deferred):
        return a is b or all(map(_are_equal, a.inputs, b.inputs))
    return a is not None and not isinstance(a, Deferred) and not isinstance(b, Deferred) and _have_equal_bytes(a, b)


def _have_equal_bytes(a: Array, b: Array) -> bool:
    """True if two arrays of one type and shape have the same bytes."""
    if a is b or a.dtype == object:
        return a is b or a.tolist() == b.tolist()
    left, right = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (a, b))
    return np.array_equal(left, right)
