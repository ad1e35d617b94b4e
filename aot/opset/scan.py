"""Running sums."""

from __future__ import annotations

import numpy as np

from aot.ir.op import Input, LoopOp, Operand, Work, axis_of, op
from aot.ir.types import Array, TensorType
from aot.opset.bucketing import unravel, volume
from aot.opset.families import has_symbols
from codegen.loops import Buffer
from codegen.script import Scripted, loops, parallel, var


@op("opset3")
class CumSum(LoopOp):
    """out[j] = sum of x[..j] along an axis (the second input, 0 without it); `exclusive` leaves x[j] out."""

    exclusive: bool = False
    reverse: bool = False

    def infer(self, x: Operand, axis: Operand | None = None) -> TensorType:
        self._axis(x, axis)
        return x.type

    @staticmethod
    def _axis(x: Operand, axis: Operand | None) -> int:
        return axis_of(0 if axis is None else axis.ints("CumSum: axis")[0], x.rank, "CumSum")

    def fold(self, *operands: Operand | None) -> tuple[Array, ...] | None:
        return None if has_symbols(*operands) else super().fold(*operands)

    def nest(self, outs: tuple[Buffer, ...], x: Input, axis: Input | None = None) -> tuple[Work, ...]:
        along = self._axis(x.operand(), None if axis is None else axis.operand())
        return (_cumulate(outs[0], x.buffer, x.shape, along, self.exclusive, self.reverse),)

    def reference(self, x: Array, axis: Array | None = None) -> Array:
        along = 0 if axis is None else int(axis.reshape(-1)[0])
        ordered = np.flip(x, along) if self.reverse else x
        wide = ordered if x.dtype.kind in "iu" else ordered.astype(np.float64)
        total = np.cumsum(wide, along, dtype=wide.dtype)
        if self.exclusive:
            total = total - wide
        return (np.flip(total, along) if self.reverse else total).astype(x.dtype)


@loops
def _cumulate(out: Scripted, x: Scripted, shape: Scripted, along: int, exclusive: bool, reverse: bool) -> None:
    others = shape[:along] + shape[along + 1 :]
    for o in parallel(volume(others)):
        before = unravel(o, others)
        total = var(0, x.dtype.compute)
        for t in range(shape[along]):
            j = shape[along] - 1 - t if reverse else t
            at = (*before[:along], j, *before[along:])
            if exclusive:
                term = x[at]  # the output may be the input's memory
                out[at] = total
                total += term
            else:
                total += x[at]
                out[at] = total
