"""Inference of operations that cut, repeat or join tensors, and that no operation set has in this form."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.ops.permutations import PermuteAttrs
from aot.mo.utils.arrays import (
    dynamic_dimension,
    get_shape_from_slice,
    int64_array,
    is_dynamic_slice,
    is_fully_defined,
    masked_arrays,
    shape_array,
    shape_delete,
    shape_insert,
    undefined_shape_of_rank,
)
from aot.mo.utils.error import Error, InferenceError


def given(node: Any, idx: int = 0) -> Any:
    """Return the shape of an input; Error without one."""
    shape = node.in_port(idx).data.get_shape()
    if shape is None:
        raise InferenceError("{}: the shape of input {} must be known", node.soft_get("name", node.id), idx)
    return shape


def canonical(rank: int, axis: Any) -> int:
    """Return an axis that is counted from the front."""
    index = int(np.asarray(axis).reshape(-1)[0])
    if not -rank <= index < rank:
        raise InferenceError("an axis lies in [-{}, {}), got {}", rank, rank, index)
    return index % rank


def set_output(node: Any, idx: int, shape: Any, value: Any) -> None:
    """Set the value of an output, or its shape if the value is None; nothing if it has no data node."""
    if idx in node.out_nodes():
        data = node.out_port(idx).data
        data.set_shape(shape_array(shape)) if value is None else data.set_value(value)


def _axis_follows_layout(node: Any) -> None:
    PermuteAttrs.create_permute_attrs(node, attrs=[("axis", "input:0")])


def slice_infer(node: Any, steps_idx: int, axes_idx: int) -> None:
    """Infer a slice with bounds as inputs 1 and 2, and steps and axes as inputs of these numbers, if any."""
    shape, value = given(node), node.in_port(0).data.get_value()
    starts, ends = (node.in_port(i).data.get_value() for i in (1, 2))
    steps, axes = (_optional(node, i) for i in (steps_idx, axes_idx))
    if starts is None or ends is None or None in (steps, axes):
        node.out_port(0).data.set_shape(undefined_shape_of_rank(len(shape)))
        return
    count = len(starts)
    steps = steps or (1,) * count
    slices = [slice(0, size, 1) for size in shape]
    for i, axis in enumerate(axes or range(count)):
        slices[axis] = slice(starts[i], ends[i], steps[i])
    if value is None or any(is_dynamic_slice(part) for part in slices):
        node.out_port(0).data.set_shape(get_shape_from_slice(shape, slices))
    else:
        node.out_port(0).data.set_value(value[tuple(slices)])


def _optional(node: Any, idx: int) -> tuple[Any, ...] | None:
    """Return the elements of an input: none if it is not connected, None if they are not known."""
    if not node.is_in_port_connected(idx):
        return ()
    value = node.in_port(idx).data.get_value()
    return None if value is None else tuple(value)


def onnx_slice_infer(node: Any) -> None:
    slice_infer(node, 4, 3)


def opset_slice_infer(node: Any) -> None:
    slice_infer(node, 3, 4)


def slice_like_infer(node: Any) -> None:
    """Infer input 0 cut to the sizes of input 1, on `axes` or on all."""
    shape, like = given(node), given(node, 1)
    value: Any = node.in_port(0).data.get_value()
    if node.axes is None and len(shape) != len(like):
        raise InferenceError("{}: ranks must be equal, got {} and {}", node.soft_get("name"), len(shape), len(like))
    node.axes = sorted(canonical(len(shape), a) for a in (range(len(like)) if node.axes is None else node.axes))
    output_shape = shape_array(shape)
    for axis in node.axes:
        output_shape[axis] = like[axis]
    kept = tuple(slice(0, n) for n in output_shape)
    set_output(node, 0, output_shape, None if value is None or not is_fully_defined(output_shape) else value[kept])


def crop_infer(node: Any) -> None:
    """Infer a crop of Caffe's: to the sizes of input 1 from `axis` on, or by `dim`, `crop_begin` and `crop_end`."""
    name = node.soft_get("name", node.id)
    if not node.has_valid("axis"):
        raise Error("{}: attribute axis must be given", name)
    if len(node.in_nodes()) == 2:
        _crop_like(node, name)
    else:
        _crop_by_attributes(node, name)
    _axis_follows_layout(node)


