"""Movement of elements: transposition, parts, concatenation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from aot.frontends.pt2.registry import AtenNode, Number, Size, aten
from aot.ir.graph import OutPort
from aot.ir.types import simplify
from aot.opset.movement.movement import VariadicSplit
from aot.opset.movement.scatter import Combination


def transposed(node: AtenNode, x: OutPort, order: Sequence[int]) -> OutPort:
    return x if list(order) == list(range(x.type.rank)) else node.build.Transpose(x, node.list(order))


@aten("permute.default", "permute_copy.default")
def permute(node: AtenNode, x: OutPort, dims: Sequence[int]) -> OutPort:
    return transposed(node, x, node.axes(dims, x.type.rank))


@aten("transpose.int", "swapaxes.default", "swapdims.default", "transpose_copy.int")
def transpose(
    node: AtenNode, x: OutPort, dim0: int = 0, dim1: int = 1, axis0: int | None = None, axis1: int | None = None
) -> OutPort:
    rank = x.type.rank
    order = list(range(rank))
    if rank:
        a = node.axis(dim0 if axis0 is None else axis0, rank)
        b = node.axis(dim1 if axis1 is None else axis1, rank)
        order[a], order[b] = order[b], order[a]
    return transposed(node, x, order)


@aten(
    "t.default", "numpy_T.default", "mT.default", "adjoint.default", "t_copy.default", "matrix_H.default", "mH.default"
)
def t(node: AtenNode, x: OutPort) -> OutPort:
    """All axes in reverse order for `numpy_T`, else the last two swapped."""
    order = list(range(x.type.rank))
    if node.kind.startswith("numpy_T"):
        order.reverse()
    else:
        order[-2:] = order[: -3 if len(order) > 2 else None : -1]
    return transposed(node, x, order)


@aten("movedim.int", "movedim.intlist", "moveaxis.int", "moveaxis.intlist")
def movedim(node: AtenNode, x: OutPort, source: int | Sequence[int], destination: int | Sequence[int]) -> OutPort:
    rank = x.type.rank
    source_of = dict(zip(node.axes(destination, rank), node.axes(source, rank), strict=True))
    rest = iter([k for k in range(rank) if k not in source_of.values()])
    return transposed(node, x, [source_of[k] if k in source_of else next(rest) for k in range(rank)])


@aten("select.int", "select_copy.int")
def select(node: AtenNode, x: OutPort, dim: int, index: Size) -> OutPort:
    return node.build.Gather(x, node.port(index), node.scalar(node.axis(dim, x.type.rank)))


def sliced(node: AtenNode, x: OutPort, axis: int, start: Size, end: Size, step: int = 1) -> OutPort:
    bounds = (node.vector([v]) for v in (start, end, step))
    return node.build.Slice(x, *bounds, node.list([axis]))


LAST = (1 << 63) - 1


@aten("slice.Tensor", "slice_copy.Tensor")
def slice_(
    node: AtenNode, x: OutPort, dim: int = 0, start: Size | None = None, end: Size | None = None, step: int = 1
) -> OutPort:
    if start in (None, 0) and end in (None, LAST) and step == 1:
        return x
    axis = node.axis(dim, x.type.rank)
    return sliced(node, x, axis, 0 if start is None else start, LAST if end is None else end, step)


@aten("narrow.default", "narrow_copy.default")
def narrow(node: AtenNode, x: OutPort, dim: int, start: Size, length: Size) -> OutPort:
    axis = node.axis(dim, x.type.rank)
    first = node.vector([start])
    if isinstance(start, int) and start < 0:
        first = node.build.Add(first, node.dims(x, [axis]))
    end = node.build.Add(first, node.vector([length]))
    return node.build.Slice(x, first, end, node.list([1]), node.list([axis]))


@aten("slice_scatter.default")
def slice_scatter(
    node: AtenNode,
    x: OutPort,
    src: OutPort,
    dim: int = 0,
    start: Size | None = None,
    end: Size | None = None,
    step: int = 1,
) -> OutPort:
    axis = node.axis(dim, x.type.rank)
    bounds = (node.vector([v]) for v in (0 if start is None else start, LAST if end is None else end, step))
    return node.build.SliceScatter(x, node.cast(src, x.type.dtype), *bounds, node.list([axis]))


@aten("select_scatter.default")
def select_scatter(node: AtenNode, x: OutPort, src: OutPort, dim: int, index: Size) -> OutPort:
    axis = node.axis(dim, x.type.rank)
    part = node.build.Unsqueeze(node.cast(src, x.type.dtype), node.list([axis]))
    return node.build.ScatterUpdate(x, node.vector([index]), part, node.scalar(axis))


def divided(node: AtenNode, x: OutPort, axis: int, lengths: OutPort, count: int) -> tuple[OutPort, ...]:
    new_node = node.build.node(VariadicSplit(), x, node.scalar(axis), lengths, outputs=count)
    return tuple(new_node.out_ports().values())


@aten("chunk.default")
def chunk(node: AtenNode, x: OutPort, chunks: int, dim: int = 0) -> tuple[OutPort, ...]:
    """Parts of equal size, but the last one; the export has fixed how many there are."""
    axis, count = node.axis(dim, x.type.rank), len(node.outputs)
    step = simplify((x.shape[axis] + chunks - 1) // chunks)
    if isinstance(step, int):
        lengths = node.list([*[step] * (count - 1), -1])
    else:
        size = node.dims(x, [axis])
        chunk_size = node.build.Divide(node.build.Add(size, node.list([chunks - 1])), node.list([chunks]))
        lengths = node.build.Concat(*[chunk_size] * (count - 1), node.list([-1]), axis=0)
    return divided(node, x, axis, lengths, count)


@aten("split.Tensor", "split_copy.Tensor")
def split(node: AtenNode, x: OutPort, split_size: Size, dim: int = 0) -> tuple[OutPort, ...]:
    count = len(node.outputs)
    return divided(node, x, node.axis(dim, x.type.rank), node.vector([*[split_size] * (count - 1), -1]), count)


@aten("split_with_sizes.default", "split.sizes", "split_with_sizes_copy.default")
def split_with_sizes(
    node: AtenNode, x: OutPort, split_sizes: Sequence[Size] = (), split_size: Sequence[Size] = (), dim: int = 0
) -> tuple[OutPort, ...]:
    sizes = split_sizes or split_size
    return divided(node, x, node.axis(dim, x.type.rank), node.vector(sizes), len(sizes))


@aten("tensor_split.sections", "tensor_split.indices")
def tensor_split(
    node: AtenNode, x: OutPort, sections: int = 0, indices: Sequence[int] = (), dim: int = 0
) -> tuple[OutPort, ...]:
    """Cut into `sections` parts, the first ones longer by 1; or into parts that end at indices."""
    axis = node.axis(dim, x.type.rank)
    if indices:
        ends = [0, *indices, LAST]
        return tuple(sliced(node, x, axis, a, b) for a, b in pairwise(ends))
    size = node.extent(x, axis, "the size that is cut")
    lengths = [size // sections + (i < size % sections) for i in range(sections)]
    return divided(node, x, axis, node.list(lengths), sections)


@aten("unbind.int", "unbind_copy.int")
def unbind(node: AtenNode, x: OutPort, dim: int = 0) -> tuple[OutPort, ...]:
    axis, count = node.axis(dim, x.type.rank), len(node.outputs)
    parts = divided(node, x, axis, node.list([1] * count), count)
    return tuple(node.build.Squeeze(p, node.list([axis])) for p in parts)


@aten("cat.default", "concat.default", "concatenate.default")
def cat(node: AtenNode, tensors: Sequence[OutPort], dim: int = 0) -> OutPort:
    """Tensors in their common type; empty vectors among others count for nothing."""
    most = max((t.type.rank for t in tensors), default=0)
    kept = [t for t in tensors if t.type.rank == most or t.shape != (0,)]
    parts = node.promoted(*kept)
    return parts[0] if len(parts) == 1 else node.build.Concat(*parts, axis=node.axis(dim, most))


@aten("stack.default")
def stack(node: AtenNode, tensors: Sequence[OutPort], dim: int = 0) -> OutPort:
    axis = node.axis(dim, tensors[0].type.rank + 1)
    parts = [node.build.Unsqueeze(t, node.list([axis])) for t in node.promoted(*tensors)]
    return parts[0] if len(parts) == 1 else node.build.Concat(*parts, axis=axis)


@aten("hstack.default", "vstack.default", "column_stack.default", "dstack.default")
def along_first(node: AtenNode, tensors: Sequence[OutPort]) -> OutPort:
    """Side by side: vectors along axis 0 for `hstack`, as rows for `vstack`, as columns for `column_stack`."""
    build, rank = node.build, tensors[0].type.rank
    if node.kind.startswith("vstack"):
        parts = [build.Unsqueeze(t, node.list([0])) if rank == 1 else t for t in tensors]
        return cat(node, parts, 0)
    if node.kind.startswith("dstack"):
        parts = [build.Reshape(t, node.list([1, -1, 1])) if t.type.rank < 2 else t for t in tensors]
        return cat(node, [build.Unsqueeze(t, node.list([2])) if t.type.rank == 2 else t for t in parts], 2)
    if node.kind.startswith("column"):
        tensors = [build.Reshape(t, node.list([-1, 1])) if t.type.rank < 2 else t for t in tensors]
    return cat(node, tensors, min(1, tensors[0].type.rank - 1))


@aten("flip.default")
def flip(node: AtenNode, x: OutPort, dims: Sequence[int]) -> OutPort:
    return node.build.Reverse(x, node.list(node.axes(dims, x.type.rank))) if dims else x


@aten("roll.default")
def roll(node: AtenNode, x: OutPort, shifts: Size | Sequence[Size], dims: int | Sequence[int] = ()) -> OutPort:
    """Shift along axes; the flattened tensor if there are none."""
    build = node.build
    moves = node.vector(shifts if isinstance(shifts, Sequence) else [shifts])
    if dims == ():
        flat = build.Roll(build.Reshape(x, node.list([-1])), moves, node.list([0]))
        return build.Reshape(flat, node.dims(x, range(x.type.rank)))
    axes = [node.axis(d, x.type.rank) for d in ([dims] if isinstance(dims, int) else dims)]
    return build.Roll(x, moves, node.list(axes))


def windows(node: AtenNode, x: OutPort, axis: int, size: int, step: int, gap: int = 1) -> OutPort:
    """Windows of `size` elements, `gap` apart, along an axis, every `step`; elements of a window are the last axis."""
    build, rank = node.build, x.type.rank
    room = build.Subtract(node.size(x, axis), node.scalar(gap * (size - 1) + 1))
    count = build.Add(build.Divide(room, node.scalar(step)), node.scalar(1))
    starts = build.Multiply(build.Range(node.scalar(0), count, node.scalar(1)), node.scalar(step))
    positions = build.Add(build.Unsqueeze(starts, node.list([1])), node.list([k * gap for k in range(size)]))
    port = build.Gather(x, positions, node.scalar(axis))
    return transposed(node, port, [k for k in range(rank + 1) if k != axis + 1] + [axis + 1])


@aten("unfold.default", "unfold_copy.default")
def unfold(node: AtenNode, x: OutPort, dimension: int, size: int, step: int) -> OutPort:
    if not x.type.rank:
        x = node.build.Reshape(x, node.list([1]))
        return x if size else node.build.Slice(x, node.list([0]), node.list([0]), node.list([1]))
    return windows(node, x, node.axis(dimension, x.type.rank), size, step)


SUM = Combination.SUM


@aten("index_select.default")
def index_select(node: AtenNode, x: OutPort, dim: int, index: OutPort) -> OutPort:
    if not x.type.rank:
        return x
    at = node.build.Reshape(index, node.list([-1]))
    return node.build.Gather(x, at, node.scalar(node.axis(dim, x.type.rank)))


@aten("index_copy.default", "index_add.default")
def index_update(node: AtenNode, x: OutPort, dim: int, index: OutPort, source: OutPort, alpha: Number = 1) -> OutPort:
    """Slices at indices replaced by those of `source`, or added to."""
    build = node.build
    if not x.type.rank:
        parts = [build.Reshape(p, node.list([1])) for p in (x, index, source)]
        return build.Squeeze(index_update(node, parts[0], 0, parts[1], parts[2], alpha), node.list([0]))
    axis = node.axis(dim, x.type.rank)
    source, index = node.cast(source, x.type.dtype), build.Reshape(index, node.list([-1]))
    if node.kind.startswith("index_copy"):
        return build.ScatterUpdate(x, index, source, node.scalar(axis))
    source = source if alpha == 1 else build.Multiply(source, node.same(alpha, source))
    positions = build.Reshape(index, node.list([-1, *[1] * (x.type.rank - 1 - axis)]))
    positions = build.Broadcast(positions, node.dims(source, range(source.type.rank)))
    return build.ScatterElementsUpdate(x, positions, source, node.scalar(axis), reduction=SUM)


@aten("index_fill.int_Scalar", "index_fill.int_Tensor")
def index_fill(node: AtenNode, x: OutPort, dim: int, index: OutPort, value: OutPort | Number) -> OutPort:
    if not x.type.rank:
        return node.same(value, x)
    build, axis = node.build, node.axis(dim, x.type.rank)
    index = build.Reshape(index, node.list([-1]))
    rest = [node.dims(x, range(axis)), node.dims(index, [0]), node.dims(x, range(axis + 1, x.type.rank))]
    part = build.Broadcast(node.same(value, x), build.Concat(*rest, axis=0))
    return build.ScatterUpdate(x, index, part, node.scalar(axis))
