"""Pooling."""

from __future__ import annotations

from typing import Any

from aot.frontends.tflite.neural.convolution import padding, steps
from aot.frontends.tflite.registry import TfliteNode, tflite
from aot.ir.graph import OutPort
from aot.runtime.errors import ModelError


def windows(node: TfliteNode) -> dict[str, Any]:
    """Attributes of a pooling operation."""
    kernel = tuple(node.integer(f"filter_{a}", 0) for a in ("height", "width"))
    if any(k < 1 for k in kernel):
        raise ModelError(f"{node.kind}: windows must have 1 element or more, got {kernel}")
    none = (0, 0)
    return {"kernel": kernel, "strides": steps(node), "pads_begin": none, "pads_end": none, "auto_pad": padding(node)}


@tflite("MAX_POOL_2D")
def max_pool(node: TfliteNode, x: OutPort) -> OutPort:
    return node.to_channels_last(node.build.MaxPool(node.to_channels_first(node.image(x)), **windows(node)))


@tflite("AVERAGE_POOL_2D")
def average_pool(node: TfliteNode, x: OutPort) -> OutPort:
    return averaged(node, x)


def averaged(node: TfliteNode, x: OutPort) -> OutPort:
    """Means of windows; padding does not count."""
    return node.to_channels_last(
        node.build.AvgPool(node.to_channels_first(node.image(x)), exclude_pad=True, **windows(node))
    )


@tflite("L2_POOL_2D")
def l2_pool(node: TfliteNode, x: OutPort) -> OutPort:
    """sqrt of the mean of squares"""
    return node.build.Sqrt(averaged(node, node.build.Multiply(x, x)))
