"""Operations that no set has and that Model Optimizer's own transformations replaced: as operations of frameworks.

Their conversions run after the front phase, so a node of one of them needs no more there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from aot.ir.op import Foreign
from aot.ir.types import Array
from aot.mo.utils.arrays import is_a

OLD = 11  # an operation set in which axes and bounds are attributes, where the operation had them
UNLIKE_TYPE = ("AttributedSplit",)  # classes with the type of an operation that has other inputs
APPENDED = {"Squeeze": "squeeze_dims", "Unsqueeze": "unsqueeze_dims", "Transpose": "order"}


class Step(NamedTuple):
    """An operation that reads the inputs, or the result of the step before, and then the constants."""

    op: Foreign
    constants: tuple[Array, ...] = ()


def _step(kind: str, *constants: Any, opset: int = 13, **attrs: Any) -> Step:
    attributes = {name: value for name, value in attrs.items() if value is not None}
    op = Foreign("onnx", kind, (("domain", ""), ("opset", opset), *attributes.items()))
    return Step(op, tuple(np.asarray(c) for c in constants))


def _tf_step(kind: str, *constants: Any, **attrs: Any) -> Step:
    return Step(Foreign("tf", kind, tuple(attrs.items())), tuple(np.asarray(c) for c in constants))


def _ints(value: Any) -> tuple[int, ...]:
    return tuple(int(v) for v in np.asarray(value).reshape(-1))


def _int(node: Any, name: str) -> int | None:
    return int(node[name]) if node.has_valid(name) else None


def _float(node: Any, name: str) -> float | None:
    return float(node[name]) if node.has_valid(name) else None


def _power(node: Any) -> list[Step]:
    """(scale x + shift) ** power."""
    parts = (("Mul", "scale", 1.0), ("Add", "shift", 0.0), ("Pow", "power", 1.0))
    steps = [_step(kind, np.float32(node[name])) for kind, name, neutral in parts if float(node[name]) != neutral]
    return steps or [_step("Identity")]


def _eltwise(node: Any) -> list[Step]:
    kinds = {"sum": "Sum", "max": "Max", "min": "Min", "mul": "Mul"}
    kind = kinds.get(str(node["operation"]).lower())
    return [] if kind is None or (kind == "Mul" and len(node.in_nodes()) != 2) else [_step(kind)]


def _flatten(node: Any) -> list[Step]:
    axis = int(node.axis)
    return [_step("Reshape", np.array([0] * axis + [-1], np.int64))] if int(node.end_axis) == -1 and axis >= 0 else []


def _pad(node: Any) -> list[Step]:
    pads = np.asarray(node.pads)
    text = node.soft_get("mode", "constant")
    return [_step("Pad", opset=2, pads=_ints(pads.T), mode=text, value=_float(node, "fill_value"))]


def _tf_pad(node: Any) -> list[Step]:
    """Return TensorFlow's operation of a Pad, by its mode; the padding is an input with a row for each dimension."""
    mode = str(node.soft_get("mode", "constant"))
    if mode != "constant":
        return [_tf_step("MirrorPad", mode=mode.upper())]
    return [_tf_step("PadV2" if len(node.in_nodes()) > 2 else "Pad")]


def _reverse(node: Any) -> list[Step]:
    axes = () if len(node.in_nodes()) > 1 else (np.array(_ints(node.axis), np.int32),)
    return [_tf_step("ReverseV2", *axes)]


def _lrn(node: Any) -> list[Step]:
    numbers: dict[str, Any] = {name: _float(node, name) for name in ("alpha", "beta", "bias")}
    return [_step("LRN", size=_int(node, "local_size"), **numbers)]


def _slice(node: Any) -> list[Step]:
    axes = _ints(node.axes) if node.has_valid("axes") else None
    return [_step("Slice", opset=9, starts=_ints(node.starts), ends=_ints(node.ends), axes=axes)]


def _gemm(node: Any) -> list[Step]:
    turned = {"transA": int(node.transpose_a), "transB": int(node.transpose_b)}
    return [_step("Gemm", **turned, alpha=_float(node, "alpha"), beta=_float(node, "beta"))]


