"""Tensors made from a few numbers."""

from __future__ import annotations

import math

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Const, Expr, as_expr, cast, prim, select
from aot.ir.dims import can_be_negative
from aot.ir.op import ComputeOp, Element, Elements, late_symbol
from aot.ir.operand import Input, Operand, has_symbols
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType, numpy_dtype
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


@dataclass(frozen=True)
class Sequence(ComputeOp):
    """out[i] = start + i step, as long as that is before `stop`."""

    def length(self, dtype: DType, *numbers: Operand) -> Dim:
        """Return the number of elements; the numbers are converted to `dtype` first."""
        if any(o.rank > 1 or any(isinstance(d, int) and d != 1 for d in o.shape) for o in numbers):
            types = ", ".join(str(o.type) for o in numbers)
            raise ShapeError(f"Range: start, stop and step must be single numbers, got {types}")
        if any(o.value is None for o in numbers) and any(o.dtype.is_float for o in numbers):
            return late_symbol(self, "count", None, *numbers)  # `decompose` computes it
        if has_symbols(*numbers) or any(o.value is None for o in numbers):
            start, stop, step = (o.dims("Range: start, stop and step")[0] for o in numbers)
            up, down = (_count(stop - start, step), _count(start - stop, -step))
            count = up if isinstance(step, int) and step > 0 else down
            count = count if isinstance(step, int) else select(prim("gt", step, 0), up, down)
            return prim("max", count, 0) if can_be_negative(count) else count
        start, stop, step = _numbers(dtype, *(o.known("Range: start, stop and step") for o in numbers))
        if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
            return max(-((start - stop) // step), 0)
        return max(math.ceil((stop - start) / step), 0)

    def compute(self, out: TensorType, start: Input, stop: Input, step: Input) -> Element:
        wide = DType.I64 if not out.dtype.is_float else out.dtype.compute

        def element(i: Expr) -> Expr:
            first, by = (cast(x(*[0] * x.rank), wide) for x in (start, step))
            return cast(first + cast(i, wide) * by, out.dtype)

        return element

    def made(self, dtype: DType, start: Array, stop: Array, step: Array) -> Array:
        first, end, by = _numbers(dtype, start, stop, step)
        count = max(math.ceil((end - first) / by), 0)
        wide = np.int64 if not dtype.is_float else np.float64
        return (wide(first) + np.arange(count, dtype=wide) * wide(by)).astype(numpy_dtype(dtype))


def _count(gap: Dim, step: Dim) -> Expr:
    return as_expr(gap + (step - 1), DType.I64) // step


def _numbers(dtype: DType, *inputs: Array) -> list[float | int]:
    """Return start, stop and step; raise ShapeError if no count follows from them."""
    values: list[float | int] = [x.reshape(-1)[0].item() for x in inputs]
    if not all(map(math.isfinite, values)):
        raise ShapeError(f"Range: start, stop and step must be finite, got {', '.join(map(str, values))}")
    numbers = [float(value) if dtype.is_float else int(value) for value in values]
    if numbers[-1] == 0:
        raise ShapeError("Range: step must not be 0")
    return numbers


@op("opset1", type="Range")
class Range_1(Sequence):
    """start, start + step, ... before stop; all of one type."""

    elements = Elements.NUMBER

    def infer(self, start: Operand, stop: Operand, step: Operand) -> TensorType:
        if not start.dtype is stop.dtype is step.dtype:
            types = ", ".join(o.dtype.value for o in (start, stop, step))
            raise ShapeError(f"Range: element types must be equal, got {types}")
        return TensorType(start.dtype, (self.length(start.dtype, start, stop, step),))

    def reference(self, start: Array, stop: Array, step: Array) -> Array:
        return self.made(_dtype(start), start, stop, step)


def _dtype(x: Array) -> DType:
    return next(t for t in DType if t is not DType.STRING and numpy_dtype(t) == x.dtype)


@op("opset4")
class Range(Sequence):
    """start, start + step, ... before stop, as `output_type`."""

    elements = Elements.NUMBER

    output_type: DType = DType.I64

    def infer(self, start: Operand, stop: Operand, step: Operand) -> TensorType:
        return TensorType(self.output_type, (self.length(self.output_type, start, stop, step),))

    def reference(self, start: Array, stop: Array, step: Array) -> Array:
        return self.made(self.output_type, start, stop, step)


@op("opset9")
class Eye(ComputeOp):
    """out[.., i, i + k] = 1, 0 elsewhere; inputs: rows, columns, k and, optionally, the batch dimensions."""

    elements = Elements.INTEGER

    output_type: DType = DType.F32

    def infer(self, rows: Operand, columns: Operand, k: Operand, batch: Operand | None = None) -> TensorType:
        outer = () if batch is None else batch.dims("Eye: batch shape")
        matrix = (rows.dims("Eye: number of rows")[0], columns.dims("Eye: number of columns")[0])
        return TensorType(self.output_type, (*outer, *matrix))

    def compute(self, out: TensorType, rows: Input, columns: Input, k: Input, batch: Input | None = None) -> Element:
        dtype = out.dtype.compute

        def element(*index: Expr) -> Expr:
            diagonal = index[-2] + cast(k(*[0] * k.rank), DType.I64)
            return select(prim("eq", index[-1], diagonal), Const(1, dtype), Const(0, dtype))

        return element

    def reference(self, rows: Array, columns: Array, k: Array, batch: Array | None = None) -> Array:
        matrix = np.eye(*(int(v.reshape(-1)[0]) for v in (rows, columns, k)), dtype=numpy_dtype(self.output_type))
        outer = () if batch is None else tuple(int(n) for n in batch)
        return np.broadcast_to(matrix, (*outer, *matrix.shape)).copy()
