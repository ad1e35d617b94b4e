"""TFLite_Detection_PostProcess: the custom operation that ends detectors of the TensorFlow Object Detection API."""

from __future__ import annotations

from typing import Any

from aot.frontends.tflite.custom_options import flexible
from aot.frontends.tflite.registry import TfliteNode, tflite
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

LIMITS = ("iou", "score")
SCALES = ("y_scale", "x_scale", "h_scale", "w_scale")


@tflite("CUSTOM.TFLite_Detection_PostProcess")
def detection_post_process(node: TfliteNode, codes: OutPort, scores: OutPort, anchors: OutPort) -> tuple[OutPort, ...]:
    """Boxes [1, most, 4], classes, scores, and how many there are; rows after them are 0.

    Each anchor has the class of its best score, and boxes that overlap better ones of any class are left out; with
    `use_regular_nms`, those of their own class are.
    """
    build, facts = node.build, flexible(node)
    needed = ("max_detections", "num_classes", *SCALES, *(f"nms_{n}_threshold" for n in LIMITS))
    if not all(isinstance(facts.get(name), int | float) for name in needed):
        raise ModelError(f"{node.kind}: options must be numbers {', '.join(needed)}, got {sorted(facts)}")
    most, limits = int(facts["max_detections"]), _limits(node, facts)
    if not 0 < most < 1 << 16:
        raise ModelError(f"{node.kind}: max_detections must be 1 to 65535, got {most}")
    boxes = _decoded(node, codes, anchors, [float(facts[name]) for name in SCALES])
    count = int(facts["num_classes"])
    offset = node.extent(scores, 2, "the number of classes") - count
    rule = f"scores are of all classes, and of the background, got {scores.type}"
    node.refuse(offset not in (0, 1) or count < 1, rule)
    class_scores = build.Slice(scores, node.list([offset]), node.list([offset + count]), node.list([1]), node.list([2]))
    if facts.get("use_regular_nms", False):
        return _suppressed_by_class(
            node, boxes, class_scores, most, int(facts.get("detections_per_class", 100)), limits
        )
    node.refuse(int(facts.get("max_classes_per_detection", 1)) != 1, "one class for each detection is supported")
    return _suppressed_together(node, boxes, class_scores, most, limits)


def _suppressed_by_class(
    node: TfliteNode, boxes: OutPort, scores: OutPort, most: int, each: int, limits: list[OutPort]
) -> tuple[OutPort, ...]:
    """Return the results where boxes suppress others of their class only, at most `each` of a class."""
    build, count = node.build, node.scalar(each)
    wide = build.Unsqueeze(boxes, node.list([2]))
    selected = node.tf("CombinedNonMaxSuppression", wide, scores, count, node.scalar(most), *limits, clip_boxes=False)
    kept, values, classes, number = selected
    return kept, classes, values, node.cast(number, DType.F32)


def _suppressed_together(
    node: TfliteNode, boxes: OutPort, scores: OutPort, most: int, limits: list[OutPort]
) -> tuple[OutPort, ...]:
    """Return the results where an anchor has the class of its best score, and boxes suppress others of any class."""
    build, first = node.build, node.list([0])
    lines = build.Squeeze(boxes, first)
    best = build.TopK(
        build.Squeeze(scores, first), node.scalar(1), axis=1, stable=True, index_element_type=DType.I64, outputs=2
    )
    top, label = (build.Squeeze(p, node.list([1])) for p in best.node.out_ports().values())
    positions, number = node.tf(
        "NonMaxSuppressionV4", lines, top, node.scalar(most), *limits, pad_to_max_output_size=True
    )
    steps = build.Range(node.scalar(0), node.scalar(most), node.scalar(1), output_type=DType.I64)
    valid = node.cast(build.Less(steps, node.cast(number, DType.I64)), DType.F32)

    def picked(x: OutPort) -> OutPort:
        return build.Multiply(build.Gather(x, positions, node.scalar(0)), valid)

    boxes_selected = build.Multiply(
        build.Gather(lines, positions, node.scalar(0)), build.Unsqueeze(valid, node.list([1]))
    )
    parts = (boxes_selected, picked(node.cast(label, DType.F32)), picked(top))
    total = build.Reshape(node.cast(number, DType.F32), node.list([1]))
    return (*(build.Unsqueeze(p, first) for p in parts), total)


def _limits(node: TfliteNode, facts: dict[str, Any]) -> list[OutPort]:
    return [node.build.const(float(facts[f"nms_{name}_threshold"]), DType.F32) for name in LIMITS]


def _decoded(node: TfliteNode, codes: OutPort, anchors: OutPort, scales: list[float]) -> OutPort:
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
