"""Convolutions: weights are [.., inputs, outputs]."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.conversion.windowing import Windowing
from aot.frontends.tf.neural.layout import image, is_channels_last, spatial, to_channels_first, to_channels_last
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.ir.types import Dim, simplify
from aot.opset.products.pool_windows import AutoPad
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

PADDING = {"SAME": AutoPad.SAME_UPPER, "VALID": AutoPad.VALID, "EXPLICIT": AutoPad.EXPLICIT}


def windowing(node: TfNode, rank: int) -> Windowing:
    """Strides, dilations and padding of a tensor of `rank`."""
    auto = node.choice("padding", PADDING)
    strides = spatial(node, node.integers("strides"), rank, 1)
    dilations = spatial(node, node.integers("dilations", (1,) * rank), rank, 1)
    pads = node.integers("explicit_paddings") if auto is AutoPad.EXPLICIT else (0,) * 2 * rank
    if len(pads) != 2 * rank:
        raise ModelError(
            f"{node.kind}: explicit_paddings must have two numbers for each of {rank} axes, got {len(pads)}"
        )
    pairs: Sequence[tuple[int, int]] = spatial(node, tuple(zip(pads[::2], pads[1::2], strict=True)), rank, (0, 0))
    begins, ends = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    return Windowing(strides, dilations, begins, ends, auto)


def _transposed_weights(node: TfNode, w: OutPort, first: tuple[int, int]) -> OutPort:
    """Weights with two of their axes, counted from the end, in front of the spatial ones."""
    rank = w.type.rank
    return node.build.Transpose(w, node.list([*(rank - f for f in first), *range(rank - 2)]))


@tf("Conv2D", "Conv3D")
def conv(node: TfNode, x: OutPort, w: OutPort) -> OutPort:
    """Weights [.., inputs of a group, outputs]; channels that are a multiple of the inputs make groups."""
    rank = 4 if node.kind == "Conv2D" else 5
    return convolved(node, image(node, x, rank), w)


def convolved(node: TfNode, x: OutPort, w: OutPort) -> OutPort:
    rank, build = x.type.rank, node.build
    image(node, w, rank)
    fields = windowing(node, rank).fields()
    channels = x.shape[-1 if is_channels_last(node, rank) else 1]
    own, weights = w.shape[-2], _transposed_weights(node, w, (1, 2))
    channels_first = to_channels_first(node, x)
    groups = channels // own if isinstance(channels, int) and isinstance(own, int) and own else 1
    if isinstance(channels, int) and isinstance(own, int) and (not own or channels % own):
        raise ModelError(f"{node.kind}: channels must be a multiple of the filter's inputs, got {channels} and {own}")
    if groups == 1:
        return to_channels_last(node, build.Convolution(channels_first, weights, **fields))
    count = node.extent(w, rank - 1, "the number of outputs")
    node.refuse(count % groups != 0, f"outputs must be a multiple of {groups} groups, got {count}")
    parts = node.reshape(weights, (groups, count // groups, *weights.shape[1:]))
    return to_channels_last(node, build.GroupConvolution(channels_first, parts, **fields))


@tf("DepthwiseConv2dNative")
def depthwise(node: TfNode, x: OutPort, w: OutPort) -> OutPort:
    """Weights [height, width, channels, multiplier]: output c * multiplier + m."""
    rank, build = 4, node.build
    image(node, x, rank)
    channels_first, weights = to_channels_first(node, x), _grouped(node, image(node, w, rank))
    return to_channels_last(node, build.GroupConvolution(channels_first, weights, **windowing(node, rank).fields()))


def _grouped(node: TfNode, w: OutPort) -> OutPort:
    """[height, width, channels, multiplier] as [channels, multiplier, 1, height, width]."""
    return node.build.Unsqueeze(_transposed_weights(node, w, (2, 1)), node.list([2]))


@tf("Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput")
def transposed(node: TfNode, sizes: OutPort, w: OutPort, y: OutPort) -> OutPort:
    """The gradient of a convolution by its input, of the given sizes; also called a transposed convolution."""
    rank = 5 if node.kind.startswith("Conv3D") else 4
    build, window = node.build, windowing(node, image(node, y, rank).type.rank)
    image(node, w, rank)
    depthwise = node.kind.startswith("Depthwise")
    channels_first = to_channels_first(node, y)
    weights = _grouped(node, w) if depthwise else _transposed_weights(node, w, (1, 2))
    run = build.GroupConvolutionBackpropData if depthwise else build.ConvolutionBackpropData
    axes = range(1, rank - 1) if is_channels_last(node, rank) else range(2, rank)
    kernel = [node.extent(w, a, "the size of windows") for a in range(rank - 2)]
    if sizes.shape[0] == rank - 2:
        axes = range(rank - 2)
    output_sizes = _wanted(sizes, axes)
    pads = None if output_sizes is None else _pads_of(window, kernel, channels_first.shape[2:], output_sizes)
    fields = {"strides": window.strides, "dilations": window.dilations}
    if pads is not None:
        begins, ends, extra = pads
        return to_channels_last(
            node, run(channels_first, weights, **fields, pads_begin=begins, pads_end=ends, output_padding=extra)
        )
    target = build.Gather(node.cast(sizes, DType.I64), node.list(list(axes)), node.scalar(0))
    return to_channels_last(node, _cut(node, run(channels_first, weights, **fields), window, kernel, target))


def _wanted(sizes: OutPort, axes: range) -> list[Dim] | None:
    """Return the spatial sizes, as far as they are numbers or expressions."""
    value = sizes.value
    return None if value is None else [value.reshape(-1).tolist()[a] for a in axes]


def _pads_of(
    windows: Windowing, kernel: list[int], extents: tuple[Dim, ...], output_sizes: list[Dim]
) -> tuple[tuple[int, ...], ...] | None:
    """Padding at the begin and at the end, and elements added at the end; None if they depend on late sizes.

    SAME pads windows for ceil(size / stride) of them, an odd rest at the end.
    """
    paddings: list[tuple[int, int, int]] = []
    for a, (n, size) in enumerate(zip(extents, output_sizes, strict=True)):
        whole = simplify((n - 1) * windows.strides[a] + (kernel[a] - 1) * windows.dilations[a] + 1 - size)
        if not isinstance(whole, int):
            return None
        begin = max(whole, 0) // 2 if windows.auto_pad is AutoPad.SAME_UPPER else windows.begins[a]
        end = whole - begin
        paddings.append((begin, max(end, 0), max(-end, 0)))
    begins, ends, extra = zip(*paddings, strict=True)
    return begins, ends, extra


def _cut(node: TfNode, full: OutPort, windows: Windowing, kernel: list[int], target: OutPort) -> OutPort:
    """`full`, which has no padding, cut or filled with zeros to the target's sizes."""
    build, rank = node.build, full.type.rank
    axes = range(2, rank)
    sizes = node.dims(full, axes)
    if windows.auto_pad is AutoPad.SAME_UPPER:
        begins = build.Divide(build.Maximum(build.Subtract(sizes, target), 0), 2)
    else:
        begins = node.list(windows.begins)
    behind = build.Maximum(build.Subtract(build.Add(begins, target), sizes), 0)
    zero = node.list([0, 0])
    wide = build.Pad(full, node.list([0] * rank), build.Concat(zero, behind, axis=0), node.like(0, full))
    return build.Slice(wide, begins, build.Add(begins, target), node.list([1] * len(axes)), node.list(axes))
