"""Numbers of few bits and scales, as a file has them, in constants that are decompressed when they are read."""

from __future__ import annotations

from math import prod

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array
from aot.ir.values.deferred import WIDEST, Deferred, value_of
from aot.opset.elementwise.binary import AutoBroadcast, Multiply, Subtract
from aot.opset.elementwise.conversion import LEVELS, Convert
from aot.opset.movement.movement import Transpose
from aot.opset.movement.shape import Reshape
from aot.runtime.abi import DType

LEAST, MOST = 2.0**-100, 2.0**100  # scales with which no product is denormal or infinite
_UNSIGNED = (np.dtype(ml_dtypes.uint2), np.dtype(ml_dtypes.uint4))  # each lies in the low bits of a byte
GREATEST = 255  # magnitude of a difference: up to it, rounding hides no common divisor


@dataclass(frozen=True, slots=True)
class Scaled:
    """A constant is `(numbers - zeros) * scales`, rounded once.

    All three have as many dimensions; zeros and scales have 1 where they repeat. Differences are `GREATEST` at most, if
    zeros are whole numbers. `codes`: a type of `LEVELS`, whose codes the numbers are, or None.
    """

    numbers: Array  # integers of 8 bits or less
    zeros: NDArray[np.int16] | NDArray[np.float32]
    scales: NDArray[np.float32]
    codes: DType | None = None

    def is_shared(self, dims: tuple[int, ...]) -> bool:
        """True if all elements along `dims` have one zero point and one scale."""
        return all(self.scales.shape[k] == self.zeros.shape[k] == 1 for k in dims)

    def transposed(self, order: tuple[int, ...]) -> Scaled:
        numbers, zeros = self.numbers.transpose(order), self.zeros.transpose(order)
        return Scaled(numbers, zeros, self.scales.transpose(order), self.codes)

    def with_ones(self, shape: tuple[int, ...]) -> Scaled:
        """Return the same in `shape`, which has other dimensions of 1."""
        kept = [k for k, n in enumerate(self.numbers.shape) if n != 1]

        def seen(a: Array) -> Array:
            sizes = iter([a.shape[k] for k in kept])
            return a.reshape([1 if n == 1 else next(sizes) for n in shape])

        return Scaled(self.numbers.reshape(shape), seen(self.zeros), seen(self.scales), self.codes)


def scaled(constant: Deferred, shape: tuple[int, ...], whole: bool = True) -> Scaled | None:
    """Split a constant, whose elements are seen in `shape`; None if it is made in another way.

    `whole`: of integers, with zero points that are integers; else codes and any zero points are split, too.
    """
    constant = _converted(constant)
    first = constant.inputs[0]
    match constant.op:
        case Reshape() if isinstance(first, Deferred):
            if shape == constant.shape != first.shape and _without_ones(first.shape) == _without_ones(shape):
                found = scaled(first, first.shape, whole)
                return None if found is None else found.with_ones(shape)
            return scaled(first, shape, whole)
        case Transpose() if isinstance(first, Deferred):
            return _transposed(constant, first, shape, whole)
        case Multiply(auto_broadcast=AutoBroadcast.NUMPY) if isinstance(first, Deferred) and shape == constant.shape:
            return _scaled(first, constant.inputs[1], len(shape), whole) if first.shape == shape else None
        case _:
            return None


def _transposed(constant: Deferred, source: Deferred, shape: tuple[int, ...], whole: bool) -> Scaled | None:
    """Split a transposed constant, whose dimensions are seen in `shape` as one or more each."""
    parts = _divided(constant.shape, shape)
    if parts is None:
        return None
    order = _order(constant)
    back = [order.index(k) for k in range(len(order))]
    found = scaled(source, tuple(shape[i] for k in back for i in parts[k]), whole)
    places = [i for k in back for i in parts[k]]
    return None if found is None else found.transposed(tuple(places.index(i) for i in range(len(shape))))


def _divided(shape: tuple[int, ...], parts: tuple[int, ...]) -> list[list[int]] | None:
    """Return which dimensions of `parts` make up each one of `shape`; None if some belong to several."""
    found, left = list[list[int]](), list(range(len(parts)))
    for n in shape:
        own = list[int]()
        while left and (not own or prod(parts[i] for i in own) < n):
            own.append(left.pop(0))
        if prod(parts[i] for i in own) != n:
            return None
        found.append(own)
    return None if left else found


def _converted(constant: Deferred) -> Deferred:
    """Return the operand behind conversions from f32 to f32, which `decompress_weights` leaves."""
    while isinstance(constant.op, Convert) and isinstance(inner := constant.inputs[0], Deferred):
        if inner.type.dtype is not DType.F32:
            break
        constant = inner
    return constant


def _without_ones(shape: tuple[int, ...]) -> list[int]:
    return [n for n in shape if n != 1]


def with_any_zeros(constant: Deferred, shape: tuple[int, ...]) -> Scaled | None:
    """Split a constant of codes, or of integers with zero points that are none; None for others."""
    found = scaled(constant, shape, whole=False)
    return None if found is None or (found.codes is None and (found.zeros == np.rint(found.zeros)).all()) else found


def first_rows(constant: Deferred, shape: tuple[int, ...], count: int) -> Array | None:
    """Return the first `count` rows of a constant, whose elements are seen in `shape`; None where that needs all."""
    source = _converted(constant)
    while isinstance(source.op, Reshape) and isinstance(source.inputs[0], Deferred):
        source = _converted(source.inputs[0])
    parts = scaled(source, source.shape) if source.shape[:1] == shape[:1] else None
    if parts is None:
        return None
    numbers, zeros = (a[:count].astype(np.float32) for a in (parts.numbers, parts.zeros))
    return ((numbers - zeros) * parts.scales[:count]).reshape(-1, *shape[1:])


def _scaled(differences: Deferred, scales: Array | Deferred, rank: int, whole: bool) -> Scaled | None:
    """Return the parts of a product, for `whole` as `scaled` says."""
    if isinstance(scales, Deferred) or not ((scales >= LEAST) & (scales <= MOST)).all():
        return None
    zeros: Array = np.zeros((1,) * rank, np.float32)
    match differences.op:
        case Subtract(auto_broadcast=AutoBroadcast.NUMPY):
            converted, zeros = differences.inputs[0], value_of(differences.inputs[1])
        case _:
            converted = differences
    if not isinstance(converted, Deferred) or not isinstance(converted.op, Convert):
        return None
    given, dtype = converted.inputs[0], converted.types[0].dtype
    if given.shape != differences.shape or dtype.bits > WIDEST:
        return None
    numbers, codes = value_of(given), dtype if dtype in LEVELS else None
    if codes is not None:
        numbers = numbers.view(np.uint8)
    elif numbers.dtype.kind not in "iu":  # types of fewer than 8 bits, with which NumPy does not compute
        numbers = numbers.view(np.int8) if numbers.dtype in _UNSIGNED else numbers.astype(np.int8)
    if not whole:
        zeros, finite = _padded(zeros, rank).astype(np.float32), bool(np.isfinite(zeros).all())
        return Scaled(numbers, zeros, _padded(scales, rank), codes) if finite else None
    if codes is not None:
        return None
    bounds = np.iinfo(numbers.dtype)
    within = (zeros >= bounds.max - GREATEST) & (zeros <= bounds.min + GREATEST) & (zeros == np.rint(zeros))
    return Scaled(numbers, _padded(zeros, rank).astype(np.int16), _padded(scales, rank)) if within.all() else None


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
