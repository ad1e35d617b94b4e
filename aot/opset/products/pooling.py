"""Pooling: the mean or the maximum of each window of an [N, C, spatial...] tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from math import prod

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition, identity
from aot.codegen.ir.index import bounds, normal
from aot.codegen.ir.loops import Buffer, Const, Expr, Reduce, Var, as_expr, cast, prim, select
from aot.ir.conditions import Condition, axis_of
from aot.ir.op import ComputeOp, Element, Elements, LoopOp, Op, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import attr, op
from aot.ir.types import Array, Shape, TensorType, dtype_of, numpy_dtype
from aot.opset.movement.shape import volume
from aot.opset.products.pool_windows import AutoPad, Rounding, Windows, kernel_axes, pad_spatial, reduce_over, windows
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


class Counted(StrEnum):
    """Elements of a window that the mean divides by."""

    DATA = "data"
    PADDED = "padded"  # data and declared padding, without the overhang that rounding up adds
    KERNEL = "kernel"  # all elements of the kernel, in data, padding or beyond


@dataclass(frozen=True)
class Pool(Op):
    """Attributes shared by all pooling over windows; empty lists mean ones (strides) or zeros (pads)."""

    elements = Elements.NUMBER

    strides: tuple[int, ...] = ()
    pads_begin: tuple[int, ...] = ()
    pads_end: tuple[int, ...] = ()
    kernel: tuple[int, ...] = ()
    rounding_type: Rounding = attr(Rounding.FLOOR, since="opset14", before=(Rounding.CEIL,))
    auto_pad: AutoPad = AutoPad.EXPLICIT

    def written_out(self) -> Op:
        lists = {name: value for name, value in vars(self).items() if name in ("strides", "dilations")}
        return replace(self, **{name: value or (1,) * len(self.kernel) for name, value in lists.items()})

    def windows(self, shape: Shape) -> Windows:
        if not 3 <= len(shape) <= 5:
            raise ShapeError(f"{self.type}: the data's rank must be 3, 4 or 5, got {len(shape)}")
        pads, dilations = (self.pads_begin, self.pads_end), getattr(self, "dilations", ())
        return windows(
            self.type, shape[2:], self.kernel, self.strides, dilations, pads, self.auto_pad, self.rounding_type
        )

    def conditions(self, x: Operand) -> Sequence[Condition]:
        return self.windows(x.shape).fitting()

    def pooled(self, x: Operand) -> TensorType:
        return TensorType(x.dtype, (*x.shape[:2], *self.windows(x.shape).counts))


@dataclass(frozen=True)
class Average(Pool, ComputeOp):
    """Sum of a window over the size of the kernel, or over the number of its elements that are in the data.

    The latter with `exclude_pad`, or if no padding is declared: windows then exceed the data only by rounding up.
    """

    exclude_pad: bool = attr(True, xml="exclude-pad")

    def infer(self, x: Operand) -> TensorType:
        return self.pooled(x)

    def compute(self, out: TensorType, x: Input) -> Element:
        geometry, ks = self.windows(x.shape), kernel_axes(self.kernel)
        wide = mean_type(x.dtype)

        def element(n: Expr, c: Expr, *at: Expr) -> Expr:
            positions = [geometry.position(a, i, k) for a, (i, k) in enumerate(zip(at, ks, strict=True))]
            total = reduce_over("add", ks, cast(geometry.read(x, (n, c), positions), wide))
            return rounded(total / self._count(geometry, at, wide), out.dtype)

        return element

    def counts(self, geometry: Windows) -> Counted:
        is_unpadded = all(p == 0 for p in (*geometry.before, *geometry.after))
        return Counted.DATA if self.exclude_pad or is_unpadded else Counted.KERNEL

    def _count(self, geometry: Windows, at: tuple[Expr, ...], wide: DType) -> Expr:
        """Return the number of elements of a window that count: a product over the axes."""
        known = 1
        varying: list[Expr] = []
        for a, i in enumerate(at):
            n = counted(geometry, a, i, self.counts(geometry))
            if isinstance(n, Const):
                known *= int(n.value)
            else:
                varying.append(n)
        if not varying:
            return Const(float(known), wide)
        total = as_expr(known, DType.I64)
        for n in varying:
            total = total * n
        if geometry.rounding is not Rounding.FLOOR:
            total = prim("max", total, 1)  # a window may start past the data
        return cast(total, wide)

    def reference(self, x: Array) -> Array:
        geometry = self.windows(x.shape)
        counts = geometry.sizes
        pads = geometry.padding(counts)
        ones = self._ones(geometry, x.shape, pads)
        values = pad_spatial(x.astype(np.float64), pads, 0)
        total, size = np.zeros((*x.shape[:2], *counts)), np.zeros((*x.shape[:2], *counts))
        for k in np.ndindex(*self.kernel):
            total += values[(..., *geometry.slices(counts, k))]
            size += ones[(..., *geometry.slices(counts, k))]
        mean = total / np.maximum(size, 1)
        return (np.rint(mean) if x.dtype.kind in "iu" else mean).astype(x.dtype)

    def _ones(self, geometry: Windows, shape: tuple[int, ...], pads: list[tuple[int, int]]) -> Array:
        """For the reference: return 1 where an element counts, over the data extended by `pads`."""
        if self.counts(geometry) is not Counted.PADDED:
            return pad_spatial(np.ones(shape), pads, 0 if self.counts(geometry) is Counted.DATA else 1)
        rest = [(b - p, e - q) for (b, e), (p, q) in zip(pads, geometry.declared, strict=True)]
        return pad_spatial(pad_spatial(np.ones(shape), geometry.declared, 1), rest, 0)


@op("opset1", "opset14")
class AvgPool(Average):
    """Mean of each window."""


@op("opset16", type="AvgPool")
class AvgPool_16(Average):
    """Mean of each window, which may be dilated."""

    dilations: tuple[int, ...] = ()


@op()
class CountedAvgPool(Average):
    """Sum of each window over the number of its counted elements. Internal: it has no spelling in IR files.

    `AvgPool` cannot count data and padding but not the overhang of rounding up, as ONNX does.
    """

    dilations: tuple[int, ...] = ()
    counting: Counted = Counted.PADDED

    def counts(self, geometry: Windows) -> Counted:
        return self.counting


@op("opset1")
class MaxPool(Pool, ComputeOp):
    """Maximum of each window; padding is never the maximum."""

    def infer(self, x: Operand) -> TensorType:
        return self.pooled(x)

    def compute(self, out: TensorType, x: Input) -> Element:
        return maximum(self.windows(x.shape), x)

    def reference(self, x: Array) -> Array:
        return _maxima(self.windows(x.shape), x)


@op("opset8", "opset14", type="MaxPool")
class MaxPool_8(Pool, LoopOp):
    """Maximum of each window, which may be dilated, and its index.

    The second output is the index in the data flattened from `axis` on; of equal maxima the first one counts. If the
    second output has no consumers, the node is equivalent to `DilatedMaxPool`.
    """

    dilations: tuple[int, ...] = ()
    index_element_type: DType = DType.I64
    axis: int = 0

    def infer(self, x: Operand) -> tuple[TensorType, TensorType]:
        axis_of(self.axis, x.rank, "MaxPool")
        values = self.pooled(x)
        return values, TensorType(self.index_element_type, values.dims)

    def nest(self, outs: tuple[Buffer, ...], x: Input) -> tuple[Work, ...]:
        values, places = outs
        geometry = self.windows(x.shape)
        point = tuple(Var(name, n) for name, n in zip("ncijk", values.shape, strict=False))
        first = axis_of(self.axis, x.rank, "MaxPool")
        ks = kernel_axes(self.kernel)
        at = [geometry.position(a, i, k) for a, (i, k) in enumerate(zip(point[2:], ks, strict=True))]
        flat = flat_index((*point[:2], *at), x.shape, 0)  # increases in the order in which elements are visited
        best = prim("eq", geometry.read(x, point[:2], at, lowest(x.dtype, geometry)), values[point])
        index = first_of(ks, inside(geometry, at, best), flat) % volume(x.shape[first:])
        return (
            Definition(values, point, maximum(geometry, x)(*point)),
            Definition(places, point, cast(index, self.index_element_type)),
        )

    def reference(self, x: Array) -> tuple[Array, Array]:
        geometry = self.windows(x.shape)
        values, counts = _maxima(geometry, x), geometry.sizes
        first = axis_of(self.axis, x.ndim, "MaxPool")
        flat = np.arange(prod(x.shape[first:])).reshape(x.shape[first:])
        pads = geometry.padding(counts)
        index = pad_spatial(np.broadcast_to(flat, x.shape), pads, 0)
        valid, data = pad_spatial(np.ones(x.shape, np.bool_), pads, 0), pad_spatial(x, pads, 0)
        positions, open_ = np.zeros(values.shape, np.int64), np.ones(values.shape, np.bool_)
        for k in np.ndindex(*self.kernel):
            at = (..., *geometry.slices(counts, k))
            hit = open_ & valid[at] & (data[at] == values)
            positions[hit], open_ = index[at][hit], open_ & ~hit
        return values, positions.astype(numpy_dtype(self.index_element_type))


@op()
class DilatedMaxPool(Pool, ComputeOp):
    """The first output of `MaxPool_8` alone. Internal: it has no spelling in IR files."""

    dilations: tuple[int, ...] = ()

    def infer(self, x: Operand) -> TensorType:
        return self.pooled(x)

    def compute(self, out: TensorType, x: Input) -> Element:
        return maximum(self.windows(x.shape), x)

    def reference(self, x: Array) -> Array:
        return _maxima(self.windows(x.shape), x)


def maximum(geometry: Windows, x: Input) -> Element:
    """Return the maximum of each window as an expression."""
    ks = kernel_axes(geometry.kernel)

    def element(n: Expr, c: Expr, *at: Expr) -> Expr:
        positions = [geometry.position(a, i, k) for a, (i, k) in enumerate(zip(at, ks, strict=True))]
        return reduce_over("max", ks, geometry.read(x, (n, c), positions, lowest(x.dtype, geometry)))

    return element


def lowest(dtype: DType, geometry: Windows | None = None) -> float:
    """Return the value of padding: the identity of max; lowest finite f32 or f64 if windows may lie past the data."""
    if dtype in (DType.F32, DType.F64) and geometry is not None and geometry.rounding is Rounding.CEIL:
        return float(np.finfo(np.float32 if dtype is DType.F32 else np.float64).min)
    return identity("max", dtype.compute).value


def counted(geometry: Windows, a: int, i: Expr, what: Counted) -> Expr:
    """Return the number of elements of window `i` along axis `a` that count."""
    kernel = as_expr(geometry.kernel[a], DType.I64)
    if what is Counted.KERNEL or not geometry.is_padded:
        return kernel
    start, step = geometry.position(a, i, 0), geometry.dilations[a]
    end = geometry.extents[a] + (geometry.after[a] if what is Counted.PADDED else 0)
    count = prim("min", kernel, _ceil(prim("max", end - start, 0), step))
    if what is Counted.DATA:
        count = count - _ceil(prim("max", -start, 0), step)
    least, most = bounds(normal(count, {}))
    return Const(int(least)) if least == most else count


def _ceil(n: Expr, step: int) -> Expr:
    return n if step == 1 else (n + (step - 1)) // step


def inside(geometry: Windows, at: Sequence[Expr], condition: Expr) -> Expr:
    """Return `condition` and that no index is in the padding."""
    if geometry.is_padded:
        for i, n in zip(at, geometry.extents, strict=True):
            condition = prim("and", condition, prim("and", prim("ge", i, 0), prim("lt", i, n)))
    return condition


def flat_index(index: Sequence[Expr], shape: Shape, first: int) -> Expr:
    """Return the row-major index over the axes from `first` on."""
    total = as_expr(0, DType.I64)
    for i, n in zip(index[first:], shape[first:], strict=True):
        total = total * n + i
    return total


def first_of(axes: Sequence[Var | int], condition: Expr, index: Expr) -> Expr:
    """Return the least index where `condition` holds; 0 if nowhere (all values NaN, or no elements)."""
    none = as_expr(1 << 62, DType.I64)
    least = reduce_over("min", axes, select(condition, index, none))
    if isinstance(least, Reduce):
        return prim("mod", least, none)
    return select(condition, index, 0)


def mean_type(dtype: DType) -> DType:
    """Return the type of sums: for integers f32, or f64 where f32 would not hold them."""
    if dtype.is_float:
        return dtype.compute
    return DType.F32 if dtype.bits <= 16 else DType.F64


def rounded(x: Expr, dtype: DType) -> Expr:
    """Convert a mean to `dtype`; integers round to nearest, halves to even."""
    return x if dtype.is_float else cast(prim("round_even", x), dtype)


def _maxima(geometry: Windows, x: Array) -> Array:
    counts = geometry.sizes
    least = lowest(dtype_of(x), geometry)
    values = pad_spatial(x, geometry.padding(counts), least)
    kernel = [n for n in geometry.kernel if isinstance(n, int)]
    maxima = np.full((*x.shape[:2], *counts), least, x.dtype)
    for k in np.ndindex(*kernel):
        maxima = np.maximum(maxima, values[(..., *geometry.slices(counts, k))])
    return maxima
