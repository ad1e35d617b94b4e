"""Data that moves."""

from __future__ import annotations

from aot.frontends.tf.math.complex_numbers import by_parts
from aot.frontends.tf.neural.layout import to_channels_first, to_channels_last
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.opset.movement.blocks import DepthMode
from aot.opset.movement.movement import ReverseMode
from aot.opset.movement.padding import PadMode
from aot.runtime.abi import DType

MIRRORS = {"REFLECT": PadMode.REFLECT, "SYMMETRIC": PadMode.SYMMETRIC}


@tf("Transpose")
@by_parts
def transpose(node: TfNode, x: OutPort, order: OutPort) -> OutPort:
    return node.build.Transpose(x, order)


@tf("Tile")
@by_parts
def tile(node: TfNode, x: OutPort, multiples: OutPort) -> OutPort:
    return node.build.Tile(x, multiples)


@tf("Reverse")
@by_parts
def reverse(node: TfNode, x: OutPort, flags: OutPort) -> OutPort:
    """Reverse along the axes with a set flag."""
    axes = [i for i, flag in enumerate(node.known(flags, "dims").reshape(-1)) if flag]
    return node.build.Reverse(x, node.list(axes), mode=ReverseMode.INDEX) if axes else x


@tf("ReverseV2")
@by_parts
def reverse_v2(node: TfNode, x: OutPort, axes: OutPort) -> OutPort:
    dims = node.axes(node.ints(axes, "axis"), x.type.rank)
    return node.build.Reverse(x, node.list(dims), mode=ReverseMode.INDEX) if dims else x


@tf("ReverseSequence")
@by_parts
def reverse_sequence(node: TfNode, x: OutPort, lengths: OutPort) -> OutPort:
    batch, time = node.integer("batch_dim"), node.integer("seq_dim")
    return node.build.ReverseSequence(x, lengths, batch_axis=batch, seq_axis=time)


@tf("Roll")
@by_parts
def roll(node: TfNode, x: OutPort, shift: OutPort, axis: OutPort) -> OutPort:
    column = node.list([-1])
    return node.build.Roll(x, node.build.Reshape(shift, column), node.build.Reshape(axis, column))


def ends_of(node: TfNode, paddings: OutPort) -> tuple[OutPort, OutPort]:
    """Return the columns of [rank, 2]."""
    one = node.scalar(1)
    wide = node.cast(paddings, DType.I64)
    begins, ends = (node.build.Gather(wide, node.scalar(k), one) for k in range(2))
    return begins, ends


@tf("Pad", "PadV2")
@by_parts
def pad(node: TfNode, x: OutPort, paddings: OutPort, value: OutPort | None = None) -> OutPort:
    if not x.type.rank:
        return x
    return node.build.Pad(x, *ends_of(node, paddings), node.like(0, x) if value is None else value)


@tf("MirrorPad")
@by_parts
def mirror_pad(node: TfNode, x: OutPort, paddings: OutPort) -> OutPort:
    mode = node.choice("mode", MIRRORS)
    return node.build.Pad(x, *ends_of(node, paddings), node.like(0, x), pad_mode=mode)


@tf("SpaceToDepth", "DepthToSpace")
def blocks(node: TfNode, x: OutPort) -> OutPort:
    """The place within a block varies slower than the channel."""
    node.refuse(node.text("data_format") not in ("NHWC", "NCHW"), "data_format must be NHWC or NCHW")
    run = node.build.SpaceToDepth if node.kind == "SpaceToDepth" else node.build.DepthToSpace
    y = run(to_channels_first(node, x), block_size=node.integer("block_size"), mode=DepthMode.BLOCKS_FIRST)
    return to_channels_last(node, y)


def _whole(node: TfNode, x: OutPort, block: OutPort, ends: OutPort) -> tuple[OutPort, OutPort, OutPort]:
    """Return blocks, begins and ends of all axes: the batch and the axes after the spatial ones have blocks of 1."""
    build, count = node.build, node.extent(block, 0, "the number of block axes")
    behind = x.type.rank - 1 - count

    def spread(p: OutPort, rest: int) -> OutPort:
        return build.Concat(node.list([rest]), node.cast(p, DType.I64), node.list([rest] * behind), axis=0)

    begins, stops = ends_of(node, ends)
    return spread(block, 1), spread(begins, 0), spread(stops, 0)


@tf("SpaceToBatchND")
def space_to_batch_nd(node: TfNode, x: OutPort, block: OutPort, paddings: OutPort) -> OutPort:
    return node.build.SpaceToBatch(x, *_whole(node, x, block, paddings))


@tf("BatchToSpaceND")
def batch_to_space_nd(node: TfNode, x: OutPort, block: OutPort, crops: OutPort) -> OutPort:
    return node.build.BatchToSpace(x, *_whole(node, x, block, crops))


@tf("SpaceToBatch", "BatchToSpace")
def batch_blocks(node: TfNode, x: OutPort, ends: OutPort) -> OutPort:
    """Blocks of height and width are equal."""
    block = node.list([node.integer("block_size")] * 2)
    run = space_to_batch_nd if node.kind == "SpaceToBatch" else batch_to_space_nd
    return run(node, x, block, ends)


@tf("DataFormatVecPermute", "DataFormatDimMap")
def data_format(node: TfNode, x: OutPort) -> OutPort:
    """Sizes, or axes, in the order of another data format."""
    source, target = node.text("src_format"), node.text("dst_format")
    node.refuse(sorted(source) != sorted(target), f"formats must have the same letters, got {source} and {target}")
    order = [source.index(c) for c in target]
    build = node.build
    if node.kind == "DataFormatDimMap":
        positions = build.FloorMod(x, node.like(len(order), x))
        return build.Gather(build.const([target.index(c) for c in source], x.type.dtype), positions, node.scalar(0))
    if x.shape[0] == len(order) - 2:
        spatial = [c for c in source if c not in "NC"]
        order = [spatial.index(c) for c in target if c not in "NC"]
    return build.Gather(x, node.list(order), node.scalar(0))
