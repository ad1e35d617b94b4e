"""Discrete Fourier transforms over axes, of complex and real signals. Complex numbers are a last dimension of two."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, Const, Expr, as_expr, cast, prim, select
from aot.ir.conditions import Condition
from aot.ir.op import Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, Shape, TensorType
from aot.opset.signal.fourier import Index, Signal, Transforms, indices
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError, UnsupportedError

MAX_LENGTH = 1 << 21  # elements along a transformed axis at most, because twiddle factors are tables


def _complex(array: Array) -> Array:
    wide = array.astype(np.float64)
    return wide[..., 0] + 1j * wide[..., 1]


def _parts(array: Array, dtype: np.dtype[np.generic]) -> Array:
    return np.stack([np.real(array), np.imag(array)], -1).astype(dtype)


def fitted(x: Input, shape: Shape, real: bool) -> Signal:
    """Return x[.., (2)] cropped or zero-padded to wanted + (2,) as complex numbers."""

    def at(index: Index) -> Expr:
        value = cast(x(*(index[:-1] if real else index)), DType.F64 if x.dtype is DType.F64 else DType.F32)
        for i, n, full in zip(index, x.shape, shape, strict=False):
            if not (isinstance(n, int) and isinstance(full, int) and full <= n) and n != full:
                value = prim("within", i, as_expr(n, DType.I64), value, 0.0)
        return select(prim("eq", index[-1], 0), value, 0.0) if real else value

    return Signal((*shape, 2), at)


@dataclass(frozen=True)
class FourierTransform(LoopOp):
    """Base of all transforms; inputs: signal, axes, and optional lengths along these axes (-1: unchanged)."""

    elements = Elements.FLOAT

    def axes(self, x: Operand, axes: Operand, complex_input: bool) -> tuple[int, ...]:
        rank = x.rank - complex_input
        if rank < 1:
            raise ShapeError(f"{self.type}: the last of at least two dimensions must be 2, got {x.type}")
        numbers = axes.ints(f"{self.type}: axes")
        if (
            any(not -rank <= a < rank for a in numbers)
            or len({a % rank for a in numbers}) != len(numbers)
            or not numbers
        ):
            raise ShapeError(f"{self.type}: axes must be different ones of {rank} dimensions, got {list(numbers)}")
        return tuple(a % rank for a in numbers)

    def conditions(self, x: Operand, *_: Operand | None) -> Sequence[Condition]:
        return [] if isinstance(self, RDFT) else [(x.shape[-1], 2, "the last dimension must be 2: complex numbers")]

    def lengths(self, size: Operand | None, count: int) -> tuple[int, ...]:
        lengths = (-1,) * count if size is None else size.ints(f"{self.type}: signal size")
        if max(lengths, default=0) > MAX_LENGTH:
            raise UnsupportedError(f"{self.type}: signals can have at most {MAX_LENGTH} elements, got {list(lengths)}")
        if len(lengths) != count or any(n < 1 and n != -1 for n in lengths):
            raise ShapeError(
                f"{self.type}: there must be a positive length or -1 for each of {count} axes, got {list(lengths)}"
            )
        return lengths

    def resized(self, shape: Shape, axes: tuple[int, ...], size: Operand | None) -> Shape:
        """Return the dimensions of the signal after cropping or padding."""
        dims = list(shape)
        for a, n in zip(axes, self.lengths(size, len(axes)), strict=True):
            dims[a] = dims[a] if n == -1 else n
        return tuple(dims)


@dataclass(frozen=True)
class ComplexTransform(FourierTransform):
    """A complex-to-complex transform."""

    def infer(self, x: Operand, axes: Operand, size: Operand | None = None) -> TensorType:
        return TensorType(x.dtype, (*self.resized(x.shape[:-1], self.axes(x, axes, True), size), 2))

    def nest(self, outs: tuple[Buffer, ...], x: Input, axes: Input, size: Input | None = None) -> tuple[Work, ...]:
        along = self.axes(x.operand(), axes.operand(), True)
        dims = outs[0].shape[:-1]
        transforms = Transforms.of(x.dtype)
        work = fitted(x, dims, False)
        for a in along:
            work = transforms.transform(work, a, isinstance(self, IDFT))
        over, index = indices(work.shape)
        transforms.define(outs[0], work.at(index), over, index)
        return tuple(transforms.works)

    def reference(self, x: Array, axes: Array, size: Array | None = None) -> Array:
        along = tuple(int(a) % (x.ndim - 1) for a in axes.reshape(-1))
        lengths = [x.shape[a] for a in along]
        if size is not None:
            lengths = [n if s == -1 else int(s) for n, s in zip(lengths, size.reshape(-1), strict=True)]
        return _parts((np.fft.ifftn if isinstance(self, IDFT) else np.fft.fftn)(_complex(x), lengths, along), x.dtype)


@op("opset7")
class DFT(ComplexTransform):
    """X[k] = sum over t of x[t] exp(-2 pi i k t / n), along each of the axes."""


@op("opset7")
class IDFT(ComplexTransform):
    """x[t] = 1/n sum over k of X[k] exp(2 pi i k t / n), along each of the axes."""


@op("opset9")
class RDFT(FourierTransform):
    """The transform of a real signal; along the last of the axes only its first n // 2 + 1 numbers."""

    def infer(self, x: Operand, axes: Operand, size: Operand | None = None) -> TensorType:
        along = self.axes(x, axes, False)
        dims = list(self.resized(x.shape, along, size))
        dims[along[-1]] = dims[along[-1]] // 2 + 1
        return TensorType(x.dtype, (*dims, 2))

    def nest(self, outs: tuple[Buffer, ...], x: Input, axes: Input, size: Input | None = None) -> tuple[Work, ...]:
        along = self.axes(x.operand(), axes.operand(), False)
        dims = self.resized(x.shape, along, None if size is None else size.operand())
        transforms = Transforms.of(x.dtype)
        work = half(transforms.transform(fitted(x, dims, True), along[-1], False), along[-1])
        for a in along[:-1]:
            work = transforms.transform(work, a, False)
        over, index = indices(work.shape)
        transforms.define(outs[0], work.at(index), over, index)
        return tuple(transforms.works)

    def reference(self, x: Array, axes: Array, size: Array | None = None) -> Array:
        along = tuple(int(a) % x.ndim for a in axes.reshape(-1))
        lengths = [x.shape[a] for a in along]
        if size is not None:
            lengths = [n if s == -1 else int(s) for n, s in zip(lengths, size.reshape(-1), strict=True)]
        return _parts(np.fft.rfftn(x.astype(np.float64), lengths, along), x.dtype)


