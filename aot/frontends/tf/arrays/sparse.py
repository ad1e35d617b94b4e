"""Sparse and ragged tensors: indices [count, rank], values [count] and a shape [rank]."""

from __future__ import annotations

from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.opset.movement.scatter import Combination
from aot.runtime.abi import DType


def dense(node: TfNode, indices: OutPort, values: OutPort, shape: OutPort) -> OutPort:
    """Return the tensor with zeros elsewhere; values of one place are added up."""
    blank = node.build.Broadcast(node.like(0, values), shape)
    return node.build.ScatterNDUpdate(blank, indices, values, reduction=Combination.SUM)


@tf("SparseTensorDenseMatMul")
def sparse_dense_matmul(node: TfNode, indices: OutPort, values: OutPort, shape: OutPort, b: OutPort) -> OutPort:
    a = dense(node, indices, values, shape)
    return node.build.MatMul(a, b, transpose_a=node.flag("adjoint_a"), transpose_b=node.flag("adjoint_b"))


@tf("SparseTensorDenseAdd")
def sparse_dense_add(node: TfNode, indices: OutPort, values: OutPort, shape: OutPort, b: OutPort) -> OutPort:
    return node.build.ScatterNDUpdate(b, indices, values, reduction=Combination.SUM)


@tf("SparseReshape")
def sparse_reshape(node: TfNode, indices: OutPort, shape: OutPort, target: OutPort) -> tuple[OutPort, OutPort]:
    """The indices of the same elements in another shape; -1 in it stands for the remaining size."""
    build, one = node.build, node.list([1])
    count, rank = (node.extent(p, 0, "the rank") for p in (target, shape))
    total = build.ReduceProd(shape, node.list([0]))
    known = build.ReduceProd(build.Select(build.Less(target, 0), one, target), node.list([0]))
    sizes = build.Select(build.Less(target, 0), build.Divide(total, build.Maximum(known, 1)), target)
    position: OutPort | None = None
    for k in range(rank):
        n, index = (
            build.Gather(shape, node.scalar(k), node.scalar(0)),
            build.Gather(indices, node.scalar(k), node.scalar(1)),
        )
        position = index if position is None else build.Add(build.Multiply(position, n), index)
    node.refuse(position is None, "the shape must have an axis, got a scalar")
    assert position is not None
    parts: list[OutPort] = []
    for k in reversed(range(count)):
        n = build.Gather(sizes, node.scalar(k), node.scalar(0))
        parts.append(build.Unsqueeze(build.FloorMod(position, n), one))
        position = build.Divide(position, n)
    return build.Concat(*reversed(parts), axis=1), sizes


@tf("SparseFillEmptyRows")
def sparse_fill_empty_rows(
    node: TfNode, indices: OutPort, values: OutPort, shape: OutPort, default: OutPort
) -> tuple[OutPort, ...]:
    """Entries sorted by row with `default` in empty rows; which rows were empty; where each entry has gone."""
    build = node.build
    first = build.SparseFillEmptyRows(values, shape, indices, default, outputs=3)
    port, found, empty = first.node.out_ports().values()
    rows = build.Gather(indices, node.scalar(0), node.scalar(1))
    before = build.CumSum(node.cast(empty, DType.I64), node.scalar(0), exclusive=True)
    count = node.size(values, 0)
    positions = build.Range(node.scalar(0), count, node.scalar(1), output_type=DType.I64)
    moved = build.Add(positions, build.Gather(before, rows, node.scalar(0)))
    return port, found, empty, moved


