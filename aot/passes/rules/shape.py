"""Data movement that has no effect, or is repeated.

Normal forms: a chain of Reshape, Squeeze and Unsqueeze is one Reshape; a chain of Transposes is one Transpose; a
Transpose that keeps elements in sequence is a Reshape; one of the last two dimensions before MatMul is an attribute of
MatMul.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot.ir.build import Builder
from aot.ir.conditions import axis_of
from aot.ir.graph import Node, OutPort
from aot.ir.op import Op, ViewOp
from aot.ir.types import Shape
from aot.opset.base.families import Reduction
from aot.opset.control.demands import InRange
from aot.opset.elementwise.activation import Identity
from aot.opset.elementwise.binary import Binary
from aot.opset.elementwise.broadcasting import Broadcast, BroadcastMode, Tile
from aot.opset.movement.movement import Concat, Split, Transpose
from aot.opset.movement.padding import Pad
from aot.opset.movement.shape import Reshape, ShapeOf, Squeeze, Unsqueeze
from aot.opset.movement.slicing import Slice, StridedSlice
from aot.opset.products.matmul import MatMul
from aot.passes.match import broadcasts, constant, has_same_dims, is_decided, source
from aot.passes.permutation import compose, is_identity, only_moves_ones, order_of, transposed
from aot.passes.rewrite import rule
from aot.runtime.abi import DType

RESHAPES = (Reshape, Squeeze, Unsqueeze)


@rule(Identity)
def drop_identity(node: Node, op: Identity, build: Builder) -> OutPort | None:
    """Identity(x) -> x"""
    return node.source(0)


@rule(InRange)
def drop_kept_demand(node: Node, op: InRange, build: Builder) -> OutPort | None:
    """InRange(x) -> x where its condition is known to hold"""
    return node.source(3 if len(node.in_ports()) > 3 else 0) if is_decided(node) else None


@rule(*RESHAPES)
def merge_reshapes(node: Node, op: Op, build: Builder) -> OutPort | None:
    """Reshape(Reshape(x, s), t) -> Reshape(x, t), or x where x has shape t already"""
    x, shape = node.source(0), node.out_port(0).shape
    if has_same_dims(x.shape, shape):
        return x
    inner = source(x, *RESHAPES)
    if inner is None:
        return None
    first = inner.source(0)
    return first if has_same_dims(first.shape, shape) else reshaped(first, shape, build)


@rule(Reshape)
def write_target_out(node: Node, op: Reshape, build: Builder) -> OutPort | None:
    """Reshape(x, a shape computed from run-time sizes) -> Reshape(x, 0 .. -1 ..), which computes nothing"""
    target = node.source(1)
    if target.node.constant_data is not None or target.value is None:
        return None
    return reshaped(node.source(0), node.out_port(0).shape, build)


def reshaped(port: OutPort, shape: Shape, build: Builder) -> OutPort | None:
    """Reshape `port` to a shape of the same size; None if a constant target cannot express it."""
    own = port.shape
    dims = [d if isinstance(d, int) else 0 if i < len(own) and own[i] == d else -1 for i, d in enumerate(shape)]
    if dims.count(-1) > 1 or (0 in shape and not has_same_dims(tuple(dims), shape)):
        return None
    copies = 0 in dims and 0 not in shape
    result = build.Reshape(port, build.const(np.array(dims, np.int64), DType.I64), special_zero=copies)
    return result if has_same_dims(result.shape, shape) else None


@rule(Transpose)
def merge_transposes(node: Node, op: Transpose, build: Builder) -> OutPort | None:
    """Transpose(Transpose(x, p), q) -> Transpose(x, p then q);  Transpose(x, 0 1 2 ...) -> x"""
    order = order_of(node)
    if order is None:
        return None
    if is_identity(order):
        return node.source(0)
    inner = source(node.source(0), Transpose)
    first = order_of(inner) if inner is not None else None
    return None if inner is None or first is None else transposed(inner.source(0), compose(first, order), build)


@rule(Transpose)
def transpose_as_reshape(node: Node, op: Transpose, build: Builder) -> OutPort | None:
    """Transpose(x, p) -> Reshape(x) where p moves dimensions of size 1 only"""
    order, x = order_of(node), node.source(0)
    if order is None or not only_moves_ones(order, x.shape):
        return None
    return reshaped(x, node.out_port(0).shape, build)


@rule(MatMul)
def transpose_into_product(node: Node, op: MatMul, build: Builder) -> OutPort | None:
    """MatMul(Transpose(a, .. j i), b) -> MatMul(a, b) with transpose_a inverted; likewise for b"""
    for i, name in enumerate(("transpose_a", "transpose_b")):
        inner = source(node.source(i), Transpose)
        order = order_of(inner) if inner is not None else None
        if inner is None or order is None or len(order) < 2:
            continue
        rank = len(order)
        if order == (*range(rank - 2), rank - 1, rank - 2):
            inputs = node.sources()
            inputs[i] = inner.source(0)
            return build(replace(op, **{name: not getattr(op, name)}), *inputs)
    return None


@rule(Reduction)
def reduce_before_transpose(node: Node, op: Reduction, build: Builder) -> OutPort | None:
    """Reduce(Transpose(x, p), axes) -> Reduce(x, p[axes]) where the dimensions that stay keep their sequence"""
    inner, axes = source(node.source(0), Transpose), constant(node.source(1))
    order = order_of(inner) if inner is not None else None
    if inner is None or order is None or axes is None or op.keep_dims:
        return None
    dropped = [order[axis_of(int(a), len(order), op.type)] for a in axes.reshape(-1)]
    dims = [d for d in order if d not in dropped]
    if dims != sorted(dims):
        return None
    return build(op, inner.source(0), build.const(np.array(sorted(dropped), np.int64), DType.I64))


@rule(ShapeOf)
def sizes_before_transpose(node: Node, op: ShapeOf, build: Builder) -> OutPort | None:
    """ShapeOf(Transpose(x, p)) -> Gather(ShapeOf(x), p)"""
    inner = source(node.source(0), Transpose)
    order = order_of(inner) if inner is not None else None
    if inner is None or order is None:
        return None
    return build.Gather(build(op, inner.source(0)), build.const(order, DType.I64), build.const(0, DType.I64))


@rule(Slice, StridedSlice, Tile, Broadcast)
def drop_whole_copy(node: Node, op: ViewOp, build: Builder) -> OutPort | None:
    """x[:], Tile(x, 1, 1, ...), Broadcast(x) to its own shape -> x"""
    x = node.source(0)
    if not has_same_dims(x.shape, node.out_port(0).shape) or (
        isinstance(op, Broadcast) and not _is_aligned_at_end(node)
    ):
        return None
    if isinstance(op, Slice | StridedSlice):
        steps = constant(node.source(3)) if len(node.sources()) > 3 and node.sources()[3] is not None else np.ones(1)
        if steps is None or not (steps == 1).all():
            return None
    return x if is_decided(node) else None


@rule(Pad)
def drop_empty_pad(node: Node, op: Pad, build: Builder) -> OutPort | None:
    """Pad(x, 0, 0) -> x"""
    pads = [constant(node.source(i)) for i in (1, 2)]
    return node.source(0) if all(p is not None and not p.any() for p in pads) else None


@rule(Concat)
def drop_single_concat(node: Node, op: Concat, build: Builder) -> OutPort | None:
    """Concat(x) -> x"""
    return node.source(0) if len(node.in_ports()) == 1 else None


@rule(Concat)
def merge_concats(node: Node, op: Concat, build: Builder) -> OutPort | None:
    """Concat(Concat(x, y), z) -> Concat(x, y, z) along one axis"""
    rank = node.out_port(0).type.rank
    axis = axis_of(op.axis, rank, "Concat")
    inputs: list[OutPort | None] = []
    for port in node.sources():
        inner = source(port, Concat)
        same = inner is not None and isinstance(inner.op, Concat) and axis_of(inner.op.axis, rank, "Concat") == axis
        inputs += inner.sources() if inner is not None and same and len(inner.out_port(0).destinations) == 1 else [port]
    return build(op, *inputs) if len(inputs) > len(node.sources()) else None


@rule(Concat)
def nest_concats(node: Node, op: Concat, build: Builder) -> OutPort | None:
    """Concat(x, y, z) -> Concat(Concat(x, y), z) where Concat(x, y) is computed, too

    Layers that each join all layers before them are then joined in place, one by one, and none is copied.
    """
    parts, axis = node.sources(), axis_of(op.axis, node.out_port(0).type.rank, "Concat")
    joined, count = node.source(0), 1
    while longer := _joined_already(joined, parts[count:], axis):
        joined, more = longer
        count += more
    return build(op, joined, *parts[count:]) if count > 1 else None


def _joined_already(x: OutPort, following: list[OutPort | None], axis: int) -> tuple[OutPort, int] | None:
    """Return a Concat of `x` and the first of the parts that follow it, and their number; the last part stays apart."""
    for n in range(len(following) - 1, 0, -1):
        for other in (p.node for p in x.destinations if p.idx == 0 and isinstance(p.node.op, Concat)):
            rank = other.out_port(0).type.rank
            same = isinstance(other.op, Concat) and axis_of(other.op.axis, rank, "Concat") == axis
            if same and other.sources()[1:] == following[:n] and other.out_port(0).destinations:
                return other.out_port(0), n
    return None


@rule(Slice, StridedSlice)
def slice_before_concat(node: Node, op: Slice | StridedSlice, build: Builder) -> OutPort | None:
    """Concat(x, y)[a:b] -> Concat(x[a:b], y[a:b]) where the sliced dimensions are not the axis of Concat

    A picture that is sliced where it is read has no room for the padding of a window. An input that is computed for
    this Concat alone stops it: it is written in place, and would be copied.
    """
    inner = source(node.source(0), Concat)
    if inner is None or not isinstance(inner.op, Concat) or len(inner.out_port(0).destinations) > 1:
        return None
    if not _keeps(node, axis_of(inner.op.axis, inner.out_port(0).type.rank, "Concat")):
        return None
    parts = [p for p in inner.sources() if p is not None]
    if not all(isinstance(p.node.op, ViewOp | Pad) or len(p.destinations) > 1 for p in parts):
        return None
    bounds = node.sources()[1:]
    return build(inner.op, *(build(op, x, *bounds) for x in parts))


def _keeps(node: Node, dim: int) -> bool:
    """True if a slice takes all of dimension `dim`, and of any shorter one, and adds and removes no dimension."""
    op, x = node.op, node.source(0)
    constants = [constant(p) for p in node.sources()[1:] if p is not None]
    if any(value is None for value in constants):
        return False
    starts, stops, steps, axes = ([v.reshape(-1) for v in constants if v is not None] + [None, None])[:4]
    assert starts is not None and stops is not None
    at, rank, opened = dim, x.type.rank, (False, False)
    if isinstance(op, StridedSlice):
        if any((*op.new_axis_mask, *op.shrink_axis_mask, *op.ellipsis_mask)):
            return False
        masks = [(*mask, *(0,) * rank) for mask in (op.begin_mask, op.end_mask)]
        opened = bool(masks[0][dim]), bool(masks[1][dim])
    elif axes is not None:
        sliced = [axis_of(int(a), rank, op.type) for a in axes]
        at = sliced.index(dim) if dim in sliced else rank
    if at >= len(starts):
        return True
    size = x.shape[dim]
    whole = (opened[0] or starts[at] == 0) and (opened[1] or (isinstance(size, int) and stops[at] >= size))
    return whole and (steps is None or steps[at] == 1)


@rule(Split)
def drop_single_split(node: Node, op: Split, build: Builder) -> OutPort | None:
    """Split(x) into one part -> x; any dimension divides into one part"""
    return node.source(0) if len(node.out_ports()) == 1 else None


@rule(Binary)
def drop_broadcast_of_operand(node: Node, op: Binary, build: Builder) -> OutPort | None:
    """Broadcast(x) + y -> x + y where the addition broadcasts x to the same shape"""
    if not broadcasts(op):
        return None
    for i in (0, 1):
        inner = source(node.source(i), Broadcast)
        if inner is None or not _is_aligned_at_end(inner) or not is_decided(inner):
            continue
        x, other = inner.source(0), node.source(1 - i)
        if _broadcast_of(x.shape, other.shape) == node.out_port(0).shape:
            return build(op, *((x, other) if i == 0 else (other, x)))
    return None


def _is_aligned_at_end(node: Node) -> bool:
    """True for a Broadcast by NumPy's rules, where each dimension is 1 or stays."""
    op = node.op
    return isinstance(op, Broadcast) and op.mode in (BroadcastMode.NUMPY, BroadcastMode.BIDIRECTIONAL)


def _broadcast_of(a: Shape, b: Shape) -> Shape | None:
    """Return the common shape if it is certain: dimensions are equal, or one is 1."""
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    dims = [n if m == 1 else m if n in (1, m) else None for m, n in pairs]
    return None if None in dims else tuple(d for d in dims if d is not None)


RULES = (
    drop_identity,
    drop_kept_demand,
    merge_transposes,
    transpose_as_reshape,
    merge_reshapes,
    write_target_out,
    transpose_into_product,
    reduce_before_transpose,
    sizes_before_transpose,
    drop_whole_copy,
    drop_empty_pad,
    drop_single_concat,
    merge_concats,
    slice_before_concat,
    drop_single_split,
    drop_broadcast_of_operand,
)
