"""Adaptive pooling: the output shape is given, and each axis is divided into that many windows.

window i of an axis covers   floor(i * n / count) .. ceil((i + 1) * n / count)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Expr, Var, as_expr, cast, prim
from aot.ir.op import ComputeOp, Element, Elements, LoopOp, Op, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, Shape, TensorType, numpy_dtype
from aot.opset.products.pool_windows import kernel_axes, reduce_over
from aot.opset.products.pooling import first_of, flat_index, lowest, mean_type, rounded
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


@dataclass(frozen=True, slots=True)
class Share:
    """Division of one axis: `extent` elements among `count` windows, which may overlap."""

    extent: Dim
    count: Dim

    @property
    def even(self) -> int:
        """Elements of each window if all are equal and none overlap, else 0."""
        if not isinstance(self.extent, int) or not isinstance(self.count, int) or self.extent % self.count:
            return 0
        return self.extent // self.count

    @property
    def longest(self) -> Dim:
        """Upper bound of a window's length."""
        return self.even or (self.extent + self.count - 1) // self.count + 1

    def start(self, i: Expr) -> Expr:
        return i * self.even if self.even else i * self.extent // self.count

    def length(self, i: Expr) -> Expr:
        if self.even:
            return as_expr(self.even, DType.I64)
        return ((i + 1) * self.extent + self.count - 1) // self.count - self.start(i)


@dataclass(frozen=True)
class Adaptive(Op):
    """Base of adaptive pooling; the inputs are data [N, C, spatial...] and the spatial shape of the output."""

    elements = Elements.NUMBER

    def pooled(self, x: Operand, shape: Operand) -> TensorType:
        target = shape.dims(f"{self.type}: output shape")
        if not 3 <= x.rank <= 5:
            raise ShapeError(f"{self.type}: the data's rank must be 3, 4 or 5, got {x.rank}")
        if len(target) != x.rank - 2:
            raise ShapeError(f"{self.type}: output shape must have {x.rank - 2} entries, got {len(target)}")
        return TensorType(x.dtype, (*x.shape[:2], *target))


@op("opset8")
class AdaptiveAvgPool(Adaptive, ComputeOp):
    """Mean of each window."""

    def infer(self, x: Operand, shape: Operand) -> TensorType:
        return self.pooled(x, shape)

    def compute(self, out: TensorType, x: Input, shape: Input) -> Element:
        shares, ks = shared(x.shape, out.shape)
        wide = mean_type(x.dtype)

        def element(n: Expr, c: Expr, *at: Expr) -> Expr:
            size = as_expr(1, DType.I64)
            for s, i in zip(shares, at, strict=True):
                size = size * s.length(i)
            total = reduce_over("add", ks, cast(read(x, (n, c), shares, at, ks, 0.0), wide))
            return rounded(total / cast(size, wide), out.dtype)

        return element

    def reference(self, x: Array, shape: Array) -> Array:
        counts = [int(n) for n in shape.reshape(-1)]
        mean = np.zeros((*x.shape[:2], *counts))
        axes = tuple(range(2, x.ndim))
        for i in np.ndindex(*counts):
            mean[(..., *i)] = x[(..., *_slices(x.shape, counts, i))].mean(axes, dtype=np.float64)
        return (np.rint(mean) if x.dtype.kind in "iu" else mean).astype(x.dtype)


@op("opset8")
class AdaptiveMaxPool(Adaptive, LoopOp):
    """Maximum of each window, and the index of the first one in the flattened spatial axes."""

    index_element_type: DType = DType.I64

    def infer(self, x: Operand, shape: Operand) -> tuple[TensorType, TensorType]:
        values = self.pooled(x, shape)
        return values, TensorType(self.index_element_type, values.dims)

    def nest(self, outs: tuple[Buffer, ...], x: Input, shape: Input) -> tuple[Work, ...]:
        values, places = outs
        shares, ks = shared(x.shape, values.shape)
        point = tuple(Var(name, n) for name, n in zip("ncijk", values.shape, strict=False))
        value = read(x, point[:2], shares, point[2:], ks, lowest(x.dtype))
        at = [s.start(i) + k for s, i, k in zip(shares, point[2:], ks, strict=True)]
        hit = prim("eq", value, values[point])
        for s, i, k in zip(shares, point[2:], ks, strict=True):
            if not s.even:
                hit = prim("and", hit, prim("lt", as_expr(k, DType.I64), s.length(i)))
        index = first_of(ks, hit, flat_index(at, x.shape[2:], 0))
        return (
            Definition(values, point, reduce_over("max", ks, value)),
            Definition(places, point, cast(index, self.index_element_type)),
        )

    def reference(self, x: Array, shape: Array) -> tuple[Array, Array]:
        counts = [int(n) for n in shape.reshape(-1)]
        flat = np.broadcast_to(np.arange(int(np.prod(x.shape[2:]))).reshape(x.shape[2:]), x.shape)
        values, positions = np.zeros((*x.shape[:2], *counts), x.dtype), np.zeros((*x.shape[:2], *counts), np.int64)
        for i in np.ndindex(*counts):
            at = (..., *_slices(x.shape, counts, i))
            window, index = x[at].reshape(*x.shape[:2], -1), flat[at].reshape(*x.shape[:2], -1)
            largest_index = window.argmax(-1)[..., None]
            values[(..., *i)] = np.take_along_axis(window, largest_index, -1)[..., 0]
            positions[(..., *i)] = np.take_along_axis(index, largest_index, -1)[..., 0]
        return values, positions.astype(numpy_dtype(self.index_element_type))


def shared(shape: Shape, out: Sequence[Dim]) -> tuple[list[Share], tuple[Var | int, ...]]:
    """Return the division of each spatial axis, and the axes that run over one window."""
    shares = [Share(n, count) for n, count in zip(shape[2:], out[2:], strict=True)]
    return shares, kernel_axes(tuple(s.longest for s in shares))


def read(
    x: Input, outer: Sequence[Expr], shares: Sequence[Share], at: Sequence[Expr], ks: Sequence[Var | int], fill: float
) -> Expr:
    """Return element `ks` of window `at`; `fill` beyond the window's end."""
    value = x(*outer, *(s.start(i) + k for s, i, k in zip(shares, at, ks, strict=True)))
    for s, i, k in zip(shares, at, ks, strict=True):
        if not s.even:
            value = prim("within", as_expr(k, DType.I64), s.length(i), value, fill)
    return value


def _slices(shape: tuple[int, ...], counts: Sequence[int], window: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(i * n // c, -(-(i + 1) * n // c)) for i, n, c in zip(window, shape[2:], counts, strict=True))
