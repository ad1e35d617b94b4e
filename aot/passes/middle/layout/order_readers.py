"""Readers of a tensor that take it in another order of dimensions as well, without a Transpose.

ReduceMean(x, axes), axes dropped       ->    ReduceMean(x', axes of x')
ShapeOf(x)                              ->    Gather(ShapeOf(x'), dimensions of x)
Gather(x, one index, axis)              ->    Gather(x', one index, axis of x')
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aot.ir.build import Builder
from aot.ir.conditions import axis_of
from aot.ir.graph import InPort, Node, OutPort
from aot.opset.base.families import Reduction
from aot.opset.movement.gather import Gather
from aot.opset.movement.shape import ShapeOf
from aot.passes.permutation import Order, axis_after, inverse
from aot.runtime.abi import DType


def reads_any_order(port: InPort, q: Order) -> bool:
    """True if the operation can read its input in order `q` instead, at no cost."""
    node = port.node
    if port.idx:
        return False
    if isinstance(node.op, ShapeOf):
        return True
    dropped = _dropped(node, len(q))
    if dropped is None:
        return False
    remaining_axes = [d for d in q if d not in dropped]
    return remaining_axes == sorted(remaining_axes)


def _dropped(node: Node, rank: int) -> set[int] | None:
    """Return the dimensions that `node` removes from its input; None if they are unknown or it removes none."""
    op: Any = node.op
    input_index = 1 if isinstance(op, Reduction) and not op.keep_dims else 2
    if input_index == 2 and not (isinstance(op, Gather) and not op.batch_dims and node.source(1).type.rank == 0):
        return None
    axes = node.constant(input_index)
    return None if axes is None else {axis_of(int(a), rank, op.type) for a in axes.reshape(-1)}


def read_in_order(port: InPort, x: OutPort, q: Order) -> None:
    """Connect a reader to `x`, the tensor in order `q`; `reads_any_order` must hold for the reader."""
    node = port.node
    build = Builder(node.graph, node.origin)
    if isinstance(node.op, ShapeOf):
        sizes = build(node.op, x)
        axis = build.const(0, DType.I64)
        node.out_port(0).replace_by(build.Gather(sizes, build.const(inverse(q), DType.I64), axis))
        node.graph.remove(node)
        return
    input_index = 1 if isinstance(node.op, Reduction) else 2
    axes = node.constant(input_index)
    assert axes is not None
    new_axes = np.array([axis_after(int(a), q) for a in axes.reshape(-1)], np.int64).reshape(axes.shape)
    port.connect(x)
    node.in_port(input_index).connect(build.const(new_axes, DType.I64))
