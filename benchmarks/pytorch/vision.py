"""Networks of torchvision: classification, detection, segmentation, video and optical flow."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torchvision import models, ops
from torchvision.models import detection, optical_flow, segmentation, video
from torchvision.models.detection import roi_heads, transform
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

from benchmarks.pytorch.network import BATCH, Inputs, Network

CLASSIFIERS = (
    "alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet mnasnet0_5 "
    "mobilenet_v2 mobilenet_v3_large mobilenet_v3_small regnet_x_400mf regnet_y_400mf resnet18 resnet50 "
    "resnext50_32x4d shufflenet_v2_x0_5 shufflenet_v2_x1_0 squeezenet1_0 squeezenet1_1 swin_t swin_v2_t "
    "vgg11 vgg13_bn wide_resnet50_2"
).split()
SIDES = {"inception_v3": 96, "maxvit_t": 224, "vit_b_32": 224}
DETECTORS = "retinanet_resnet50_fpn fcos_resnet50_fpn ssd300_vgg16 ssdlite320_mobilenet_v3_large".split()  # one stage
TWO_STAGE_DETECTORS = (
    "fasterrcnn_resnet50_fpn fasterrcnn_mobilenet_v3_large_320_fpn maskrcnn_resnet50_fpn keypointrcnn_resnet50_fpn"
).split()
SEGMENTERS = "deeplabv3_resnet50 deeplabv3_mobilenet_v3_large fcn_resnet50 lraspp_mobilenet_v3_large".split()
VIDEOS = {"r3d_18": 8, "mc3_18": 8, "r2plus1d_18": 8, "s3d": 16, "mvit_v1_b": 16, "mvit_v2_s": 16, "swin3d_t": 8}
OF_INCEPTION = ("googlenet", "inception_v3")


def batched_nms(boxes: torch.Tensor, scores: torch.Tensor, classes: torch.Tensor, limit: float) -> torch.Tensor:
    """Suppress boxes of each class by itself, as torchvision does for few boxes; its own asks how many there are.

    `torch.export` cannot answer that at export time, whatever the count would be.
    """
    edge = torch.cat([boxes, boxes.new_zeros(1, 4)]).max() + 1
    return ops.nms(boxes + (classes.to(boxes) * edge)[:, None], scores, limit)


def count(values: Any) -> Any:
    """Return the length of a list, or the first size of a tensor, which Python's `len` would turn into a number."""
    return values.shape[0] if isinstance(values, torch.Tensor) else len(values)


# What torchvision asks Python about tensors whose size depends on data, which `torch.export` cannot answer. The last
# three are loops over regions that draw each mask into the image, or search each heat map, at the size of its region:
# a detector gives the masks [regions, 1, 28, 28] and heat maps [regions, 17, 56, 56] themselves.
REPLACED: list[tuple[Any, str, Callable[..., Any]]] = [
    (ops.boxes, "batched_nms", batched_nms),
    (ops.poolers, "len", count),
    (transform, "paste_masks_in_image", lambda masks, *rest: masks),
    (roi_heads, "heatmaps_to_keypoints", lambda maps, boxes: (maps, maps.amax((2, 3)))),
    (transform, "resize_keypoints", lambda maps, *rest: maps),
]


class OfImage(nn.Module):
    """A detector of one image: its lists are those of one element."""

    def __init__(self, detector: nn.Module) -> None:
        super().__init__()
        self.detector = detector

    def forward(self, image: torch.Tensor) -> Any:
        with ExitStack() as stack:
            for module, name, function in REPLACED:
                stack.enter_context(patch.object(module, name, function, create=name == "len"))
            return self.detector([image])[0]


