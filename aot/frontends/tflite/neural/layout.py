"""Channels last, as all operations of TensorFlow Lite have them, around operations that have channels first.

NHWC --Transpose--> NCHW operation --Transpose--> NHWC        passes move the Transposes
"""

from __future__ import annotations

from aot.frontends.tflite.registry import Call
from aot.ir.graph import OutPort
from aot.runtime.errors import ModelError


def to_channels_first(node: Call, x: OutPort) -> OutPort:
    """`x` with its last axis as axis 1."""
    rank = x.type.rank
    return node.build.Transpose(x, node.list([0, rank - 1, *range(1, rank - 1)]))


def to_channels_last(node: Call, y: OutPort) -> OutPort:
    """`y` with its axis 1 as the last one."""
    rank = y.type.rank
    return node.build.Transpose(y, node.list([0, *range(2, rank), 1]))


def image(node: Call, x: OutPort, rank: int = 4) -> OutPort:
    """`x`, checked to have `rank` axes."""
    if x.type.rank != rank:
        raise ModelError(f"{node.kind}: inputs have {rank} axes, got {x.type}")
    return x
