"""Cumulative sums and products."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, cast, prim
from aot.codegen.script.script import MAX_LANES, Scripted, array, lanes, loops, parallel, var
from aot.ir.conditions import axis_of
from aot.ir.op import Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, TensorType
from aot.opset.base.row_major import unravel, volume
from aot.runtime.abi import DType

BLOCK = 512  # terms summed in f32 before the sum is added to one in f64
MIN_COLUMNS = 4  # columns from which on a vector pays
MAX_VECTOR = 4 * MAX_LANES  # columns in one loop over lanes
COLUMNS_AT_ONCE = 512  # columns whose totals stay in L1 while each step reads contiguous memory


@dataclass(frozen=True)
class Cumulation(LoopOp):
    """Base of both; the second input is the axis, 0 without it."""

    exclusive: bool = False
    reverse: bool = False

    fn: ClassVar[str]
    start: ClassVar[int]

    def infer(self, x: Operand, axis: Operand | None = None) -> TensorType:
        if axis is None or axis.value is not None:  # else `decompose` handles it
            self._axis(x, axis)
        return x.type

    def _axis(self, x: Operand, axis: Operand | None) -> int:
        return axis_of(0 if axis is None else axis.ints(f"{self.type}: axis")[0], x.rank, self.type)

    def nest(self, outs: tuple[Buffer, ...], x: Input, axis: Input | None = None) -> tuple[Work, ...]:
        along = self._axis(x.operand(), None if axis is None else axis.operand())
        columns = along < x.rank - 1 and isinstance(x.shape[-1], int) and x.shape[-1] >= MIN_COLUMNS
        extent = x.shape[along]
        short = isinstance(extent, int) and extent <= BLOCK
        if self.fn == "add" and x.buffer.dtype.compute is DType.F32 and not (columns or short):
            return (_cumulate_sums(outs[0], x.buffer, x.shape, along, (self.exclusive, self.reverse)),)
        cumulate = _cumulate_columns if columns else _cumulate
        return (cumulate(outs[0], x.buffer, x.shape, along, (self.fn, self.start), (self.exclusive, self.reverse)),)

    def reference(self, x: Array, axis: Array | None = None) -> Array:
        along = 0 if axis is None else int(axis.reshape(-1)[0])
        ordered = np.flip(x, along) if self.reverse else x
        wide = ordered if x.dtype.kind in "iu" else ordered.astype(np.float64)
        if self.exclusive and x.shape[along]:
            first = np.full_like(np.take(wide, [0], along), self.start)
            wide = np.concatenate([first, np.take(wide, range(wide.shape[along] - 1), along)], along)
        total = (np.cumsum if self.fn == "add" else np.cumprod)(wide, along, dtype=wide.dtype)
        return (np.flip(total, along) if self.reverse else total).astype(x.dtype)


@op("opset3")
class CumSum(Cumulation):
    """out[j] = sum of x[..j] along an axis; `exclusive` leaves x[j] out."""

    elements = Elements.NUMBER

    fn = "add"
    start = 0


@op()
class CumProd(Cumulation):
    """out[j] = product of x[..j] along an axis; `exclusive` leaves x[j] out."""

    fn = "mul"
    start = 1


@loops
def _cumulate(out: Scripted, x: Scripted, shape: Scripted, along: int, how: Scripted, flags: Scripted) -> None:
    fn, start = how
    exclusive, reverse = flags
    others = shape[:along] + shape[along + 1 :]
    for o in parallel(volume(others)):
        before = unravel(o, others)
        total = var(start, x.dtype.compute)
        for t in range(shape[along]):
            j = shape[along] - 1 - t if reverse else t
            at = (*before[:along], j, *before[along:])
            if exclusive:
                term = x[at]  # the output may share the input's memory
                out[at] = total
                total = prim(fn, total, term)
            else:
                total = prim(fn, total, x[at])
                out[at] = total


@loops
def _cumulate_sums(out: Scripted, x: Scripted, shape: Scripted, along: int, flags: Scripted) -> None:
    """Cumulate sums of f32. After each block the sum is added to one in f64, so that small terms are not lost."""
    exclusive, reverse = flags
    others = shape[:along] + shape[along + 1 :]
    extent = shape[along]
    for o in parallel(volume(others)):
        before = unravel(o, others)
        total = var(0, DType.F32)
        far = var(0, DType.F64)
        for b in range((extent + (BLOCK - 1)) // BLOCK):
            count: Scripted = prim("min", extent - b * BLOCK, BLOCK)
            for s in range(count):
                t = b * BLOCK + s
                j = extent - 1 - t if reverse else t
                at = (*before[:along], j, *before[along:])
                term = x[at]  # the output may share the input's memory
                if exclusive:
                    out[at] = cast(far + cast(total, DType.F64), DType.F32)
                    total += term
                else:
                    total += term
                    out[at] = cast(far + cast(total, DType.F64), DType.F32)
            far += cast(total, DType.F64)
            total = cast(0.0, DType.F32)


@loops
def _cumulate_columns(out: Scripted, x: Scripted, shape: Scripted, along: int, how: Scripted, flags: Scripted) -> None:
    """Cumulate along an axis before the last one.

    Elements of the later axes are vector lanes, up to `COLUMNS_AT_ONCE` per step.
    """
    fn, start = how
    exclusive, reverse = flags
    outer, inner = shape[:along], shape[along + 1 :]
    width = _vector(inner[-1])
    most = max(COLUMNS_AT_ONCE // width, 1)
    vectors: Scripted = volume(inner) // width
    parts: Scripted = (vectors + (most - 1)) // most
    for unit in parallel(volume(outer) * parts):
        before = unravel(unit // parts, outer)
        first = unit % parts * most
        count: Scripted = prim("min", most, vectors - first)
        total = array(most * width, dtype=x.dtype.compute)
        following = array(most * width, dtype=x.dtype.compute)
        for c in range(count):
            for v in lanes(width):
                total[c * width + v] = start
        for t in range(shape[along]):
            j = shape[along] - 1 - t if reverse else t
            for c in range(count):
                for v in lanes(width):
                    at = (*before, j, *unravel((first + c) * width + v, inner))
                    if exclusive:
                        following[c * width + v] = prim(fn, total[c * width + v], x[at])
                        out[at] = total[c * width + v]  # which may share the input's memory
                        total[c * width + v] = following[c * width + v]
                    else:
                        total[c * width + v] = prim(fn, total[c * width + v], x[at])
                        out[at] = total[c * width + v]


def _vector(columns: int) -> int:
    """Return the most lanes, a divisor of the number of columns."""
    return max(n for n in range(1, MAX_VECTOR + 1) if columns % n == 0)
