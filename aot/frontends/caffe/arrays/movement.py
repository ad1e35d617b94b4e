"""Shapes and movement of elements."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.caffe.registry import CaffeNode, caffe
from aot.ir.graph import OutPort
from aot.ir.types import Dim
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError


@caffe("Concat", param="concat_param")
def concat(node: CaffeNode, *xs: OutPort, axis: int, concat_dim: int) -> OutPort:
    axis = concat_dim if axis == 1 else axis  # the older field
    return node.build.Concat(*xs, axis=node.axis(axis, xs[0].type.rank))


@caffe("Slice", param="slice_param")
def slice_(node: CaffeNode, x: OutPort, *, axis: int, slice_dim: int) -> tuple[OutPort, ...]:
    """Cut at the points of `slice_point`, or into equal parts."""
    axis, points = node.axis(slice_dim if axis == 1 else axis, x.type.rank), node.integers("slice_point", ())
    count = len(node.outputs)
    along = node.scalar(axis)
    if not points:
        new_node = node.build.Split(x, along, num_splits=count, outputs=count).node
    else:
        starts = (0, *points)
        if len(points) != count - 1 or any(a >= b for a, b in zip(starts, points, strict=False)):
            raise ModelError(f"{node.kind}: {count - 1} points that increase, got {list(points)}")
        lengths = [b - a for a, b in zip(starts, points, strict=False)]
        new_node = node.build.VariadicSplit(x, along, node.list([*lengths, -1]), outputs=count).node
    return tuple(new_node.out_ports().values())


@caffe("Flatten", param="flatten_param")
def flatten(node: CaffeNode, x: OutPort, *, axis: int, end_axis: int) -> OutPort:
    first, last = node.axis(axis, x.type.rank), node.axis(end_axis, x.type.rank)
    return _reshaped(node, x, first, last + 1, [-1])


@caffe("Reshape", param="reshape_param")
def reshape(node: CaffeNode, x: OutPort, *, axis: int, num_axes: int) -> OutPort:
    """Replace axes by those of `shape`: 0 keeps the size of the axis there, -1 takes what is left."""
    rank = x.type.rank
    first = axis if axis >= 0 else axis + rank + 1
    end = rank if num_axes == -1 else first + num_axes
    if not 0 <= first <= end <= rank:
        raise ModelError(f"{node.kind}: axes from {axis}, {num_axes} of them, are those of rank {rank}")
    return _reshaped(node, x, first, end, node.integers("shape.dim", ()))


def _reshaped(node: CaffeNode, x: OutPort, first: int, end: int, sizes: Sequence[int]) -> OutPort:
    """Replace the axes `first` .. `end` - 1 by others."""
    if any(n == 0 and first + i >= x.type.rank for i, n in enumerate(sizes)):
        raise ModelError(f"{node.kind}: 0 must keep the size of an axis that the data have, got {list(sizes)}")
    middle: list[Dim] = [x.shape[first + i] if n == 0 else n for i, n in enumerate(sizes)]
    new_shape = [*x.shape[:first], *middle, *x.shape[end:]]
    if all(isinstance(n, int) for n in new_shape):
        return node.reshape(x, new_shape)
    parts = [node.dims(x, range(first))] if first else []
    parts += [node.dims(x, [first + i]) if n == 0 else node.list([n]) for i, n in enumerate(sizes)]
    parts += [node.dims(x, range(end, x.type.rank))] if end < x.type.rank else []
    return node.build.Reshape(x, parts[0] if len(parts) == 1 else node.build.Concat(*parts, axis=0))


@caffe("Permute", param="permute_param")
def permute(node: CaffeNode, x: OutPort) -> OutPort:
    """Order the axes; those that are not named follow."""
    named = node.integers("order", ())
    order = [*named, *(a for a in range(x.type.rank) if a not in named)]
    return node.build.Transpose(x, node.list(order))


@caffe("Tile", param="tile_param")
def tile(node: CaffeNode, x: OutPort, *, axis: int, tiles: int) -> OutPort:
    along = node.axis(axis, x.type.rank)
    return node.build.Tile(x, node.list([tiles if a == along else 1 for a in range(x.type.rank)]))


@caffe("Crop", param="crop_param")
def crop(node: CaffeNode, x: OutPort, like: OutPort, *, axis: int) -> OutPort:
    """Cut from `axis` on to the sizes of the second bottom, from offsets on."""
    first, rank = node.axis(axis, x.type.rank), x.type.rank
    offset_values = node.integers("offset", (0,))
    if len(offset_values) not in (1, rank - first):
        raise ModelError(f"{node.kind}: there must be one offset or {rank - first}, got {len(offset_values)}")
    offsets = list(offset_values) * (rank - first) if len(offset_values) == 1 else list(offset_values)
    axes = list(range(first, rank))
    starts = node.list(offsets)
    ends = node.build.Add(node.dims(like, axes), starts)
    return node.build.Slice(x, starts, ends, node.list([1] * len(axes)), node.list(axes))


@caffe("Reverse", param="reverse_param")
def reverse(node: CaffeNode, x: OutPort, *, axis: int) -> OutPort:
    return node.build.Reverse(x, node.list([node.axis(axis, x.type.rank)]))


@caffe("BatchReindex")
def batch_reindex(node: CaffeNode, x: OutPort, positions: OutPort) -> OutPort:
    return node.build.Gather(x, node.cast(positions, DType.I64), node.scalar(0))


@caffe("ShuffleChannel", param="shuffle_channel_param")
def shuffle_channel(node: CaffeNode, x: OutPort, *, group: int) -> OutPort:
    return node.build.ShuffleChannels(x, axis=1, group=group)


@caffe("ReorgYolo", param="reorg_yolo_param")
def reorg_yolo(node: CaffeNode, x: OutPort, *, stride: int) -> OutPort:
    return node.build.ReorgYolo(x, stride=(stride,))


@caffe("Parameter", param="parameter_param")
def parameter(node: CaffeNode, blob: OutPort) -> OutPort:
    del node
    return blob
