"""Pooling."""

from __future__ import annotations

from aot.frontends.tf.neural.convolution import windowing
from aot.frontends.tf.neural.layout import image, is_channels_last, spatial, to_channels_first, to_channels_last
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.opset.products.pool_windows import AutoPad
from aot.runtime.abi import DType


@tf("MaxPool", "MaxPool3D")
def max_pool(node: TfNode, x: OutPort) -> OutPort:
    rank = 5 if node.kind.endswith("3D") else 4
    fields = windowing(node, image(node, x, rank).type.rank).fields("dilations")
    kernel = spatial(node, node.integers("ksize"), rank, 1)
    return to_channels_last(node, node.build.MaxPool(to_channels_first(node, x), kernel=kernel, **fields))


@tf("MaxPoolV2")
def max_pool_v2(node: TfNode, x: OutPort, ksize: OutPort, strides: OutPort) -> OutPort:
    """Windows and strides are inputs that must be known."""
    rank = image(node, x, 4).type.rank
    kernel, steps = (spatial(node, node.ints(p, n), rank, 1) for p, n in ((ksize, "ksize"), (strides, "strides")))
    auto = node.choice("padding", {"SAME": AutoPad.SAME_UPPER, "VALID": AutoPad.VALID})
    none = (0,) * len(kernel)
    fields = {"strides": steps, "kernel": kernel, "auto_pad": auto, "pads_begin": none, "pads_end": none}
    return to_channels_last(node, node.build.MaxPool(to_channels_first(node, x), **fields))


@tf("AvgPool", "AvgPool3D")
def avg_pool(node: TfNode, x: OutPort) -> OutPort:
    """Padding does not count."""
    rank = 5 if node.kind.endswith("3D") else 4
    fields = windowing(node, image(node, x, rank).type.rank).fields("dilations")
    kernel = spatial(node, node.integers("ksize"), rank, 1)
    return to_channels_last(
        node, node.build.AvgPool(to_channels_first(node, x), kernel=kernel, exclude_pad=True, **fields)
    )


@tf("MaxPoolWithArgmax")
def max_pool_with_argmax(node: TfNode, x: OutPort) -> tuple[OutPort, OutPort]:
    """Maxima and their places in the flattened image [height, width, channels], or in all of the batch."""
    build, rank = node.build, image(node, x, 4).type.rank
    fields = windowing(node, rank).fields()
    kernel, dtype = spatial(node, node.integers("ksize"), rank, 1), node.dtype("Targmax")
    first = build.MaxPool_8(
        to_channels_first(node, x, True), kernel=kernel, axis=2, index_element_type=DType.I64, outputs=2, **fields
    )
    maxima, positions = (to_channels_last(node, p, True) for p in first.node.out_ports().values())
    channels = node.size(x, 3)
    steps = build.Range(node.scalar(0), channels, node.scalar(1), output_type=DType.I64)
    positions = build.Add(build.Multiply(positions, channels), steps)
    if node.flag("include_batch_in_index"):
        images = build.Range(node.scalar(0), node.size(x, 0), node.scalar(1), output_type=DType.I64)
        whole = build.Multiply(images, build.ReduceProd(node.dims(x, [1, 2, 3]), node.list([0])))
        positions = build.Add(positions, build.Unsqueeze(whole, node.list([1, 2, 3])))
    return maxima, node.cast(positions, dtype)


@tf("BiasAdd", "BiasAddV1")
def bias_add(node: TfNode, x: OutPort, bias: OutPort) -> OutPort:
    """Channels are the last axis, or axis 1."""
    if x.type.rank > 2 and node.kind != "BiasAddV1" and not is_channels_last(node, 4):
        bias = node.build.Unsqueeze(bias, node.list(range(1, x.type.rank - 1)))
    return node.build.Add(x, bias)
