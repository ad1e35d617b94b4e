"""Indices that are tensors: gather, scatter, and PyTorch's and NumPy's indexing by several of them.

x[i, :, j]     ->     axes i and j first, GatherND at pairs (i, j), axes back where they belong
"""

from __future__ import annotations

from collections.abc import Sequence

from aot.codegen.dataclass import dataclass
from aot.frontends.pt2.arrays.movement import transposed
from aot.frontends.pt2.registry import AtenNode, Number, aten
from aot.ir.graph import OutPort
from aot.opset.movement.scatter import Combination
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

REDUCTIONS = {
    "sum": Combination.SUM,
    "add": Combination.SUM,
    "prod": Combination.PROD,
    "multiply": Combination.PROD,
    "amax": Combination.MAX,
    "amin": Combination.MIN,
    "mean": Combination.MEAN,
}


def cut(node: AtenNode, x: OutPort, like: OutPort, axis: int | None) -> OutPort:
    """`x` cut to the sizes of `like` along all axes but one."""
    axes = [k for k in range(x.type.rank) if k != axis and x.shape[k] != like.shape[k]]
    if not axes:
        return x
    zeros, ones = node.list([0] * len(axes)), node.list([1] * len(axes))
    return node.build.Slice(x, zeros, node.dims(like, axes), ones, node.list(axes))


@aten("take_along_dim.default")
def take_along_dim(node: AtenNode, x: OutPort, indices: OutPort, dim: int | None = None) -> OutPort:
    """Other axes are stretched; the flattened tensor without an axis."""
    build = node.build
    if dim is None:
        x, indices, dim = build.Reshape(x, node.list([-1])), build.Reshape(indices, node.list([-1])), 0
    axis, rank = node.axis(dim, x.type.rank), x.type.rank
    others = [k for k in range(rank) if k != axis]
    shapes: list[OutPort] = []
    for own in (x, indices):
        ones = [build.Broadcast(node.scalar(0), node.dims(p, others)) for p in (x, indices)]
        both = build.ShapeOf(node.chain("Add", ones))
        parts = [build.Slice(both, node.list([0]), node.list([axis]), node.list([1])), node.dims(own, [axis])]
        behind = build.Slice(both, node.list([axis]), node.list([rank]), node.list([1]))
        shapes.append(build.Concat(*parts, behind, axis=0))
    a, b = (build.Broadcast(p, s) for p, s in zip((x, indices), shapes, strict=True))
    return build.GatherElements(a, b, axis=axis)


@aten("gather.default")
def gather(node: AtenNode, x: OutPort, dim: int, index: OutPort, sparse_grad: bool = False) -> OutPort:
    if not x.type.rank:
        return x if not index.type.rank else node.build.Broadcast(x, node.dims(index, range(index.type.rank)))
    axis = node.axis(dim, x.type.rank)
    if not index.type.rank:
        index = node.build.Reshape(index, node.list([1]))
        return node.build.Squeeze(gather(node, x, dim, index), node.list([0]))
    return node.build.GatherElements(cut(node, x, index, axis), index, axis=axis)


@aten("take.default")
def take(node: AtenNode, x: OutPort, index: OutPort) -> OutPort:
    return node.build.Gather(node.build.Reshape(x, node.list([-1])), index, node.scalar(0))


@aten("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce", "scatter_add.default")
@aten("scatter_reduce.two")
def scatter(
    node: AtenNode,
    x: OutPort,
    dim: int,
    index: OutPort,
    src: OutPort | None = None,
    value: Number | None = None,
    reduce: str | None = None,
    include_self: bool = True,
) -> OutPort:
    """Elements of `src`, or a value, written to the places of an index along an axis."""
    build = node.build
    if not x.type.rank:
        one = node.list([1])
        index = build.Reshape(index, one)
        src = None if src is None else build.Reshape(src, one)
        return build.Reshape(
            scatter(node, build.Reshape(x, one), 0, index, src, value, reduce, include_self), node.list([])
        )
    axis = node.axis(dim, x.type.rank)
    reduction = Combination.SUM if node.kind.startswith("scatter_add") else Combination.NONE
    if reduce is not None:
        node.refuse(reduce not in REDUCTIONS, f"reduce is one of {', '.join(REDUCTIONS)}, got {reduce!r}")
        reduction = REDUCTIONS[reduce]
    if src is not None:
        updates = node.cast(cut(node, src, index, None), x.type.dtype)
    else:
        updates = build.Broadcast(node.same(0 if value is None else value, x), node.dims(index, range(index.type.rank)))
    fields = {"reduction": reduction, "use_init_val": include_self}
    return build.ScatterElementsUpdate(x, index, updates, node.scalar(axis), **fields)


