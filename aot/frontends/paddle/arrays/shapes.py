"""Shapes of tensors, and their changes."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.conversion.node_context import Value
from aot.frontends.paddle.registry import PaddleNode, paddle
from aot.ir.graph import OutPort
from aot.opset.movement.blocks import DepthMode
from aot.runtime.abi import DType


@paddle("shape", "shape64")
def shape(node: PaddleNode, x: OutPort) -> OutPort:
    """Return the sizes, in i32, or in i64 for `shape64`."""
    return node.build.ShapeOf(x, output_type=DType.I64 if node.kind == "shape64" else DType.I32)


@paddle("numel")
def numel(node: PaddleNode, x: OutPort) -> OutPort:
    return node.build.ReduceProd(node.dims(x, range(x.type.rank)), node.list([0]))


@paddle("assign", "share_data")
def assign(node: PaddleNode, x: OutPort) -> OutPort:
    del node
    return x


@paddle("reshape")
def reshape(node: PaddleNode, x: OutPort, sizes: Value) -> OutPort:
    """Change the shape: 0 keeps the size of the axis there, -1 takes what is left."""
    return node.build.Reshape(x, node.vector(sizes), special_zero=True)


@paddle("flatten")
def flatten(node: PaddleNode, x: OutPort, *, start_axis: int = 1, stop_axis: int = 1) -> OutPort:
    """Join the axes from one to another."""
    rank = x.type.rank
    if not rank:
        return node.reshape(x, (1,))
    first, last = node.axis(start_axis, rank), node.axis(stop_axis, rank)
    kept = node.list([*[0] * first, -1])
    if last + 1 < rank:
        kept = node.build.Concat(kept, node.dims(x, range(last + 1, rank)), axis=0)
    return node.build.Reshape(x, kept, special_zero=True)


@paddle("flatten_to_matrix")
def flatten_to_matrix(node: PaddleNode, x: OutPort, *, axis: int = 1) -> OutPort:
    """Join the axes before one, and those from it on: `flatten2` of version 2."""
    return node.onnx("Flatten", x, axis=axis)


@paddle("squeeze")
def squeeze(node: PaddleNode, x: OutPort, axes: Value = None) -> OutPort:
    """Remove axes of size 1: those that are named and have it, or all."""
    axis_numbers = () if axes is None else node.axes(axes, x.type.rank)
    over = [a for a in axis_numbers or range(x.type.rank) if x.shape[a] == 1]
    return node.build.Squeeze(x, node.list(over)) if over else x


@paddle("unsqueeze")
def unsqueeze(node: PaddleNode, x: OutPort, axes: Value) -> OutPort:
    """Add axes of size 1, one after the other."""
    for axis in node.ints(node.vector(axes), "axes"):
        x = node.build.Unsqueeze(x, node.list([node.axis(axis, x.type.rank + 1)]))
    return x


@paddle("transpose")
def transpose(node: PaddleNode, x: OutPort, *, perm: Sequence[int]) -> OutPort:
    return node.build.Transpose(x, node.list([node.axis(a, x.type.rank) for a in perm])) if perm else x


@paddle("expand")
def expand(node: PaddleNode, x: OutPort, sizes: Value) -> OutPort:
    """Repeat axes of size 1; -1 keeps the size of an axis."""
    build, wanted = node.build, node.vector(sizes)
    least = build.Maximum(wanted, 1) if wanted.value is None else node.list([max(n, 1) for n in node.ints(wanted, "")])
    return node.onnx("Expand", x, least)


@paddle("expand_as")
def expand_as(
    node: PaddleNode, x: OutPort, like: OutPort | None = None, *, target_shape: Sequence[int] = ()
) -> OutPort:
    shape = node.list(target_shape) if like is None else node.dims(like, range(like.type.rank))
    return node.build.Broadcast(x, shape)


@paddle("tile")
def tile(node: PaddleNode, x: OutPort, times: Value) -> OutPort:
    return node.build.Tile(x, node.vector(times))


@paddle("flip")
def flip(node: PaddleNode, x: OutPort, *, axis: Sequence[int]) -> OutPort:
    return node.build.Reverse(x, node.list([node.axis(a, x.type.rank) for a in axis])) if axis else x


@paddle("roll")
def roll(node: PaddleNode, x: OutPort, shifts: Value, *, axis: Sequence[int] = ()) -> OutPort:
    """Move elements along axes, or along the flat tensor; those that leave come in at the other end."""
    steps = node.vector(shifts)
    if axis:
        return node.build.Roll(x, steps, node.list([node.axis(a, x.type.rank) for a in axis]))
    flat = node.build.Roll(node.reshape(x, (-1,)), steps, node.list([0]))
    return node.build.Reshape(flat, node.dims(x, range(x.type.rank)))


@paddle("pixel_shuffle")
def pixel_shuffle(node: PaddleNode, x: OutPort, *, upscale_factor: int = 1) -> OutPort:
    data, last = node.first(x)
    return node.back(node.onnx("DepthToSpace", data, blocksize=upscale_factor, mode="CRD"), last)


@paddle("channel_shuffle")
def channel_shuffle(node: PaddleNode, x: OutPort, *, groups: int = 1) -> OutPort:
    data, last = node.first(x)
    return node.back(node.build.ShuffleChannels(data, axis=1, group=groups), last)


@paddle("unfold")
def unfold(node: PaddleNode, x: OutPort) -> OutPort:
    """Make a column of each window: [N, C k k, windows]"""
    kernel, strides, dilations = (node.paired(n, 2) for n in ("kernel_sizes", "strides", "dilations"))
    paddings = node.integers("paddings")
    top, left, bottom, right = paddings if len(paddings) == 4 else (*node.paired("paddings", 2),) * 2
    build = node.build
    data = build.Pad(x, node.list([0, 0, top, left]), node.list([0, 0, bottom, right]), node.like(0, x))
    patches = build.ExtractImagePatches(data, sizes=kernel, strides=strides, rates=dilations)
    channels = node.extent(x, 1, "the number of channels")
    split = build.Reshape(patches, node.list([0, kernel[0] * kernel[1], channels, -1]), special_zero=True)
    return build.Reshape(
        build.Transpose(split, node.list([0, 2, 1, 3])),
        node.list([0, channels * kernel[0] * kernel[1], -1]),
        special_zero=True,
    )


@paddle("pixel_unshuffle")
def pixel_unshuffle(node: PaddleNode, x: OutPort, *, downscale_factor: int = 1) -> OutPort:
    data, last = node.first(x)
    return node.back(node.build.SpaceToDepth(data, mode=DepthMode.DEPTH_FIRST, block_size=downscale_factor), last)
