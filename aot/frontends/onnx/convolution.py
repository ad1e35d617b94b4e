"""Convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aot.frontends.onnx.registry import Call, onnx
from aot.ir.graph import OutPort
from aot.ir.types import Dim
from aot.opset.windows import AutoPad
from runtime.errors import ModelError

AUTO_PAD = {
    "NOTSET": AutoPad.EXPLICIT, "VALID": AutoPad.VALID,
    "SAME_UPPER": AutoPad.SAME_UPPER, "SAME_LOWER": AutoPad.SAME_LOWER,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Windowing:
    """Attributes of convolution and pooling, one entry for each spatial axis."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    auto_pad: AutoPad

    def fields(self, *without: str) -> dict[str, Any]:
        found = {
            "strides": self.strides, "dilations": self.dilations, "pads_begin": self.begins, "pads_end": self.ends,
            "auto_pad": self.auto_pad,
        }  # fmt: skip
        return {k: v for k, v in found.items() if k not in without}


def windowing(node: Call, rank: int) -> Windowing:
    """ModelError for lists of a wrong length."""
    auto = node.choice("auto_pad", AUTO_PAD, "NOTSET")
    strides = node.integers("strides", (1,) * rank)
    dilations = node.integers("dilations", (1,) * rank)
    pads = node.integers("pads", (0,) * 2 * rank) if auto is AutoPad.EXPLICIT else (0,) * 2 * rank
    if len(strides) != rank or len(dilations) != rank or len(pads) != 2 * rank:
        raise ModelError(
            f"{node.kind}: {rank} spatial axes need {rank} strides and dilations and {2 * rank} pads, "
            f"got {len(strides)}, {len(dilations)} and {len(pads)}"
        )
    return Windowing(strides, dilations, pads[:rank], pads[rank:], auto)


def spatial_rank(node: Call, x: OutPort) -> int:
    rank = x.type.rank - 2
    if rank < 1:
        raise ModelError(f"{node.kind}: inputs have a batch, channels and spatial axes, got {x.type}")
    node.refuse(rank > 3, f"1 to 3 spatial axes are supported, got {rank}")
    return rank


@onnx("Conv")
def conv(node: Call, x: OutPort, w: OutPort, b: OutPort | None = None) -> OutPort:
    return biased(node, convolved(node, x, w), b)


def convolved(node: Call, x: OutPort, w: OutPort) -> OutPort:
    fields = windowing(node, spatial_rank(node, x)).fields()
    groups = node.integer("group", 1)
    if groups == 1:
        return node.build.Convolution(x, w, **fields)
    return node.build.GroupConvolution(x, grouped(node, w, groups), **fields)


def grouped(node: Call, w: OutPort, groups: int) -> OutPort:
    """[a, b, ..] -> [groups, a / groups, b, ..]"""
    first = w.shape[0]
    if groups < 1 or (isinstance(first, int) and first % groups):
        raise ModelError(f"{node.kind}: group must divide the weights' {first} channels, got {groups}")
    return node.reshape(w, (groups, first // groups, *w.shape[1:]))


def biased(node: Call, y: OutPort, b: OutPort | None) -> OutPort:
    if b is None:
        return y
    return node.build.Add(y, node.reshape(b, (1, b.shape[0], *[1] * (y.type.rank - 2))))


@onnx("ConvTranspose")
def conv_transpose(node: Call, x: OutPort, w: OutPort, b: OutPort | None = None) -> OutPort:
    rank = spatial_rank(node, x)
    made, extra = windowing(node, rank), node.integers("output_padding", (0,) * rank)
    begins, ends = _transposed_pads(node, made, x, w, extra)
    # Padding at the end that exceeds the kernel's reach is output that nothing reaches.
    fields = made.fields("auto_pad") | {"pads_begin": begins, "pads_end": ends, "output_padding": extra}
    groups = node.integer("group", 1)
    if groups == 1:
        y = node.build.ConvolutionBackpropData(x, w, **fields)
    else:
        y = node.build.GroupConvolutionBackpropData(x, grouped(node, w, groups), **fields)
    return biased(node, y, b)


def _transposed_pads(
    node: Call, made: Windowing, x: OutPort, w: OutPort, extra: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """As given, or what gives the wanted size: the odd rest is cut at the end for SAME_UPPER, else at the begin."""
    wanted: tuple[Dim, ...] | None = None
    if node.has("output_shape"):
        wanted = node.integers("output_shape")[-len(extra) :]
    elif made.auto_pad in (AutoPad.SAME_UPPER, AutoPad.SAME_LOWER):
        wanted = tuple(n * s for n, s in zip(x.shape[2:], made.strides, strict=True))
    if wanted is None:
        return made.begins, made.ends
    begins: list[int] = []
    ends: list[int] = []
    for a, size in enumerate(wanted):
        reach = (w.shape[2 + a] - 1) * made.dilations[a] + 1
        total = made.strides[a] * (x.shape[2 + a] - 1) + extra[a] + reach - size
        if not isinstance(total, int):
            node.refuse(True, "sizes must be known at compile time where the output's size is given")
            continue
        small, large = total // 2, total - total // 2
        upper = made.auto_pad is AutoPad.SAME_UPPER
        begins.append(small if upper else large)
        ends.append(large if upper else small)
    return tuple(begins), tuple(ends)


@onnx("DeformConv")
def deform_conv(
    node: Call, x: OutPort, w: OutPort, offset: OutPort, b: OutPort | None = None, mask: OutPort | None = None
) -> OutPort:
    fields = windowing(node, 2).fields() | {
        "group": node.integer("group", 1), "deformable_group": node.integer("offset_group", 1),
        "bilinear_interpolation_pad": True,
    }  # fmt: skip
    inputs = (x, offset, w) if mask is None else (x, offset, w, mask)
    return biased(node, node.build.DeformableConvolution(*inputs, **fields), b)
