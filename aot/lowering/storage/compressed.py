"""Numbers of few bits and scales, as a file has them, in constants that are decompressed when they are read."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Protocol, runtime_checkable

import ml_dtypes
import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array, numpy_dtype
from aot.ir.values.deferred import WIDEST, Deferred, in_bytes, rows_of, value_of
from aot.opset.elementwise.binary import AutoBroadcast, Multiply, Subtract
from aot.opset.elementwise.conversion import LEVELS, Convert
from aot.opset.movement.movement import Transpose
from aot.opset.movement.shape import Reshape
from aot.runtime.abi import DType

MIN_SCALE, MAX_SCALE = 2.0**-100, 2.0**100  # scales with which no product is denormal or infinite
_UNSIGNED = (np.dtype(ml_dtypes.uint2), np.dtype(ml_dtypes.uint4))  # each lies in the low bits of a byte
GREATEST = 255  # magnitude of a difference: up to it, rounding hides no common divisor


@runtime_checkable
class Limited(Protocol):
    """An operation that takes numbers out of a file with a format that bounds them."""

    @property
    def number_limits(self) -> tuple[int, int]:
        """The least and the greatest number."""
        ...


@runtime_checkable
class Moderate(Protocol):
    """An operation that takes scales out of a file with a format that may bound them."""

    @property
    def is_moderate(self) -> bool:
        """True if all finite numbers are within `MIN_SCALE` and `MAX_SCALE`; damaged files have others."""
        ...


@dataclass(frozen=True, slots=True)
class Seen:
    """Integers of 8 bits or less as a file has them, seen with other dimensions at other distances, in bytes.

    They are made when `array` is read: most constants of 4 bits are recognised by their form alone.
    """

    origin: Array | Deferred
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def array(self) -> Array:
        """The integers, with as many bits as NumPy computes with."""
        numbers = value_of(self.origin)
        if not self.is_as_read:
            numbers = np.ascontiguousarray(numbers).astype(np.int8)
        elif self.dtype in LEVELS:
            numbers = numbers.view(np.uint8)
        elif numbers.dtype in _UNSIGNED:
            numbers = numbers.view(np.int8)
        return as_strided(numbers, self.shape, self.strides, writeable=False)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest integer that `array` can hold."""
        signed = numpy_dtype(self.dtype).kind != "u"
        return (-128, 127) if signed else (0, 255)

    @property
    def limits(self) -> tuple[int, int] | None:
        """The least and the greatest number that the file's format has; None if the numbers themselves must tell."""
        return _limits(self.origin)

    @property
    def is_as_read(self) -> bool:
        """True if `array` lies in the memory of the numbers that were read."""
        stored = numpy_dtype(self.dtype)
        return self.dtype in LEVELS or stored.kind in "iu" or stored in _UNSIGNED


def _as_read(numbers: Array | Deferred, dtype: DType) -> Seen:
    """Return integers as they lie in memory."""
    seen = Seen(numbers, dtype, numbers.shape, tuple(prod(numbers.shape[k + 1 :]) for k in range(len(numbers.shape))))
    return replace(seen, strides=numbers.strides) if isinstance(numbers, np.ndarray) and seen.is_as_read else seen


