"""Boxes without those that overlap better ones."""

from __future__ import annotations

from aot.frontends.tf.math.complex_numbers import zeros
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.opset.detection.suppression.corners import Encoding
from aot.opset.reduction.sorting import Mode, Order
from aot.runtime.abi import DType


def _selected_rows(node: TfNode, boxes: OutPort, scores: OutPort, *limits: OutPort | float) -> tuple[OutPort, ...]:
    """Return rows (image, class, box), best first within a class, their scores (image, class, score), their number."""
    first = node.build.NonMaxSuppression(
        boxes, scores, *limits, box_encoding=Encoding.CORNER, sort_result_descending=False, outputs=3
    )
    return tuple(first.node.out_ports().values())


def _selected(node: TfNode, boxes: OutPort, scores: OutPort, *limits: OutPort | float) -> tuple[OutPort, OutPort]:
    """Indices [count] of the boxes kept of one image and one class, in i32, and their scores."""
    build, front = node.build, node.list([0])
    wide = [node.cast(p, DType.F32) for p in (boxes, scores)]
    rows, port, _ = _selected_rows(
        node, build.Unsqueeze(wide[0], front), build.Unsqueeze(wide[1], node.list([0, 1])), *limits
    )
    positions, values = (build.Gather(p, node.scalar(2), node.scalar(1)) for p in (rows, port))
    return node.cast(positions, DType.I32), node.cast(values, scores.type.dtype)


@tf("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5")
def non_max_suppression(
    node: TfNode,
    boxes: OutPort,
    scores: OutPort,
    most: OutPort,
    overlap: OutPort | None = None,
    least: OutPort | None = None,
    sigma: OutPort | None = None,
) -> tuple[OutPort, ...]:
    """Places of the boxes that are kept, best first; from version 4 on perhaps as many as may be, filled with 0."""
    build = node.build
    limit = node.cast(node.single(most), DType.I64)
    share = build.const(node.number("iou_threshold"), DType.F32) if overlap is None else node.cast(overlap, DType.F32)
    floor = build.const(float("-inf"), DType.F32) if least is None else node.cast(least, DType.F32)
    more = () if sigma is None else (node.cast(sigma, DType.F32),)
    positions, values = _selected(node, boxes, scores, limit, share, floor, *more)
    count = node.cast(node.size(positions, 0), DType.I32)
    if node.flag("pad_to_max_output_size"):
        positions, values = (_filled(node, p, limit) for p in (positions, values))
    if node.kind.endswith("V5"):
        return positions, values, count
    return (positions, count) if node.kind.endswith("V4") else (positions,)


def _filled(node: TfNode, x: OutPort, size: OutPort) -> OutPort:
    """Return a vector with zeros at the end, `size` elements in all."""
    build, one = node.build, node.list([1])
    size = build.Reshape(size, one)
    blank = build.Broadcast(node.like(0, x), size)
    positions = build.Range(node.scalar(0), node.size(x, 0), node.scalar(1), output_type=DType.I64)
    return build.ScatterElementsUpdate(blank, positions, x, node.scalar(0))


@tf("CombinedNonMaxSuppression")
def combined_non_max_suppression(
    node: TfNode, boxes: OutPort, scores: OutPort, most: OutPort, total: OutPort, overlap: OutPort, least: OutPort
) -> tuple[OutPort, ...]:
    """Boxes [B, n, 1 or classes, 4], scores [B, n, classes]: the best boxes of each image over all classes."""
    build, zero, one = node.build, node.scalar(0), node.scalar(1)
    classes, own = node.size(scores, 2), node.extent(boxes, 2, "the number of boxes' classes")
    by_class = build.Transpose(scores, node.list([0, 2, 1]))  # [B, classes, n]
    if own == 1:
        tidy, ranked = build.Squeeze(boxes, node.list([2])), by_class
    else:  # each class is an image of its own
        inner = node.dims(boxes, [1])
        tidy = build.Reshape(
            build.Transpose(boxes, node.list([0, 2, 1, 3])),
            build.Concat(node.list([-1]), inner, node.list([4]), axis=0),
        )
        ranked = build.Reshape(by_class, build.Concat(node.list([-1]), node.list([1]), inner, axis=0))
    limits = (node.cast(node.single(most), DType.I64), overlap, least)
    rows, best_scores, _ = _selected_rows(node, tidy, ranked, *limits)
    values = build.Gather(best_scores, node.scalar(2), one)
    blank = build.Broadcast(build.const(float("-inf"), DType.F32), node.dims(ranked, range(3)))
    marked = build.Reshape(build.ScatterNDUpdate(blank, rows, values), node.dims(by_class, range(3)))
    flat = build.Reshape(marked, build.Concat(node.dims(scores, [0]), node.list([-1]), axis=0))
    limit = node.cast(node.single(total), DType.I64)
    room = node.size(flat, 1)
    if node.flag("pad_per_class"):
        limit = build.Minimum(limit, build.Multiply(limits[0], classes))
    short = build.Maximum(build.Subtract(limit, room), 0)
    ends = build.Concat(node.list([0]), build.Reshape(short, node.list([1])), axis=0)
    flat = build.Pad(flat, node.list([0, 0]), ends, build.const(float("-inf"), DType.F32))
    top = build.TopK(
        flat, limit, axis=1, mode=Mode.MAX, sort=Order.VALUE, stable=True, index_element_type=DType.I64, outputs=2
    )
    return _described(node, boxes, top, top.node.out_port(1), own, zero)


def _described(
    node: TfNode, boxes: OutPort, best: OutPort, positions: OutPort, own: int, zero: OutPort
) -> tuple[OutPort, ...]:
    """Boxes, scores, classes and number of the kept boxes; the rest is 0."""
    build = node.build
    count = node.size(boxes, 1)
    valid = build.Greater(best, float("-inf"))
    kept = build.Select(valid, best, node.like(0, best))
    label = build.Select(valid, build.Divide(positions, count), zero)
    index = build.Select(valid, build.FloorMod(positions, count), zero)
    if own > 1:
        index = build.Add(build.Multiply(index, own), label)
    lines = build.Reshape(boxes, build.Concat(node.dims(boxes, [0]), node.list([-1, 4]), axis=0))
    boxes_kept = build.Gather(lines, index, node.scalar(1), batch_dims=1)
    if node.flag("clip_boxes"):
        boxes_kept = build.Clamp(boxes_kept, min=0.0, max=1.0)
    boxes_kept = build.Select(build.Unsqueeze(valid, node.list([2])), boxes_kept, zeros(node, boxes_kept))
    total = build.ReduceSum(node.cast(valid, DType.I32), node.list([1]))
    return boxes_kept, kept, node.cast(label, DType.F32), total
