"""Elements picked by index, and indices found by value."""

from __future__ import annotations

from aot.frontends.tf.math.complex_numbers import by_parts
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.opset.movement.gather import NegativeIndices
from aot.opset.reduction.sorting import Mode, Order
from aot.runtime.abi import DType


@tf("Gather", "ResourceGather")
@by_parts
def gather(node: TfNode, x: OutPort, indices: OutPort) -> OutPort:
    batch = node.integer("batch_dims", 0)
    return node.build.Gather(x, indices, node.scalar(batch), batch_dims=batch)


@tf("GatherV2")
@by_parts
def gather_v2(node: TfNode, x: OutPort, indices: OutPort, axis: OutPort) -> OutPort:
    batch = node.integer("batch_dims")
    along = node.scalar(node.axis(node.ints(axis, "axis")[0], x.type.rank)) if axis.value is not None else axis
    return node.build.Gather(x, indices, along, batch_dims=batch + indices.type.rank if batch < 0 else batch)


@tf("GatherNd", "ResourceGatherNd")
@by_parts
def gather_nd(node: TfNode, x: OutPort, indices: OutPort) -> OutPort:
    return node.build.GatherND(x, indices)


@tf("OneHot")
def one_hot(node: TfNode, indices: OutPort, depth: OutPort, on: OutPort, off: OutPort) -> OutPort:
    """An index that is negative or too large names no place."""
    positions, size = node.cast(indices, DType.I64), node.cast(depth, DType.I64)
    mode = NegativeIndices.IGNORE_NEGATIVE
    return node.build.OneHot(positions, size, on, off, axis=node.integer("axis"), negative_indices_mode=mode)


@tf("TopK", "TopKV2")
def top_k(node: TfNode, x: OutPort, k: OutPort | None = None) -> tuple[OutPort, OutPort]:
    """The largest elements of the last axis, sorted: those that are equal in the order of their places."""
    count = node.scalar(node.integer("k")) if k is None else node.cast(k, DType.I64)
    dtype = node.dtype("index_type", DType.I32)
    top = node.build.TopK(
        x,
        count,
        axis=x.type.rank - 1,
        mode=Mode.MAX,
        sort=Order.VALUE,
        stable=True,
        index_element_type=DType.I64,
        outputs=2,
    )
    return top, node.cast(top.node.out_port(1), dtype)


@tf("NthElement")
def nth_element(node: TfNode, x: OutPort, n: OutPort) -> OutPort:
    """The n-th smallest element of the last axis, or largest, counted from 0."""
    build, last = node.build, x.type.rank - 1
    mode = Mode.MAX if node.flag("reverse") else Mode.MIN
    count = build.Add(node.cast(n, DType.I64), 1)
    top = build.TopK(x, count, axis=last, mode=mode, sort=Order.VALUE, index_element_type=DType.I64, outputs=2)
    return build.Gather(top, node.cast(n, DType.I64), node.scalar(last))


@tf("InTopK", "InTopKV2")
def in_top_k(node: TfNode, scores: OutPort, targets: OutPort, k: OutPort | None = None) -> OutPort:
    """True where fewer than k scores of a row exceed that of the target, all are finite, and the target is a place."""
    build = node.build
    count = node.scalar(node.integer("k")) if k is None else node.cast(k, DType.I64)
    column = build.Unsqueeze(targets, node.list([1]))
    own = build.Gather(scores, column, node.scalar(1), batch_dims=1)
    better = build.ReduceSum(node.cast(build.Greater(scores, own), DType.I64), node.list([1]))
    finite = build.ReduceLogicalAnd(build.IsFinite(scores), node.list([1]))
    end = node.cast(node.size(scores, 1), targets.type.dtype)
    inside = build.LogicalAnd(build.GreaterEqual(targets, node.like(0, targets)), build.Less(targets, end))
    return build.LogicalAnd(build.Less(better, count), build.LogicalAnd(finite, inside))


@tf("Where")
def where(node: TfNode, x: OutPort) -> OutPort:
    """Places [count, rank] of the elements that are not 0."""
    node.refuse(not x.type.rank, "the input must have an axis, got a scalar")
    return node.build.Transpose(node.build.NonZero(x), node.list([1, 0]))


@tf("Unique", "UniqueWithCounts", "UniqueV2", "UniqueWithCountsV2")
def unique(node: TfNode, x: OutPort, axis: OutPort | None = None) -> tuple[OutPort, ...]:
    """Distinct elements in the order of their first places, the place of each element among them, their counts."""
    build, dtype = node.build, node.dtype("out_idx")
    dims = () if axis is None or axis.shape == (0,) else node.axes(node.ints(axis, "axis"), x.type.rank)
    along = (node.list(dims),) if dims and x.type.rank > 1 else ()
    types = {"index_element_type": dtype, "count_element_type": dtype}
    first = build.Unique(x, *along, sorted=False, **types, outputs=4)
    values, _, positions, counts = first.node.out_ports().values()
    return (values, positions, counts) if "Counts" in node.kind else (values, positions)


@tf("ListDiff")
def list_diff(node: TfNode, x: OutPort, y: OutPort) -> tuple[OutPort, OutPort]:
    """The elements of x that y does not have, and their places."""
    build, one = node.build, node.list([1])
    is_excluded = build.ReduceLogicalOr(build.Equal(build.Unsqueeze(x, one), build.Unsqueeze(y, node.list([0]))), one)
    positions = build.Squeeze(build.NonZero(build.LogicalNot(is_excluded)), node.list([0]))
    return build.Gather(x, positions, node.scalar(0)), node.cast(positions, node.dtype("out_idx"))


@tf("Bucketize")
def bucketize(node: TfNode, x: OutPort) -> OutPort:
    """The number of boundaries that are not above each element."""
    boundaries = node.build.const(node.numbers("boundaries"), DType.F32)
    wide = x if x.type.dtype in (DType.F32, DType.F64) else node.cast(x, DType.F32)
    limits = node.cast(boundaries, wide.type.dtype)
    return node.build.Bucketize(wide, limits, output_type=DType.I32, with_right_bound=False)


@tf("LowerBound", "UpperBound")
def search_sorted(node: TfNode, rows: OutPort, values: OutPort) -> OutPort:
    right, dtype = node.kind == "UpperBound", node.dtype("out_type")
    return node.build.SearchSorted(rows, values, right_mode=right, output_type=dtype)


@tf("InvertPermutation")
def invert_permutation(node: TfNode, x: OutPort) -> OutPort:
    build = node.build
    positions = build.Range(
        node.like(0, x), node.cast(node.size(x, 0), x.type.dtype), node.like(1, x), output_type=x.type.dtype
    )
    return build.ScatterElementsUpdate(x, x, positions, node.scalar(0))


@tf("UnravelIndex")
def unravel_index(node: TfNode, indices: OutPort, dims: OutPort) -> OutPort:
    """[rank, ..]: the coordinates of flat places."""
    build, rest, parts = node.build, indices, list[OutPort]()
    for k in reversed(range(node.extent(dims, 0, "the rank"))):
        n = build.Gather(dims, node.scalar(k), node.scalar(0))
        parts.append(build.Unsqueeze(build.FloorMod(rest, n), node.list([0])))
        rest = build.Divide(rest, n)
    return build.Concat(*reversed(parts), axis=0)
