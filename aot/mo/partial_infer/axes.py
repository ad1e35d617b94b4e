"""Axes counted from the end, axes of Fourier transforms, and inference of Transpose."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.partial_infer.by_definition import infer_by_definition
from aot.mo.utils.arrays import int64_array
from aot.mo.utils.error import InferenceError


def get_canonical_axis_index(shape: Any, axis: Any) -> Any:
    """Return an axis that may be counted from the end as one from the beginning."""
    return len(shape) + axis if axis < 0 else axis


def transpose_infer(node: Any) -> None:
    """Infer Transpose: by the order at input 1, or in reverse order if attribute `reverse_order` is set."""
    count = sum(not port.disconnected() for port in node.in_ports().values())
    reverse, name = node.has_and_set("reverse_order"), node.soft_get("name", node.id)
    wanted = 1 if reverse else 2
    assert count == wanted, f"{name}: Transpose has an order or reverse_order, {wanted} inputs in all, got {count}"
    if not reverse:
        infer_by_definition(node, ("Transpose", "opset1"))
        return
    value, shape = node.in_port(0).data.get_value(), node.in_port(0).data.get_shape()
    if value is not None:
        node.out_port(0).data.set_value(np.transpose(value))
    else:
        node.out_port(0).data.set_shape(shape[::-1])


def canonicalize_axes(axes: Any, input_rank: int) -> Any:
    """Return axes from the front; -1 is the one before the dimension of real and imaginary parts."""
    return int64_array([axis + input_rank - 1 if axis < 0 else axis for axis in axes])


def canonicalize_signal_size(signal_size: Any, axes: Any, input_shape: Any) -> Any:
    """Return sizes where each -1 is replaced by the input's size."""
    pairs = zip(signal_size, axes, strict=False)
    sizes = int64_array([input_shape[axis] if size == -1 else size for size, axis in pairs])
    return int64_array([*sizes, *signal_size[len(sizes) :]])


def get_axes(node: Any) -> Any:
    """Return the axes of a transform, input 1; Error if they are not known."""
    return _known(node, 1, "axes")


def get_signal_size(node: Any) -> Any:
    """Return the sizes of a transform, input 2; without it, the sizes of the data along the axes."""
    if node.is_in_port_connected(2):
        return _known(node, 2, "sizes")
    shape = node.in_port(0).data.get_shape()
    return int64_array([shape[:-1][axis] for axis in get_axes(node)])


def _known(node: Any, idx: int, what: str) -> Any:
    value = node.in_port(idx).get_source().data.get_value()
    if value is None:
        raise InferenceError("{}: {} must be known", node.soft_get("name", node.id), what)
    return int64_array(value)
