"""TFLite_Detection_PostProcess: the custom operation that ends detectors of the TensorFlow Object Detection API."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from aot.frontends.tflite.registry import Call, tflite
from aot.frontends.tflite.schema import BROKEN
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

LIMITS = ("iou", "score")
SCALES = ("y_scale", "x_scale", "h_scale", "w_scale")


def flexible(node: Call) -> dict[str, Any]:
    """Return the options of a custom operation that are a map of flexbuffers."""
    raw = node.attrs.get("options", b"")
    try:
        found: Any = import_module("flatbuffers.flexbuffers").Loads(bytes(raw))
    except (*BROKEN, RecursionError) as error:
        raise ModelError(f"{node.kind}: options are a map of flexbuffers, got others: {error}") from error
    if not isinstance(found, dict):
        raise ModelError(f"{node.kind}: options are a map of flexbuffers, got {type(found).__name__}")
    return cast("dict[str, Any]", found)


@tflite("CUSTOM.TFLite_Detection_PostProcess")
def detection_post_process(node: Call, codes: OutPort, scores: OutPort, anchors: OutPort) -> tuple[OutPort, ...]:
    """Boxes [1, most, 4], classes, scores, and how many there are; a row behind them is 0.

    Each anchor has the class of its best score, and boxes that overlap better ones of any class are left out; with
    `use_regular_nms`, those of their own class are.
    """
    build, facts = node.build, flexible(node)
    needed = ("max_detections", "num_classes", *SCALES, *(f"nms_{n}_threshold" for n in LIMITS))
    if not all(isinstance(facts.get(name), int | float) for name in needed):
        raise ModelError(f"{node.kind}: options are numbers {', '.join(needed)}, got {sorted(facts)}")
    most, limits = int(facts["max_detections"]), _limits(node, facts)
    if not 0 < most < 1 << 16:
        raise ModelError(f"{node.kind}: max_detections is 1 to 65535, got {most}")
    boxes = _decoded(node, codes, anchors, [float(facts[name]) for name in SCALES])
    count = int(facts["num_classes"])
    offset = node.extent(scores, 2, "the number of classes") - count
    rule = f"scores are of all classes, and of the background, got {scores.type}"
    node.refuse(offset not in (0, 1) or count < 1, rule)
    plain = build.Slice(scores, node.list([offset]), node.list([offset + count]), node.list([1]), node.list([2]))
    if facts.get("use_regular_nms", False):
        return _suppressed_by_class(node, boxes, plain, most, int(facts.get("detections_per_class", 100)), limits)
    node.refuse(int(facts.get("max_classes_per_detection", 1)) != 1, "one class for each detection is supported")
    return _suppressed_together(node, boxes, plain, most, limits)


def _suppressed_by_class(
    node: Call, boxes: OutPort, scores: OutPort, most: int, each: int, limits: list[OutPort]
) -> tuple[OutPort, ...]:
    """Return the results where boxes suppress others of their class only, at most `each` of a class."""
    build, count = node.build, node.scalar(each)
    wide = build.Unsqueeze(boxes, node.list([2]))
    found = node.tf("CombinedNonMaxSuppression", wide, scores, count, node.scalar(most), *limits, clip_boxes=False)
    kept, values, classes, number = found
    return kept, classes, values, node.cast(number, DType.F32)


def _suppressed_together(
    node: Call, boxes: OutPort, scores: OutPort, most: int, limits: list[OutPort]
) -> tuple[OutPort, ...]:
    """Return the results where an anchor has the class of its best score, and boxes suppress others of any class."""
    build, first = node.build, node.list([0])
    lines = build.Squeeze(boxes, first)
    best = build.TopK(
        build.Squeeze(scores, first), node.scalar(1), axis=1, stable=True, index_element_type=DType.I64, outputs=2
    )
    top, label = (build.Squeeze(p, node.list([1])) for p in best.node.out_ports().values())
    places, number = node.tf("NonMaxSuppressionV4", lines, top, node.scalar(most), *limits, pad_to_max_output_size=True)
    steps = build.Range(node.scalar(0), node.scalar(most), node.scalar(1), output_type=DType.I64)
    valid = node.cast(build.Less(steps, node.cast(number, DType.I64)), DType.F32)

    def picked(x: OutPort) -> OutPort:
        return build.Multiply(build.Gather(x, places, node.scalar(0)), valid)

    kept = build.Multiply(build.Gather(lines, places, node.scalar(0)), build.Unsqueeze(valid, node.list([1])))
    parts = (kept, picked(node.cast(label, DType.F32)), picked(top))
    total = build.Reshape(node.cast(number, DType.F32), node.list([1]))
    return (*(build.Unsqueeze(p, first) for p in parts), total)


def _limits(node: Call, facts: dict[str, Any]) -> list[OutPort]:
    return [node.build.const(float(facts[f"nms_{name}_threshold"]), DType.F32) for name in LIMITS]


def _decoded(node: Call, codes: OutPort, anchors: OutPort, scales: list[float]) -> OutPort:
    """Corners [1, anchors, 4] of boxes y, x, h, w that are coded by their anchors."""
    build = node.build

    def columns(x: OutPort) -> list[OutPort]:
        last = x.type.rank - 1
        first = build.Split(x, node.scalar(last), num_splits=4, outputs=4)
        return list(first.node.out_ports().values())

    y, x, h, w = (build.Divide(p, s) for p, s in zip(columns(codes), scales, strict=True))
    own_y, own_x, own_h, own_w = columns(anchors)
    centres = [build.Add(build.Multiply(p, size), at) for p, size, at in ((y, own_h, own_y), (x, own_w, own_x))]
    halves = [build.Multiply(build.Multiply(build.Exp(p), size), 0.5) for p, size in ((h, own_h), (w, own_w))]
    low = [build.Subtract(c, half) for c, half in zip(centres, halves, strict=True)]
    high = [build.Add(c, half) for c, half in zip(centres, halves, strict=True)]
    return build.Concat(*low, *high, axis=2)


@tflite("CUSTOM.Convolution2DTransposeBias")
def transpose_conv_with_bias(node: Call, x: OutPort, w: OutPort, bias: OutPort) -> OutPort:
    """TRANSPOSE_CONV of MediaPipe: options are padding (1: SAME, 2: VALID), strides; weights [outputs, .., inputs]."""
    raw = bytes(node.attrs.get("options", b""))
    if len(raw) < 12:
        raise ModelError(f"{node.kind}: options are three numbers of 4 bytes, got {len(raw)} bytes")
    kind, across, down = (int.from_bytes(raw[i : i + 4], "little") for i in (0, 4, 8))
    node.refuse(kind not in (1, 2), f"padding {kind} is not supported")
    if not 0 < across < 1 << 16 or not 0 < down < 1 << 16:
        raise ModelError(f"{node.kind}: strides are 1 or more, got {down} and {across}")
    build = node.build
    extents = [node.extent(x, a, "the size of images") for a in (1, 2)]
    kernel = [node.extent(w, a, "the size of windows") for a in (1, 2)]
    strides = (down, across)
    wide = [n * s if kind == 1 else (n - 1) * s + k for n, s, k in zip(extents, strides, kernel, strict=True)]
    sizes = build.Concat(node.dims(x, [0]), node.list(wide), node.dims(w, [0]), axis=0)
    turned = build.Transpose(w, node.list([1, 2, 0, 3]))
    attrs = {"strides": (1, *strides, 1), "dilations": (1,) * 4, "padding": "SAME" if kind == 1 else "VALID"}
    return build.Add(node.tf("Conv2DBackpropInput", sizes, turned, x, **attrs), bias)
