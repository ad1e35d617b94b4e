"""Convolutions, of numbers or of integers: weights are [outputs, .., inputs], those of channels [1, .., outputs]."""

from __future__ import annotations

from typing import Any

from aot.frontends.tflite.registry import TfliteNode, tflite
from aot.ir.graph import OutPort
from aot.opset.products.pool_windows import AutoPad
from aot.runtime.errors import ModelError

PADDING = {0: AutoPad.SAME_UPPER, 1: AutoPad.VALID}
TF_PADDING = {0: "SAME", 1: "VALID"}
PLANE, SPACE = ("h", "w"), ("d", "h", "w")


def padding(node: TfliteNode) -> AutoPad:
    """Return the padding of windows."""
    kind = node.integer("padding", 0)
    node.refuse(kind not in PADDING, f"padding {kind} is not supported")
    return PADDING[kind]


def steps(node: TfliteNode, axes: tuple[str, ...] = PLANE) -> tuple[int, ...]:
    """Strides along the spatial axes."""
    result = tuple(node.integer(f"stride_{a}", 1) for a in axes)
    if any(s < 1 for s in result):
        raise ModelError(f"{node.kind}: strides must be 1 or more, got {result}")
    return result


def windowing(node: TfliteNode, axes: tuple[str, ...] = PLANE) -> dict[str, Any]:
    """Strides, dilations and padding as attributes of a convolution."""
    dilations = tuple(node.integer(f"dilation_{a}_factor", 1) for a in axes)
    if any(d < 1 for d in dilations):
        raise ModelError(f"{node.kind}: dilations must be 1 or more, got {dilations}")
    none = (0,) * len(axes)
    shared = {"pads_begin": none, "pads_end": none, "auto_pad": padding(node)}
    return {"strides": steps(node, axes), "dilations": dilations, **shared}


def with_bias(node: TfliteNode, y: OutPort, bias: OutPort | None) -> OutPort:
    """`y`, which has channels as axis 1, with a number for each channel added."""
    if bias is None:
        return y
    column = node.build.Reshape(node.cast(bias, y.type.dtype), node.list([-1, *[1] * (y.type.rank - 2)]))
    return node.build.Add(y, column)


