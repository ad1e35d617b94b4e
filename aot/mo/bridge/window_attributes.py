"""Attributes that Model Optimizer's extractors and inference set of convolutions and pools."""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.ir.op import Op as Definition
from aot.mo.bridge.node_records import NodeRecord
from aot.mo.ops.layer_attributes import WINDOWS
from aot.mo.utils.arrays import dynamic_dimension, int64_array, tf_window_op_pad_infer
from aot.opset.products.convolution import Convolution, GroupConvolution
from aot.opset.products.pooling import AvgPool, MaxPool, MaxPool_8

KINDS: dict[type[Definition], tuple[str, str]] = {  # `op` of TensorFlow's nodes with 4 and with 5 dimensions
    Convolution: ("Conv2D", "Conv3D"),
    GroupConvolution: ("Conv2D", "Conv3D"),
    MaxPool: ("MaxPool", "MaxPool3D"),
    MaxPool_8: ("MaxPool", "MaxPool3D"),
    AvgPool: ("AvgPool", "AvgPool3D"),
}
POOLING = "Pooling"  # type of pools of both methods before the back phase
FIRST_KINDS: dict[type[Definition], str] = {  # `op` of ONNX's nodes
    Convolution: "Conv",
    GroupConvolution: "Conv",
    MaxPool: "MaxPool",
    MaxPool_8: "MaxPool",
    AvgPool: "AveragePool",
}
METHODS: dict[type[Definition], str] = {MaxPool: "max", MaxPool_8: "max", AvgPool: "avg"}
REPLACED = {*WINDOWS, "pads_begin", "pads_end"}  # attributes of operations that these nodes have under other names


def shown_attributes(node: Any, record: NodeRecord, data: Any, weights: list[Any], is_last: bool) -> dict[str, Any]:
    """Return the attributes.

    `data`: data node in the layout of the graph, `weights`: operations between them and the node, `is_last`: whether
    channels are last, as TensorFlow has them.
    """
    op: Any = record.node.op
    rank = len(op.strides) + 2
    ends = (1, 1) if is_last else (2, 0)  # dimensions before and after the spatial ones
    attributes = {k: v for k, v in record.attrs.items() if k not in REPLACED}
    attributes["spatial_dims"] = np.arange(ends[0], rank - ends[1])
    attributes |= {new: _padded(getattr(op, old), ends, 1) for old, new in WINDOWS.items() if getattr(op, old, ())}
    attributes |= _of_last(op, rank) if is_last else _of_first(op, rank, attributes)
    spatial = attributes["spatial_dims"]
    if type(op) in METHODS:
        attributes |= {"type": POOLING, "pool_method": METHODS[type(op)]}
        window = attributes["window"][spatial]
    else:
        attributes |= {"batch_dims": int64_array([0]), "channel_dims": int64_array([rank - 1 if is_last else 1])}
        attributes |= _of_weights(node, op, weights, is_last)
        window = attributes.get("kernel_spatial")
    pads = _pads(op, attributes, data.soft_get("shape", None), window)
    return {**attributes, "pad": _padded(pads, ends, 0), "pad_spatial_shape": pads}


def _padded(values: Any, ends: tuple[int, int], value: int) -> Any:
    """Extend values of the spatial dimensions to all dimensions."""
    array = int64_array(values)
    return np.pad(array, (ends, *((0, 0),) * (array.ndim - 1)), constant_values=value)


def _of_last(op: Any, rank: int) -> dict[str, Any]:
    return {"layout": "NHWC" if rank == 4 else "NDHWC", "op": KINDS[type(op)][rank - 4]}


def _of_first(op: Any, rank: int, found: dict[str, Any]) -> dict[str, Any]:
    own: dict[str, Any] = {"layout": "NCHW", "op": FIRST_KINDS[type(op)]}
    if found["auto_pad"] == "explicit":
        own["auto_pad"] = None
    if type(op) in METHODS:
        own |= {"batch_dims": int64_array([0]), "channel_dims": int64_array([1]), "global_pool": False}
        own |= {"dilation": found.get("dilation", np.ones(rank, np.int64)), "pooling_convention": "valid"}
        own |= {"exclude_pad": getattr(op, "exclude_pad", True)}
        own |= {"rounding_type": found["rounding_type"].partition("_")[0]}  # ceil_torch is ceil
    return own


def _pads(op: Any, found: dict[str, Any], shape: Any, window: Any) -> Any:
    """Return the padding of the spatial dimensions, [n, 2]; zeros where `auto_pad` says it of sizes not known."""
    spatial = found["spatial_dims"]
    pads = np.array([op.pads_begin, op.pads_end], np.int64).T
    if shape is None or window is None or not str(found["auto_pad"]).startswith("same"):
        return pads
    if any(shape[d] is dynamic_dimension for d in spatial):
        return pads
    reach = (window - 1) * int64_array(getattr(op, "dilations", None) or 1) + 1
    return int64_array(tf_window_op_pad_infer(shape[spatial], reach, int64_array(op.strides), found["auto_pad"])[0])


def _of_weights(node: Any, op: Any, run: list[Any], is_last: bool) -> dict[str, Any]:
    order = run[0].in_node(1)["value"] if run and is_last else np.arange(len(op.strides) + 2)
    attributes: dict[str, Any] = {"type": "Convolution", "group": 1}
    attributes |= {"input_feature_channel": int(order[1]), "output_feature_channel": int(order[0])}
    attributes["kernel_spatial_idx"] = int64_array(order[2:])
    shape = (run[0].in_node(0) if run else node.in_node(1)).soft_get("shape", None)
    if shape is not None and all(d is not dynamic_dimension for d in shape):
        sizes = int64_array(shape)
        attributes |= {"kernel_shape": sizes, "kernel_spatial": sizes[order[2:]], "output": int(sizes[order[0]])}
    if isinstance(op, GroupConvolution):
        groups, filters = (int(d) for d in node.in_node(1)["shape"][:2])
        attributes |= {"group": groups, "output": groups * filters}
        if run[-1].soft_get("type") == "Unsqueeze":
            attributes |= {"op": "DepthwiseConv2dNative", "input_feature_channel": attributes["output_feature_channel"]}
    return attributes
