"""Broadcasting of shapes and values, as NumPy does it; an unknown dimension fits all."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from aot.mo.utils.arrays import dynamic_dimension, is_fully_defined, mo_array, shape_array

log = logging.getLogger(__name__)


def make_equal_rank(shape_1: Any, shape_2: Any) -> tuple[Any, Any]:
    """Return both shapes with as many dimensions: ones are put before the shorter."""
    rank = max(len(shape_1), len(shape_2))
    if len(shape_1) == len(shape_2):
        return shape_1, shape_2
    padded = [shape_array([*[1] * (rank - len(s)), *s]) if len(s) < rank else s for s in (shape_1, shape_2)]
    return padded[0], padded[1]


def uni_directional_shape_broadcasting(input_shape: Any, target_shape: Any) -> Any:
    """Return the shape of an input after broadcasting to `target_shape`; None if it does not fit."""
    pairs = zip(*make_equal_rank(input_shape, target_shape), strict=True)
    sizes: list[Any] = []
    for own, target in pairs:
        fits = own is dynamic_dimension or target is dynamic_dimension or own in (1, target)
        if not fits or len(input_shape) > len(target_shape):
            log.debug("%s cannot be broadcast to %s", input_shape, target_shape)
            return None
        known = target is dynamic_dimension and own is not dynamic_dimension and own != 1
        sizes.append(own if known else target)
    return shape_array(sizes)


def bi_directional_shape_broadcasting(input_shape_1: Any, input_shape_2: Any) -> Any:
    """Return the shape that two inputs have after broadcasting; None if they do not fit."""
    sizes: list[Any] = []
    for dims in zip(*make_equal_rank(input_shape_1, input_shape_2), strict=True):
        wide = {int(d) for d in dims if d is not dynamic_dimension and d != 1}
        if len(wide) > 1:
            log.debug("%s and %s cannot be broadcast", input_shape_1, input_shape_2)
            return None
        unknown = any(d is dynamic_dimension for d in dims)
        sizes.append(wide.pop() if wide else dynamic_dimension if unknown else 1)
    return shape_array(sizes)


def explicit_shape_broadcasting(input_shape: Any, target_shape: Any, axes_mapping: Any) -> tuple[Any, Any]:
    """Return `target_shape` and the axes, counted from the front, that the input's dimensions have in it."""
    assert np.all(np.diff(axes_mapping) >= 0), f"axes must rise, got {axes_mapping}"
    assert len(axes_mapping) == len(input_shape), f"an axis for each of {len(input_shape)}, got {axes_mapping}"
    rank = len(target_shape)
    axes = mo_array([int(axis) + rank if axis < 0 else int(axis) for axis in axes_mapping])
    for size, axis in zip(input_shape, axes, strict=True):
        assert 0 <= axis < rank, f"an axis is below {rank}, got {axis}"
        assert target_shape[axis] == size, f"the size of axis {axis} is {target_shape[axis]}, got {size}"
    return target_shape.copy(), axes


def uni_directional_broadcasting(input_value: Any, target_shape: Any) -> Any:
    """Return a value, broadcast to a known shape."""
    assert is_fully_defined(target_shape), f"a known shape, got {target_shape}"
    shape = uni_directional_shape_broadcasting(shape_array(input_value.shape), target_shape)
    assert shape is not None, f"{input_value.shape} cannot be broadcast to {target_shape}"
    return np.broadcast_to(input_value, tuple(int(d) for d in shape)).copy()


def bi_directional_broadcasting(input_value: Any, second_shape: Any) -> Any:
    """Return a value, broadcast with a known shape."""
    shape = bi_directional_shape_broadcasting(shape_array(input_value.shape), second_shape)
    assert shape is not None, f"{input_value.shape} and {second_shape} cannot be broadcast"
    assert is_fully_defined(shape), f"a known shape, got {shape}"
    return np.broadcast_to(input_value, tuple(int(d) for d in shape)).copy()


def explicit_broadcasting(input_value: Any, target_shape: Any, axes_mapping: Any) -> Any:
    """Return a value, broadcast to `target_shape`, with its dimensions at the given axes."""
    shape, axes = explicit_shape_broadcasting(input_value.shape, target_shape, axes_mapping)
    missing = [axis for axis in range(len(target_shape)) if axis not in axes]
    return np.broadcast_to(np.expand_dims(input_value, tuple(missing)), tuple(int(d) for d in shape))