@dataclass(frozen=True, slots=True)
class Scaled:
    """A constant is `(numbers - zeros) * scales`, rounded once.

    All three have as many dimensions; zeros and scales have 1 where they repeat. Differences are `GREATEST` at most, if
    zeros are whole numbers. `codes`: a type of `LEVELS`, whose codes the numbers are, or None.
    Zeros and scales that a file's format bounds are not looked at, and deferred; zeros are whole numbers then.
    `deferred`: zeros and scales as a file has them, where these have the dimensions given here; `held`: the zeros that
    were made of them, which are not made again while this lives.
    """

    seen: Seen
    zeros: NDArray[np.int16] | NDArray[np.float32] | Deferred
    scales: NDArray[np.float32] | Deferred
    codes: DType | None = None
    deferred: tuple[Array | Deferred, Array | Deferred] | None = None
    held: Array | None = None

    @property
    def numbers(self) -> Array:
        """The integers, which are made if nothing holds them."""
        return self.seen.array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.seen.shape

    @property
    def has_whole_zeros(self) -> bool:
        """True for integers with zero points that are integers, too."""
        if self.codes is not None or isinstance(self.zeros, Deferred):
            return self.codes is None
        return bool((self.zeros == np.rint(self.zeros)).all())

    def is_shared(self, dims: tuple[int, ...]) -> bool:
        """True if all elements along `dims` have one zero point and one scale."""
        return all(self.scales.shape[k] == self.zeros.shape[k] == 1 for k in dims)

    def transposed(self, order: tuple[int, ...]) -> Scaled:
        shape, strides = (tuple(sizes[i] for i in order) for sizes in (self.seen.shape, self.seen.strides))
        seen = replace(self.seen, shape=shape, strides=strides)
        zeros, scales = (value_of(a).transpose(order) for a in (self.zeros, self.scales))
        return Scaled(seen, zeros, scales, self.codes)

    def with_ones(self, shape: tuple[int, ...]) -> Scaled:
        """Return the same in `shape`, which has other dimensions of 1."""
        dims = [k for k, n in enumerate(self.shape) if n != 1]

        def with_ones(sizes: tuple[int, ...]) -> tuple[int, ...]:
            left = iter([sizes[k] for k in dims])
            return tuple(1 if n == 1 else next(left) for n in shape)

        seen = replace(self.seen, shape=shape, strides=with_ones(self.seen.strides))
        zeros, scales = (value_of(a).reshape(with_ones(a.shape)) for a in (self.zeros, self.scales))
        return Scaled(seen, zeros, scales, self.codes)

    def with_whole_zeros(self) -> Scaled | None:
        """Return the same with zero points that are integers; None if they are none, or are far from the numbers."""
        (low, high), limits = self.seen.bounds, _limits(self.zeros)
        if self.codes is not None:
            return None
        if isinstance(self.zeros, Deferred):
            return self if limits is not None and high - GREATEST <= limits[0] and limits[1] <= low + GREATEST else None
        if not ((self.zeros >= high - GREATEST) & (self.zeros <= low + GREATEST)).all():
            return None
        return replace(self, zeros=self.zeros.astype(np.int16)) if self.has_whole_zeros else None


def scaled(constant: Deferred, shape: tuple[int, ...], whole: bool = True) -> Scaled | None:
    """Split a constant, viewed in `shape`, into numbers and scales; None if it is computed in another way.

    `whole`: of integers, with zero points that are integers; else codes and any zero points are split, too.
    """
    constant = _converted(constant)
    first = constant.inputs[0]
    match constant.op:
        case Reshape() if isinstance(first, Deferred):
            if shape == constant.shape != first.shape and _without_ones(first.shape) == _without_ones(shape):
                match = scaled(first, first.shape, whole)
                return None if match is None else match.with_ones(shape)
            return scaled(first, shape, whole)
        case Transpose() if isinstance(first, Deferred):
            return _transposed(constant, first, shape, whole)
        case Multiply(auto_broadcast=AutoBroadcast.NUMPY) if isinstance(first, Deferred) and shape == constant.shape:
            return _scaled(first, constant.inputs[1], len(shape), whole) if first.shape == shape else None
        case _:
            return None


def _transposed(constant: Deferred, source: Deferred, shape: tuple[int, ...], whole: bool) -> Scaled | None:
    """Split a transposed constant; `shape` splits each of its dimensions in one or more."""
    parts = _divided(constant.shape, shape)
    if parts is None:
        return None
    order = _order(constant)
    back = [order.index(k) for k in range(len(order))]
    match = scaled(source, tuple(shape[i] for k in back for i in parts[k]), whole)
    source_dims = [i for k in back for i in parts[k]]
    return None if match is None else match.transposed(tuple(source_dims.index(i) for i in range(len(shape))))


