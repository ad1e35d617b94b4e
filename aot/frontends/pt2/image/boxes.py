"""Torchvision's operations on boxes: suppression, pooling of regions, deformable convolutions."""

from __future__ import annotations

from aot.frontends.pt2.registry import AtenNode, aten
from aot.ir.graph import OutPort
from aot.opset.detection.roi_align import Aligned
from aot.runtime.abi import DType


@aten("torchvision::nms.default")
def nms(node: AtenNode, boxes: OutPort, scores: OutPort, iou_threshold: float) -> OutPort:
    """The places of the boxes that are kept, in order of score; boxes (x0, y0, x1, y1)."""
    build = node.build
    boxes, scores = build.Unsqueeze(boxes, node.list([0])), build.Unsqueeze(scores, node.list([0, 1]))
    most = node.size(boxes, 1)
    limits = [build.const(v, DType.F32) for v in (iou_threshold, float("-inf"))]
    rows = build.NonMaxSuppression(boxes, scores, most, *limits, outputs=3)
    return build.Gather(rows, node.scalar(2), node.scalar(1))


def _regions(node: AtenNode, rois: OutPort) -> tuple[OutPort, OutPort]:
    """Boxes [K, 4], and the numbers of their images [K], of rows (image, x0, y0, x1, y1)."""
    build, one = node.build, node.list([1])
    boxes = build.Slice(rois, one, node.list([5]), one, one)
    return boxes, node.cast(build.Gather(rois, node.scalar(0), node.scalar(1)), DType.I64)


@aten("torchvision::roi_align.default")
def roi_align(
    node: AtenNode,
    x: OutPort,
    rois: OutPort,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> OutPort:
    sizes = {"pooled_h": pooled_height, "pooled_w": pooled_width, "sampling_ratio": max(sampling_ratio, 0)}
    mode = Aligned.HALF_PIXEL_FOR_NN if aligned else Aligned.ASYMMETRIC
    return node.build.ROIAlign(x, *_regions(node, rois), spatial_scale=spatial_scale, aligned_mode=mode, **sizes)


@aten("torchvision::deform_conv2d.default")
def deform_conv2d(
    node: AtenNode,
    x: OutPort,
    weight: OutPort,
    offset: OutPort,
    mask: OutPort,
    bias: OutPort,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> OutPort:
    build = node.build
    fields = {"strides": (stride_h, stride_w), "dilations": (dilation_h, dilation_w)}
    pads = {"pads_begin": (pad_h, pad_w), "pads_end": (pad_h, pad_w)}
    counts = {"group": groups, "deformable_group": offset_groups, "bilinear_interpolation_pad": True}
    inputs = [x, offset, weight, *([mask] if use_mask else [])]
    y = build.DeformableConvolution(*inputs, **fields, **pads, **counts)
    return node.biased(y, bias)
