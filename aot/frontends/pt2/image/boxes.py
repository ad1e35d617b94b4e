"""Boxes in images, as torchvision has them."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.pt2.neural.convolution import biased
from aot.frontends.pt2.registry import Call, Size, aten
from aot.ir.graph import OutPort
from aot.opset.detection.roi_align import Aligned, Pooling
from runtime.abi import DType


def corners(node: Call, rois: OutPort) -> tuple[OutPort, OutPort]:
    """The boxes [K, 4] and the numbers of their images of rows (image, x0, y0, x1, y1)."""
    build = node.build
    image = build.Gather(rois, node.scalar(0), node.scalar(1))
    return build.Gather(rois, node.list([1, 2, 3, 4]), node.scalar(1)), node.cast(image, DType.I32)


@aten("torchvision::roi_align.default")
def roi_align(
    node: Call,
    x: OutPort,
    rois: OutPort,
    spatial_scale: float,
    pooled_height: Size,
    pooled_width: Size,
    sampling_ratio: int,
    aligned: bool,
) -> OutPort:
    node.refuse(not isinstance(pooled_height, int) or not isinstance(pooled_width, int), "sizes must be known")
    boxes, images = corners(node, rois)
    return node.build.ROIAlign(
        x,
        boxes,
        images,
        pooled_h=pooled_height,
        pooled_w=pooled_width,
        sampling_ratio=max(sampling_ratio, 0),
        spatial_scale=spatial_scale,
        mode=Pooling.AVG,
        aligned_mode=Aligned.HALF_PIXEL if aligned else Aligned.ASYMMETRIC,
    )


@aten("torchvision::nms.default")
def nms(node: Call, x: OutPort, scores: OutPort, iou_threshold: float) -> OutPort:
    """The places of the boxes that are kept, the best score first."""
    build, zero = node.build, node.list([0])
    boxes = build.Unsqueeze(x, zero)
    rows = build.Reshape(scores, node.list([1, 1, -1]))
    most = node.size(x, 0)
    kept = build.NonMaxSuppression(
        boxes, rows, most, build.const(iou_threshold, DType.F32), output_type=DType.I64, outputs=3
    )
    return build.Gather(kept, node.scalar(2), node.scalar(1))


@aten("torchvision::deform_conv2d.default")
def deform_conv2d(
    node: Call,
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
    inputs: Sequence[OutPort] = [x, offset, weight, mask] if use_mask else [x, offset, weight]
    y = node.build.DeformableConvolution(
        *inputs,
        strides=(stride_h, stride_w),
        pads_begin=(pad_h, pad_w),
        pads_end=(pad_h, pad_w),
        dilations=(dilation_h, dilation_w),
        group=groups,
        deformable_group=offset_groups,
        bilinear_interpolation_pad=True,
    )
    return biased(node, y, bias)