def _rows_of_splits(node: TfNode, splits: OutPort, count: OutPort) -> tuple[OutPort, OutPort]:
    """Return the row of each of `count` values, and its place in it; row k has values splits[k]..splits[k + 1] - 1."""
    build = node.build
    splits = node.cast(splits, DType.I64)
    positions = build.Range(node.scalar(0), count, node.scalar(1), output_type=DType.I64)
    ends = build.Slice(splits, *(node.list([v]) for v in (1, (1 << 62), 1, 0)))
    behind = build.GreaterEqual(build.Unsqueeze(positions, node.list([1])), ends)
    rows = build.ReduceSum(node.cast(behind, DType.I64), node.list([1]))
    return rows, build.Subtract(positions, build.Gather(splits, rows, node.scalar(0)))


@tf("RaggedTensorToSparse")
def ragged_to_sparse(node: TfNode, *inputs: OutPort) -> tuple[OutPort, ...]:
    """Splits of each ragged axis, outermost first, then values."""
    *splits, values = inputs
    node.refuse(len(splits) != 1 or values.type.rank != 1, "one ragged axis of scalars is supported")
    build, count = node.build, node.size(values, 0)
    parts = _rows_of_splits(node, splits[0], count)
    indices = build.Concat(*(build.Unsqueeze(p, node.list([1])) for p in parts), axis=1)
    bounds = node.cast(splits[0], DType.I64)
    widths = build.Subtract(
        *(build.Slice(bounds, *(node.list([v]) for v in r)) for r in ((1, 1 << 62, 1, 0), (0, -1, 1, 0)))
    )
    width = build.ReduceMax(build.Concat(node.list([0]), widths, axis=0), node.list([0]), keep_dims=True)
    shape = build.Concat(build.Subtract(node.dims(bounds, [0]), 1), width, axis=0)
    return indices, values, shape


@tf("RaggedTensorToTensor")
def ragged_to_tensor(node: TfNode, shape: OutPort, values: OutPort, default: OutPort, *partitions: OutPort) -> OutPort:
    """[rows, width, ..] of values with one ragged axis, given by splits, or by the number of rows and row ids."""
    build, kinds = node.build, node.texts("row_partition_types")
    if kinds == ("ROW_SPLITS",):
        count = build.Subtract(node.size(partitions[0], 0), 1)
        rows, columns = _rows_of_splits(node, partitions[0], node.size(values, 0))
    elif kinds == ("FIRST_DIM_SIZE", "VALUE_ROWIDS"):
        count, rows = (node.cast(p, DType.I64) for p in partitions)
        positions = build.Range(node.scalar(0), node.size(values, 0), node.scalar(1), output_type=DType.I64)
        earlier = build.Less(rows, build.Unsqueeze(rows, node.list([1])))
        columns = build.Subtract(positions, build.ReduceSum(node.cast(earlier, DType.I64), node.list([1])))
    else:
        node.refuse(True, f"one ragged axis is supported, got row_partition_types {', '.join(kinds)}")
        raise AssertionError
    one, zero = node.list([1]), node.scalar(0)
    longest = build.Add(build.ReduceMax(build.Concat(node.list([-1]), columns, axis=0), node.list([0])), 1)
    sizes = [count, longest]
    if shape.type.rank:
        for k in range(2):
            declared = node.cast(build.Gather(shape, node.scalar(k), zero), DType.I64)
            sizes[k] = build.Select(build.Less(declared, 0), sizes[k], declared)
    inside = build.LogicalAnd(build.Less(rows, sizes[0]), build.Less(columns, sizes[1]))
    flat = build.Add(build.Multiply(rows, sizes[1]), columns)
    total = build.Multiply(*sizes)
    flat = build.Select(inside, flat, total)  # others go to one more place
    inner = node.dims(values, range(1, values.type.rank))
    blank = build.Broadcast(default, build.Concat(build.Reshape(build.Add(total, 1), one), inner, axis=0))
    filled = build.ScatterNDUpdate(blank, build.Unsqueeze(flat, one), values)
    filled_rows = build.Slice(filled, node.list([0]), build.Reshape(total, one), one, node.list([0]))
    return build.Reshape(filled_rows, build.Concat(*(build.Reshape(p, one) for p in sizes), inner, axis=0))
