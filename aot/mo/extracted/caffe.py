"""Attributes that Model Optimizer's extractors gave to nodes of Caffe's layers, beside the fields of these.

Source: what Model Optimizer 2021.4, which still read networks of Caffe, set for layers of each type.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.mo.extracted.attribute import Attr, File, always, called, ints, one_of

LAYOUT = always(layout="NCHW", channel_dims=np.array([1]), spatial_dims=np.array([2, 3]), batch_dims=np.array([0]))
METHODS = {"MAX": "max", "AVE": "avg"}
ELTWISE = {"PROD": "Mul", "SUM": "Add", "MAX": "Maximum"}


def _rows_and_columns(file: File, name: str, otherwise: int) -> list[int]:
    """Return the two numbers of a window: `name_h` and `name_w`, else one or two of `name` (`kernel_size`)."""
    sizes = np.atleast_1d(file.get("kernel_size" if name == "kernel" else name, ()))
    rows, columns = (
        int(n) for n in (sizes if sizes.size == 2 else np.repeat(sizes[:1], 2) if sizes.size else [otherwise] * 2)
    )
    return [int(file.get(f"{name}_h", 0)) or rows, int(file.get(f"{name}_w", 0)) or columns]


def _single(value: Any) -> Any:
    """Return two equal numbers as one, which all types of layers take."""
    rows, columns = (int(n) for n in np.asarray(value).reshape(-1)[-2:])
    return (rows, columns) if rows != columns else rows


def _last(text: str) -> str:
    """Return the last part of the name of a value, as files have it."""
    return text.rpartition(".")[2]


def _window(name: str, field: str, otherwise: int = 1) -> Attr:
    return Attr(name, lambda file: ints([1, 1, *_rows_and_columns(file, field, otherwise)]), field, _single)


def _padding(file: File) -> Any:
    return np.repeat(ints(_rows_and_columns(file, "pad", 0)), 2).reshape(2, 2)


WINDOW = (
    *LAYOUT,
    _window("stride", "stride"),
    Attr("pad", lambda file: np.concatenate((np.zeros((2, 2), np.int64), _padding(file))), "pad", _single),
    Attr("pad_spatial_shape", _padding),
    *always(output_spatial_shape=None),
)
CONVOLUTION = (
    *WINDOW,
    *always(bias_addable=True, reshape_kernel=True, output_shape=None, kernel_spatial_idx=np.array([2, 3])),
    *always(input_feature_channel=1, output_feature_channel=0),
    _window("dilation", "dilation"),
    called("group", "group", 1),
    called("output", "num_output"),
    Attr("kernel_spatial", lambda file: ints(_rows_and_columns(file, "kernel", 0)), "kernel_size", _single),
)
POOLING = (
    *WINDOW,
    Attr("window", lambda file: ints([1, 1, *_rows_and_columns(file, "kernel", 0)]), "kernel_size", _single),
    one_of("pool_method", "pool", METHODS, "MAX"),
    Attr("exclude_pad", lambda file: file.get("pool", "MAX") == "MAX"),
    called("global_pool", "global_pooling", otherwise=False),
    Attr("rounding_type", lambda file: "ceil" if file.get("ceil_mode", True) else "floor"),
    Attr("pooling_convention", lambda file: "full" if file.get("ceil_mode", True) else "valid"),
)
ATTRS: dict[str, tuple[Attr, ...]] = {
    "ArgMax": always(remove_values_output=True),
    "Convolution": CONVOLUTION,
    "Deconvolution": CONVOLUTION,
    "DetectionOutput": (
        called("nms_threshold", "nms_param.nms_threshold", 0.3),
        called("eta", "nms_param.eta", 1.0),
        Attr("top_k", lambda file: file.get("nms_param.top_k", 0) or -1, "nms_param.top_k"),
        Attr(
            "code_type", lambda file: f"caffe.PriorBoxParameter.{file.get('code_type', 'CORNER')}", "code_type", _last
        ),
    ),
    "Eltwise": LAYOUT,
    "InnerProduct": (
        called("out-size", "num_output"),
        Attr("transpose_weights", lambda file: not file.get("transpose", False), "transpose", lambda value: not value),
    ),
    "LRN": (
        called("bias", "k", 1.0),
        one_of("region", "norm_region", {"WITHIN_CHANNEL": "same", "ACROSS_CHANNELS": "across"}, "ACROSS_CHANNELS"),
    ),
    "Permute": (called("order", "order", (), ints),),
    "Pooling": POOLING,
    "PriorBox": (*LAYOUT, called("variance", "variance", (0.1,), list)),
    "Reshape": (called("dim", "shape.dim", (), list),),
    "Slice": (called("slice_point", "slice_point", (), ints),),
}


def attrs_of(kind: str, file: File) -> tuple[Attr, ...]:
    """Return the attributes of layers of a type."""
    del file
    return ATTRS.get(kind, ())


def name_of(kind: str, file: File) -> str | None:
    """Return the attribute `op` of a layer that its fields decide; None for another layer."""
    if kind == "ReLU":
        return "LeakyReLU" if file.get("negative_slope", 0) else "ReLU"
    if kind == "Eltwise":
        return "EltwiseN" if file.get("bottoms", 2) > 2 else ELTWISE.get(file.get("operation", "SUM"))
    return None
