"""Images in other sizes, and boxes without those that overlap better ones."""

from __future__ import annotations

from aot.frontends.tflite.registry import TfliteNode, tflite
from aot.ir.graph import OutPort

FLAGS = ("align_corners", "half_pixel_centers")


@tflite("RESIZE_BILINEAR")
def resize_bilinear(node: TfliteNode, x: OutPort, size: OutPort) -> OutPort:
    return node.tf("ResizeBilinear", x, size, **{name: node.flag(name) for name in FLAGS})


@tflite("RESIZE_NEAREST_NEIGHBOR", stored=True)
def resize_nearest(node: TfliteNode, x: OutPort, size: OutPort) -> OutPort:
    return node.tf("ResizeNearestNeighbor", x, size, **{name: node.flag(name) for name in FLAGS})


@tflite("NON_MAX_SUPPRESSION_V4")
def suppression_v4(
    node: TfliteNode, boxes: OutPort, scores: OutPort, most: OutPort, overlap: OutPort, least: OutPort
) -> tuple[OutPort, ...]:
    """Places of the boxes kept, filled with 0 up to the limit, and their number."""
    return node.tf("NonMaxSuppressionV4", boxes, scores, most, overlap, least, pad_to_max_output_size=True)


@tflite("NON_MAX_SUPPRESSION_V5")
def suppression_v5(
    node: TfliteNode, boxes: OutPort, scores: OutPort, most: OutPort, overlap: OutPort, least: OutPort, sigma: OutPort
) -> tuple[OutPort, ...]:
    """Places and scores, as many as may be, filled with 0, and their number."""
    value = sigma.value
    node.refuse(value is None or bool(value.any()), "scores that overlaps lower (soft_nms_sigma) are not supported")
    positions, values, count = node.tf(
        "NonMaxSuppressionV5", boxes, scores, most, overlap, least, sigma, pad_to_max_output_size=True
    )
    return positions, values, count
