"""Networks of torchvision with random weights: all of its pages but the quantised ones. Needs torchvision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torchvision import models
from torchvision.models import detection

from benchmarks.pytorch import vision
from benchmarks.pytorch.network import draw_silent_weights

SIDE = 224  # of pictures for the networks that take those of one size alone
OF_BOXES = ("cls_logits", "bbox_pred", "cls_score", "bbox_reg", "module_list", "classification_head", "regression_head")
Detector = (detection.generalized_rcnn.GeneralizedRCNN, detection.RetinaNet, detection.FCOS, detection.ssd.SSD)


def load() -> None:
    """Import what all networks need, once: each has a process that is a fork of this one."""
    import aot.frontends.pt2.convert  # noqa: F401, PLC0415


def names() -> list[str]:
    """Return detectors first, then all others, those with the fewest weights first."""
    found = [n for n in models.list_models() if not n.startswith("quantized")]
    first = set(models.list_models(module=detection))
    weights = {n: models.get_model_weights(n).DEFAULT.meta["num_params"] for n in found}
    return sorted(found, key=lambda n: (n not in first, weights[n]))


def network(name: str) -> tuple[Any, dict[str, Any]]:
    """Return a network in evaluation, and its arguments."""
    if name in models.list_models(module=detection):
        return _detector(name), {"images": [vision.pictures(3, 160, 192).sigmoid()]}
    if name in models.list_models(module=models.segmentation):
        made = vision.segmenter(name)
    elif name in models.list_models(module=models.video):
        made = vision.video_network(name, vision.VIDEOS.get(name, 8))
    elif name in models.list_models(module=models.optical_flow):
        made = vision.flow(name)
    else:
        made = vision.classifier(name, vision.SIDES.get(name, SIDE if name.startswith("vit") else 64))
    return made.module(), made.inputs(*made.sizes[0])


def _detector(name: str) -> nn.Module:
    """Return a detector that finds boxes: its heads begin with weights so small that all scores are alike."""
    more: dict[str, Any] = {} if name.startswith("ssd") else {"min_size": 160, "max_size": 256}
    made = models.get_model(name, weights=None, weights_backbone=None, num_classes=5, **more).eval()
    draw_silent_weights(made)
    for key, weight in made.named_parameters():
        if key.endswith("weight") and weight.dim() > 1 and any(part in key for part in OF_BOXES):
            nn.init.normal_(weight, std=0.5 * weight[0].numel() ** -0.5)
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
