"""Shapes and values of elementwise operations, for extensions' own ones; and shapes that are copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from aot.mo.utils.arrays import (
    clarify_partial_shape,
    compatible_dims,
    dynamic_dimension,
    masked_arrays,
    shape_array,
    undefined_shape_of_rank,
)
from aot.mo.utils.error import Error

Operation = Callable[..., Any]


def eltwise_infer(node: Any, op: Operation | None = None, **kwargs: Any) -> None:
    """Set the broadcast shape of all inputs, and the value if `op` can compute it.

    Attribute `axis` says where the dimensions of a smaller input begin; attribute `stop_value_propagation`: no value.
    """
    sources = [node.graph.nodes[id] for id, _ in node.get_sorted_inputs()]
    name = node.soft_get("name", node.id)
    if any(s["shape"] is None for s in sources):
        raise Error('One of the input shapes for node "{}" is None', name)
    shapes, values = [s["shape"] for s in sources], [s["value"] for s in sources]
    rank = max((len(s) for s in shapes), default=0)
    axis = node.soft_get("axis", None)
    for i, shape in enumerate(shapes):
        if axis is not None and 0 < len(shape) < rank:
            shapes[i] = shape_array([*shape, *[1] * max(rank - axis - len(shape), 0)])
            values[i] = None if values[i] is None else masked_arrays.reshape(values[i], shapes[i])
    node.out_port(0).data.set_shape(_broadcast(shapes, rank, name))
    if op is None or node.has_and_set("stop_value_propagation") or any(v is None for v in values):
        return
    value_so_far = op(*values[:2], **kwargs) if values[1:] else op(*values, **kwargs)
    for value in values[2:]:
        value_so_far = op(value_so_far, value)
    node.out_port(0).data.set_value(value_so_far)


def _broadcast(shapes: list[Any], rank: int, name: str) -> Any:
    padded = [[1] * (rank - len(s)) + list(s) for s in shapes]
    return shape_array([_dim(dims, shapes, name) for dims in zip(*padded, strict=True)])


def broadcastable(broadcast_from: Any, broadcast_to: Any) -> bool:
    """True if a shape can be broadcast to another one."""
    rest = len(broadcast_to) - len(broadcast_from)
    return rest >= 0 and all(a in (1, b) for a, b in zip(broadcast_from, broadcast_to[rest:], strict=True))


def _dim(dims: tuple[Any, ...], shapes: list[Any], name: str) -> Any:
    wide = {int(d) for d in dims if d is not dynamic_dimension and d != 1}
    if len(wide) > 1:
        raise Error("Input shapes mismatch for node {}: {}", name, shapes)
    if wide:
        return wide.pop()
    return dynamic_dimension if any(d is dynamic_dimension for d in dims) else 1


def eltwise_reverse_infer(node: Any) -> None:
    """Give an input without a shape the one that the output and the other input leave."""
    known = [node.in_port(i).data.get_shape() for i in (0, 1)]
    output = node.out_port(0).data.get_shape()
    if output is None or all(s is not None for s in known):
        return
    if node["auto_broadcast"] == "none":
        shape = clarify_partial_shape([output, *(s for s in known if s is not None)])
        for i in (0, 1):
            if known[i] is None:
                node.in_port(i).data.set_shape(shape)
    elif node["auto_broadcast"] == "numpy":
        missing = [i for i in (0, 1) if known[i] is None]
        other = known[1 - missing[0]]
        if len(missing) == 1 and len(output) > len(other):
            node.in_port(missing[0]).data.set_shape(_left_over(output, other, node.soft_get("name", node.id)))


def _left_over(output: Any, other: Any, name: str) -> Any:
    """Return the shape of an input, given the output's and the other input's, which has fewer dimensions."""
    shape, rest = undefined_shape_of_rank(len(output)), len(output) - len(other)
    shape[:rest] = output[:rest]
    for i in range(-1, -len(other) - 1, -1):
        fits = other[i] is dynamic_dimension or other[i] == 1 or compatible_dims(other[i], output[i])
        assert fits, f"Shapes of Elementwise node '{name}' are not compatible for reverse_infer."
        if other[i] == 1 or output[i] == 1:
            shape[i] = output[i]
    return shape


def bias_add_infer(node: Any, op: Operation | None) -> None:
    """Set the value of two known inputs, else the shape of the first."""
    values = [node.in_port(i).data.get_value() for i in (0, 1)]
    if op is not None and all(v is not None for v in values):
        node.out_port(0).data.set_value(op(*values))
    else:
        node.out_port(0).data.set_shape(node.in_port(0).data.get_shape())


def single_output_infer(node: Any, shape_infer: Operation, value_infer: Operation | None = None) -> None:
    """Set the shape of the output, and the value by `value_infer` if input 0 has one."""
    node.out_port(0).data.set_shape(shape_infer(node))
    if value_infer is not None and node.in_port(0).data.get_value() is not None:
        node.out_port(0).data.set_value(value_infer(node))


def _input_shape(node: Any) -> Any:
    return node.in_port(0).data.get_shape()


def copy_shape_infer(node: Any, value_infer: Operation | None = None) -> None:
    """Set the shape of input 0, and the value by `value_infer` if input 0 has one."""
    single_output_infer(node, _input_shape, value_infer)


def copy_value(node: Any) -> Any:
    """Return a copy of the value of input 0; None without one."""
    value = node.in_port(0).data.get_value()
    return None if value is None else np.copy(value)


def clamp_infer(node: Any) -> None:
    """Set the shape of input 0, or its value, clamped to inputs 1 and 2; a limit may be missing."""
    value = node.in_port(0).data.get_value()
    is_connected = [node.is_in_port_connected(i) for i in (1, 2)]
    limits = [
        node.in_port(i).data.get_value() if there else None for i, there in zip((1, 2), is_connected, strict=True)
    ]
    if value is None or any(there and limit is None for there, limit in zip(is_connected, limits, strict=True)):
        node.out_port(0).data.set_shape(node.in_port(0).data.get_shape())
        return
    low, high = limits
    ordered = low is None or high is None or np.all(low <= high)
    assert ordered, f"{node.soft_get('name', node.id)}: Clamp has limits in order, got {low} and {high}"
    node.out_port(0).data.set_value(value if low is None and high is None else np.clip(value, low, high))