def convolved(node: TfliteNode, x: OutPort, w: OutPort, axes: tuple[str, ...] = PLANE) -> OutPort:
    """Return the sums of CONV_2D with channels as axis 1; channels that are a multiple of the weights' make groups."""
    rank, build = len(axes) + 2, node.build
    node.image(w, rank)
    channels_first, weights = (
        node.to_channels_first(node.image(x, rank)),
        node.to_channels_first(node.cast(w, x.type.dtype)),
    )
    channels, own = x.shape[-1], w.shape[-1]
    fields = windowing(node, axes)
    if channels == own or not isinstance(channels, int) or not isinstance(own, int):
        return build.Convolution(channels_first, weights, **fields)
    count = node.extent(w, 0, "the number of outputs")
    groups = channels // own if own else 0
    if not groups or channels % own or count % groups:
        raise ModelError(f"{node.kind}: channels must be a multiple of the weights' inputs, got {x.type} and {w.type}")
    return build.GroupConvolution(
        channels_first, node.reshape(weights, (groups, count // groups, *weights.shape[1:])), **fields
    )


def convolved_by_channel(node: TfliteNode, x: OutPort, w: OutPort) -> OutPort:
    """Return the sums of DEPTHWISE_CONV_2D with channels as axis 1: output c * multiplier + m."""
    build = node.build
    node.image(w)
    channels, outputs = node.extent(node.image(x), 3, "the number of channels"), node.extent(w, 3, "outputs")
    if w.shape[0] != 1 or not channels or outputs % channels:
        rule = "weights are [1, height, width, a multiple of the channels]"
        raise ModelError(f"{node.kind}: {rule}, got {w.type} for {channels} channels")
    weights = build.Transpose(node.cast(w, x.type.dtype), node.list([3, 0, 1, 2]))
    parts = node.reshape(weights, (channels, outputs // channels, 1, *weights.shape[2:]))
    return build.GroupConvolution(node.to_channels_first(x), parts, **windowing(node))


@tflite("CONV_2D")
def conv_2d(node: TfliteNode, x: OutPort, w: OutPort, bias: OutPort | None = None) -> OutPort:
    return node.to_channels_last(with_bias(node, convolved(node, x, w), bias))


@tflite("DEPTHWISE_CONV_2D")
def depthwise_conv_2d(node: TfliteNode, x: OutPort, w: OutPort, bias: OutPort | None = None) -> OutPort:
    return node.to_channels_last(with_bias(node, convolved_by_channel(node, x, w), bias))


def _attrs(node: TfliteNode, axes: tuple[str, ...]) -> dict[str, Any]:
    """Strides, dilations and padding by TensorFlow's names."""
    padding(node)
    dilations = (1, *(node.integer(f"dilation_{a}_factor", 1) for a in axes), 1)
    return {
        "strides": (1, *steps(node, axes), 1),
        "dilations": dilations,
        "padding": TF_PADDING[node.integer("padding", 0)],
    }


@tflite("CONV_3D")
def conv_3d(node: TfliteNode, x: OutPort, w: OutPort, bias: OutPort | None = None) -> OutPort:
    """Weights [depth, height, width, inputs, outputs]."""
    y = node.tf("Conv3D", x, w, **_attrs(node, SPACE))
    return y if bias is None else node.build.Add(y, bias)


@tflite("CONV_3D_TRANSPOSE")
def conv_3d_transpose(node: TfliteNode, sizes: OutPort, w: OutPort, x: OutPort, bias: OutPort | None = None) -> OutPort:
    """Weights [depth, height, width, outputs, inputs]."""
    y = node.tf("Conv3DBackpropInputV2", sizes, w, x, **_attrs(node, SPACE))
    return y if bias is None else node.build.Add(y, bias)


@tflite("TRANSPOSE_CONV")
def transpose_conv(node: TfliteNode, sizes: OutPort, w: OutPort, x: OutPort, bias: OutPort | None = None) -> OutPort:
    y = transposed(node, sizes, w, x)
    return y if bias is None else node.build.Add(y, node.cast(bias, y.type.dtype))


def transposed(node: TfliteNode, sizes: OutPort, w: OutPort, x: OutPort) -> OutPort:
    """Return the sums of TRANSPOSE_CONV; weights [outputs, height, width, inputs]."""
    transposed_w = node.build.Transpose(node.image(node.cast(w, x.type.dtype)), node.list([1, 2, 0, 3]))
    return node.tf("Conv2DBackpropInput", sizes, transposed_w, x, **_attrs(node, PLANE))


@tflite("DILATE", stored=True)
def dilate(node: TfliteNode, x: OutPort, dilations: OutPort, value: OutPort) -> OutPort:
    """Elements set apart: `value` between them."""
    build, rank, dilation_factors = node.build, x.type.rank, node.ints(dilations, "dilations")
    if len(dilation_factors) != rank or any(d < 1 for d in dilation_factors):
        raise ModelError(
            f"{node.kind}: there must be a dilation of 1 or more for each of {rank} axes, got {dilation_factors}"
        )
    fill = node.single(value)
    for axis, step in enumerate(dilation_factors):
        if step > 1:
            expanded = build.Unsqueeze(x, node.list([axis + 1]))
            zero, ends = [0] * (rank + 1), [step - 1 if a == axis + 1 else 0 for a in range(rank + 1)]
            wide = build.Pad(expanded, node.list(zero), node.list(ends), fill)
            shape = [node.list([-1]) if a == axis else node.dims(x, [a]) for a in range(rank)]
            joined = build.Reshape(wide, build.Concat(*shape, axis=0))
            one = node.list([1])
            x = build.Slice(joined, node.list([0]), node.list([1 - step]), one, node.list([axis]))
    return x