Rule = Callable[[Any], list[Step]]
RULES: dict[str, Rule] = {
    "Identity": lambda n: [_step("Identity")],
    "AttributedPower": _power,
    "EltwiseN": _eltwise,
    "AttributedGather": lambda n: [_step("Gather", axis=_int(n, "axis"))],
    "AttributedSplit": lambda n: [_step("Split", axis=_int(n, "axis"))],
    "AttributedVariadicSplit": lambda n: [
        _step(
            "Split",
            opset=OLD,
            axis=_int(n, "axis"),
            split=_ints(n.soft_get("size_splits", n.soft_get("split_lengths"))),
        )
    ],
    "AttributedPad": _pad,
    "AttributedSlice": _slice,
    "Slice": lambda n: [_step("Slice")],
    "SoftMaxONNX": lambda n: [_step("Softmax", opset=OLD, axis=_int(n, "axis"))],
    "LogSoftmaxONNX": lambda n: [_step("LogSoftmax", opset=OLD, axis=_int(n, "axis"))],
    "Flatten": _flatten,
    "FlattenONNX": lambda n: [_step("Flatten", axis=_int(n, "axis"))],
    "Gemm": _gemm,
    "Rank": lambda n: [_step("Shape"), _step("Size")],
    "Size": lambda n: [_step("Size")],
    "ConstantOfShape": lambda n: [_step("ConstantOfShape", value=np.asarray(n.fill_value).reshape(1))],
    "Clamp": lambda n: [_step("Clip")],
    "ExpandDims": lambda n: [_step("Unsqueeze", opset=OLD, axes=_ints(n.expand_axis))],
    "MVNOnnx": lambda n: [_step("MeanVarianceNormalization", axes=_ints(n.axes))],
    "InstanceNormalization": lambda n: [_step("InstanceNormalization", epsilon=_float(n, "epsilon"))],
    "batchNormInference": lambda n: [_step("BatchNormalization", opset=9, epsilon=_float(n, "eps"))],
    "ThresholdedRelu": lambda n: [_step("ThresholdedRelu", alpha=_float(n, "alpha"))],
    "QuantizeLinear": lambda n: [_step("QuantizeLinear", axis=_int(n, "axis"))],
    "DequantizeLinear": lambda n: [_step("DequantizeLinear", axis=_int(n, "axis"))],
    "LeakyReLU": lambda n: [_step("LeakyRelu", alpha=_float(n, "negative_slope"))],
    "ClipByValueTF": lambda n: [_step("Clip")],
    "StopGradient": lambda n: [_step("Identity")],
    "Add": lambda n: [_step("Add")] if n.soft_get("type") == "BiasAdd" else [],
    "Permute": lambda n: [_step("Transpose", perm=_ints(n.order))],
    "AttributedLRN": _lrn,
    "ONNXPad": lambda n: [_step("Pad", mode=n.soft_get("mode", "constant"))],
    "Fill": lambda n: [_tf_step("Fill")],
    "Pack": lambda n: [_tf_step("Pack", axis=_int(n, "axis") or 0, N=len(n.in_nodes()))],
    "Reverse": _reverse,
    "TFPad": _tf_pad,
    "TFSlice": lambda n: [_tf_step("Slice")],
    "TFScatterND": lambda n: [_tf_step("ScatterNd")],
}


def steps_of(node: Any) -> list[Step]:
    """Return the operations that a node stands for, one after the other; none if it is none of these."""
    rule = RULES.get(node.soft_get("op"))
    return [] if rule is None else rule(node)


def appended(node: Any, connected: int) -> Array | None:
    """Return the axes that a node without an input for them holds in an attribute; None without."""
    name = APPENDED.get(node.soft_get("op"))
    if name is None or connected != 1 or not node.has_valid(name):
        return None
    value = node[name]
    return np.asarray(value if is_a(value, (list, tuple, np.ndarray)) else [value], np.int64)
