"""Inference of a node's inputs from its outputs, where the shape of an input of the network is not known."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.utils.arrays import (
    clarify_partial_shape,
    dynamic_dimension,
    dynamic_dimension_value,
    set_input_shapes,
    shape_array,
    undefined_shape_of_rank,
)
from aot.mo.utils.error import InferenceError


def gather_reverse_infer(node: Any) -> None:
    """Set the shape of the data, or of the indices, from the output's shape and the other input's."""
    output, data, indices = node.out_port(0).data.get_shape(), *(node.in_port(i).data.get_shape() for i in (0, 1))
    axis_value = node.in_port(2).data.get_value()
    if axis_value is None:
        raise InferenceError("{}: the axis must be known", node.soft_get("name", node.id))
    axis = int(np.asarray(axis_value).reshape(-1)[0])
    if output is not None and data is None and indices is not None:
        dims = [*output[:axis], dynamic_dimension, *output[axis + len(indices) :]]
        node.in_port(0).data.set_shape(shape_array(dims))
    elif output is not None and indices is None and data is not None:
        rank = len(output) + 1 - len(data) + max(int(node.batch_dims), 0)
        node.in_port(1).data.set_shape(output[axis : axis + rank])


def transpose_reverse_infer(node: Any) -> None:
    """Set the input's shape from the output's and the order."""
    output, order = node.out_port(0).data.get_shape(), node.in_port(1).data.get_value()
    if node.in_port(0).data.get_shape() is None and output is not None and order is not None:
        shape = shape_array(output)
        for size, axis in zip(output, order, strict=True):
            shape[axis] = size
        node.in_port(0).data.set_shape(shape)


def squeeze_reverse_infer(node: Any) -> None:
    """Set the input's rank from the output's and the number of axes."""
    output, axes = node.out_port(0).data.get_shape(), node.in_port(1).data.get_value()
    if node.in_port(0).data.get_shape() is None and output is not None and axes is not None:
        node.in_port(0).data.set_shape(undefined_shape_of_rank(len(output) + np.size(axes)))


def unsqueeze_reverse_infer(node: Any) -> None:
    """Set the input's shape from the output's without the axes."""
    output, axes = node.out_port(0).data.get_shape(), node.in_port(1).data.get_value()
    if node.in_port(0).data.get_shape() is None and output is not None and axes is not None:
        gone = {int(a) % len(output) for a in np.asarray(axes).reshape(-1)}
        node.in_port(0).data.set_shape(shape_array([n for i, n in enumerate(output) if i not in gone]))


def split_reverse_infer(node: Any) -> None:
    """Set the input's shape from the parts' shapes: sizes along the axis are added, others agree."""
    if node.in_port(0).data.get_shape() is not None:
        return
    axis_value = node.in_port(1).data.get_value() if 1 in node.in_nodes() else node.soft_get("axis", None)
    if axis_value is None:
        raise InferenceError("{}: the axis must be known", node.soft_get("name", node.id))
    axis = int(np.asarray(axis_value).reshape(-1)[0])
    output_shapes = [None if p.disconnected() else p.data.get_shape() for p in node.out_ports().values()]
    shapes = [shape_array(shape) for shape in output_shapes if shape is not None]
    if not shapes:
        return
    sizes = [shape[axis] for shape in shapes]
    for shape in shapes:
        shape[axis] = dynamic_dimension
    common_shape = clarify_partial_shape(shapes)
    whole = len(shapes) == len(output_shapes) and all(size is not dynamic_dimension for size in sizes)
    common_shape[axis] = sum(map(int, sizes)) if whole else dynamic_dimension
    node.in_port(0).data.set_shape(common_shape)


def pool_reverse_infer(node: Any) -> None:
    """Set the input's rank from the window's rank."""
    if node.in_port(0).data.get_shape() is None and node.soft_get("window", None) is not None:
        node.in_port(0).data.set_shape(undefined_shape_of_rank(len(node.window)))


def boxes_reverse_infer(node: Any) -> None:
    """Set the shapes of an image and of boxes [n, 5]."""
    set_input_shapes(node, undefined_shape_of_rank(4), shape_array([dynamic_dimension_value, 5]))
