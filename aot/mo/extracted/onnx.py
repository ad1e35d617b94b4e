"""Attributes that Model Optimizer's extractors gave to nodes of ONNX files, beside those that the file has.

An extension reads `node.negative_slope` of a LeakyRelu and `node.stride` of a Conv, and may change them: what the file
says changes with them. Source: the nodes that Model Optimizer 2024.6 made of files of operation sets 9, 11 and 13.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from aot.frontends.onnx.element_types import DTYPES
from aot.ir.types import numpy_dtype
from aot.mo.bridge.values import plain
from aot.mo.extracted.attribute import ABSENT, Attr, File, always, called, constant, ints, one_of
from aot.runtime.abi import DType

TYPES: dict[Any, Any] = {  # types by ONNX's numbers in TensorProto
    number: numpy_dtype(dtype).type for number, dtype in DTYPES.items() if number < 14 and dtype is not DType.STRING
}
AXES_ARE_INPUTS = 13  # operation set from which Squeeze and others have axes as an input
INPUTS_INSTEAD = 11  # operation set from which Pad and Clip have inputs in place of attributes


def _spatial(name: str, file: str, first: int = 1) -> Attr:
    """Declare an attribute with an element a dimension, of which the file has the spatial ones; `first`: the others."""

    def read(given: File) -> Any:
        value = given.get(file)
        return None if value is None else ints([first, first, *value])

    return Attr(name, read, file, lambda value: plain(value)[2:])


def _pairs(pads: Any) -> Any:
    """Return rows of beginning and end, of a list of all beginnings and all ends."""
    return None if pads is None else ints(pads).reshape(2, -1).T


def _pads(file: File) -> Any:
    pairs = _pairs(file.get("pads"))
    return None if pairs is None else np.concatenate([np.zeros((2, 2), np.int64), pairs])


def _all_pads(first: int) -> Callable[[Any], Any]:
    """Return the function that writes rows of beginning and end, from row `first` on."""
    return lambda value: plain(np.asarray(value)[first:].T.reshape(-1))


def _auto_pad(file: File) -> Any:
    text = file.get("auto_pad", "NOTSET")
    return None if text == "NOTSET" else text.lower()


def _rounding(file: File) -> str:
    return "ceil" if file.get("ceil_mode") or _auto_pad(file) == "same_lower" else "floor"


LAYOUT = always(layout="NCHW", channel_dims=np.array([1]), batch_dims=np.array([0]))
AUTO_PAD = Attr("auto_pad", _auto_pad, "auto_pad", lambda value: str(value).upper())
UNKNOWN_YET = always(spatial_dims=None, output_spatial_shape=None)  # inference sets them
WINDOW = (
    *LAYOUT,
    *UNKNOWN_YET,
    AUTO_PAD,
    Attr("pad", _pads, "pads", _all_pads(2)),
    Attr("pad_spatial_shape", lambda file: _pairs(file.get("pads"))),
    _spatial("stride", "strides"),
)
CONVOLUTION = (
    *WINDOW,
    *always(version="opset1", bias_addable=True, multiplication_transparent=True, bias_term=None),
    *always(output_shape=None, output=None, multiplication_transparent_ports=[[0, 0], [1, 0]]),
    _spatial("dilation", "dilations"),
    called("group", "group", 1),
    called("kernel_spatial", "kernel_shape", None, ints),
)


def _transposed_pad(node: Any, input_shape: Any, kernel_shape: Any) -> Any:
    """Return rows of beginning and end that give a transposed convolution the output's spatial shape."""
    del input_shape
    where, kernel = node.spatial_dims, kernel_shape[node.kernel_spatial_idx]
    given = node.stride[where] * (node.in_node(0).shape[where] - 1) + node.output_padding[where] + kernel
    total = ints(given - node.output_spatial_shape)
    less, more = total // 2, total - total // 2
    pad = np.zeros((len(node.in_node(0).shape), 2), np.int64)
    at_end = node.has_valid("auto_pad") and node.auto_pad != "same_upper"
    pad[where] = np.stack((less, more) if at_end else (more, less), 1)
    return pad


