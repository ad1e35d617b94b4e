"""Parts of constants that are decompressed when they are read: their numbers and scales are cut, not their values."""

from __future__ import annotations

from math import prod

import numpy as np

from aot.ir.op import Op
from aot.ir.types import Array, TensorType
from aot.ir.values.deferred import Deferred, InRows
from aot.opset.elementwise.binary import AutoBroadcast, Multiply, Subtract
from aot.opset.elementwise.conversion import Convert
from aot.opset.movement.shape import Reshape


def part_of(x: Array | Deferred, axis: int, begin: int, end: int) -> Array | Deferred | None:
    """Return elements `begin` to `end` along an axis of a constant; None if its operation does not allow it."""
    if not isinstance(x, Deferred):
        return x[(slice(None),) * axis + (slice(begin, end),)]
    shape = tuple(end - begin if k == axis else n for k, n in enumerate(x.shape))
    op: Op = x.op
    part = op.rows(begin, end, *x.inputs) if axis == 0 and isinstance(op, InRows) else None
    if part is None:
        inputs = _inputs(x, axis, begin, end, shape)
    else:
        op, rows = part
        inputs = [i if k is None else part_of(i, 0, *k) for i, k in zip(x.inputs, rows, strict=True)]
    present = [i for i in inputs if i is not None]
    if not present or len(present) < len(inputs):
        return None
    types = tuple(TensorType(t.dtype, i.shape) for t, i in zip(x.types, present, strict=True))
    return Deferred(op, tuple(present), types, TensorType(x.type.dtype, shape))


def _inputs(x: Deferred, axis: int, begin: int, end: int, shape: tuple[int, ...]) -> list[Array | Deferred | None]:
    """Return the inputs of the operation that makes a part in `shape`, None if it has none; empty for others."""
    first = x.inputs[0]
    match x.op:
        case Convert() | Multiply(auto_broadcast=AutoBroadcast.NUMPY) | Subtract(auto_broadcast=AutoBroadcast.NUMPY):
            input_axes = [axis - len(shape) + len(i.shape) for i in x.inputs]
            pairs = zip(x.inputs, input_axes, strict=True)
            return [i if k < 0 or i.shape[k] == 1 else part_of(i, k, begin, end) for i, k in pairs]
        case Reshape() if prod(shape[:axis]) == 1:  # elements that lie side by side
            outer = next((k for k, n in enumerate(first.shape) if n != 1), 0)
            inner, step = prod(shape[axis + 1 :]), prod(first.shape[outer + 1 :])
            if not step or begin * inner % step or end * inner % step:
                return []
            return [part_of(first, outer, begin * inner // step, end * inner // step), np.array(shape, np.int64)]
        case _:
            return []
