"""Boxes: suppression, alignment of regions, outputs of YOLO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from aot.frontends.paddle.registry import PaddleNode, paddle
from aot.ir.graph import OutPort
from aot.opset.detection.suppression.class_suppression import Decay
from aot.opset.detection.suppression.selection import Sorting
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError


def _chosen(node: PaddleNode, sorting: Sorting) -> dict[str, Any]:
    """Return the rules for choosing among boxes, and the order of those that are left."""
    return {
        "sort_result_type": sorting,
        "output_type": DType.I32,
        "score_threshold": node.number("score_threshold"),
        "nms_top_k": node.integer("nms_top_k"),
        "keep_top_k": node.integer("keep_top_k"),
        "background_class": node.integer("background_label", 0),
        "normalized": node.flag("normalized", True),
    }


@paddle("multiclass_nms3")
def multiclass_nms(
    node: PaddleNode,
    boxes: OutPort,
    scores: OutPort,
    counts: OutPort | None = None,
    *,
    nms_threshold: float = 0.3,
    nms_eta: float = 1.0,
) -> tuple[OutPort, ...]:
    """Choose the best boxes of each class, then of each image: rows (class, score, box), places, counts."""
    node.refuse(counts is not None, "all images have as many boxes, got numbers of boxes")
    attrs = _chosen(node, Sorting.CLASS) | {"iou_threshold": nms_threshold, "nms_eta": nms_eta}
    return tuple(node.build.MulticlassNms(boxes, scores, outputs=3, **attrs).node.out_ports().values())


@paddle("matrix_nms")
def matrix_nms(
    node: PaddleNode,
    boxes: OutPort,
    scores: OutPort,
    *,
    post_threshold: float = 0.0,
    use_gaussian: bool = False,
    gaussian_sigma: float = 2.0,
) -> tuple[OutPort, ...]:
    """Choose boxes by scores that decay with the overlap: rows (class, score, box), places, counts."""
    decay = Decay.GAUSSIAN if use_gaussian else Decay.LINEAR
    attrs = _chosen(node, Sorting.SCORE) | {"post_threshold": post_threshold, "gaussian_sigma": gaussian_sigma}
    port = node.build.MatrixNms(boxes, scores, outputs=3, decay_function=decay, **attrs)
    return tuple(port.node.out_ports().values())


@paddle("roi_align")
def roi_align(
    node: PaddleNode,
    x: OutPort,
    boxes: OutPort,
    counts: OutPort | None = None,
    *,
    pooled_height: int = 1,
    pooled_width: int = 1,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> OutPort:
    """Sample regions of images; `counts`: how many of them each image has."""
    build = node.build
    rows = build.Range(node.scalar(0), node.size(boxes, 0), node.scalar(1), output_type=DType.I64)
    if counts is None:
        images = build.Subtract(rows, rows)
    else:
        ends = build.CumSum(node.vector(counts), node.scalar(0))
        behind = build.GreaterEqual(build.Unsqueeze(rows, node.list([1])), build.Unsqueeze(ends, node.list([0])))
        images = build.ReduceSum(node.cast(behind, DType.I64), node.list([1]))
    return node.onnx(
        "RoiAlign",
        x,
        boxes,
        images,
        output_height=pooled_height,
        output_width=pooled_width,
        sampling_ratio=max(sampling_ratio, 0),
        spatial_scale=spatial_scale,
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
    )


@paddle("yolo_box")
def yolo_box(
    node: PaddleNode,
    x: OutPort,
    images: OutPort,
    *,
    anchors: Sequence[int],
    class_num: int,
    conf_thresh: float = 0.01,
    downsample_ratio: int = 32,
    clip_bbox: bool = True,
    scale_x_y: float = 1.0,
    iou_aware: bool = False,
) -> tuple[OutPort, OutPort]:
    """Return boxes (x0, y0, x1, y1) in pixels, and scores, both 0 where an anchor has no object."""
    node.refuse(iou_aware, "scores do not depend on overlaps, got iou_aware")
    build, count = node.build, len(anchors) // 2
    if not count or len(anchors) % 2:
        raise ModelError(f"{node.kind}: anchors must be pairs of sizes, got {list(anchors)}")
    height, width = (node.extent(x, a, "the size of the map") for a in (2, 3))
    split = build.Reshape(x, node.list([0, count, 5 + class_num, height, width]), special_zero=True)
    parts = build.VariadicSplit(split, node.scalar(2), node.list([1, 1, 1, 1, 1, class_num]), outputs=6).node
    tx, ty, tw, th, object_, classes = parts.out_ports().values()
    sizes = node.cast(build.Reshape(images, node.list([-1, 1, 1, 1, 1, 2])), DType.F32)
    tall, wide = (build.Gather(sizes, node.scalar(i), node.scalar(5)) for i in (0, 1))

    def number(values: Any, *shape: int) -> OutPort:
        return build.const(np.reshape(np.asarray(values, np.float32), shape), DType.F32)

    def centre(t: OutPort, cells: int, whole: OutPort, *shape: int) -> OutPort:
        inside = build.Add(build.Multiply(build.Sigmoid(t), scale_x_y), -0.5 * (scale_x_y - 1))
        return build.Multiply(build.Divide(build.Add(inside, number(range(cells), *shape)), float(cells)), whole)

    def half(t: OutPort, own: Sequence[int], cells: int, whole: OutPort) -> OutPort:
        factor = number(np.array(own) / (2 * downsample_ratio * cells), 1, count, 1, 1, 1)
        return build.Multiply(build.Multiply(build.Exp(t), factor), whole)

    x0, y0 = centre(tx, width, wide, 1, 1, 1, 1, width), centre(ty, height, tall, 1, 1, 1, height, 1)
    dx, dy = half(tw, anchors[::2], width, wide), half(th, anchors[1::2], height, tall)
    corners = [build.Subtract(x0, dx), build.Subtract(y0, dy), build.Add(x0, dx), build.Add(y0, dy)]
    if clip_bbox:
        ends = [build.Subtract(wide, 1.0), build.Subtract(tall, 1.0)]
        corners[:2] = [build.Maximum(c, 0.0) for c in corners[:2]]
        corners[2:] = [build.Minimum(c, end) for c, end in zip(corners[2:], ends, strict=True)]
    sure = build.Sigmoid(object_)
    counted = node.cast(build.GreaterEqual(sure, conf_thresh), DType.F32)
    boxes = build.Multiply(build.Concat(*corners, axis=2), counted)
    scores = build.Multiply(build.Multiply(build.Sigmoid(classes), sure), counted)

    def listed(values: OutPort, length: int) -> OutPort:
        last = build.Transpose(values, node.list([0, 1, 3, 4, 2]))
        return build.Reshape(last, node.list([0, count * height * width, length]), special_zero=True)

    return listed(boxes, 4), listed(scores, class_num)


@paddle("nms")
def nms(node: PaddleNode, boxes: OutPort, *, threshold: float = 1.0) -> OutPort:
    """Find the places of boxes, the best ones first, that do not overlap a box before them."""
    build = node.build
    count = node.dims(boxes, [0])
    order = node.cast(
        build.Range(node.scalar(0), node.size(boxes, 0), node.scalar(1), output_type=DType.I64), DType.F32
    )
    scores = build.Unsqueeze(build.Negative(order), node.list([0, 1]))  # boxes are sorted
    selected = node.onnx(
        "NonMaxSuppression",
        build.Unsqueeze(boxes, node.list([0])),
        scores,
        count,
        build.const([threshold], DType.F32),
    )
    selected = selected if isinstance(selected, OutPort) else selected[0]
    return build.Reshape(build.Gather(selected, node.scalar(2), node.scalar(1)), node.list([-1]))


@paddle("box_coder")
def box_coder(
    node: PaddleNode,
    priors: OutPort,
    variances: OutPort | None,
    x: OutPort,
    *,
    code_type: str = "encode_center_size",
    box_normalized: bool = True,
    axis: int = 0,
    variance: Sequence[float] = (),
) -> OutPort:
    """Return boxes of distances [N, M, 4] from prior boxes, which go along axis 1, or along axis 0 for `axis` 1."""
    node.refuse(code_type != "decode_center_size", "boxes are decoded, got encode_center_size")
    build, one = node.build, 0.0 if box_normalized else 1.0
    missing_axis = node.list([axis])
    along = build.Unsqueeze(priors, missing_axis)
    factors = build.const(list(variance) or [1.0] * 4, DType.F32)
    if variances is not None:
        factors = build.Unsqueeze(variances, missing_axis)
    scaled = build.Multiply(x, factors)

    def parts(value: OutPort) -> list[OutPort]:
        new_node = build.Split(value, node.scalar(2), num_splits=4, outputs=4).node
        return list(new_node.out_ports().values())

    x0, y0, x1, y1 = parts(along)
    tx, ty, tw, th = parts(scaled)
    ends = list[tuple[OutPort, OutPort]]()
    for low, high, shift, size in ((x0, x1, tx, tw), (y0, y1, ty, th)):
        length = build.Add(build.Subtract(high, low), one)
        centre = build.Add(build.Add(low, build.Multiply(length, 0.5)), build.Multiply(shift, length))
        half = build.Multiply(build.Multiply(build.Exp(size), length), 0.5)
        ends.append((build.Subtract(centre, half), build.Subtract(build.Add(centre, half), one)))
    return build.Concat(ends[0][0], ends[1][0], ends[0][1], ends[1][1], axis=2)
