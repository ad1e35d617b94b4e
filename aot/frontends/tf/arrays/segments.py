"""Rows combined by the segments that they belong to, and elements counted."""

from __future__ import annotations

from aot.frontends.tf.arrays.scatter import highest, lowest
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.opset.movement.scatter import Combination
from aot.runtime.abi import DType

HOW = {"Sum": Combination.SUM, "Prod": Combination.PROD, "Max": Combination.MAX, "Min": Combination.MIN}


def combined(node: TfNode, rows: OutPort, ids: OutPort, count: OutPort, how: Combination, blank: OutPort) -> OutPort:
    """[count, ..] from rows [n, ..] and their segments [n]; rows of negative or too large segments are left out."""
    build, zero, one = node.build, node.scalar(0), node.list([1])
    inside = build.LogicalAnd(build.GreaterEqual(ids, zero), build.Less(ids, count))
    positions = build.Unsqueeze(build.Select(inside, ids, count), one)  # others go to one more row
    room = build.Add(build.Reshape(count, one), 1)
    inner = node.dims(rows, range(1, rows.type.rank))
    total = build.Broadcast(blank, build.Concat(room, inner, axis=0))
    port = build.ScatterNDUpdate(total, positions, rows, reduction=how)
    return build.Slice(port, node.list([0]), build.Reshape(count, one), one, node.list([0]))


def flat(node: TfNode, x: OutPort, ids: OutPort) -> tuple[OutPort, OutPort]:
    """Return rows [n, ..] and ids [n] of ids that may have several axes."""
    build, rank = node.build, ids.type.rank
    inner = node.dims(x, range(rank, x.type.rank))
    rows = x if rank == 1 else build.Reshape(x, build.Concat(node.list([-1]), inner, axis=0))
    return rows, node.cast(build.Reshape(ids, node.list([-1])), DType.I64)


@tf("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin")
def unsorted_segments(node: TfNode, x: OutPort, ids: OutPort, count: OutPort) -> OutPort:
    """Segments without rows are 0, 1, or the lowest or highest number."""
    name = node.kind.removeprefix("UnsortedSegment")
    blank = {"Sum": 0, "Prod": 1, "Max": lowest(x), "Min": highest(x)}[name]
    rows, positions = flat(node, x, ids)
    return combined(node, rows, positions, node.cast(node.single(count), DType.I64), HOW[name], node.like(blank, x))


def count_of(node: TfNode, ids: OutPort) -> OutPort:
    """Return one more than the last of sorted segments; 0 without any."""
    build = node.build
    none = build.const([-1], DType.I64)
    return build.Add(build.ReduceMax(build.Concat(none, ids, axis=0), node.list([0])), 1)


def _reduced(node: TfNode, rows: OutPort, ids: OutPort, count: OutPort, name: str) -> OutPort:
    """Sum, Mean, SqrtN, Prod, Max or Min of each segment; 0, or 1 for a product, without rows."""
    build = node.build
    blank = {"Prod": 1, "Max": lowest(rows), "Min": highest(rows)}.get(name, 0)
    port = combined(node, rows, ids, count, HOW.get(name, Combination.SUM), node.like(blank, rows))
    if name in ("Sum", "Prod"):
        return port
    ones = build.Broadcast(node.like(1, rows), node.dims(ids, [0]))
    sizes = combined(node, ones, ids, count, Combination.SUM, node.like(0, rows))
    sizes = build.Unsqueeze(sizes, node.list(range(1, rows.type.rank))) if rows.type.rank > 1 else sizes
    if name in ("Max", "Min"):
        return build.Select(build.Equal(sizes, node.like(0, rows)), node.like(0, rows), port)
    sizes = build.Maximum(sizes, node.like(1, rows))
    return build.Divide(port, build.Sqrt(sizes) if name == "SqrtN" else sizes, m_pythondiv=False)


@tf("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMax", "SegmentMin")
def segments(node: TfNode, x: OutPort, ids: OutPort) -> OutPort:
    """There are as many segments as the last id says."""
    segment_ids = node.cast(ids, DType.I64)
    return _reduced(node, x, segment_ids, count_of(node, segment_ids), node.kind.removeprefix("Segment"))


@tf("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
@tf("SparseSegmentSumWithNumSegments", "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtNWithNumSegments")
def sparse_segments(node: TfNode, x: OutPort, indices: OutPort, ids: OutPort, count: OutPort | None = None) -> OutPort:
    """Segments of the rows that indices pick."""
    segment_ids = node.cast(ids, DType.I64)
    total = count_of(node, segment_ids) if count is None else node.cast(node.single(count), DType.I64)
    rows = node.build.Gather(x, indices, node.scalar(0))
    return _reduced(
        node, rows, segment_ids, total, node.kind.removeprefix("SparseSegment").removesuffix("WithNumSegments")
    )


@tf("Bincount", "DenseBincount")
def bincount(node: TfNode, x: OutPort, size: OutPort, weights: OutPort) -> OutPort:
    """Counts of each number below `size`, or sums of the weights beside them; for each row of a matrix."""
    build, binary = node.build, node.flag("binary_output")
    is_unweighted = weights.shape == (0,) or binary or weights.type.dims == (0,)
    dtype, count = weights.type.dtype, node.cast(node.single(size), DType.I64)
    by_row = node.kind == "DenseBincount" and x.type.rank == 2
    ids = node.cast(build.Reshape(x, node.list([-1])), DType.I64)
    ones = build.Broadcast(node.like(1, weights), node.dims(ids, [0]))
    rows = ones if is_unweighted else build.Reshape(weights, node.list([-1]))
    total = count
    if by_row:
        batch = node.size(x, 0)
        begins = build.Range(node.scalar(0), batch, node.scalar(1), output_type=DType.I64)
        whole = build.Add(build.Multiply(build.Unsqueeze(begins, node.list([1])), count), node.cast(x, DType.I64))
        inside = build.Less(node.cast(x, DType.I64), count)
        total = build.Multiply(batch, count)
        ids = build.Reshape(build.Select(inside, whole, total), node.list([-1]))
    counts = combined(node, rows, ids, total, Combination.SUM, node.like(0, weights))
    counts = build.Minimum(counts, node.like(1, counts)) if binary else counts
    if not by_row:
        return node.cast(counts, dtype)
    one = node.list([1])
    return build.Reshape(counts, build.Concat(node.dims(x, [0]), build.Reshape(count, one), axis=0))


@tf("HistogramFixedWidth")
def histogram(node: TfNode, x: OutPort, limits: OutPort, bins: OutPort) -> OutPort:
    """Counts of the elements in equally wide bins; those outside are counted at the ends."""
    build = node.build
    count, dtype = node.cast(node.single(bins), DType.I64), node.dtype("dtype")
    low, high = (build.Gather(limits, node.scalar(k), node.scalar(0)) for k in range(2))
    share = build.Divide(build.Subtract(x, low), build.Subtract(high, low))
    bin_indices = build.Floor(build.Multiply(share, node.cast(count, x.type.dtype)))
    last = build.Subtract(node.cast(count, x.type.dtype), 1.0)
    clamped = build.Minimum(build.Maximum(bin_indices, node.like(0, x)), last)
    ids = node.cast(build.Reshape(clamped, node.list([-1])), DType.I64)
    ones = build.Broadcast(build.const(1, dtype), node.dims(ids, [0]))
    return combined(node, ones, ids, count, Combination.SUM, build.const(0, dtype))