def half(x: Signal, axis: int) -> Signal:
    """Return the first n // 2 + 1 numbers along an axis."""
    n: Dim = x.shape[axis]
    return Signal((*x.shape[:axis], n // 2 + 1, *x.shape[axis + 1 :]), x.at)


def mirrored(x: Signal, axis: int, n: Dim) -> Signal:
    """Return all n numbers of a spectrum from its first n // 2 + 1: X[n - k] is the conjugate of X[k]."""

    def at(index: Index) -> Expr:
        k = index[axis]
        later = prim("gt", k, n // 2)
        value = x.at((*index[:axis], select(later, n - k, k), *index[axis + 1 :]))
        return value * select(prim("and", later, prim("eq", index[-1], 1)), -1.0, Const(1.0, value.dtype))

    return Signal((*x.shape[:axis], n, *x.shape[axis + 1 :]), at)


@op("opset9")
class IRDFT(FourierTransform):
    """The real signal of a half spectrum, given along the last of the axes."""

    def real_dims(self, x: Operand, along: tuple[int, ...], size: Operand | None) -> Shape:
        dims = list(self.resized(x.shape[:-1], along, size))
        if self.lengths(size, len(along))[-1] == -1:
            dims[along[-1]] = 2 * (dims[along[-1]] - 1)
        return tuple(dims)

    def infer(self, x: Operand, axes: Operand, size: Operand | None = None) -> TensorType:
        return TensorType(x.dtype, self.real_dims(x, self.axes(x, axes, True), size))

    def nest(self, outs: tuple[Buffer, ...], x: Input, axes: Input, size: Input | None = None) -> tuple[Work, ...]:
        along = self.axes(x.operand(), axes.operand(), True)
        dims = self.real_dims(x.operand(), along, None if size is None else size.operand())
        last, transforms = along[-1], Transforms.of(x.dtype)
        n = dims[last]
        work = fitted(x, (*dims[:last], n // 2 + 1, *dims[last + 1 :]), False)
        for a in along[:-1]:
            work = transforms.transform(work, a, True)
        work = transforms.transform(mirrored(work, last, n), last, True)
        over, index = indices(dims)
        transforms.define(outs[0], work.at((*index, Const(0))), over, index)
        return tuple(transforms.works)

    def reference(self, x: Array, axes: Array, size: Array | None = None) -> Array:
        along = tuple(int(a) % (x.ndim - 1) for a in axes.reshape(-1))
        lengths = [x.shape[a] for a in along[:-1]] + [2 * (x.shape[along[-1]] - 1)]
        if size is not None:
            lengths = [n if s == -1 else int(s) for n, s in zip(lengths, size.reshape(-1), strict=True)]
        return np.fft.irfftn(_complex(x), lengths, along).astype(x.dtype)


__all__ = ["DFT", "IDFT", "IRDFT", "RDFT", "half", "mirrored"]
