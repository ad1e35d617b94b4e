"""Places of values among sorted boundaries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.codegen.ir.loops import Buffer, Expr, Reduce, cast, prim
from aot.codegen.script.script import Scripted, loops, parallel, var
from aot.ir.conditions import Condition, alike
from aot.ir.op import ComputeOp, Element, Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Shape, TensorType, numpy_dtype
from aot.opset.base.families import axis
from aot.opset.base.row_major import unravel, volume
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


@op("opset3")
class Bucketize(ComputeOp):
    """Number of boundaries below x; with `with_right_bound` false, below or equal."""

    elements = Elements.NUMBER

    output_type: DType = DType.I64
    with_right_bound: bool = True

    def infer(self, x: Operand, boundaries: Operand) -> TensorType:
        if boundaries.rank != 1:
            raise ShapeError(f"Bucketize: boundaries must have one dimension, got {boundaries.type}")
        return TensorType(self.output_type, x.shape)

    def has_jumps(self, result: DType) -> bool:
        return True

    def compute(self, out: TensorType, x: Input, boundaries: Input) -> Element:
        k = axis("k", boundaries.shape[0])
        common = _common(x.dtype, boundaries.dtype)
        relation = "lt" if self.with_right_bound else "le"

        def element(*index: Expr) -> Expr:
            below = prim(relation, cast(boundaries(k), common), cast(x(*index), common))
            return Reduce("add", (k,), cast(below, out.dtype))

        return element

    def reference(self, x: Array, boundaries: Array) -> Array:
        # counted, as in `compute`, also for unsorted boundaries, and for NaN
        below = np.less if self.with_right_bound else np.less_equal
        return sum((below(b, x) for b in boundaries), np.zeros(x.shape, np.int64)).astype(numpy_dtype(self.output_type))


def _common(a: DType, b: DType) -> DType:
    """Return a type for comparing values of both types."""
    a, b = a.compute, b.compute
    if a is b:
        return a
    if a.is_float or b.is_float:
        return DType.F64 if max(a.bits, b.bits) == 64 else DType.F32
    return DType.I64


@op("opset15")
class SearchSorted(LoopOp):
    """Place of each value in its sorted row: before equal ones, or after them in `right_mode`."""

    elements = Elements.NUMBER

    right_mode: bool = False
    output_type: DType = DType.I64

    def infer(self, rows: Operand, values: Operand) -> TensorType:
        if rows.dtype is not values.dtype:
            raise ShapeError(
                f"SearchSorted: element types must be equal, got {rows.dtype.value} and {values.dtype.value}"
            )
        if rows.rank not in (1, values.rank):
            raise ShapeError(f"SearchSorted: ranks must be equal, got {rows.type} and {values.type}")
        return TensorType(self.output_type, values.shape)

    def conditions(self, rows: Operand, values: Operand) -> Sequence[Condition]:
        return alike("outer dimensions must be equal", rows.shape[:-1], values.shape[: rows.rank - 1])

    def nest(self, outs: tuple[Buffer, ...], rows: Input, values: Input) -> tuple[Work, ...]:
        one_row = rows.rank == 1
        return (_search(outs[0], rows.buffer, values.buffer, values.shape, rows.shape[-1], one_row, self.right_mode),)

    def reference(self, rows: Array, values: Array) -> Array:
        # a binary search, as in `nest`, also for unsorted rows: NumPy's search continues where the last one ended
        low, high = np.zeros(values.shape, np.int64), np.full(values.shape, rows.shape[-1])
        row = () if rows.ndim == 1 else tuple(np.indices(values.shape)[:-1])
        while (open_ := low < high).any():
            middle = (low + high) // 2
            boundaries = rows[(*row, np.minimum(middle, rows.shape[-1] - 1))]
            above = (boundaries <= values) if self.right_mode else (boundaries < values)
            low, high = np.where(open_ & above, middle + 1, low), np.where(open_ & ~above, middle, high)
        return low.astype(numpy_dtype(self.output_type))


@loops
def _search(
    out: Scripted, rows: Scripted, values: Scripted, shape: Shape, length: Scripted, one_row: bool, right: bool
) -> None:
    for o in parallel(volume(shape)):
        at = unravel(o, shape)
        row = () if one_row else at[:-1]
        wanted = values[at]
        low = var(0, DType.I64)
        high = var(length, DType.I64)
        while low < high:
            middle = (low + high) // 2
            if (rows[(*row, middle)] <= wanted) if right else (rows[(*row, middle)] < wanted):
                low = middle + 1
            else:
                high = middle
        out[at] = low