def _crop_by_attributes(node: Any, name: str) -> None:
    shape = shape_array(given(node))
    axes = [int(a) for a in np.asarray(node.axis).reshape(-1)]
    sizes = {key: np.asarray(node[key]).reshape(-1) for key in ("dim", "crop_begin", "crop_end") if node.has_valid(key)}
    for key, values in sizes.items():
        if len(values) != len(axes):
            raise Error("{}: {} has an element for each axis, {} in all, got {}", name, key, len(axes), len(values))
    for i, axis in enumerate(axes):
        if "dim" in sizes:
            shape[axis] = sizes["dim"][i]
        elif {"crop_begin", "crop_end"} <= set(sizes):
            shape[axis] = shape[axis] - sizes["crop_begin"][i] - sizes["crop_end"][i]
        else:
            raise Error("{}: dim, or crop_begin and crop_end, must be given", name)
    node.out_port(0).data.set_shape(shape)


def _crop_like(node: Any, name: str) -> None:
    if not node.has_valid("offset"):
        raise Error("{}: attribute offset must be given", name)
    shape, like = given(node), given(node, 1)
    value: Any = node.in_port(0).data.get_value()
    first = canonical(len(shape), node.axis)
    axes = [int(a) for a in (node.axes if node.has_valid("axes") else range(len(shape))) if a >= first]
    if node.has_valid("axes"):
        node.in_port(1).disconnect()
    offsets = [node.offset[0 if len(node.offset) == 1 else a - first] if len(node.offset) else 0 for a in axes]
    output_shape = shape_array(shape)
    for axis, offset in zip(axes, offsets, strict=True):
        if shape[axis] - offset < like[axis]:
            raise Error("{}: a crop ends within axis {} of size {}, got {}", name, axis, shape[axis], like[axis])
        output_shape[axis] = like[axis]
    node.axis, node.offset, node["dim"] = axes, offsets, [like[axis] for axis in axes]
    node.out_port(0).data.set_shape(output_shape)
    if value is not None:
        node.out_port(0).data.set_value(value[tuple(slice(0, n) for n in output_shape)])


def expand_dims_infer(node: Any) -> None:
    """Infer new dimensions of size 1 at `expand_axis`."""
    if not node.has_valid("expand_axis"):
        raise Error("{}: attribute expand_axis must be given", node.soft_get("name", node.id))
    shape, value = given(node), node.in_port(0).data.get_value()
    output_shape = shape_array(shape)
    for axis in sorted(int(a) for a in np.asarray(node.expand_axis).reshape(-1)):
        output_shape = shape_insert(output_shape, axis if axis >= 0 else axis + len(shape) + 1, 1)
    set_output(
        node,
        0,
        output_shape,
        None if value is None or not is_fully_defined(output_shape) else value.reshape(output_shape),
    )


def tile_infer(node: Any) -> None:
    """Infer a tensor that is repeated `tiles` times along `axis`."""
    if len(node.in_nodes()) != 1 or not node.has_valid("axis") or not node.has_valid("tiles"):
        raise InferenceError("{}: has one input, axis and tiles", node.soft_get("name", node.id))
    shape, value = given(node), node.in_port(0).data.get_value()
    repeats = np.ones(len(shape), np.int64)
    repeats[node.axis] = node.tiles
    set_output(node, 0, shape * repeats, None if value is None else np.tile(value, repeats))
    _axis_follows_layout(node)


def split_infer(node: Any) -> None:
    """Infer `num_splits` equal parts along `axis`, an attribute or input 1."""
    shape, name = given(node), node.soft_get("name", node.id)
    axis_value = node.in_port(1).data.get_value() if 1 in node.in_nodes() else node.soft_get("axis", None)
    if axis_value is None or np.ndim(axis_value) or not node.has_valid("num_splits"):
        raise InferenceError("{}: the axis must be a known number and num_splits given, got {}", name, axis_value)
    axis, count = canonical(len(shape), axis_value), int(node.num_splits)
    if shape[axis] is not dynamic_dimension and shape[axis] % count:
        raise InferenceError("{}: size {} does not divide by num_splits, got {}", name, shape[axis], count)
    output_shape, value = shape_array(shape), node.in_port(0).data.get_value()
    output_shape[axis] = shape[axis] // count
    parts = [None] * count if value is None else np.split(value, count, axis)
    for idx in range(count):
        set_output(node, idx, output_shape, parts[idx])
    if 1 not in node.in_nodes():
        _axis_follows_layout(node)


