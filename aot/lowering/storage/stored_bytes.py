"""Bytes of compressed constants, made of the numbers of a file when they are written, not before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aot.ir.op import Op
from aot.ir.types import Array, TensorType, dtype_of
from aot.ir.values.deferred import Deferred
from aot.lowering.storage.compressed import scaled


@dataclass(frozen=True)
class Shifted(Op):
    """Numbers of a byte plus offsets that repeat, in `shape`; neighbours along the axis `pairs` share a byte."""

    shape: tuple[int, ...]
    pairs: int | None

    def reference(self, numbers: Array, offsets: NDArray[np.uint8]) -> Array:
        """Return the sums modulo 256."""
        return arranged(numbers.view(np.uint8) + offsets, self.shape, self.pairs)


def stored_bytes(
    constant: Array | Deferred, numbers: NDArray[np.int16], zero: Array, shape: tuple[int, ...], pairs: int | None
) -> Array | Deferred:
    """Return `numbers` + `zero` as bytes in `shape`; `pairs`: the axis along which two of 4 bits share one, if any.

    They are deferred if `constant`, which has these numbers, comes from a file whose numbers differ by offsets only.
    """
    made = arranged((numbers + zero).astype(np.uint8), shape, pairs)
    parts = scaled(constant, numbers.shape) if isinstance(constant, Deferred) else None
    if parts is None or parts.numbers.dtype.itemsize != 1 or not np.may_share_memory(parts.numbers, _origin(constant)):
        return made
    operation, offsets = Shifted(shape, pairs), (zero - parts.zeros).astype(np.uint8)
    if not np.array_equal(operation.reference(parts.numbers, offsets), made):  # a common divisor was taken out
        return made
    types = tuple(TensorType(dtype_of(a), a.shape) for a in (parts.numbers, offsets))
    return Deferred(operation, (parts.numbers, offsets), types, TensorType(dtype_of(made), made.shape))


def _origin(constant: Array | Deferred) -> Array:
    """Return the numbers that a constant is made of, as they were read."""
    while isinstance(constant, Deferred):
        constant = constant.inputs[0]
    return constant


def arranged(numbers: NDArray[np.uint8], shape: tuple[int, ...], pairs: int | None) -> NDArray[np.int8 | np.uint8]:
    """Return bytes as i8, or pairs of numbers of 4 bits, the first in the low bits."""
    seen = numbers.reshape(shape)
    if pairs is None:
        return seen.view(np.int8)
    halves = np.moveaxis(seen, pairs, -1).reshape(*np.delete(shape, pairs), -1, 2)
    return np.ascontiguousarray(np.moveaxis(halves[..., 0] | halves[..., 1] << 4, -1, pairs))
