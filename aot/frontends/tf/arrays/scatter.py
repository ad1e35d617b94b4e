"""Elements written by index."""

from __future__ import annotations

import numpy as np

from aot.frontends.tf.math.complex_numbers import by_parts
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.opset.movement.scatter import Combination
from aot.runtime.abi import DType

HOW = {
    "TensorScatterUpdate": Combination.NONE,
    "TensorScatterAdd": Combination.SUM,
    "ScatterNdNonAliasingAdd": Combination.SUM,
    "TensorScatterSub": Combination.SUB,
    "TensorScatterMax": Combination.MAX,
    "TensorScatterMin": Combination.MIN,
}


@tf("ScatterNd")
@by_parts
def scatter_nd(node: TfNode, indices: OutPort, updates: OutPort, shape: OutPort) -> OutPort:
    """Updates of one place are added up; other places are 0."""
    blank = node.build.Broadcast(node.like(0, updates), shape)
    how = Combination.NONE if updates.type.dtype is DType.BOOL else Combination.SUM
    return node.build.ScatterNDUpdate(blank, indices, updates, reduction=how)


@tf(*HOW)
def tensor_scatter(node: TfNode, x: OutPort, indices: OutPort, updates: OutPort) -> OutPort:
    return node.build.ScatterNDUpdate(x, indices, updates, reduction=HOW[node.kind])


@tf("XlaDynamicUpdateSlice")
@by_parts
def dynamic_update_slice(node: TfNode, x: OutPort, part: OutPort, begins: OutPort) -> OutPort:
    """`part` written into `x` from `begins` on, which are moved so that it lies inside."""
    build, rank = node.build, x.type.rank
    extents, sizes = node.dims(x, range(rank)), node.dims(part, range(rank))
    clamped = build.Maximum(build.Minimum(node.cast(begins, DType.I64), build.Subtract(extents, sizes)), 0)
    positions: OutPort | None = None
    for axis in range(rank):
        count = node.size(part, axis)
        start = build.Gather(clamped, node.scalar(axis), node.scalar(0))
        along = build.Add(build.Range(node.scalar(0), count, node.scalar(1), output_type=DType.I64), start)
        along = build.Unsqueeze(along, node.list([a for a in range(rank) if a != axis]))
        step = build.ReduceProd(node.dims(x, range(axis + 1, rank)), node.list([0])) if axis + 1 < rank else None
        along = along if step is None else build.Multiply(along, step)
        positions = along if positions is None else build.Add(positions, along)
    if positions is None:
        return part
    flat = node.list([-1])
    spread = build.Broadcast(positions, sizes)
    updated = build.ScatterElementsUpdate(
        build.Reshape(x, flat), build.Reshape(spread, flat), build.Reshape(part, flat), node.scalar(0)
    )
    return build.Reshape(updated, extents)


@tf("DynamicStitch", "ParallelDynamicStitch")
@by_parts
def dynamic_stitch(node: TfNode, *inputs: OutPort) -> OutPort:
    """Rows put where indices say; the later of two for one place stays. There are as many as the largest index says."""
    build, count = node.build, len(inputs) // 2
    column, zero = node.list([-1]), node.scalar(0)
    positions, rows = list[OutPort](), list[OutPort]()
    for index, data in zip(inputs[:count], inputs[count:], strict=True):
        inner = node.dims(data, range(index.type.rank, data.type.rank))
        positions.append(node.cast(build.Reshape(index, column), DType.I64))
        rows.append(build.Reshape(data, build.Concat(column, inner, axis=0)))
    where = positions[0] if count == 1 else build.Concat(*positions, axis=0)
    what = rows[0] if count == 1 else build.Concat(*rows, axis=0)
    size = build.Add(build.ReduceMax(where, node.list([0]), keep_dims=True), 1)
    if where.shape[0] == 0:
        return what
    inner = node.dims(what, range(1, what.type.rank))
    blank = build.Broadcast(node.like(0, what), build.Concat(size, inner, axis=0))
    return build.ScatterUpdate(blank, where, what, zero)


@tf("SparseToDense")
def sparse_to_dense(node: TfNode, indices: OutPort, shape: OutPort, values: OutPort, default: OutPort) -> OutPort:
    """Indices are [count, rank], a vector for a vector, or a scalar."""
    build, rank = node.build, node.extent(shape, 0, "the rank")
    rows = build.Reshape(indices, node.list([-1, rank]))
    blank = build.Broadcast(default, shape)
    updates = build.Broadcast(values, node.dims(rows, [0])) if not values.type.rank else values
    return build.ScatterNDUpdate(blank, rows, updates)


def lowest(x: OutPort) -> float | int:
    """Return the lowest number of the type of `x`."""
    dtype = x.type.dtype
    if dtype.is_float:
        return -65504.0 if dtype is DType.F16 else float(np.finfo(np.float64 if dtype is DType.F64 else np.float32).min)
    return -(1 << dtype.bits - 1) if dtype.is_signed else 0


def highest(x: OutPort) -> float | int:
    """Return the highest number of the type of `x`."""
    dtype = x.type.dtype
    return -lowest(x) if dtype.is_float else (1 << dtype.bits - int(dtype.is_signed)) - 1
