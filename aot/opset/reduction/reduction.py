"""Reductions over the axes of the second input; with no axes they return the input unchanged."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Expr, as_expr, cast, prim
from aot.ir.op import Element, Elements
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType, dtype_of
from aot.opset.base.families import Reduction
from aot.opset.elementwise.conversion import converted
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


def _extreme(function: Callable[..., Any], sign: int, x: Array, **how: Any) -> Array:
    """Return the greatest or least element; of an empty axis the least or greatest value of the type."""
    if x.size or x.dtype == object:
        return function(x, **how)
    limits = (-np.inf, np.inf) if x.dtype.kind == "f" else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
    return function(x, initial=limits[sign > 0], **how)


@dataclass(frozen=True)
class Over(Reduction):
    """A reduction equal to `numpy(x, axes)`, which sums floats in f64."""

    elements = Elements.NUMBER

    numpy: ClassVar[Callable[..., Any]]

    def compute(self, out: TensorType, x: Input, axes: Input) -> Element:
        element = super().compute(out, x, axes)
        return lambda *index: cast(element(*index), out.dtype)

    def reference(self, x: Array, axes: Array) -> Array:
        dims = self.tuple_of(x.ndim, axes)
        if not dims:
            return x.copy()
        wide = x if x.dtype.kind in "iubO" else x.astype(np.float64)
        with np.errstate(all="ignore"):
            return np.asarray(self.numpy(wide, axis=dims, keepdims=self.keep_dims)).astype(x.dtype)


@op("opset1")
class ReduceSum(Over):
    """sum x; integers wrap."""

    fn, numpy, symbolic = "add", staticmethod(np.sum), True


@op("opset1")
class ReduceProd(Over):
    """product x; integers wrap."""

    fn, numpy, symbolic = "mul", staticmethod(np.prod), True


@op("opset1")
class ReduceMax(Over):
    """max x"""

    fn, numpy = "max", staticmethod(partial(_extreme, np.max, -1))


@op("opset1")
class ReduceMin(Over):
    """min x"""

    fn, numpy = "min", staticmethod(partial(_extreme, np.min, 1))


@op("opset1")
class ReduceMean(Over):
    """sum x / count; for integers the quotient is rounded towards zero."""

    fn = "add"

    def each(self, x: Expr) -> Expr:
        return x if x.dtype.is_float else cast(x, _wide(x.dtype))

    def finish(self, total: Expr, count: Dim) -> Expr:
        return total / cast(as_expr(count, DType.I64), total.dtype)

    def numpy(self, x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:  # type: ignore[override]
        if x.dtype.kind == "f":
            return np.mean(x, axis=axis, keepdims=keepdims)
        total = np.sum(x, axis=axis, keepdims=keepdims, dtype=np.int64 if x.dtype.kind == "i" else np.uint64)
        count = total.dtype.type(np.prod([x.shape[a] for a in axis]))
        return (total - np.fmod(total, count)) // count


def _wide(dtype: DType) -> DType:
    return DType.I64 if dtype.is_signed else DType.U64


@op("opset4")
class ReduceL1(Over):
    """sum |x|"""

    fn = "add"

    def each(self, x: Expr) -> Expr:
        return prim("abs", x) if x.dtype.is_signed else x

    def numpy(self, x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:  # type: ignore[override]
        return np.sum(np.abs(x), axis=axis, keepdims=keepdims)


@op("opset4")
class ReduceL2(Over):
    """sqrt(sum x^2); integers are rounded towards zero."""

    fn = "add"

    def each(self, x: Expr) -> Expr:
        wide = x if x.dtype.is_float else cast(x, DType.F64)
        return wide * wide

    def finish(self, total: Expr, count: Dim) -> Expr:
        return prim("sqrt", total)

    def numpy(self, x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:  # type: ignore[override]
        norm = np.sqrt(np.sum(np.square(x.astype(np.float64)), axis=axis, keepdims=keepdims))
        return norm if x.dtype.kind == "f" else converted(np.asarray(norm), dtype_of(x))


@dataclass(frozen=True)
class Logic(Over):
    """A reduction of booleans."""

    elements = Elements.BOOLEAN

    def infer(self, x: Operand, axes: Operand) -> TensorType:
        if x.dtype is not DType.BOOL:
            raise ShapeError(f"{self.type}: the input must be boolean, got {x.dtype.value}")
        return super().infer(x, axes)


@op("opset1")
class ReduceLogicalAnd(Logic):
    """True where all elements are true."""

    fn, numpy = "and", staticmethod(np.all)


@op("opset1")
class ReduceLogicalOr(Logic):
    """True where any element is true."""

    fn, numpy = "or", staticmethod(np.any)