class LastFlow(nn.Module):
    """The last of the estimates of a network of optical flow."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return self.network(first, second, num_flow_updates=4)[-1]


def pictures(*shape: int) -> torch.Tensor:
    """Random numbers with the structure of pictures: smooth, with noise."""
    generator = torch.Generator().manual_seed(sum(shape))
    coarse = torch.randn(*shape[:-2], 6, 6, generator=generator)
    smooth = nn.functional.interpolate(coarse.reshape(1, -1, 6, 6), shape[-2:], mode="bilinear").reshape(shape)
    return smooth + 0.1 * torch.randn(*shape, generator=generator)


def images(batch: int, side: int) -> Inputs:
    return {"x": pictures(batch, 3, side, side)}


def classifier(name: str, side: int = 64) -> Network:
    more = {"aux_logits": False, "init_weights": False} if name in OF_INCEPTION else {}
    return Network(
        name, lambda: getattr(models, name)(weights=None, **more), images, [(2, side), (3, side)], {"x": BATCH}
    )


def detector(name: str) -> Network:
    more: dict[str, float] = {"num_classes": 5}
    if not name.startswith("ssd"):
        more |= {"min_size": 160, "max_size": 256}
        more["box_score_thresh" if "rcnn" in name else "score_thresh"] = 1e-3

    def image(height: int, width: int) -> Inputs:
        return {"image": pictures(3, height, width).sigmoid()}

    def build() -> nn.Module:
        return OfImage(getattr(detection, name)(weights=None, weights_backbone=None, **more))

    return Network(name, build, image, [(160, 192)])


def segmenter(name: str) -> Network:
    def build() -> nn.Module:
        return getattr(segmentation, name)(weights=None, weights_backbone=None, num_classes=5)

    def image(batch: int, side: int) -> Inputs:
        return {"input" if "lraspp" in name else "x": pictures(batch, 3, side, side)}

    return Network(name, build, image, [(2, 96), (3, 96)], {next(iter(image(1, 8))): BATCH})


def video_network(name: str, frames: int) -> Network:
    side = 224 if name.startswith(("mvit", "s3d")) else 64
    argument = "x"

    def clips(batch: int) -> Inputs:
        return {argument: pictures(batch, 3, frames, side, side)}

    sizes = [(2,), (1,)] if side == 224 else [(2,), (3,)]
    return Network(name, lambda: getattr(video, name)(weights=None), clips, sizes, {argument: BATCH})


def flow(name: str) -> Network:
    def pairs(batch: int) -> Inputs:
        return {"first": pictures(batch, 3, 128, 128).tanh(), "second": pictures(batch, 3, 128, 128).roll(2, -1).tanh()}

    return Network(
        name,
        lambda: LastFlow(getattr(optical_flow, name)(weights=None)),
        pairs,
        [(2,), (3,)],
        {"first": BATCH, "second": BATCH},
    )


def networks() -> list[Network]:
    """All of them."""
    makers: list[tuple[Callable[..., Network], list[tuple[Any, ...]]]] = [
        (classifier, [(name,) for name in CLASSIFIERS]),
        (classifier, list(SIDES.items())),
        (detector, [(name,) for name in [*DETECTORS, *TWO_STAGE_DETECTORS]]),
        (segmenter, [(name,) for name in SEGMENTERS]),
        (video_network, list(VIDEOS.items())),
        (flow, [("raft_small",), ("raft_large",)]),
    ]
    return [make(*given) for make, all_given in makers for given in all_given]


def backbone() -> Network:
    """The part of a detector before its heads: five maps of features."""

    def build() -> nn.Module:
        return resnet_fpn_backbone(backbone_name="resnet50", weights=None)

    return Network("resnet50_fpn", build, images, [(1, 224)])


def timed() -> list[Network]:
    """Networks of one picture of 224 x 224."""
    names = (
        "resnet50 mobilenet_v3_large efficientnet_b0 convnext_tiny densenet121 shufflenet_v2_x1_0 regnet_y_400mf "
        "squeezenet1_1 mnasnet1_0 swin_t vit_b_32"
    ).split()
    return [*(replace(classifier(name, 224), sizes=[(1, 224)], dynamic=None) for name in names), backbone()]