def _transposed_filters(node: Any) -> Any:
    """Return the number of channels of a transposed convolution's result."""
    return node.kernel_shape[node.output_feature_channel] * node.group


OUTPUT_SHAPES = [
    called(name, "output_shape", None, ints) for name in ("output_spatial_shape", "original_output_spatial_shape")
]
LAST_AXIS = Attr(
    "axis",
    lambda file: file.get("axis", -1 if file.opset >= AXES_ARE_INPUTS else 1),
    "axis",
)
INDICES = (
    *always(output_type=np.int64, top_k=1, out_max_val=0, remove_values_output=True),
    called("axis", "axis", 0),
    called("keepdims", "keepdims", 1),
)
REDUCTION = (called("keep_dims", "keepdims", 1, bool), called("axis", "axes", None, ints))
RESIZE = (
    called("mode", "mode", "nearest"),
    called("coordinate_transformation_mode", "coordinate_transformation_mode", "half_pixel"),
    called("nearest_mode", "nearest_mode", "round_prefer_floor"),
    called("cube_coeff", "cubic_coeff_a", -0.75),
)
BLOCKS = {"DCR": "blocks_first", "CRD": "depth_first"}


def _pooling(method: str, version: str, *, whole: bool = False) -> tuple[Attr, ...]:
    convention = "full" if whole else "valid"
    fixed = always(
        type="Pooling", version=version, pool_method=method, global_pool=whole, pooling_convention=convention
    )
    padded = Attr(
        "exclude_pad",
        lambda file: not file.get("count_include_pad", 0),
        "count_include_pad",
        lambda value: int(not value),
    )
    rounding = Attr("rounding_type", _rounding, "ceil_mode", lambda value: int(value == "ceil"))
    return (*fixed, *WINDOW, _spatial("window", "kernel_shape"), _spatial("dilation", "dilations"), padded, rounding)


def _lowered(texts: Any) -> list[str]:
    return [text.lower() for text in texts]


def _recurrent(**values: Any) -> tuple[Attr, ...]:
    """Return the attributes of a recurrent network; `values`: those that tell its kind."""
    layout = {"batch_dim": 1, "sequence_dim": 0, "blobs_wrb": True, "has_num_directions": True}
    numbers = [called(n, n, None, _floats) for n in ("activation_alpha", "activation_beta")]
    return (
        *always(**layout, num_layers=1, format="onnx", multilayers=False, **values),
        *numbers,
        called("activations", "activations", None, _lowered),
        called("clip", "clip"),
        called("direction", "direction", "forward", str.lower),
        called("hidden_size", "hidden_size", None, ints),
    )


def _floats(value: Any) -> Any:
    return np.asarray(value, np.float32)


def _element_type(file: File) -> Any:
    return TYPES.get(file.get("dtype", 1))


def _number_of(kind: Any) -> int:
    return next(number for number, known in TYPES.items() if known is np.dtype(kind).type)


def _power(**values: float) -> tuple[Attr, ...]:
    return always(**{"power": 1, "scale": 1, "shift": 0, **values})


