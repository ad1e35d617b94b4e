"""Inference of TensorFlow's operations over sparse tensors, of distinct elements, and of tables."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from aot.mo.partial_infer.slicing import given, set_output
from aot.mo.utils.arrays import (
    compatible_shapes,
    dynamic_dimension,
    is_fully_defined,
    mark_input_bins,
    shape_array,
    strict_compare_tensors,
)
from aot.mo.utils.error import InferenceError

DIVISORS: dict[str, Any] = {
    "SparseSegmentMean": np.asarray,
    "SparseSegmentSqrtN": np.sqrt,
    "SparseSegmentSum": np.ones_like,
}


def sparse_reshape_infer(node: Any) -> None:
    """Infer indices (output 0) and shape (output 1) of a sparse tensor in another shape, input 2."""
    name = node.soft_get("name", node.id)
    values: list[Any] = [node.in_port(i).data.get_value() for i in (1, 2)]
    old, new = values
    if old is None or new is None or np.sum(new == -1) > 1 or np.any(new < -1):
        raise InferenceError("{}: both shapes must be known, the new one with one -1 at most", name)
    whole = is_fully_defined(old) and is_fully_defined(new)
    rest = [i for i, n in enumerate(new) if n is dynamic_dimension or n == -1]
    output_shape: Any = shape_array([dynamic_dimension if i in rest else n for i, n in enumerate(new)])
    if is_fully_defined(old) and len(rest) == 1:
        others = prod(int(n) for i, n in enumerate(new) if i not in rest)
        output_shape[rest[0]] = prod(map(int, old)) // others
    if whole and prod(map(int, old)) != prod(map(int, output_shape)):
        raise InferenceError("{}: both shapes have as many elements, got {} and {}", name, old, new)
    indices, value = given(node), node.in_port(0).data.get_value()
    set_output(node, 1, None, output_shape)
    same = strict_compare_tensors(old, output_shape) and value is not None
    set_output(node, 0, shape_array([indices[0], len(new)]), value if same else None)


def sparse_fill_infer(node: Any) -> None:
    """Infer indices, values and flags of rows after each empty row has got an element."""
    size_node, default = node.in_node(2), node.in_node(3)
    if len(node.in_nodes()) != 4 or size_node.value is None or size_node.value.size != 2:
        raise InferenceError("{}: the shape must be known, with two sizes", node.soft_get("name", node.id))
    if default.shape is None or len(default.shape):
        raise InferenceError("{}: the default is a number, got {}", node.soft_get("name", node.id), default.shape)
    sizes: Any = size_node.value
    count = prod(map(int, sizes)) if is_fully_defined(sizes) else dynamic_dimension
    for idx, shape in enumerate(([count, 2], [count], [size_node.value[0]])):
        set_output(node, idx, shape_array(shape), None)


def sparse_segment_infer(node: Any) -> None:
    """Infer the rows of input 0 at indices, input 1, added in segments, input 2: mean, sum, or sum by square root."""
    name = node.soft_get("name", node.id)
    data, indices, segments = (given(node, i) for i in (0, 1, 2))
    fits = len(indices) == len(segments) == 1 and compatible_shapes(indices, segments)
    if not fits or len(node.in_nodes()) != 3:
        raise InferenceError("{}: indices and segments are lists of one length, got {} and {}", name, indices, segments)
    values = [node.in_port(i).data.get_value() for i in (0, 1, 2)]
    if any(v is None for v in values):
        set_output(node, 0, shape_array([segments[0], *data[1:]]), None)
        return
    rows, segment_ids = np.asarray(values[1], np.int64), np.asarray(values[2], np.int64)
    if np.any(np.diff(segment_ids) < 0) or np.any((rows < 0) | (rows >= data[0])):
        raise InferenceError(
            "{}: segments are sorted and indices within the data, got {} and {}", name, segment_ids, rows
        )
    total = np.zeros((segment_ids[-1] + 1, *data[1:]), np.float32)
    np.add.at(total, segment_ids, np.asarray(values[0])[rows])
    counts = np.bincount(segment_ids).clip(1).reshape(-1, *[1] * (total.ndim - 1)).astype(np.float32)
    node.out_port(0).data.set_value(total / DIVISORS[node.soft_get("op")](counts))


def unique_infer(node: Any) -> None:
    """Infer the distinct elements of a list, sorted or in the order of their first places, places and counts."""
    name = node.soft_get("name", node.id)
    flags = {key: node.soft_get(key, None) for key in ("sorted", "return_inverse", "return_counts")}
    if any(flag not in ("true", "false") for flag in flags.values()):
        raise InferenceError("{}: sorted, return_inverse and return_counts are true or false, got {}", name, flags)
    shape, used = given(node), list(node.out_nodes())
    more = [key for key in ("return_inverse", "return_counts") if flags[key] == "true"]
    if len(shape) != 1 or len(node.in_nodes()) != 1 or 0 not in used or max(used) > 2 or len(used) > 1 + len(more):
        raise InferenceError("{}: has a list and as many outputs as attributes say, got {}", name, used)
    for idx, key in enumerate(("return_inverse", "return_counts"), 1):
        if idx not in used and len(more) >= len(used):
            node[key] = "false"
    value = node.in_port(0).data.get_value()
    outputs: list[Any] = [None] * 3 if value is None else _distinct(value, node.sorted == "true")
    if value is not None and len(used) == 2:
        key = 2 if node.return_counts == "true" else 1
        outputs = [outputs[0], outputs[key], outputs[key]]
    for idx in used:
        set_output(node, idx, shape, outputs[idx])


def _distinct(value: Any, ordered: bool) -> list[Any]:
    """Return elements, the place of each input among them, and how often each is there."""
    found, first, inverse, counts = np.unique(value, return_index=True, return_inverse=True, return_counts=True)
    order = np.arange(len(found)) if ordered else np.argsort(first)
    return [np.asarray(v, float) for v in (found[order], np.argsort(order)[inverse], counts[order])]


def table_insert_infer(node: Any) -> None:
    """Infer the insertion of keys and values into a table: a tensor without dimensions for the order of steps."""
    shapes = [given(node, i) for i in (1, 2)] if len(node.in_nodes()) == 3 else []
    if not shapes or not np.array_equal(*shapes):
        raise InferenceError("{}: keys and values have one shape, got {}", node.soft_get("name", node.id), shapes)
    node.out_port(0).data.set_shape(shape_array([]))


def block_lstm_infer(node: Any) -> None:
    """Infer hidden states and cell states of all steps: [steps, batch, hidden]."""
    if len(node.in_nodes()) < 5 or len(node.out_nodes()) > 2:
        raise InferenceError("{}: has five inputs and two outputs", node.soft_get("name", node.id))
    data, weights, biases = (given(node, i) for i in (0, 1, 2))
    steps, batch = data[:2] if len(data) > 2 else (dynamic_dimension, dynamic_dimension)
    known = [s for s in (biases[:1], weights[1:2]) if len(s) and s[0] is not dynamic_dimension]
    mark_input_bins(node)
    for idx in (0, 1):
        set_output(node, idx, shape_array([steps, batch, known[0][0] // 4 if known else dynamic_dimension]), None)