# ---- several indices


@dataclass(frozen=True, slots=True)
class Places:
    """Indices of some axes: `order` has these axes first, `tuples` the index [.., k] of all, `at` their place."""

    axes: tuple[int, ...]
    order: tuple[int, ...]
    tuples: OutPort
    at: int

    @property
    def rank(self) -> int:
        """The number of axes that the indices have."""
        return self.tuples.type.rank - 1


def _expanded(node: AtenNode, indices: Sequence[OutPort | None]) -> list[OutPort | None]:
    """Indices with masks replaced by the places where they are true."""
    ports: list[OutPort | None] = []
    for index in indices:
        if index is None or index.type.dtype is not DType.BOOL:
            ports.append(index)
            continue
        positions = node.build.NonZero(index, output_type=DType.I64)
        ports += [node.build.Gather(positions, node.scalar(k), node.scalar(0)) for k in range(index.type.rank)]
    return ports


def places_of(node: AtenNode, x: OutPort, indices: Sequence[OutPort | None]) -> Places:
    """Return the places that indices name. Neighbouring axes give way to those of indices, others put these first."""
    build = node.build
    expanded = _expanded(node, indices)
    axes = tuple(k for k, index in enumerate(expanded) if index is not None)
    if not axes or len(expanded) > x.type.rank:
        raise ModelError(f"{node.kind}: there must be 1 to {x.type.rank} indices, got {len(axes)} of {len(expanded)}")
    counted: list[OutPort] = []
    for k in axes:
        index = expanded[k]
        assert index is not None
        whole = node.cast(index, DType.I64)
        negative = build.Less(whole, node.scalar(0))
        counted.append(build.Select(negative, build.Add(whole, node.size(x, k)), whole))
    if len(counted) > 1:
        total = node.chain("Add", counted)
        shape = node.dims(total, range(total.type.rank))
        counted = [build.Broadcast(g, shape) for g in counted]
    last = node.list([counted[0].type.rank])
    columns = [build.Unsqueeze(g, last) for g in counted]
    tuples = columns[0] if len(columns) == 1 else build.Concat(*columns, axis=-1)
    order = (*axes, *(k for k in range(x.type.rank) if k not in axes))
    adjacent = axes == tuple(range(axes[0], axes[0] + len(axes)))
    return Places(axes, order, tuples, axes[0] if adjacent else 0)


def _settled(indexed: Places, rest: int) -> list[int]:
    """Return the axes of a result with the indices' axes first, in the order that it has for users."""
    front, behind = list(range(indexed.rank)), list(range(indexed.rank, indexed.rank + rest))
    return [*behind[: indexed.at], *front, *behind[indexed.at :]]


@aten("index.Tensor", "_unsafe_index.Tensor")
def index(node: AtenNode, x: OutPort, indices: Sequence[OutPort | None]) -> OutPort:
    present = [(k, i) for k, i in enumerate(indices) if i is not None]
    if len(present) == 1 and present[0][1].type.dtype is not DType.BOOL:
        axis, positions = present[0]
        return node.build.Gather(x, positions, node.scalar(axis))
    at = places_of(node, x, indices)
    port = node.build.GatherND(transposed(node, x, at.order), at.tuples)
    return transposed(node, port, _settled(at, x.type.rank - len(at.axes)))


