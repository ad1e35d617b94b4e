"""Networks of torchvision with random weights: all of its pages but the quantised ones. Needs torchvision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torchvision import models
from torchvision.models import detection

from benchmarks.pytorch import vision
from benchmarks.pytorch.network import Inputs, draw_silent_weights, set_statistics

SIDE = 224  # of pictures for the networks that take those of one size alone
OF_BOXES = ("cls_logits", "bbox_pred", "cls_score", "bbox_reg", "module_list", "classification_head", "regression_head")
NEAR_SCORES = 1e-5
NO_BOXES = "_no_boxes"  # behind the name of a detector: its threshold is above all scores
Detector = (detection.generalized_rcnn.GeneralizedRCNN, detection.RetinaNet, detection.FCOS, detection.ssd.SSD)


def load() -> None:
    """Import what all networks need, once: each has a process that is a fork of this one."""
    import aot.frontends.pt2.convert  # noqa: F401, PLC0415


def names() -> list[str]:
    """Return detectors first, each with and without boxes, then all others, those with the fewest weights first."""
    found = [n for n in models.list_models() if not n.startswith("quantized")]
    weights = {n: models.get_model_weights(n).DEFAULT.meta["num_params"] for n in found}
    found.sort(key=lambda n: weights[n])
    first = models.list_models(module=detection)
    pairs = [n + end for n in found if n in first for end in ("", NO_BOXES)]
    return [*pairs, *(n for n in found if n not in first)]


def network(name: str) -> tuple[Any, dict[str, Any]]:
    """Return a network in evaluation, and its arguments."""
    if name.removesuffix(NO_BOXES) in models.list_models(module=detection):
        inputs = {"images": [vision.pictures(3, 160, 192).sigmoid()]}
        return _detector(name, inputs), inputs
    if name in models.list_models(module=models.segmentation):
        made = vision.segmenter(name)
    elif name in models.list_models(module=models.video):
        made = vision.video_network(name, vision.VIDEOS.get(name, 8))
    elif name in models.list_models(module=models.optical_flow):
        made = vision.flow(name)
    else:
        made = vision.classifier(name, vision.SIDES.get(name, SIDE if name.startswith("vit") else 64))
    return made.module(), made.inputs(*made.sizes[0])


def _detector(name: str, inputs: Inputs) -> nn.Module:
    """Return a detector whose boxes have different scores: PyTorch leaves open which of two equal ones comes first.

    Its heads begin with weights that are too small for that, and without statistics a signal dies on its way to them.
    """
    made: Any = vision.detector(name.removesuffix(NO_BOXES)).build().eval()
    made = made.detector
    draw_silent_weights(made)
    for key, weight in made.named_parameters():
        if key.endswith("weight") and weight.dim() > 1 and any(part in key for part in OF_BOXES):
            nn.init.normal_(weight, std=0.5 * weight[0].numel() ** -0.5)
    set_statistics(made, inputs)
    if name.endswith(NO_BOXES):
        getattr(made, "roi_heads", made).score_thresh = 2.0
    return made


def write(module: Any, inputs: dict[str, Any], folder: Path) -> Path | None:
    """Write a detector as torchvision's page says, as ONNX; return nothing for the others, which are exported.

    `torch.export` refuses those that were tried: `batched_nms` asks for a size that depends on data.
    """
    if not isinstance(module, Detector):
        return None
    path = folder / "model.onnx"
    torch.onnx.export(module, (inputs["images"],), path, dynamo=False)
    return path


def aligned(found: list[np.ndarray], wanted: list[np.ndarray]) -> list[np.ndarray]:
    """Return the results of a detector with its boxes in the order of those wanted; all other results as they are.

    Boxes are sorted by scores, and two whose scores differ by a rounding may stand in either order.
    """
    scores = next((i for i, b in enumerate(wanted) if b.ndim == 1 and b.dtype.kind == "f"), None)
    if scores is None or [a.shape for a in found] != [b.shape for b in wanted]:
        return found
    if np.abs(found[scores] - wanted[scores]).max(initial=0) > NEAR_SCORES:
        return found
    scales = [np.abs(b).max(initial=1e-6) for b in wanted]
    ours, theirs = (
        np.concatenate([a.reshape(len(a), -1) / scale for a, scale in zip(rows, scales, strict=True)], axis=1)
        for rows in (found, wanted)
    )
    order = [int(np.abs(ours - row).max(1).argmin()) for row in theirs]
    return [a[order] for a in found] if len(set(order)) == len(order) else found
