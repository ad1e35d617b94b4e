"""Comparison of two graphs, from one node upwards."""

from __future__ import annotations

from collections import deque
from functools import partial
from numbers import Number
from typing import Any

import numpy as np

from aot.mo.graph.graph import Graph, Node
from aot.mo.utils.arrays import is_a, masked_arrays

NOT_COMPARED = (
    "name id _in_ports _out_ports infer IE biases weights custom offset ir_data_attrs rt_info made_in".split()
)
TOLERANCE, TOLERANCE_FP16 = 1e-4, 5e-2  # of numbers; Model Optimizer's own


def compare_graphs(
    graph: Graph, graph_ref: Graph, last_node: str, last_node_ref: str | None = None, check_op_attrs: bool = False
) -> tuple[bool, Any]:
    """Return (True, []) if all above `last_node` is as in the reference, else False and the differences.

    Kinds and numbers of neighbours, shapes and values of data nodes, and with `check_op_attrs` the attributes that
    the reference's operations have.
    """
    errors: list[str] = []
    waiting = deque([(last_node, last_node if last_node_ref is None else last_node_ref)])
    seen: set[tuple[str, str]] = set(waiting)
    while waiting:
        id, id_ref = waiting.popleft()
        node, ref = Node(graph, id), Node(graph_ref, id_ref)
        what = f'Current node "{id}" and reference node "{id_ref}"'
        if node.kind != ref.kind:
            return False, [*errors, f"{what} have different kind parameter"]
        sources, sources_ref = _sources(node), _sources(ref)
        if len(node.out_nodes()) != len(ref.out_nodes()) or len(sources) != len(sources_ref):
            errors.append(f"{what} have different amount of input or output nodes")
            continue
        if list(sources) != list(sources_ref):
            return False, [*errors, f"{what} have different ports"]
        _compare(node, ref, what, check_op_attrs, errors)
        pairs = zip(sources.values(), sources_ref.values(), strict=True)
        for pair in ((source.id, source_ref.id) for source, source_ref in pairs):
            if pair not in seen:
                seen.add(pair)
                waiting.append(pair)
    return not errors, errors


def _sources(node: Node) -> dict[Any, Node]:
    if node.kind == "op":
        return dict(node.in_nodes())
    listed: list[Node] = node.in_nodes()
    return dict(enumerate(listed))


def _compare(node: Node, ref: Node, what: str, check_op_attrs: bool, errors: list[str]) -> None:
    if ref.has_valid("can_be_fused") and ref.can_be_fused != node.soft_get("can_be_fused"):
        errors.append(f'{what} have different "can_be_fused" parameter')
    if ref.kind == "data":
        keys = [k for k in ("shape", "value") if ref.has_valid(k)]
        differing = [k for k in keys if not values_are_equal(node.soft_get(k, None), ref[k])]
        errors.extend(f"{what} have different {k}s {node.soft_get(k, None)} and {ref[k]}" for k in differing)
    elif check_op_attrs:
        for attr, expected in ref.attrs().items():
            if expected is None or attr in NOT_COMPARED:
                continue
            if not node.has(attr):
                errors.append(f"{what}: missing attribute {attr}")
            elif not (values_are_equal if attr == "value" else partial(_equal, node))(node[attr], expected):
                errors.append(f'{what} have different attr "{attr}" : {node[attr]} and {expected}')


def values_are_equal(value: Any, value_ref: Any) -> bool:
    """True if two arrays have equal elements and masks, numbers up to a tolerance; None equals None.

    Dimensions of size 1 are broadcast, so 0 equals [0], as in Model Optimizer.
    """
    if value is None or value_ref is None:
        return value is value_ref
    masks = [masked_arrays.getmaskarray(v) for v in (value, value_ref)]
    one, other = (np.asarray(masked_arrays.filled(v, 0)) for v in (value, value_ref))
    try:
        hidden, hidden_ref = np.broadcast_arrays(*masks)
        one, other = np.broadcast_arrays(one, other)
    except ValueError:
        return False
    if not np.array_equal(hidden, hidden_ref):
        return False
    if one.dtype.kind in "fc" or other.dtype.kind in "fc":
        return bool(np.allclose(one, other, rtol=0, atol=TOLERANCE, equal_nan=True))
    return bool(np.array_equal(one, other))


def _equal(node: Node, value: Any, expected: Any) -> bool:
    if is_a(expected, (np.ndarray, list)):
        return np.array_equal(value, expected) if not is_a(expected, np.ndarray) else values_are_equal(value, expected)
    if is_a(expected, tuple):
        return len(value) == len(expected) and all(_equal(node, *pair) for pair in zip(value, expected, strict=True))
    if is_a(expected, dict):
        return value.keys() == expected.keys() and all(_equal(node, value[k], v) for k, v in expected.items())
    if is_a(value, Number) and is_a(expected, Number):
        return abs(value - expected) <= (TOLERANCE_FP16 if node.soft_get("precision") == "FP16" else TOLERANCE)
    return bool(value == expected)