def _divided(shape: tuple[int, ...], parts: tuple[int, ...]) -> list[list[int]] | None:
    """Return which dimensions of `parts` make up each one of `shape`; None if some belong to several."""
    groups, left = list[list[int]](), list(range(len(parts)))
    for n in shape:
        own = list[int]()
        while left and (not own or prod(parts[i] for i in own) < n):
            own.append(left.pop(0))
        if prod(parts[i] for i in own) != n:
            return None
        groups.append(own)
    return None if left else groups


def _converted(constant: Deferred) -> Deferred:
    """Return the operand of conversions from f32 to f32, which `decompress_weights` leaves."""
    while isinstance(constant.op, Convert) and isinstance(inner := constant.inputs[0], Deferred):
        if inner.type.dtype is not DType.F32:
            break
        constant = inner
    return constant


def _without_ones(shape: tuple[int, ...]) -> list[int]:
    return [n for n in shape if n != 1]


def first_rows(constant: Deferred, shape: tuple[int, ...], count: int) -> Array | None:
    """Return the first `count` rows of a constant, viewed in `shape`; None if all rows must be computed."""
    source = _converted(constant)
    while isinstance(source.op, Reshape) and isinstance(source.inputs[0], Deferred):
        source = _converted(source.inputs[0])
    parts = scaled(source, source.shape) if source.shape[:1] == shape[:1] else None
    if parts is None:
        return None
    zeros, scales = (rows_of(a, 0, min(count, a.shape[0])).astype(np.float32) for a in (parts.zeros, parts.scales))
    return ((parts.numbers[:count].astype(np.float32) - zeros) * scales).reshape(-1, *shape[1:])


def _scaled(differences: Deferred, scales: Array | Deferred, rank: int, whole: bool) -> Scaled | None:
    """Return the parts of a product, for `whole` as `scaled` says."""
    zeros: Array | Deferred = np.zeros((1,) * rank, np.float32)
    match differences.op:
        case Subtract(auto_broadcast=AutoBroadcast.NUMPY):
            converted, zeros = differences.inputs
        case _:
            converted = differences
    if not isinstance(converted, Deferred) or not isinstance(converted.op, Convert):
        return None
    source, dtype = converted.inputs[0], converted.types[0].dtype
    if source.shape != differences.shape or dtype.bits > WIDEST:
        return None
    zeros_array, points, factors = None, in_bytes(zeros), scales
    if not isinstance(points, Deferred) or points.type.dtype is not DType.I8 or len(points.shape) < rank:
        zeros_array = value_of(zeros)
        if not np.isfinite(zeros_array).all():
            return None
        points = _padded(zeros_array, rank).astype(np.float32, copy=False)
    else:
        zeros = points
    if not isinstance(scales, Deferred) or not _is_moderate(scales) or len(scales.shape) < rank:
        factors = _padded(value_of(scales), rank).astype(np.float32, copy=False)
        if not ((factors >= MIN_SCALE) & (factors <= MAX_SCALE)).all():
            return None
    codes = dtype if dtype in LEVELS else None
    constant = Scaled(_as_read(source, dtype), points, factors, codes, (zeros, scales), zeros_array)
    return constant.with_whole_zeros() if whole else constant


def _limits(constant: Array | Deferred) -> tuple[int, int] | None:
    """Return the least and the greatest number that the format of a constant's file has; None if it tells none."""
    op = constant.op if isinstance(constant, Deferred) else None
    return op.number_limits if isinstance(op, Limited) else None


def _is_moderate(scales: Deferred) -> bool:
    return isinstance(scales.op, Moderate) and scales.op.is_moderate


def numbers_of(constant: Array | Deferred) -> Array | Deferred:
    """Return the numbers that a constant is made of, as they were read."""
    while isinstance(constant, Deferred) and constant.type.dtype.bits > WIDEST:
        constant = constant.inputs[0]
    return constant


def _padded(array: Array, rank: int) -> Array:
    return array.reshape((1,) * (rank - array.ndim) + array.shape)


def _order(constant: Deferred) -> tuple[int, ...]:
    order = constant.inputs[1]
    assert not isinstance(order, Deferred)
    return tuple(int(k) for k in order.reshape(-1)) or tuple(reversed(range(len(constant.shape))))
