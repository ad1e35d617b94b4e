"""Layout-agnostic operations, and how each is rewritten for another order of dimensions.

x' = Transpose(x, q)        carried(Concat(axis=3), q=(0, 3, 1, 2)) = Concat(axis=1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import Node, OutPort
from aot.ir.op import Op
from aot.ir.types import Array
from aot.opset.base.families import Elementwise, Reduction
from aot.opset.elementwise.activation import Identity, PRelu
from aot.opset.elementwise.binary import AutoBroadcast
from aot.opset.elementwise.broadcasting import Tile
from aot.opset.elementwise.conversion import ConvertLike
from aot.opset.elementwise.quantization import FakeQuantize
from aot.opset.movement.blocks import BatchToSpace, SpaceToBatch
from aot.opset.movement.gather import Gather
from aot.opset.movement.movement import Concat, Reverse, ReverseMode, Split, VariadicSplit
from aot.opset.movement.padding import Pad
from aot.opset.movement.slicing import Slice, StridedSlice
from aot.opset.reduction.normalization import MVN, NormalizeL2
from aot.opset.reduction.scan import CumProd, CumSum
from aot.opset.reduction.softmax import LogSoftmax, Softmax
from aot.opset.reduction.sorting import TopK
from aot.passes.match import constant
from aot.passes.permutation import Order, axis_after
from aot.runtime.abi import DType

Inputs = Sequence[OutPort | None]
Rebuild = Callable[[Node, Order, Inputs, Builder], Node]


@dataclass(frozen=True, slots=True)
class Carrier:
    """Layout rewrite of a node: `inputs` arrive in the new order; `rebuild` makes a node with outputs in that order."""

    inputs: tuple[int, ...]
    rebuild: Rebuild


def carrier(node: Node) -> Carrier | None:
    """Return the Carrier of `node`; None if it is not layout-agnostic."""
    find = _finder(type(node.op))
    return None if find is None else find(node)


@lru_cache(maxsize=1 << 8)
def _finder(cls: type[Op]) -> Callable[[Node], Carrier | None] | None:
    return next((find for classes, find in _FINDERS if issubclass(cls, classes)), None)


def _elementwise(node: Node) -> Carrier | None:
    rank = node.out_port(0).type.rank
    if getattr(node.op, "auto_broadcast", None) is AutoBroadcast.PDPD or isinstance(node.op, ConvertLike):
        return None
    if isinstance(node.op, PRelu):
        return Carrier((0,), _rebuild_slope) if constant(node.source(1)) is not None else None
    inputs: list[int] = []
    for i, source in enumerate(node.sources()):
        if source is None or source.type.rank == 0 or constant(source) is not None:
            continue
        if source.type.rank == 1 and rank > 1 and not isinstance(node.op, FakeQuantize):
            continue  # a vector along the last dimension
        if source.type.rank != rank:
            return None
        inputs.append(i)
    return Carrier(tuple(inputs), _rebuild_elementwise) if inputs else None


def _rebuild_elementwise(node: Node, q: Order, inputs: Inputs, build: Builder) -> Node:
    return build.node(node.op, *(_operand_in_order(p, q, build) for p in inputs))


def _rebuild_slope(node: Node, q: Order, inputs: Inputs, build: Builder) -> Node:
    """Rebuild PRelu: a per-channel slope is aligned with dimension 1, any other slope at the end."""
    slope, data = node.constant(1), node.source(0).shape
    assert slope is not None
    if slope.ndim == 1 and len(data) > 1 and slope.shape[0] == data[1]:
        slope = slope.reshape(-1, *[1] * (len(data) - 2))
    return build.node(node.op, inputs[0], _constant_in_order(build.const(slope, node.source(1).type.dtype), q, build))


def _operand_in_order(port: OutPort | None, q: Order, build: Builder) -> OutPort | None:
    """Return an operand in the new order: a constant, or a vector along the former last dimension."""
    if port is None or port.type.rank != 1 or len(q) == 1 or constant(port) is not None:
        return _constant_in_order(port, q, build)
    behind = len(q) - 1 - q.index(len(q) - 1)
    return build.Unsqueeze(port, build.const(range(1, behind + 1), DType.I64)) if behind else port


def _constant_in_order(port: OutPort | None, q: Order, build: Builder) -> OutPort | None:
    """Return a constant operand of a broadcasting operation in the new order; other ports are in it already."""
    value = constant(port)
    if port is None or value is None or value.size == 1:
        return port
    full = value.reshape((1,) * (len(q) - value.ndim) + value.shape)
    return build.const(np.ascontiguousarray(full.transpose(q)), port.type.dtype)


def _concat(node: Node) -> Carrier:
    return Carrier(tuple(i for i, s in enumerate(node.sources()) if s is not None), _rebuild_axis)


def _data(rebuild: Rebuild, *others: int) -> Callable[[Node], Carrier | None]:
    """Return a finder for operations that carry an order from input 0, if inputs `others` are constants."""

    def find(node: Node) -> Carrier | None:
        return Carrier((0,), rebuild) if all(node.constant(i) is not None for i in others) else None

    return find


def _rebuild_axis(node: Node, q: Order, inputs: Inputs, build: Builder) -> Node:
    op: Any = node.op
    return build.node(replace(op, axis=axis_after(op.axis, q)), *inputs)


def _reduction(node: Node) -> Carrier | None:
    op: Any = node.op
    return Carrier((0,), _rebuild_axes) if op.keep_dims and node.constant(1) is not None else None


def _rebuild_axes(node: Node, q: Order, inputs: Inputs, build: Builder) -> Node:
    x, *rest = inputs
    return build.node(node.op, x, build.const(_axes_after(node.constant(1), q), DType.I64), *rest[1:])


def _axes_after(axes: Array | None, q: Order) -> Array:
    assert axes is not None
    return np.array([axis_after(int(a), q) for a in axes.reshape(-1)], np.int64).reshape(axes.shape)


def _rebuild_split(node: Node, q: Order, inputs: Inputs, build: Builder) -> Node:
    x, _, *lengths = inputs
    axis = build.const(_axes_after(node.constant(1), q), DType.I64)
    return build.node(node.op, x, axis, *lengths, outputs=len(node.out_ports()))


def _rebuild_pad(node: Node, q: Order, inputs: Inputs, build: Builder) -> Node:
    x, _, _, *fill = inputs
    begin, end = (build.const(_taken(node.constant(i), q), DType.I64) for i in (1, 2))
    return build.node(node.op, x, begin, end, *fill)


def _taken(values: Array | None, q: Order) -> Array:
    assert values is not None
    return values.reshape(-1)[list(q)]


def _slice(node: Node) -> Carrier | None:
    are_constant = all(node.constant(i) is not None for i in range(1, len(node.in_ports())))
    return Carrier((0,), _rebuild_slice) if are_constant else None


def _rebuild_slice(node: Node, q: Order, inputs: Inputs, build: Builder) -> Node:
    start, axes = node.constant(1), node.constant(4)
    assert start is not None
    named = axes if axes is not None else np.arange(start.size)
    return build.node(node.op, *inputs[:4], build.const(_axes_after(named, q), DType.I64))


def _strided(node: Node) -> Carrier | None:
    """Match slices that neither add nor drop dimensions."""
    op: Any = node.op
    has_no_masks = not any((*op.new_axis_mask, *op.shrink_axis_mask, *op.ellipsis_mask))
    are_constant = all(node.constant(i) is not None for i in range(1, len(node.in_ports())))
    return Carrier((0,), _rebuild_strided) if has_no_masks and are_constant else None


def _rebuild_strided(node: Node, q: Order, inputs: Inputs, build: Builder) -> Node:
    op: Any = node.op
    begin, end, steps = (node.constant(i) for i in (1, 2, 3))
    assert begin is not None
    assert end is not None
    length = begin.size
    masks = [(*(*mask, *[0] * length)[:length], *[1] * (len(q) - length)) for mask in (op.begin_mask, op.end_mask)]
    new_op = replace(op, begin_mask=tuple(masks[0][i] for i in q), end_mask=tuple(masks[1][i] for i in q))
    filled = [(begin, 0), (end, 0), (np.ones(length, np.int64) if steps is None else steps, 1)]
    vectors = [_taken(np.pad(v.reshape(-1), (0, len(q) - length), constant_values=f), q) for v, f in filled]
    return build.node(new_op, inputs[0], *(build.const(v, DType.I64) for v in vectors))


def _rebuild_vectors(node: Node, q: Order, inputs: Inputs, build: Builder) -> Node:
    """Rebuild an operation with a number for each dimension in its further inputs."""
    x, *vectors = inputs
    taken = [build.const(_taken(node.constant(i), q), DType.I64) for i in range(1, len(vectors) + 1)]
    return build.node(node.op, x, *taken)


def _by_dimension(node: Node) -> Carrier | None:
    """Match operations with constant further inputs, a number for each dimension; Tile may add some."""
    rank = node.source(0).type.rank
    vectors = [node.constant(i) for i in range(1, len(node.in_ports()))]
    return Carrier((0,), _rebuild_vectors) if all(v is not None and v.size == rank for v in vectors) else None


def _reverse(node: Node) -> Carrier | None:
    op: Any = node.op
    return _data(_rebuild_axes, 1)(node) if op.mode is ReverseMode.INDEX else None


def _gather(node: Node) -> Carrier | None:
    """Match gathers that keep the rank: by a vector, along an axis that is known."""
    op: Any = node.op
    vector = node.source(1).type.rank == 1
    return Carrier((0,), _rebuild_gather) if vector and not op.batch_dims and node.constant(2) is not None else None


def _rebuild_gather(node: Node, q: Order, inputs: Inputs, build: Builder) -> Node:
    return build.node(node.op, *inputs[:2], build.const(_axes_after(node.constant(2), q), DType.I64))


def _rebuild_selection(node: Node, q: Order, inputs: Inputs, build: Builder) -> Node:
    op: Any = node.op
    return build.node(replace(op, axis=axis_after(op.axis, q)), *inputs, outputs=len(node.out_ports()))


_FINDERS: tuple[tuple[tuple[type[Op], ...], Callable[[Node], Carrier | None]], ...] = (
    ((Elementwise, FakeQuantize, Identity), _elementwise),
    ((Reduction,), _reduction),
    ((MVN, NormalizeL2), _data(_rebuild_axes, 1)),
    ((Concat,), _concat),
    ((Softmax, LogSoftmax), _data(_rebuild_axis)),
    ((Split, VariadicSplit), _data(_rebuild_split, 1)),
    ((Pad,), _data(_rebuild_pad, 1, 2)),
    ((Slice,), _slice),
    ((StridedSlice,), _strided),
    ((Tile, SpaceToBatch, BatchToSpace), _by_dimension),
    ((Reverse,), _reverse),
    ((CumSum, CumProd), _data(_rebuild_axes, 1)),
    ((Gather,), _gather),
    ((TopK,), _data(_rebuild_selection)),
)
