"""Inference of pools, patches and resized images, in the layout of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.front.common.layout import (
    get_batch_dim,
    get_features_dim,
    get_height_dim,
    get_width_dim,
    shape_for_layout,
)
from aot.mo.ops.permutations import PermuteAttrs
from aot.mo.partial_infer.slicing import given
from aot.mo.utils.arrays import dynamic_dimension, int64_array, shape_array, tf_window_op_pad_infer
from aot.mo.utils.error import Error, InferenceError

ROUNDING = 1e-5  # added to a size before it is scaled, so that 2.9999 is 3; source: Model Optimizer 2024.6
NEAR = 1e-6  # the same for ONNX's Resize


def pool_infer(node: Any) -> None:
    """Infer a pool, and set the attributes that it lacks: `pad`, `stride`, `dilation`, `spatial_dims`."""
    shape = node.in_node(0).shape
    if shape is None:
        return
    _complete(node, shape)
    dims = node.spatial_dims
    window, stride, dilation = (np.asarray(node[name])[dims] for name in ("window", "stride", "dilation"))
    if not np.all(stride):
        raise InferenceError("{}: strides are above 0, got {}", node.id, stride)
    if node.soft_get("auto_pad", "explicit") not in (None, "explicit", "<UNKNOWN>"):
        pads, sizes = tf_window_op_pad_infer(shape[dims], window, stride, node.auto_pad, dilation=dilation)
        node.pad_spatial_shape = pads
        node.pad = np.zeros((len(shape), 2), np.int64)
        node.pad[dims] = pads
    else:
        up = node.soft_get("pooling_convention") == "full" or node.soft_get("rounding_type") == "ceil"
        reach = (window - 1) * dilation + 1
        sizes = shape_array(
            [
                _count(shape[dim], node.pad_spatial_shape[i], reach[i], stride[i], up)
                for i, dim in enumerate(np.asarray(dims).reshape(-1))
            ]
        )
    node["output_spatial_shape"] = sizes
    output_shape = shape_array(shape)
    output_shape[dims] = sizes
    for idx in node.out_nodes():
        node.out_port(idx).data.set_shape(output_shape)
    if node.soft_get("pool_method") == "max":
        node["remove_values_output"] = True
    follow = ("pad", "stride", "window", "spatial_dims", "dilation")
    PermuteAttrs.create_permute_attrs(node, attrs=[(name, "input:0") for name in follow])


def _complete(node: Any, shape: Any) -> None:
    rank = len(shape)
    if not node.has_valid("spatial_dims"):
        node["spatial_dims"] = np.delete(np.arange(rank), [node.batch_dims[0], node.channel_dims[0]])
    defaults = {"pad": np.zeros((rank, 2), np.int64), "stride": np.ones(rank, np.int64)}
    defaults |= {"dilation": np.ones(rank, np.int64), "axis": 0, "index_element_type": np.int64}
    for name, value in defaults.items():
        if not node.has_valid(name):
            node[name] = value
    if not node.has_valid("pad_spatial_shape"):
        node["pad_spatial_shape"] = node.pad[node.spatial_dims]
    if node.has_and_set("global_pool"):
        node["window"] = np.zeros(rank, np.int64)
        node.window[node.spatial_dims] = shape[node.spatial_dims]


def _count(size: Any, pads: Any, reach: Any, stride: Any, up: bool) -> Any:
    """Return the number of windows; one that would begin in the padding after the data does not count."""
    if size is dynamic_dimension:
        return dynamic_dimension
    room = size + sum(pads) - reach
    if room < 0:
        raise Error("a window of {} elements does not fit a padded size of {}", reach, size + sum(pads))
    count = int((np.ceil if up else np.floor)(room / stride)) + 1
    return count - 1 if pads[1] and (count - 1) * stride >= size + pads[1] else count


def pool_of_inputs_infer(node: Any) -> None:
    """Infer a pool with window and strides as inputs 1 and 2."""
    if len(node.in_nodes()) != 3:
        raise InferenceError("{}: has three inputs, got {}", node.soft_get("name", node.id), len(node.in_nodes()))
    for idx, name in ((1, "window"), (2, "stride")):
        node[name] = node.in_port(idx).data.get_value()
        if node[name] is None:
            raise Error("{}: the {} must be known", node.soft_get("name", node.id), name)
    pool_infer(node)


def upsample_infer(node: Any) -> None:
    """Infer an image enlarged by `height_scale` and `width_scale`, or by the factors of input 1."""
    shape, layout = given(node), node.graph.graph["layout"]
    if 1 in node.in_nodes():
        scales = node.in_port(1).data.get_value()
        if scales is None:
            raise InferenceError("{}: the scales must be known", node.soft_get("name", node.id))
        sizes = [n if n is dynamic_dimension else int((n + ROUNDING) * s) for n, s in zip(shape, scales, strict=True)]
        node.out_port(0).data.set_shape(shape_array(sizes))
        return
    sizes = shape_array(shape)
    for dim_of, scale in ((get_height_dim, node.height_scale), (get_width_dim, node.width_scale)):
        dim = dim_of(layout, 4)
        sizes[dim] = dynamic_dimension if shape[dim] is dynamic_dimension else int(np.floor(shape[dim] * scale))
    node.out_port(0).data.set_shape(sizes)


def onnx_resize_infer(node: Any) -> None:
    """Infer ONNX's Resize: by the sizes of input 3 after the first two dimensions, or by the factors of input 2."""
    shape, name = node.in_port(0).data.get_shape(), node.soft_get("name", node.id)
    if shape is None:
        return
    idx = 3 if node.is_in_port_connected(3) else 2
    sizes_or_scales = node.in_port(idx).data.get_value() if node.is_in_port_connected(idx) else None
    if sizes_or_scales is None or node.coordinate_transformation_mode == "tf_crop_and_resize":
        raise InferenceError("{}: sizes or scales must be known, without cropping", name)
    output_shape = shape_array(shape)
    if idx == 3:
        output_shape[2:] = sizes_or_scales[2:]
    else:
        pairs = zip(shape, sizes_or_scales, strict=True)
        output_shape = [n if n is dynamic_dimension else int(np.floor(n * scale + NEAR)) for n, scale in pairs]
    node.out_port(0).data.set_shape(shape_array(output_shape))


