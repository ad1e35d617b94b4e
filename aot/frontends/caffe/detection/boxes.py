"""Detection: prior boxes, proposals, regions, and the boxes that are left."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, cast

from aot.frontends.caffe.registry import CaffeNode, caffe
from aot.ir.graph import OutPort
from aot.opset.detection.detection_output import Code
from aot.runtime.errors import ModelError

CODES = {"CORNER": Code.CORNER, "CENTER_SIZE": Code.CENTER_SIZE}
PROPOSALS: dict[str, dict[str, Any]] = {  # the parameters of Python layers that make proposals, and their defaults
    "rpn.proposal_layer.ProposalLayer": {"pre_nms_topn": 6000, "post_nms_topn": 300, "nms_thresh": 0.7},
    "SSH.layers.proposal_layer.ProposalLayer": {"pre_nms_topn": 1000, "post_nms_topn": 1000, "nms_thresh": 1.0},
}
ANCHORS: dict[str, Any] = {
    "feat_stride": 16,
    "base_size": 16,
    "min_size": 16,
    "ratio": (0.5, 1, 2),
    "scale": (8, 16, 32),
}


def _sizes(node: CaffeNode, features: OutPort, image: OutPort) -> tuple[OutPort, OutPort]:
    """Return the sizes of a feature map and of the image, which the parameters may give."""
    image_sizes = [node.integer(f"img_{letter}", node.integer("img_size", 0)) for letter in "hw"]
    return node.dims(features, [2, 3]), node.list(image_sizes) if all(image_sizes) else node.dims(image, [2, 3])


@caffe("PriorBox", param="prior_box_param")
def prior_box(node: CaffeNode, features: OutPort, image: OutPort, *, flip: bool, clip: bool, offset: float) -> OutPort:
    """Boxes of several sizes and ratios around each cell: [1, 2, boxes * 4], and their variances."""
    steps = {node.number(f"step_{letter}", 0.0) or node.number("step", 0.0) for letter in "hw"}
    node.refuse(len(steps) > 1, "steps are the same in both directions")
    step = steps.pop()
    node.refuse(not step and offset != 0.5, f"the offset is 0.5 without a step, got {offset}")
    names = ("min_size", "max_size", "aspect_ratio", "fixed_size", "fixed_ratio", "density")
    lists: dict[str, Any] = {name: node.numbers(name, ()) for name in names}
    sizes, variance = _sizes(node, features, image), node.numbers("variance", (0.1,))
    port = node.build.PriorBox(*sizes, **lists, flip=flip, clip=clip, step=step, offset=offset, variance=variance)
    return node.build.Unsqueeze(port, node.list([0]))


@caffe("PriorBoxClustered", param="prior_box_param")
def prior_box_clustered(node: CaffeNode, features: OutPort, image: OutPort, *, clip: bool, offset: float) -> OutPort:
    """Boxes of the sizes `width` and `height` around each cell."""
    sizes = {name: node.numbers(name, ()) for name in ("width", "height")}
    steps = {f"step{name}": node.number(f"step{name}", 0.0) for name in ("", "_w", "_h")}
    given, variance = _sizes(node, features, image), node.numbers("variance", (0.1,))
    port = node.build.PriorBoxClustered(*given, **sizes, **steps, clip=clip, offset=offset, variance=variance)
    return node.build.Unsqueeze(port, node.list([0]))


@caffe("DetectionOutput", param="detection_output_param")
def detection_output(
    node: CaffeNode, locations: OutPort, scores: OutPort, priors: OutPort, *others: OutPort
) -> OutPort:
    """Rows (image, label, score, x0, y0, x1, y1); after the last one a row with image -1, then zeros."""
    node.refuse(node.number("nms_param.eta", 1.0) != 1, "nms_param.eta is 1")
    tops = {"keep_top_k": (node.integer("keep_top_k"),), "top_k": node.integer("nms_param.top_k", 0) or -1}
    integers = {n: node.integer(n) for n in ("background_label_id",)}
    sizes = {n: node.integer(n) for n in ("input_width", "input_height") if node.integer(n) > 0}
    flags = {n: node.flag(n) for n in ("share_location", "variance_encoded_in_target", "normalized")}
    numbers = {
        "nms_threshold": node.number("nms_param.nms_threshold", 0.3),
        "confidence_threshold": node.number("confidence_threshold", 0.0),
        "objectness_score": node.number("objectness_score"),
    }
    return node.build.DetectionOutput_1(
        *(node.onnx("Flatten", p, axis=1) for p in (locations, scores)),
        priors,
        *(node.onnx("Flatten", p, axis=1) for p in others),
        num_classes=node.integer("num_classes"),
        code_type=node.choice("code_type", CODES),
        **tops,
        **integers,
        **sizes,
        **flags,
        **numbers,
    )


@caffe("RegionYolo", param="region_yolo_param")
def region_yolo(node: CaffeNode, x: OutPort, *, coords: int, classes: int, num: int, do_softmax: bool) -> OutPort:
    axes = {"axis": node.integer("axis", 1), "end_axis": node.axis(node.integer("end_axis", -1), x.type.rank)}
    lists: dict[str, Any] = {"anchors": node.numbers("anchors", ()), "mask": node.integers("mask", ())}
    return node.build.RegionYolo(x, coords=coords, classes=classes, num=num, do_softmax=do_softmax, **axes, **lists)


@caffe("ROIPooling", param="roi_pooling_param")
def roi_pooling(node: CaffeNode, x: OutPort, rois: OutPort, *, spatial_scale: float) -> OutPort:
    cells = {name: node.integer(name) for name in ("pooled_h", "pooled_w")}
    return node.build.ROIPooling(x, _boxes(node, rois), spatial_scale=spatial_scale, **cells)


def _boxes(node: CaffeNode, rois: OutPort) -> OutPort:
    """Return boxes as rows of five numbers."""
    return rois if rois.type.rank == 2 else node.reshape(rois, (-1, 5))


@caffe("PSROIPooling", param="psroi_pooling_param")
def psroi_pooling(
    node: CaffeNode, x: OutPort, rois: OutPort, *, spatial_scale: float, output_dim: int, group_size: int
) -> OutPort:
    fields = {"spatial_scale": spatial_scale, "output_dim": output_dim, "group_size": group_size}
    return node.build.PSROIPooling(x, _boxes(node, rois), **fields)


@caffe("Proposal", param="proposal_param")
def proposal(node: CaffeNode, scores: OutPort, deltas: OutPort, image: OutPort) -> tuple[OutPort, ...]:
    return _proposals(node, scores, deltas, image, node.attrs)


def _proposals(
    node: CaffeNode, scores: OutPort, deltas: OutPort, image: OutPort, given: Mapping[str, Any]
) -> tuple[OutPort, ...]:
    names = (*ANCHORS, "pre_nms_topn", "post_nms_topn", "nms_thresh")
    fields = {name: given[name] for name in names if name in given}
    fields |= {name: tuple(map(float, fields.get(name) or ANCHORS[name])) for name in ("ratio", "scale")}
    new_node = node.build.Proposal(scores, deltas, image, **fields, outputs=2).node
    return tuple(new_node.out_ports().values())


@caffe("Python", param="python_param")
def python(node: CaffeNode, *xs: OutPort, module: str, layer: str, param_str: str) -> tuple[OutPort, ...]:
    """Convert the Python layers that make proposals; others need an extension."""
    name = f"{module}.{layer}"
    rule = f"the Python layer {name} needs an extension, whose extractor derives from CaffePythonFrontExtractorOp"
    node.refuse(name not in PROPOSALS or len(xs) != 3, rule)
    settings: dict[str, Any] = {**ANCHORS, **PROPOSALS[name], **parameters(param_str)}
    settings |= {
        one: settings[several] for one, several in (("ratio", "ratios"), ("scale", "scales")) if several in settings
    }
    return _proposals(node, *xs, given=settings)


def parameters(text: str) -> dict[str, Any]:
    """Return the parameters of a Python layer: a dictionary in Python's words, with or without its braces."""
    text = text.strip()
    try:
        settings: Any = ast.literal_eval(text if text.startswith("{") else f"{{{text}}}")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ModelError(f"Python: param_str must be a dictionary of constants, got {text[:80]!r}") from error
    if not isinstance(settings, dict):
        raise ModelError(f"Python: param_str must be a dictionary of constants, got {text[:80]!r}")
    return {str(name): value for name, value in cast("dict[Any, Any]", settings).items()}
