"""Elements that are taken and written by their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from aot.frontends.conversion.node_context import StaticSequence, Value
from aot.frontends.paddle.registry import PaddleNode, paddle
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

LIMIT = 2**31 - 1  # an end beyond the last element


@paddle("slice", "strided_slice")
def slice_(
    node: PaddleNode,
    x: OutPort,
    starts: Value,
    ends: Value,
    strides: Value = None,
    *,
    axes: Sequence[int],
    decrease_axis: Sequence[int] = (),
) -> OutPort:
    """Cut pieces of axes; axes of `decrease_axis`, which have one element then, are removed."""
    rank = x.type.rank
    over = [node.axis(a, rank) for a in axes]
    steps = node.list([1] * len(over)) if strides is None else node.vector(strides)
    first, last = node.vector(starts), node.vector(ends)
    if any(v.type.dims != (len(over),) for v in (first, last, steps)):
        raise ModelError(f"{node.kind}: {len(over)} axes must have as many starts and ends, got others")
    removed = [node.axis(a, rank) for a in decrease_axis]
    one = [a for a in removed if _is_last(node, first, over, a)]
    if one:  # -1 is the last element
        last = node.list([LIMIT if a in one else n for a, n in zip(over, node.ints(last, "ends"), strict=True)])
    if strides is not None and last.value is not None and steps.value is not None:
        back = zip(node.ints(last, "ends"), node.ints(steps, "strides"), strict=True)
        last = node.list(
            [-LIMIT if n == -1 and step < 0 else n for n, step in back]
        )  # backwards, -1 is before the first
    y = node.build.Slice(x, first, last, steps, node.list(over))
    return node.build.Squeeze(y, node.list(removed)) if removed else y


def _is_last(node: PaddleNode, starts: OutPort, over: Sequence[int], axis: int) -> bool:
    """True if the slice of an axis begins at its last element, by -1."""
    known = starts.value
    return known is not None and axis in over and known.tolist()[over.index(axis)] == -1


@paddle("gather")
def gather(node: PaddleNode, x: OutPort, positions: OutPort, axis: OutPort | None = None) -> OutPort:
    along = 0 if axis is None else node.axis(int(node.one(axis, "axis")), x.type.rank)
    flat = node.reshape(positions, (-1,)) if positions.type.rank > 1 else positions
    return node.build.Gather(x, flat, node.scalar(along))


@paddle("index_select")
def index_select(node: PaddleNode, x: OutPort, positions: OutPort, *, axis: int = 0) -> OutPort:
    return node.build.Gather(x, positions, node.scalar(node.axis(axis, x.type.rank)))


@paddle("gather_nd")
def gather_nd(node: PaddleNode, x: OutPort, positions: OutPort) -> OutPort:
    return node.build.GatherND(x, positions)


@paddle("index_sample")
def index_sample(node: PaddleNode, x: OutPort, positions: OutPort) -> OutPort:
    return node.build.GatherElements(x, positions, axis=1)


@paddle("take_along_axis")
def take_along_axis(node: PaddleNode, x: OutPort, positions: OutPort, *, axis: int) -> OutPort:
    return node.build.GatherElements(x, positions, axis=node.axis(axis, x.type.rank))


@paddle("put_along_axis")
def put_along_axis(
    node: PaddleNode,
    x: OutPort,
    positions: OutPort,
    values: OutPort,
    *,
    axis: int,
    reduce: str = "assign",
    include_self: bool = True,
) -> OutPort:
    """Write elements, or combine them with those that are there."""
    kinds = {"assign": "none", "add": "add", "multiply": "mul", "mul": "mul", "amax": "max", "amin": "min"}
    kind = node.choice("reduce", kinds, reduce)
    node.refuse(not include_self and kind != "none", "elements that are there take part, got include_self False")
    values = node.build.Broadcast(values, node.build.ShapeOf(positions)) if values.shape != positions.shape else values
    return node.onnx("ScatterElements", x, positions, values, axis=axis, reduction=kind)


@paddle("embedding")
def embedding(node: PaddleNode, positions: OutPort, table: OutPort, *, padding_idx: int = -1) -> OutPort:
    """Take rows of a table; the row of the padding index is zeros."""
    build = node.build
    y = build.Gather(table, positions, node.scalar(0))
    if padding_idx == -1:
        return y
    index = padding_idx if padding_idx >= 0 else padding_idx + node.extent(table, 0, "the number of rows")
    is_padding = build.Unsqueeze(build.Equal(positions, node.like(index, positions)), node.list([positions.type.rank]))
    return build.Select(is_padding, node.like(0, y), y)


@paddle("scatter")
def scatter(node: PaddleNode, x: OutPort, positions: OutPort, updates: OutPort, *, overwrite: bool = True) -> OutPort:
    """Write rows, or add them up on zeros where they replace what is there."""
    build = node.build
    rows = build.Reshape(node.cast(positions, DType.I64), node.list([-1, 1]))
    if overwrite:
        return node.onnx("ScatterND", x, rows, updates)
    cleared = node.onnx("ScatterND", x, rows, build.Broadcast(node.like(0, x), build.ShapeOf(updates)))
    return node.onnx("ScatterND", cleared, rows, updates, reduction="add")


@paddle("scatter_nd_add")
def scatter_nd_add(node: PaddleNode, x: OutPort, positions: OutPort, updates: OutPort) -> OutPort:
    return node.onnx("ScatterND", x, positions, updates, reduction="add")


@paddle("nonzero")
def nonzero(node: PaddleNode, x: OutPort) -> OutPort:
    """Find the places of elements that are not 0, a row for each."""
    return node.build.Transpose(node.build.NonZero(x), node.list([1, 0]))


@paddle("topk")
def topk(
    node: PaddleNode, x: OutPort, k: OutPort, *, axis: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[OutPort, ...]:
    count = node.cast(node.reshape(k, (-1,)), DType.I64)
    along = node.axis(axis, x.type.rank)
    return node.onnx("TopK", x, count, axis=along, largest=int(largest), sorted=int(sorted))


@paddle("argsort")
def argsort(node: PaddleNode, x: OutPort, *, axis: int = -1, descending: bool = False) -> tuple[OutPort, ...]:
    along = node.axis(axis, x.type.rank)
    return node.onnx("TopK", x, node.dims(x, [along]), axis=along, largest=int(descending), sorted=1)


@paddle("set_value", "set_value_with_tensor")
def set_value(node: PaddleNode, x: OutPort, *inputs: OutPort | StaticSequence, axes: Sequence[int]) -> OutPort:
    """Write a part of a tensor: numbers of the file, or a tensor in front of starts, ends and steps."""
    node.refuse(bool(node.integers("none_axes", ())), "parts have no new axes, got none_axes")
    build, shape, dtype = node.build, node.dims(x, range(x.type.rank)), x.type.dtype
    starts, ends, steps = inputs[-3:]
    if len(inputs) == 4:
        values = node.cast(cast(OutPort, inputs[0]), dtype)
    else:
        values = build.const(np.array(node.attrs.get("values", ())), dtype)
    if node.integers("shape", ()) and values.value is not None:
        values = node.reshape(values, node.integers("shape"))
    count = build.ReduceProd(shape, node.list([0]))
    positions = build.Reshape(build.Range(node.scalar(0), count, node.scalar(1), output_type=DType.I64), shape)
    over = node.list([node.axis(a, x.type.rank) for a in axes])
    part = build.Slice(positions, *(node.vector(v) for v in (starts, ends, steps)), over)
    for axis in sorted(node.axis(a, x.type.rank) for a in node.integers("decrease_axes", ())):
        if values.type.rank and values.type.rank >= x.type.rank - axis:
            values = build.Unsqueeze(values, node.list([values.type.rank - (x.type.rank - axis) + 1]))
    expanded = build.Broadcast(values, build.ShapeOf(part))
    flat = [node.reshape(v, (-1,)) for v in (x, part, expanded)]
    return build.Reshape(build.ScatterElementsUpdate(*flat, node.scalar(0)), shape)


@paddle("masked_select")
def masked_select(node: PaddleNode, x: OutPort, mask: OutPort) -> OutPort:
    """Take the elements that a mask marks, in a vector."""
    positions = node.build.Transpose(node.build.NonZero(mask), node.list([1, 0]))
    return node.build.GatherND(x, positions)


@paddle("repeat_interleave")
def repeat_interleave(node: PaddleNode, x: OutPort, *, repeats: int, axis: int) -> OutPort:
    """Repeat each slice of an axis, its copies side by side."""
    along = node.axis(axis, x.type.rank)
    count = node.build.Multiply(node.size(x, along), node.scalar(repeats))
    positions = node.build.Range(node.scalar(0), count, node.scalar(1), output_type=DType.I64)
    return node.build.Gather(x, node.build.Divide(positions, node.scalar(repeats)), node.scalar(along))