def variadic_split_infer(node: Any) -> None:
    """Infer parts of `split_lengths` along `axis`, attributes or inputs 2 and 1; empty parts without consumers go."""
    shape, name = given(node), node.soft_get("name", node.id)
    listed = 1 not in node.in_nodes()
    if not listed and 2 not in node.in_nodes():
        raise InferenceError("{}: has one input, or three, got {}", name, len(node.in_nodes()))
    axis_value = node.soft_get("axis", None) if listed else node.in_port(1).data.get_value()
    lengths = node.soft_get("split_lengths", None) if listed else node.in_port(2).data.get_value()
    if axis_value is None or lengths is None:
        raise InferenceError("{}: axis and split_lengths must be known", name)
    axis, lengths = canonical(len(shape), axis_value), np.asarray(lengths)
    _check_lengths(lengths, shape[axis], name)
    filled = _without_empty_parts(node, lengths)
    if len(filled) != len(lengths) and listed:
        node["split_lengths"] = filled
    elif len(filled) != len(lengths):
        node.in_port(2).data.set_value(filled)
    remaining = shape[axis] - (np.sum(filled) + 1)
    sizes = [remaining if n == -1 else n for n in filled]
    value = node.in_port(0).data.get_value()
    parts = [None] * len(sizes) if value is None else np.split(value, int64_array(np.cumsum(sizes)[:-1]), axis)
    for idx, size in enumerate(sizes):
        part_shape = shape_array(shape)
        part_shape[axis] = size
        set_output(node, idx, part_shape, parts[idx])
    if listed:
        _axis_follows_layout(node)


def _check_lengths(lengths: Any, size: Any, name: str) -> None:
    rests = int(np.sum(lengths == -1))
    fills = size is dynamic_dimension or rests or size == np.sum(lengths)
    if rests > 1 or not fills or np.any(lengths < -1):
        raise InferenceError("{}: split_lengths give {} in all, or one is -1, got {}", name, size, lengths)


def _without_empty_parts(node: Any, lengths: Any) -> Any:
    """Return the lengths without the 0 of each empty part that has no consumers; remove the ports of these parts."""
    connected = [i for i, port in node.out_ports().items() if not port.disconnected()]
    if len(connected) > len(lengths):
        shown = node.soft_get("name", node.id), len(connected), len(lengths)
        raise InferenceError("{}: each of {} outputs has a length, got {}", *shown)
    for i in reversed(range(len(lengths))):
        if lengths[i] == 0 and i not in connected:
            lengths = shape_delete(lengths, i)
            _remove_output(node, i)
    return lengths


def _remove_output(node: Any, idx: int) -> None:
    """Remove an output that has no consumers; renumber the outputs after it."""
    edges = node.out_edges()
    for port in range(idx + 1, len(node.out_ports())):
        if port in edges:
            edges[port]["out"] = port - 1
    node.delete_output_port(max(node.out_ports()), skip_if_absent=True)


