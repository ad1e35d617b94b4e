"""Axes and sizes of Fourier transforms, as numbers from the front."""

from __future__ import annotations

from typing import Any

from aot.mo.utils.arrays import int64_array
from aot.mo.utils.error import InferenceError


def canonicalize_axes(axes: Any, input_rank: int) -> Any:
    """Return axes from the front; -1 is the one before the dimension of real and imaginary parts."""
    return int64_array([axis + input_rank - 1 if axis < 0 else axis for axis in axes])


def canonicalize_signal_size(signal_size: Any, axes: Any, input_shape: Any) -> Any:
    """Return sizes with those of the input for -1."""
    pairs = zip(signal_size, axes, strict=False)
    found = int64_array([input_shape[axis] if size == -1 else size for size, axis in pairs])
    return int64_array([*found, *signal_size[len(found) :]])


def get_axes(node: Any) -> Any:
    """Return the axes of a transform, input 1; Error if they are not known."""
    return _known(node, 1, "axes")


def get_signal_size(node: Any) -> Any:
    """Return the sizes of a transform, input 2; those of the data along the axes without it."""
    if node.is_in_port_connected(2):
        return _known(node, 2, "sizes")
    shape = node.in_port(0).data.get_shape()
    return int64_array([shape[:-1][axis] for axis in get_axes(node)])


def _known(node: Any, idx: int, what: str) -> Any:
    value = node.in_port(idx).get_source().data.get_value()
    if value is None:
        raise InferenceError("{}: {} must be known", node.soft_get("name", node.id), what)
    return int64_array(value)
