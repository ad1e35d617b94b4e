"""Channels last and channels first: TensorFlow's data formats around operations that have channels first.

NHWC --Transpose--> NCHW operation --Transpose--> NHWC        passes move the Transposes
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from aot.frontends.tf.registry import TfNode
from aot.ir.graph import OutPort
from aot.runtime.errors import ModelError

T = TypeVar("T")
FORMATS = {"NHWC": True, "NDHWC": True, "NWC": True, "NCHW": False, "NCDHW": False, "NCW": False}


def is_channels_last(node: TfNode, rank: int) -> bool:
    """True if channels are the last axis of a tensor of `rank`; UnsupportedError for other formats."""
    return node.choice("data_format", FORMATS, "NHWC" if rank == 4 else "NDHWC")


def to_channels_first(node: TfNode, x: OutPort, last: bool | None = None) -> OutPort:
    """`x` with channels as axis 1."""
    rank = x.type.rank
    if not (is_channels_last(node, rank) if last is None else last):
        return x
    return node.build.Transpose(x, node.list([0, rank - 1, *range(1, rank - 1)]))


def to_channels_last(node: TfNode, y: OutPort, last: bool | None = None) -> OutPort:
    """`y`, which has channels as axis 1, in the format of the node."""
    rank = y.type.rank
    if not (is_channels_last(node, rank) if last is None else last):
        return y
    return node.build.Transpose(y, node.list([0, *range(2, rank), 1]))


def image(node: TfNode, x: OutPort, rank: int) -> OutPort:
    """`x`, checked to have `rank` axes."""
    if x.type.rank != rank:
        raise ModelError(f"{node.kind}: inputs must have {rank} axes, got {x.type}")
    return x


def spatial(node: TfNode, values: Sequence[T], rank: int, one: T) -> tuple[T, ...]:
    """Return the entries of spatial axes; those of batch and channels must be `one`."""
    if len(values) != rank:
        raise ModelError(f"{node.kind}: there must be a number for each of {rank} axes, got {len(values)}")
    last = is_channels_last(node, rank)
    inner, others = (values[1:-1], (values[0], values[-1])) if last else (values[2:], values[:2])
    node.refuse(any(v != one for v in others), "windows over the batch or channels are not supported")
    return tuple(inner)