def patches_infer(node: Any) -> None:
    """Infer the windows of an image as channels."""
    shape, layout = given(node), node.graph.graph["layout"]
    if list(node.in_nodes()) != [0] or len(shape) != 4:
        raise InferenceError("{}: an image of rank 4, got {}", node.soft_get("name", node.id), shape)
    dims = node.spatial_dims
    sizes, strides, rates = (int64_array(node[name])[dims] for name in ("sizes", "strides", "rates"))
    _, counts = tf_window_op_pad_infer(shape[dims], rates * (sizes - 1) + 1, strides, node.auto_pad, False)
    counts_by_dimension = {"height": counts[0], "width": counts[1], "batch": shape[get_batch_dim(layout, 4)]}
    counts_by_dimension["features"] = shape[get_features_dim(layout, 4)] * np.prod(sizes)
    node.out_port(0).data.set_shape(shape_for_layout(layout, **counts_by_dimension))


def roipooling_infer(node: Any) -> None:
    """Infer pools of `pooled_h` by `pooled_w` for each box of input 1; of the sizes of input 3 if there is one."""
    shapes = [node.in_node(i).shape for i in range(len(node.in_nodes()))]
    if any(shape is None for shape in shapes):
        return
    if len(shapes) == 4:
        held = node.in_node(3).value
        if held is None:
            return
        node.pooled_h, node.pooled_w = held
        for idx in (3, 2):
            node.graph.remove_edge(node.in_node(idx).id, node.id)
    _boxes(node, shapes, shapes[0], node.pooled_h, node.pooled_w)


def psroipooling_infer(node: Any) -> None:
    """Infer pools of `group_size` by `group_size` with `output_dim` channels for each box of input 1."""
    shapes = [node.in_node(i).shape for i in range(len(node.in_nodes()))]
    if all(shape is not None for shape in shapes):
        if not node.has_valid("group_size") or node.group_size != int(node.group_size):
            raise InferenceError(
                "{}: group_size is an integer, got {}", node.soft_get("name"), node.soft_get("group_size")
            )
        node["group_size"] = size = int(node.group_size)
        _boxes(node, shapes, None, size, size)


def _boxes(node: Any, shapes: list[Any], image: Any, height: int, width: int) -> None:
    layout = node.graph.graph["layout"]
    features = node.output_dim if image is None else image[get_features_dim(layout, 4)]
    sizes = {"batch": shapes[1][get_batch_dim(layout, 4)], "features": features, "height": height, "width": width}
    node.out_port(0).data.set_shape(shape_for_layout(layout, **sizes))


def prior_box_infer(node: Any) -> None:
    """Infer boxes of all sizes and ratios for each place of an image; with `V10_infer`, input 0 holds its size."""
    layout = node.graph.graph["layout"]
    ratios = [1.0, *node.aspect_ratio, *([1.0 / r for r in node.aspect_ratio] if node.flip else [])]
    kinds = len(np.unique(np.asarray(ratios).round(6)))
    fixed = node.fixed_size if node.has_valid("fixed_size") and len(node.fixed_size) else node.min_size
    count = kinds * len(fixed) + len(node.max_size)
    own = len(node.fixed_ratio) if node.has_valid("fixed_ratio") and len(node.fixed_ratio) else kinds
    count += sum(own * (d * d - 1) for d in (node.density if node.has_valid("density") else ()))
    _set_boxes(node, layout, int(count))


def clustered_box_infer(node: Any) -> None:
    """Infer boxes of the `width`s for each place of an image."""
    _set_boxes(node, node.graph.graph["layout"], len(node.width))


def _set_boxes(node: Any, layout: str, count: int) -> None:
    if node.has_and_set("V10_infer"):
        held = node.in_node(0).value
        if held is None:
            raise InferenceError("{}: the size of the image must be known", node.soft_get("name", node.id))
        node.out_port(0).data.set_shape([2, np.prod(held) * count * 4])
        return
    shape = node.in_node(0).shape
    cells = shape[get_height_dim(layout, 4)] * shape[get_width_dim(layout, 4)]
    node.out_port(0).data.set_shape(shape_array([1, 2, cells * count * 4]))


def interpolated_axes(node: Any) -> Any:
    """Return the axes that an Interpolate changes; None if version 1 has none."""
    if node.get_opset() == "opset1":
        axes = node.soft_get("axes", None)
        return None if axes is None else int64_array(axes)
    sizes = node.in_port(3).data.get_value() if node.is_in_port_connected(3) else None
    return int64_array(range(len(node.in_port(0).data.get_shape())) if sizes is None else sizes)