def concat_infer(node: Any) -> None:
    """Infer inputs joined along `axis`; without one, the last of `N` + 1 inputs holds it, and is removed."""
    name = node.soft_get("name", node.id)
    if not node.has("axis"):
        axis_node = node.in_node(node.N)
        if not axis_node.has_valid("value") or axis_node.value.size != 1:
            raise Error('Input with value is not specified for node "{}"', name)
        node["axis"] = axis_node.value.item()
        node.graph.remove_edge(axis_node.node, node.node)
    count = len(node.in_nodes())
    shapes = [node.in_node(i).shape for i in range(count)]
    if any(shape is None for shape in shapes):
        raise Error('One of the input shapes is not defined for node "{}"', name)
    shapes = [shape_array(shape) for shape in shapes]
    node.axis = canonical(len(shapes[0]), node.axis)
    node.out_port(0).data.set_shape(_joined(shapes, node.axis, name))
    _axis_follows_layout(node)
    values = [node.in_node(i).value for i in range(count)]
    if all(value is not None for value in values):
        types = [value.dtype for value in values if is_fully_defined(value)]
        is_known = len(types) == count
        joined = (np if is_known else masked_arrays).concatenate(values, axis=node.axis)
        node.out_port(0).data.set_value(joined.astype(types[0] if is_known else types[-1] if types else np.int64))


def _joined(shapes: list[Any], axis: int, name: str) -> Any:
    result = shape_array(shapes[0])
    for pos in range(len(result)):
        sizes = [shape[pos] for shape in shapes if len(shape) == len(result)]
        known = {int(size) for size in sizes if size is not dynamic_dimension}
        if len(sizes) != len(shapes) or (pos != axis and len(known) > 1):
            raise Error("Concat input shapes do not match for node {}: got {} with axis {}", name, shapes, axis)
        if pos == axis:
            result[pos] = sum(map(int, sizes)) if all(s is not dynamic_dimension for s in sizes) else dynamic_dimension
        elif known:
            result[pos] = known.pop()
    return result


def reverse_infer(node: Any) -> None:
    """Infer a tensor with elements in reversed order along `axis`, an attribute or input 1."""
    shape, value = given(node), node.in_port(0).data.get_value()
    if not node.has_valid("axis"):
        axis_value = node.in_port(1).data.get_value() if 1 in node.in_nodes() else None
        if axis_value is None or axis_value.size != 1:
            raise InferenceError(
                "{}: the axis must be a known number, got {}", node.soft_get("name", node.id), axis_value
            )
        node["axis"] = axis_value.item()
        node.in_port(1).disconnect()
    set_output(node, 0, shape, None if value is None else np.flip(value, node.axis))


def gather_infer(node: Any) -> None:
    """Infer parts of input 0 along `axis`, an attribute, at the indices of input 1."""
    if len(node.in_nodes()) != 2 or not node.has_valid("axis"):
        raise InferenceError("{}: has two inputs and an axis", node.soft_get("name", node.id))
    data, indices = given(node), given(node, 1)
    node.axis = axis = canonical(len(data), node.axis)
    _axis_follows_layout(node)
    values = [node.in_port(i).data.get_value() for i in (0, 1)]
    output_shape = shape_array([*data[:axis], *indices, *data[axis + 1 :]])
    whole = all(v is not None for v in values)
    set_output(node, 0, output_shape, np.take(values[0], values[1], axis).astype(values[0].dtype) if whole else None)


def arg_ops_infer(node: Any) -> None:
    """Infer the places of the `top_k` largest or smallest elements along `axis`, an attribute or input 1."""
    shape = given(node)
    if 1 in node.in_nodes():
        axes_value = node.in_port(1).data.get_value()
        if axes_value is None:
            return
        node["axis"] = axes_value
        node.in_port(1).disconnect()
    if node.has_valid("axis"):
        node.axis = canonical(len(shape), node.axis)
        output_shape = shape_array(shape)
        output_shape[node.axis] = node.top_k
        _axis_follows_layout(node)
    else:
        output_shape = shape_array([1] * max(len(shape), 3))
        output_shape[0], output_shape[2] = shape[0], node.top_k
        output_shape[1] = 2 if node.has_and_set("out_max_val") else 1
    node.out_port(0).data.set_shape(output_shape)


def complex_infer(node: Any) -> None:
    """Infer pairs of real and imaginary parts: a last dimension of size 2."""
    shapes = [node.in_port(i).data.get_shape() for i in (0, 1)]
    if any(shape is None for shape in shapes):
        return
    if not np.array_equal(shapes[0], shapes[1]):
        raise InferenceError("{}: both parts have one shape, got {} and {}", node.soft_get("name", node.id), *shapes)
    node.out_port(0).data.set_shape(shape_array([*shapes[0], 2]))
