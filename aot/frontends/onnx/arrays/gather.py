"""Elements picked by index, and indices found by value."""

from __future__ import annotations

import numpy as np

from aot.frontends.onnx.arrays.axes import bounded
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.opset.detection.suppression.corners import Encoding
from aot.opset.movement.gather import NegativeIndices
from aot.opset.reduction.sorting import Mode, Order
from aot.runtime.abi import DType


@onnx("Gather")
def gather(node: OnnxNode, x: OutPort, indices: OutPort, *, axis: int = 0) -> OutPort:
    return node.build.Gather(x, indices, node.scalar(axis))


@onnx("GatherElements")
def gather_elements(node: OnnxNode, x: OutPort, indices: OutPort, *, axis: int = 0) -> OutPort:
    """Convert to GatherElements. Other dimensions than the axis may be smaller than those of `x`, which is sliced."""
    build, axis = node.build, node.axis(axis, x.type.rank)
    if x.type.rank == indices.type.rank:
        pairs = enumerate(zip(x.shape, indices.shape, strict=True))
        axes = [k for k, (n, m) in pairs if k != axis and n != m]
        if axes:
            starts, steps = node.list([0] * len(axes)), node.list([1] * len(axes))
            x = build.Slice(x, starts, node.dims(indices, axes), steps, node.list(axes))
    return build.GatherElements(x, indices, axis=axis)


@onnx("GatherND")
def gather_nd(node: OnnxNode, x: OutPort, indices: OutPort, *, batch_dims: int = 0) -> OutPort:
    return node.build.GatherND(x, indices, batch_dims=batch_dims)


@onnx("OneHot")
def one_hot(node: OnnxNode, indices: OutPort, depth: OutPort, values: OutPort, *, axis: int = -1) -> OutPort:
    """values[1] at the index, values[0] elsewhere; a negative index counts from the end."""
    build = node.build
    off, on = (build.Gather(values, node.scalar(i), node.scalar(0)) for i in (0, 1))
    size = node.cast(node.single(depth), DType.I64)
    positions = node.cast(indices, DType.I64)
    return build.OneHot(positions, size, on, off, axis=axis, negative_indices_mode=NegativeIndices.NORMALIZE)


@onnx("TopK")
def top_k(node: OnnxNode, x: OutPort, k: OutPort | None = None) -> tuple[OutPort, ...]:
    """Convert to TopK; k is an attribute before opset 10."""
    if k is None:
        node.refuse(not node.has("k"), "k must be given")
        k = node.scalar(node.integer("k"))
    count = node.single(k)
    mode = Mode.MAX if node.flag("largest", True) else Mode.MIN
    values = node.build.TopK(
        x,
        count,
        axis=node.integer("axis", -1),
        mode=mode,
        sort=Order.VALUE,
        stable=True,
        index_element_type=DType.I64,
        outputs=2,
    )
    return values, values.node.out_port(1)


@onnx("Compress")
def compress(node: OnnxNode, x: OutPort, condition: OutPort) -> OutPort:
    """Convert to Gather; the condition may be shorter than the axis, but not longer."""
    axis = node.axis(node.integer("axis"), x.type.rank) if node.has("axis") else 0
    x = x if node.has("axis") else node.reshape(x, (-1,))
    positions = node.build.Squeeze(_places(node, condition), node.list([0]))
    most = node.dims(x, [axis])
    positions = node.within(
        node.dims(condition, [0]), 0, most, "the condition is at most as long as the axis", positions
    )
    return node.build.Gather(x, positions, node.scalar(axis))


@onnx("NonZero")
def non_zero(node: OnnxNode, x: OutPort) -> OutPort:
    return _places(node, x)


def _places(node: OnnxNode, x: OutPort) -> OutPort:
    """Return the indices [rank, count] of the elements that are not zero; a constant if `x` is known."""
    if x.value is not None and x.value.dtype != object:
        positions = np.array(np.nonzero(np.atleast_1d(x.value)))  # a scalar has one dimension here
        return node.build.const(positions.reshape(max(x.type.rank, 1), -1), DType.I64)
    return node.build.NonZero(x)


@onnx("Unique")
def unique(node: OnnxNode, x: OutPort) -> tuple[OutPort, ...]:
    """Convert to Unique: the distinct elements or slices, their first indices, the inverse indices, and the counts."""
    axis = (node.list([node.axis(node.integer("axis"), x.type.rank)]),) if node.has("axis") else ()
    first = node.build.Unique(x, *axis, sorted=node.flag("sorted", True), outputs=4)
    return tuple(first.node.out_ports().values())


@onnx("NonMaxSuppression")
def non_max_suppression(
    node: OnnxNode,
    boxes: OutPort,
    scores: OutPort,
    most: OutPort | None = None,
    overlap: OutPort | None = None,
    least: OutPort | None = None,
    *,
    center_point_box: bool = False,
) -> OutPort:
    """Rows (image, class, box), best first within a class; without `limit` no box is kept."""
    encoding = Encoding.CENTER if center_point_box else Encoding.CORNER
    limits = (
        node.scalar(0) if most is None else most,
        node.like(0, scores) if overlap is None else overlap,
        node.like(-np.inf, scores) if least is None else least,
    )
    return node.build.NonMaxSuppression(
        boxes, scores, *limits, box_encoding=encoding, sort_result_descending=False, outputs=3
    )


@onnx("CumSum", "CumProd")
def cumulate(node: OnnxNode, x: OutPort, axis: OutPort) -> OutPort:
    """Accumulate along an axis; `x` is reshaped to [before, axis, after] if the axis is data-dependent."""
    build, flags = node.build, {"exclusive": node.flag("exclusive"), "reverse": node.flag("reverse")}
    along = node.single(axis)
    run = build.CumSum if node.kind == "CumSum" else build.CumProd
    if along.value is not None:
        return run(x, along, **flags)
    rank, sizes = x.type.rank, node.dims(x, range(x.type.rank))
    position = node.axes_within(node.cast(along, DType.I64), rank)
    position = build.Select(build.Less(position, 0), build.Add(position, rank), position)
    order, one, first = node.list(range(rank)), node.scalar(1), node.list([0])
    before = build.ReduceProd(build.Select(build.Less(order, position), sizes, one), first, keep_dims=True)
    behind = build.ReduceProd(build.Select(build.Greater(order, position), sizes, one), first, keep_dims=True)
    size = build.Gather(sizes, build.Unsqueeze(position, first), node.scalar(0))
    flat = build.Reshape(x, bounded(node, x, build.Concat(before, size, behind, axis=0)))
    return build.Reshape(run(flat, one, **flags), sizes)
