"""Parts of tensors."""

from __future__ import annotations

from aot.frontends.onnx.arrays.axes import OPEN_END
from aot.frontends.tf.math.complex_numbers import by_parts
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

MASKS = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")


@tf("Slice")
@by_parts
def slice_(node: TfNode, x: OutPort, begin: OutPort, size: OutPort) -> OutPort:
    """`size` elements from `begin` on; -1 stands for all that follow."""
    build, rank = node.build, x.type.rank
    begin, size = (build.Reshape(node.cast(p, DType.I64), node.list([rank])) for p in (begin, size))
    if not rank:
        return x
    if size.value is not None and size.value.dtype != object and begin.value is not None:
        sizes, starts = node.ints(size, "size"), begin.value.reshape(-1).tolist()
        ends = [OPEN_END if n == -1 else s + n for s, n in zip(starts, sizes, strict=True)]
        if all(isinstance(e, int) for e in ends):
            return build.Slice(x, begin, node.list(ends), node.list([1] * rank), node.list(range(rank)))
    stops = build.Select(build.Equal(size, -1), node.dims(x, range(rank)), build.Add(begin, size))
    return build.Slice(x, begin, stops, node.list([1] * rank), node.list(range(rank)))


def masks(node: TfNode, count: int) -> dict[str, tuple[int, ...]]:
    """Return the bits of each mask, for each entry of `begin`; a new axis wins over one that shrinks."""
    bits = {name: node.integer(name) for name in MASKS}
    bits["shrink_axis_mask"] &= ~(bits["new_axis_mask"] | bits["ellipsis_mask"])
    bits["new_axis_mask"] &= ~bits["ellipsis_mask"]
    if bin(bits["ellipsis_mask"]).count("1") > 1:
        raise ModelError(f"{node.kind}: one entry must stand for an ellipsis, got mask {bits['ellipsis_mask']}")
    return {name: tuple(value >> i & 1 for i in range(count)) for name, value in bits.items()}


@tf("StridedSlice")
@by_parts
def strided_slice(node: TfNode, x: OutPort, begin: OutPort, end: OutPort, strides: OutPort) -> OutPort:
    count = node.extent(begin, 0, "the number of sliced axes")
    return node.build.StridedSlice(x, begin, end, strides, **masks(node, count))


@tf("Split")
@by_parts
def split(node: TfNode, axis: OutPort, x: OutPort) -> tuple[OutPort, ...]:
    along, count = node.axis(node.ints(axis, "split_dim")[0], x.type.rank), node.integer("num_split")
    if count == 1:
        return (x,)
    first = node.build.Split(x, node.scalar(along), num_splits=count, outputs=count)
    return tuple(first.node.out_ports().values())


@tf("SplitV")
@by_parts
def split_v(node: TfNode, x: OutPort, sizes: OutPort, axis: OutPort) -> tuple[OutPort, ...]:
    along, count = node.axis(node.ints(axis, "split_dim")[0], x.type.rank), len(node.outputs)
    if count == 1:
        return (x,)
    first = node.build.VariadicSplit(x, node.scalar(along), sizes, outputs=count)
    return tuple(first.node.out_ports().values())


@tf("DynamicPartition")
@by_parts
def dynamic_partition(node: TfNode, x: OutPort, partitions: OutPort) -> tuple[OutPort, ...]:
    """The rows of each part, in order; how many they are depends on data."""
    build, rank, dims = node.build, partitions.type.rank, node.dims
    inner = [dims(x, [a]) for a in range(rank, x.type.rank)]
    flat = build.Reshape(x, build.Concat(node.list([-1]), *inner, axis=0)) if rank != 1 else x
    parts = build.Reshape(partitions, node.list([-1]))
    ports: list[OutPort] = []
    for k in range(node.integer("num_partitions")):
        positions = build.Squeeze(build.NonZero(build.Equal(parts, node.like(k, parts))), node.list([0]))
        ports.append(build.Gather(flat, positions, node.scalar(0)))
    return tuple(ports)
