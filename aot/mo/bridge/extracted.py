"""Attributes that Model Optimizer's extractors gave to nodes of ONNX files, beside those that the file has.

An extension reads `node.negative_slope` of a LeakyRelu and `node.stride` of a Conv, and may change them: what the file
says changes with them. Source: the nodes that Model Optimizer 2024.6 made of files of operation sets 9, 11 and 13.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from aot.ir.graph import Node
from aot.ir.op import Foreign
from aot.mo.bridge.values import plain

TYPES: dict[Any, Any] = {  # by the numbers of ONNX's TensorProto
    1: np.float32,
    2: np.uint8,
    3: np.int8,
    4: np.uint16,
    5: np.int16,
    6: np.int32,
    7: np.int64,
    9: np.bool_,
    10: np.float16,
    11: np.float64,
    12: np.uint32,
    13: np.uint64,
}
AXES_ARE_INPUTS = 13  # operation set from which Squeeze and others have axes as an input
INPUTS_INSTEAD = 11  # operation set from which Pad and Clip have inputs in place of attributes


@dataclass(frozen=True, slots=True)
class File:
    """A node as its file has it."""

    attrs: dict[str, Any]
    opset: int
    outputs: int

    def get(self, name: str, otherwise: Any = None) -> Any:
        return self.attrs.get(name, otherwise)


@dataclass(frozen=True, slots=True)
class Attr:
    """An attribute. `read` gives its value, None: there is none; `write` the attributes of the file for a value."""

    name: str
    read: Callable[[File], Any]
    write: Callable[[Any], dict[str, Any]] | None = None


def _as_it_is(value: Any) -> Any:
    return value


def _ints(value: Any) -> Any:
    return np.asarray(value, np.int64)


def _called(name: str, file: str, otherwise: Any = None, kind: Callable[[Any], Any] = _as_it_is) -> Attr:
    """An attribute that the file calls `file`."""

    def read(given: File) -> Any:
        value = given.get(file, otherwise)
        return None if value is None else kind(value)

    return Attr(name, read, lambda value: {file: plain(value)})


def _always(**values: Any) -> tuple[Attr, ...]:
    """Return attributes that do not depend on the file."""

    def held(value: Any) -> Callable[[File], Any]:
        return lambda given: value

    return tuple(Attr(name, held(value)) for name, value in values.items())


def _spatial(name: str, file: str, first: int = 1) -> Attr:
    """An attribute with an element for each dimension, of which the file has the spatial ones; `first`: the others."""

    def read(given: File) -> Any:
        value = given.get(file)
        return None if value is None else _ints([first, first, *value])

    return Attr(name, read, lambda value: {file: plain(value)[2:]})


def _pairs(pads: Any) -> Any:
    """Return rows of beginning and end, of a list of all beginnings and all ends."""
    return None if pads is None else _ints(pads).reshape(2, -1).T


def _pads(file: File) -> Any:
    pairs = _pairs(file.get("pads"))
    return None if pairs is None else np.concatenate([np.zeros((2, 2), np.int64), pairs])


def _all_pads(name: str, first: int) -> Callable[[Any], dict[str, Any]]:
    """Return what writes rows of beginning and end, from row `first` on."""
    return lambda value: {name: plain(np.asarray(value)[first:].T.reshape(-1))}


def _one_of(name: str, file: str, names: dict[Any, Any], otherwise: Any) -> Attr:
    """An attribute whose values have other names in the file."""
    back = {value: key for key, value in names.items()}
    return Attr(
        name,
        lambda given: names.get(given.get(file, otherwise), given.get(file)),
        lambda value: {file: back.get(value, value)},
    )


def _auto_pad(file: File) -> Any:
    text = file.get("auto_pad", "NOTSET")
    return None if text == "NOTSET" else text.lower()


def _rounding(file: File) -> str:
    return "ceil" if file.get("ceil_mode") or _auto_pad(file) == "same_lower" else "floor"


LAYOUT = _always(layout="NCHW", channel_dims=np.array([1]), batch_dims=np.array([0]))
AUTO_PAD = Attr("auto_pad", _auto_pad, lambda value: {"auto_pad": str(value).upper()})
WINDOW = (
    *LAYOUT,
    AUTO_PAD,
    Attr("pad", _pads, _all_pads("pads", 2)),
    Attr("pad_spatial_shape", lambda file: _pairs(file.get("pads"))),
    _spatial("stride", "strides"),
)
CONVOLUTION = (
    *WINDOW,
    *_always(version="opset1", bias_addable=True, multiplication_transparent=True),
    _spatial("dilation", "dilations"),
    _called("group", "group", 1),
    _called("kernel_spatial", "kernel_shape", None, _ints),
)
LAST_AXIS = Attr(
    "axis",
    lambda file: file.get("axis", -1 if file.opset >= AXES_ARE_INPUTS else 1),
    lambda value: {"axis": plain(value)},
)
INDICES = (
    *_always(output_type=np.int64, top_k=1, out_max_val=0, remove_values_output=True),
    _called("axis", "axis", 0),
    _called("keepdims", "keepdims", 1),
)
REDUCTION = (_called("keep_dims", "keepdims", 1, bool), _called("axis", "axes", None, _ints))
RESIZE = (
    _called("mode", "mode", "nearest"),
    _called("coordinate_transformation_mode", "coordinate_transformation_mode", "half_pixel"),
    _called("nearest_mode", "nearest_mode", "round_prefer_floor"),
    _called("cube_coeff", "cubic_coeff_a", -0.75),
)
BLOCKS = {"DCR": "blocks_first", "CRD": "depth_first"}


def _pooling(method: str, version: str, *, whole: bool = False) -> tuple[Attr, ...]:
    convention = "full" if whole else "valid"
    fixed = _always(
        type="Pooling", version=version, pool_method=method, global_pool=whole, pooling_convention=convention
    )
    padded = Attr(
        "exclude_pad",
        lambda file: not file.get("count_include_pad", 0),
        lambda value: {"count_include_pad": int(not value)},
    )
    rounding = Attr("rounding_type", _rounding, lambda value: {"ceil_mode": int(value == "ceil")})
    return (*fixed, *WINDOW, _spatial("window", "kernel_shape"), padded, rounding)


def _power(**values: float) -> tuple[Attr, ...]:
    return _always(**{"power": 1, "scale": 1, "shift": 0, **values})


ATTRS: dict[str, tuple[Attr, ...]] = {
    "ArgMax": INDICES,
    "ArgMin": INDICES,
    "AveragePool": _pooling("avg", "opset1"),
    "BatchNormalization": (*_always(data_format="NCHW"), _called("eps", "epsilon", 1e-5)),
    "Cast": (Attr("dst_type", lambda f: TYPES.get(f.get("to")), lambda v: {"to": _number_of(v)}),),
    "Conv": (*CONVOLUTION, *_always(type="Convolution", input_feature_channel=1, output_feature_channel=0)),
    "ConvTranspose": (
        *CONVOLUTION,
        *_always(type="Deconvolution", input_feature_channel=0, output_feature_channel=1),
        _spatial("output_padding", "output_padding", 0),
    ),
    "CumSum": (_called("exclusive", "exclusive", 0), _called("reverse", "reverse", 0)),
    "DepthToSpace": (_called("block_size", "blocksize"), _one_of("mode", "mode", BLOCKS, "DCR")),
    "Dropout": _always(identity=True),
    "Elu": (_called("alpha", "alpha", 1.0),),
    "Expand": _always(mode="bidirectional"),
    "Flatten": (_called("axis", "axis", 1),),
    "Gather": (_called("axis", "axis", 0),),
    "GatherND": (_called("batch_dims", "batch_dims", 0),),
    "Gemm": (
        _called("alpha", "alpha", 1.0),
        _called("beta", "beta", 1.0),
        _called("transpose_a", "transA", 0, bool),
        _called("transpose_b", "transB", 0, bool),
    ),
    "GlobalAveragePool": _pooling("avg", "opset1", whole=True),
    "GlobalMaxPool": _pooling("max", "opset8", whole=True),
    "Identity": _always(identity=True),
    "InstanceNormalization": (_called("epsilon", "epsilon", 1e-5),),
    "LRN": (
        *_always(type="Norm", version="opset1", region="across"),
        _called("alpha", "alpha", 1e-4),
        _called("beta", "beta", 0.75),
        _called("bias", "bias", 1.0),
        _called("local_size", "size"),
    ),
    "LeakyRelu": (_called("negative_slope", "alpha", 0.01),),
    "LogSoftmax": (LAST_AXIS,),
    "MatMul": _always(transpose_a=False, transpose_b=False),
    "MaxPool": _pooling("max", "opset8"),
    "Neg": _power(scale=-1),
    "NonZero": _always(output_type=np.int64),
    "Reshape": (Attr("special_zero", lambda f: not f.get("allowzero", 0), lambda v: {"allowzero": int(not v)}),),
    "Resize": RESIZE,
    "RoiAlign": (
        _called("pooled_h", "output_height", 1),
        _called("pooled_w", "output_width", 1),
        _called("mode", "mode", "avg"),
    ),
    "Round": _always(mode="half_to_even"),
    "ScatterElements": _always(is_scatter=True),
    "Shape": _always(output_type=np.int64),
    "Size": _always(output_type=np.int64),
    "Softmax": (LAST_AXIS,),
    "SpaceToDepth": (*_always(mode="blocks_first"), _called("block_size", "blocksize")),
    "Split": (
        _called("axis", "axis", 0, np.int64),
        Attr("num_splits", lambda file: file.outputs),
        Attr("type", lambda file: "Split" if file.get("split") is None else "VariadicSplit"),
        *_always(version="opset1"),
        _called("size_splits", "split", None, _ints),
    ),
    "Sqrt": _power(power=0.5),
    "Squeeze": (_called("squeeze_dims", "axes", None, _ints), *_always(keep_at_least_1d=0)),
    "ThresholdedRelu": (_called("alpha", "alpha", 1.0),),
    "TopK": (
        *_always(index_element_type=np.int64),
        _one_of("mode", "largest", {1: "max", 0: "min"}, 1),
        _one_of("sort", "sorted", {1: "value", 0: "none"}, 1),
    ),
    "Transpose": (
        _called("order", "perm", None, _ints),
        Attr("reverse_order", lambda file: file.get("perm") is None),
    ),
    "Unsqueeze": (_called("expand_axis", "axes", None, _ints),),
    **{f"Reduce{kind}": REDUCTION for kind in ("L1", "L2", "Max", "Mean", "Min", "Prod", "Sum")},
}
OLD: dict[str, tuple[Attr, ...]] = {  # before operation set 11
    "Clip": _always(type="Clamp", version="opset1"),
    "Pad": (
        _called("mode", "mode", "constant"),
        _called("fill_value", "value", 0.0),
        Attr("pads", lambda file: _pairs(file.get("pads")), _all_pads("pads", 0)),
    ),
}
RECENT: dict[str, tuple[Attr, ...]] = {"Pad": (_called("mode", "mode", "constant"),)}


def _number_of(kind: Any) -> int:
    return next(number for number, known in TYPES.items() if known is np.dtype(kind).type)


def _attrs(op: Foreign) -> tuple[Attr, ...]:
    file = file_of(op)
    by_age = OLD if file.opset < INPUTS_INSTEAD else RECENT
    return () if op.dialect != "onnx" or file.get("domain") else by_age.get(op.kind) or ATTRS.get(op.kind, ())


def file_of(op: Foreign, outputs: int = 1) -> File:
    attrs = dict(op.attrs)
    return File(attrs, int(attrs.get("opset") or 0), outputs)


def name_by_attributes(op: Foreign) -> str | None:
    """Return the attribute `op` of a kind's nodes that depends on the file's operation set; None for another kind."""
    if op.dialect != "onnx":
        return None
    file = file_of(op)
    old = file.opset < INPUTS_INSTEAD
    if op.kind == "Split" and file.opset < AXES_ARE_INPUTS:
        return "AttributedVariadicSplit" if file.get("split") is not None else "AttributedSplit"
    names = {"Clip": ("AttributedClamp", "Clamp"), "Pad": ("AttributedPad", "ONNXPad")}
    names |= {"Slice": ("AttributedSlice" if file.opset < INPUTS_INSTEAD - 1 else "Slice", "Slice")}
    return names[op.kind][0 if old else 1] if op.kind in names else None


def extracted(node: Node) -> dict[str, Any]:
    """Return the attributes of a foreign node by Model Optimizer's names."""
    op = node.op
    assert isinstance(op, Foreign), f"{node.name}: a node of a framework, got {op}"
    file = file_of(op, len(node.out_ports()))
    found = {attr.name: attr.read(file) for attr in _attrs(op)}
    return {name: value for name, value in found.items() if value is not None}


def names_of(op: Foreign) -> set[str]:
    """Return the names of the attributes of `extracted`."""
    return {attr.name for attr in _attrs(op)}


def written(op: Foreign, changed: dict[str, Any]) -> dict[str, Any]:
    """Return attributes of the file for changed attributes of Model Optimizer's names; None: it has the default."""
    found: dict[str, Any] = {}
    for attr in _attrs(op):
        if attr.name not in changed or attr.write is None:
            continue
        value = changed[attr.name]
        found |= dict.fromkeys(attr.write(attr.read(file_of(op)))) if value is None else attr.write(value)
    return found