SCATTER = (*always(is_scatter=True), called("axis", "axis", 0))
ATTRS: dict[str, tuple[Attr, ...]] = {
    "ArgMax": INDICES,
    "ArgMin": INDICES,
    "AveragePool": _pooling("avg", "opset1"),
    "BatchNormalization": (*always(data_format="NCHW"), called("eps", "epsilon", 1e-5)),
    "Cast": (Attr("dst_type", lambda f: TYPES.get(f.get("to")), "to", _number_of),),
    "Constant": constant(),
    "ConstantOfShape": (called("fill_value", "value", np.zeros(1, np.float32)),),
    "Conv": (
        *CONVOLUTION,
        *always(type="Convolution", input_feature_channel=1, output_feature_channel=0, kernel_spatial_idx=None),
    ),
    "ConvTranspose": (
        *CONVOLUTION,
        *always(type="Deconvolution", input_feature_channel=0, output_feature_channel=1),
        *always(get_pad=_transposed_pad, get_output_feature_dim=_transposed_filters),
        *OUTPUT_SHAPES,
        _spatial("output_padding", "output_padding", 0),
    ),
    "CumSum": (called("exclusive", "exclusive", 0), called("reverse", "reverse", 0)),
    "DepthToSpace": (called("block_size", "blocksize"), one_of("mode", "mode", BLOCKS, "DCR")),
    "DequantizeLinear": (called("axis", "axis"), *always(version=None)),
    "Dropout": always(identity=True),
    "Elu": (called("alpha", "alpha", 1.0),),
    "Einsum": (called("equation", "equation"),),
    "Expand": always(mode="bidirectional"),
    "Flatten": (called("axis", "axis", 1),),
    "GRU": (*_recurrent(gate_order=[0, 1, 2]), called("linear_before_reset", "linear_before_reset", 0)),
    "Gather": (called("axis", "axis", 0),),
    "GatherND": (called("batch_dims", "batch_dims", 0),),
    "Gemm": (
        called("alpha", "alpha", 1.0),
        called("beta", "beta", 1.0),
        called("transpose_a", "transA", 0, bool),
        called("transpose_b", "transB", 0, bool),
        *always(axis=np.int64(0)),
    ),
    "GlobalAveragePool": _pooling("avg", "opset1", whole=True),
    "GlobalMaxPool": _pooling("max", "opset8", whole=True),
    "Identity": always(identity=True),
    "InstanceNormalization": (called("epsilon", "epsilon", 1e-5),),
    "LRN": (
        *always(type="Norm", version="opset1", region="across"),
        called("alpha", "alpha", 1e-4),
        called("beta", "beta", 0.75),
        called("bias", "bias", 1.0),
        called("local_size", "size"),
    ),
    "LSTM": (*_recurrent(gate_order=[2, 0, 3, 1]), called("input_forget", "input_forget", 0)),
    "LeakyRelu": (called("negative_slope", "alpha", 0.01),),
    "LogSoftmax": (LAST_AXIS,),
    "LpNormalization": (*always(eps=1e-6, eps_mode="add"), called("p", "p", 2), called("axis", "axis", -1)),
    "MatMul": always(transpose_a=False, transpose_b=False),
    "Max": always(operation="max"),
    "MaxPool": _pooling("max", "opset8"),
    "MeanVarianceNormalization": (
        *always(eps=1e-9, eps_mode="outside_sqrt", normalize_variance=1, version=None),
        called("axes", "axes", (0, 2, 3), ints),
    ),
    "Min": always(operation="min"),
    "Neg": _power(scale=-1),
    "NonMaxSuppression": (
        *always(sort_result_descending=0, output_type=np.int64),
        one_of("box_encoding", "center_point_box", {0: "corner", 1: "center"}, 0),
    ),
    "NonZero": always(output_type=np.int64),
    "OneHot": (called("axis", "axis", -1), *always(split_values=True)),
    "QuantizeLinear": (called("axis", "axis"), *always(version=None)),
    "RNN": _recurrent(gate_order=[0]),
    "RandomUniform": (
        called("shape", "shape", None, ints),
        Attr("data_type", _element_type, "dtype", _number_of),
        called("seed", "seed", 0.0),
        called("min_val", "low", 0.0, np.float32),
        called("max_val", "high", 1.0, np.float32),
    ),
    "Reshape": (Attr("special_zero", lambda f: not f.get("allowzero", 0), "allowzero", lambda v: int(not v)),),
    "Resize": RESIZE,
    "ReverseSequence": (called("seq_axis", "time_axis", 0), called("batch_axis", "batch_axis", 1)),
    "RoiAlign": (
        called("pooled_h", "output_height", 1),
        called("pooled_w", "output_width", 1),
        called("mode", "mode", "avg"),
    ),
    "Round": always(mode="half_to_even"),
    "Scatter": SCATTER,
    "ScatterElements": SCATTER,
    "Shape": always(output_type=np.int64),
    "Size": always(output_type=np.int64),
    "Softmax": (LAST_AXIS,),
    "SpaceToDepth": (*always(mode="blocks_first"), called("block_size", "blocksize")),
    "Split": (
        called("axis", "axis", 0, np.int64),
        Attr("num_splits", lambda file: file.outputs),
        Attr("type", lambda file: "Split" if file.get("split") is None else "VariadicSplit"),
        *always(version="opset1"),
        called("size_splits", "split", ABSENT, ints),
    ),
    "Sqrt": _power(power=0.5),
    "Squeeze": (called("squeeze_dims", "axes", None, ints), *always(keep_at_least_1d=0)),
    "ThresholdedRelu": (called("alpha", "alpha", 1.0),),
    "Sum": always(operation="sum"),
    "TopK": (
        called("axis", "axis", -1),
        called("k", "k", ABSENT),
        *always(index_element_type=np.int64),
        one_of("mode", "largest", {1: "max", 0: "min"}, 1),
        one_of("sort", "sorted", {1: "value", 0: "none"}, 1),
    ),
    "Transpose": (
        called("order", "perm", None, ints),
        Attr("reverse_order", lambda file: file.get("perm") is None),
    ),
    "Unsqueeze": (called("expand_axis", "axes", (), ints),),
    "Upsample": (called("mode", "mode", "nearest"),),
    **{kind: (called("axis", "axis"),) for kind in ("Add", "Div", "Mul", "Sub")},
    **{f"Reduce{kind}": REDUCTION for kind in ("L1", "L2", "Max", "Mean", "Min", "Prod", "Sum")},
}
OLD: dict[str, tuple[Attr, ...]] = {  # before operation set 11
    "Clip": (
        *always(type="Clamp", version="opset1"),
        called("min", "min", -np.finfo(np.float32).max),
        called("max", "max", np.finfo(np.float32).max),
    ),
    "Pad": (
        called("mode", "mode", "constant"),
        called("fill_value", "value", 0.0),
        Attr("pads", lambda file: _pairs(file.get("pads")), "pads", _all_pads(0)),
    ),
    "Slice": (
        called("starts", "starts", None, ints),
        called("ends", "ends", None, ints),
        Attr("axes", lambda file: ints(file.get("axes", range(len(file.get("starts", ()))))), "axes"),
    ),
}
RECENT: dict[str, tuple[Attr, ...]] = {"Pad": (called("mode", "mode", "constant"),)}


def attrs_of(kind: str, file: File) -> tuple[Attr, ...]:
    """Return the attributes of a kind of operations."""
    by_age = OLD if file.opset < INPUTS_INSTEAD else RECENT
    return () if file.get("domain") else by_age.get(kind) or ATTRS.get(kind, ())


def name_of(kind: str, file: File) -> str | None:
    """Return the attribute `op` of a kind's nodes that depends on the file's operation set; None for another kind."""
    old = file.opset < INPUTS_INSTEAD
    if kind == "Split" and file.opset < AXES_ARE_INPUTS:
        return "AttributedVariadicSplit" if file.get("split") is not None else "AttributedSplit"
    names = {"Clip": ("AttributedClamp", "Clamp"), "Pad": ("AttributedPad", "ONNXPad")}
    names |= {"Slice": ("AttributedSlice" if file.opset < INPUTS_INSTEAD - 1 else "Slice", "Slice")}
    return names[kind][0 if old else 1] if kind in names else None