@aten("index_put.default", "_unsafe_index_put.default")
def index_put(
    node: AtenNode, x: OutPort, indices: Sequence[OutPort | None], values: OutPort, accumulate: bool = False
) -> OutPort:
    build = node.build
    values = node.cast(values, x.type.dtype)
    mask = indices[0] if len(indices) == 1 else None
    if mask is not None and mask.type.dtype is DType.BOOL and not accumulate and _is_single(values):
        sides = node.list([-1] * 0 + list(range(mask.type.rank, x.type.rank)))
        wide = build.Unsqueeze(mask, sides) if x.type.rank > mask.type.rank else mask
        return build.Select(wide, build.Reshape(values, node.list([])), x)
    at = places_of(node, x, indices)
    transposed_x = transposed(node, x, at.order)
    others = x.type.rank - len(at.axes)
    settled = _settled(at, others)
    front = build.Slice(build.ShapeOf(at.tuples), node.list([0]), node.list([-1]), node.list([1]))
    sizes = build.Concat(front, node.dims(transposed_x, range(len(at.axes), x.type.rank)), axis=0)
    shown = build.Gather(sizes, node.list(settled), node.scalar(0))
    updates = transposed(node, build.Broadcast(values, shown), [settled.index(k) for k in range(len(settled))])
    reduction = Combination.SUM if accumulate else Combination.NONE
    updated = build.ScatterNDUpdate(transposed_x, at.tuples, updates, reduction=reduction)
    return transposed(node, updated, [at.order.index(k) for k in range(x.type.rank)])


def _is_single(x: OutPort) -> bool:
    return all(n == 1 for n in x.shape)


@aten("masked_select.default")
def masked_select(node: AtenNode, x: OutPort, mask: OutPort) -> OutPort:
    """The elements where the mask is true, after both are stretched to one shape."""
    build = node.build
    expanded = build.Select(mask, x, x)
    shape = node.dims(expanded, range(expanded.type.rank))
    wide = build.Reshape(build.Broadcast(mask, shape), node.list([-1]))
    positions = build.Reshape(build.NonZero(wide, output_type=DType.I64), node.list([-1]))
    return build.Gather(build.Reshape(expanded, node.list([-1])), positions, node.scalar(0))


@aten("masked_scatter.default")
def masked_scatter(node: AtenNode, x: OutPort, mask: OutPort, source: OutPort) -> OutPort:
    """The elements of `source`, in order, where the mask is true."""
    build = node.build
    expanded = build.Select(mask, x, x)
    shape = node.dims(expanded, range(expanded.type.rank))
    wide = build.Broadcast(mask, shape)
    flat = node.cast(build.Reshape(wide, node.list([-1])), DType.I64)
    order = build.CumSum(flat, node.scalar(0), exclusive=True)
    taken = build.Gather(build.Reshape(source, node.list([-1])), order, node.scalar(0))
    return build.Select(wide, build.Reshape(node.cast(taken, x.type.dtype), shape), expanded)


@aten("nonzero.default")
def nonzero(node: AtenNode, x: OutPort) -> OutPort:
    """Places as rows."""
    port = node.build.NonZero(x, output_type=DType.I64)
    if not x.type.rank:
        port = node.build.Slice(port, node.list([0]), node.list([0]), node.list([1]), node.list([0]))
    return node.build.Transpose(port, node.list([1, 0]))


@aten("nonzero_numpy.default", "where.default")
def nonzero_numpy(node: AtenNode, x: OutPort) -> tuple[OutPort, ...]:
    """Places as one vector an axis; a scalar has one axis here."""
    x = x if x.type.rank else node.build.Unsqueeze(x, node.list([0]))
    port = node.build.NonZero(x, output_type=DType.I64)
    return tuple(node.build.Gather(port, node.scalar(k), node.scalar(0)) for k in range(x.type.rank))


@aten("bucketize.Tensor", "bucketize.Scalar", "searchsorted.Tensor", "searchsorted.Scalar")
def bucketize(
    node: AtenNode,
    x: OutPort | Number,
    boundaries: OutPort | None = None,
    self: OutPort | Number | None = None,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
) -> OutPort:
    """The number of boundaries below x, or up to x with `right`; in `searchsorted` the boundaries come first.

    NaN is above all boundaries, and a boundary that is NaN below all numbers.
    """
    build, right = node.build, side == "right" if side is not None else right
    if boundaries is not None:
        values, rows = node.promoted(x, boundaries)
    else:
        rows, values = node.promoted(x, node.present(self, "self"))
    if not rows.type.dtype.is_float:
        return build.SearchSorted(rows, values, right_mode=right, output_type=node.dtype())
    rows = build.Select(build.IsNaN(rows), node.like(-float("inf"), rows), rows)
    buckets = build.SearchSorted(rows, values, right_mode=right, output_type=node.dtype())
    return build.Select(build.IsNaN(values), node.cast(node.size(rows, -1), node.dtype()), buckets)
