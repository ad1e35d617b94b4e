"""Shapes: the same elements in the same order; and elements repeated along axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.frontends.pt2.files.element_types import COMPLEX
from aot.frontends.pt2.registry import AtenNode, Complex, Size, aten
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError


def sized(node: AtenNode, *parts: OutPort) -> OutPort:
    """Vectors of sizes, one after the other."""
    return parts[0] if len(parts) == 1 else node.build.Concat(*parts, axis=0)


@aten("view.default", "_unsafe_view.default", "reshape.default", "_reshape_alias.default")
def view(
    node: AtenNode, x: OutPort, size: Sequence[Size] = (), shape: Sequence[Size] = (), stride: Sequence[Size] = ()
) -> OutPort:
    return node.build.Reshape(x, node.vector(size or shape))


@aten("view_as.default", "reshape_as.default")
def view_as(node: AtenNode, x: OutPort, other: OutPort) -> OutPort:
    return node.build.Reshape(x, node.dims(other, range(other.type.rank)))


@aten("flatten.using_ints")
def flatten(node: AtenNode, x: OutPort, start_dim: int = 0, end_dim: int = -1) -> OutPort:
    rank = x.type.rank
    if not rank:
        return node.build.Reshape(x, node.list([1]))
    start, end = node.axis(start_dim, rank), node.axis(end_dim, rank)
    parts = [node.dims(x, range(start)), node.list([-1]), node.dims(x, range(end + 1, rank))]
    return node.build.Reshape(x, sized(node, *parts))


@aten("ravel.default")
def ravel(node: AtenNode, x: OutPort) -> OutPort:
    return node.build.Reshape(x, node.list([-1]))


@aten("unflatten.int")
def unflatten(node: AtenNode, x: OutPort, dim: int, sizes: Sequence[Size]) -> OutPort:
    rank = x.type.rank
    axis = node.axis(dim, rank)
    parts = [node.dims(x, range(axis)), node.vector(sizes), node.dims(x, range(axis + 1, rank))]
    return node.build.Reshape(x, sized(node, *parts))


@aten("unsqueeze.default", "unsqueeze_copy.default")
def unsqueeze(node: AtenNode, x: OutPort, dim: int) -> OutPort:
    return node.build.Unsqueeze(x, node.list([node.axis(dim, x.type.rank + 1)]))


@aten("squeeze.default", "squeeze.dim", "squeeze.dims")
@aten("squeeze_copy.default", "squeeze_copy.dim", "squeeze_copy.dims")
def squeeze(node: AtenNode, x: OutPort, dim: int | Sequence[int] | None = None) -> OutPort:
    """Axes of size 1 are dropped; a size that varies counts as another one."""
    axes = [a for a in node.axes(dim, x.type.rank) if x.shape[a] == 1]
    return node.build.Squeeze(x, node.list(axes)) if axes else x


@aten("alias.default", "clone.default", "contiguous.default", "detach.default", "lift_fresh_copy.default")
@aten("lift_fresh.default", "alias_copy.default", "detach_copy.default", "lift.default")
def alias(node: AtenNode, x: OutPort) -> OutPort:
    return x


@aten("expand.default", "broadcast_to.default", "expand_copy.default")
def expand(node: AtenNode, x: OutPort, size: Sequence[Size], implicit: bool = False) -> OutPort:
    """A size of -1 is that of `x`; further axes are in front."""
    more = len(size) - x.type.rank
    if more < 0:
        raise ModelError(f"{node.kind}: there must be at least {x.type.rank} sizes, got {len(size)}")
    parts = [
        node.dims(x, [i - more]) if isinstance(n, int) and n == -1 and i >= more else node.vector([n])
        for i, n in enumerate(size)
    ]
    return node.build.Broadcast(x, sized(node, *parts)) if parts else x


@aten("expand_as.default")
def expand_as(node: AtenNode, x: OutPort, other: OutPort) -> OutPort:
    return node.build.Broadcast(x, node.dims(other, range(other.type.rank)))


@aten("broadcast_tensors.default", "meshgrid.default", "meshgrid.indexing")
def broadcast_tensors(node: AtenNode, tensors: Sequence[OutPort], indexing: str = "ij") -> tuple[OutPort, ...]:
    """All tensors in their common shape; a grid has an axis for each of them, the first two swapped for `xy`."""
    build, count = node.build, len(tensors)
    if node.kind.startswith("meshgrid"):
        order = [1, 0, *range(2, count)] if indexing == "xy" and count > 1 else list(range(count))
        shapes = [[-1 if order[k] == i else 1 for k in range(count)] for i in range(count)]
        tensors = [build.Reshape(t, node.list(s)) for t, s in zip(tensors, shapes, strict=True)]
    zeros = [build.Broadcast(node.scalar(0), node.dims(t, range(t.type.rank))) for t in tensors]
    total = node.chain("Add", zeros)
    return tuple(build.Broadcast(t, node.dims(total, range(total.type.rank))) for t in tensors)


@aten("repeat.default", "tile.default")
def repeat(node: AtenNode, x: OutPort, repeats: Sequence[Size] = (), dims: Sequence[Size] = ()) -> OutPort:
    times = repeats or dims
    short = x.type.rank - len(times)
    return node.build.Tile(x, node.vector([*[1] * max(short, 0), *times])) if times else x


@aten("repeat_interleave.self_int", "repeat_interleave.self_Tensor")
def repeat_interleave(
    node: AtenNode, x: OutPort, repeats: Size | OutPort, dim: int | None = None, output_size: Size | None = None
) -> OutPort:
    """Each element `repeats` times; of the flattened tensor without an axis."""
    build = node.build
    if dim is None:
        x, dim = build.Reshape(x, node.list([-1])), 0
    axis = node.axis(dim, x.type.rank)
    if isinstance(repeats, OutPort):
        return build.Gather(x, _repeated_places(node, repeats), node.scalar(axis))
    wide = build.Unsqueeze(x, node.list([axis + 1]))
    ones = [1] * x.type.rank
    tiled = build.Tile(wide, node.vector([*ones[: axis + 1], repeats, *ones[axis + 1 :]]))
    rest = [node.dims(x, range(axis)), node.list([-1]), node.dims(x, range(axis + 1, x.type.rank))]
    return build.Reshape(tiled, sized(node, *rest))


def _repeated_places(node: AtenNode, repeats: OutPort) -> OutPort:
    """Return index k repeats[k] times: for each position, how many repetitions end at or before it."""
    build = node.build
    ends = build.CumSum(node.cast(repeats, DType.I64), node.scalar(0))
    count = build.ReduceSum(node.cast(repeats, DType.I64), node.list([0]))
    positions = build.Range(node.scalar(0), count, node.scalar(1), output_type=DType.I64)
    return build.Bucketize(positions, ends, output_type=DType.I64, with_right_bound=False)


@aten("to.dtype", "to.device", "to.other", "to.dtype_layout", "to.prim_Device", "_to_copy.default", "type_as.default")
def to(
    node: AtenNode,
    x: OutPort,
    other: OutPort | DType | str | None = None,
    dtype: DType | str | None = None,
    copy: bool = False,
) -> OutPort | Complex:
    """Only the element type changes."""
    wanted = node.attrs.get("given", (None,))[0]
    if wanted in COMPLEX.values():
        whole = node.cast(x, DType.F64 if wanted == COMPLEX[11] else DType.F32)
        return Complex(whole, node.build.Broadcast(node.like(0, whole), node.dims(x, range(x.type.rank))))
    return x


@aten("view.dtype")
def view_dtype(node: AtenNode, x: OutPort, dtype: DType) -> OutPort:
    """The bits of `x` [.., n] as another type; where that has k times the bits, [.., n / k], where 1 / k, [.., n k]."""
    build, (old, new) = node.build, (x.type.dtype.bits, dtype.bits)
    if old == new:
        return x if x.type.dtype is dtype else build.BitCast(x, destination_type=dtype)
    node.refuse(
        min(old, new) < 8 or not x.type.rank,
        f"{x.type} cannot be seen as {dtype.value}: types of another size have whole bytes, and tensors an axis",
    )
    bits, last = {8: DType.U8, 16: DType.U16, 32: DType.U32, 64: DType.U64}, x.type.rank - 1
    if new > old:  # the first of some elements is the low part
        count = new // old
        x = build.Reshape(x, build.Concat(node.dims(x, range(last)), node.list([-1, count]), axis=0))
    whole = node.cast(view_dtype(node, x, bits[old]), bits[max(old, new)])
    shifts = node.build.const(np.arange(0, max(old, new), min(old, new)), whole.type.dtype)
    if new > old:
        parts = build.BitwiseLeftShift(whole, shifts)
        return view_dtype(node, build.ReduceSum(parts, node.list([last + 1])), dtype)
    parts = build.BitwiseRightShift(build.Unsqueeze(whole, node.list([last + 1])), shifts)
    low = node.cast(build.BitwiseAnd(parts, node.like((1 << new) - 1, parts)), bits[new])
    flat = build.Reshape(low, build.Concat(node.dims(x, range(last)), node.list([-1]), axis=0))
    return view_dtype(node, flat, dtype)


@aten("as_strided.default", "as_strided_copy.default")
def as_strided(
    node: AtenNode, x: OutPort, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> OutPort:
    """Elements by their places in the storage of a tensor without gaps."""
    build = node.build
    position = node.scalar(storage_offset or 0)
    for i, (n, step) in enumerate(zip(size, stride, strict=True)):
        steps = build.Multiply(build.Range(node.scalar(0), node.scalar(n), node.scalar(1)), node.scalar(step))
        position = build.Add(position, build.Reshape(steps, node.list([-1, *[1] * (len(size) - 1 - i)])))
    return build.Gather(build.Reshape(x, node.list([-1])), position, node.scalar(0))


@aten("pixel_shuffle.default", "pixel_unshuffle.default")
def pixel_shuffle(
    node: AtenNode, x: OutPort, upscale_factor: int | None = None, downscale_factor: int | None = None
) -> OutPort:
    """[.., C r r, H, W] and [.., C, H r, W r]."""
    build, rank = node.build, x.type.rank
    factor = upscale_factor or downscale_factor or 1
    is_upscaled = upscale_factor is not None
    front, (c, h, w) = [node.dims(x, range(rank - 3))], (node.size(x, k) for k in (rank - 3, rank - 2, rank - 1))
    unit, one = node.list([factor]), node.list([0])

    def part(size: OutPort, by: int) -> OutPort:
        return build.Unsqueeze(build.Divide(size, node.scalar(by)), one)

    def times(size: OutPort, by: int) -> OutPort:
        return build.Unsqueeze(build.Multiply(size, node.scalar(by)), one)

    f = rank - 3
    if is_upscaled:
        sizes = [*front, part(c, factor**2), unit, unit, times(h, 1), times(w, 1)]
        order = [*range(f), f, f + 3, f + 1, f + 4, f + 2]
        result = [*front, part(c, factor**2), times(h, factor), times(w, factor)]
    else:
        sizes = [*front, times(c, 1), part(h, factor), unit, part(w, factor), unit]
        order = [*range(f), f, f + 2, f + 4, f + 1, f + 3]
        result = [*front, times(c, factor**2), part(h, factor), part(w, factor)]
    apart = build.Transpose(build.Reshape(x, sized(node, *sizes)), node.list(order))
    return build.Reshape(apart, sized(node, *result))


@aten("channel_shuffle.default", "native_channel_shuffle.default")
def channel_shuffle(node: AtenNode, x: OutPort, groups: int) -> OutPort:
    return node.build.ShuffleChannels(x, axis=1, group=groups)
