"""Bytes of compressed constants, made of the numbers of a file when they are written, not before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aot.ir.op import Op
from aot.ir.types import Array, TensorType, dtype_of
from aot.ir.values.deferred import Deferred
from aot.lowering.storage.compressed import scaled
from aot.lowering.storage.parts import Parts, split_shape


@dataclass(frozen=True)
class Shifted(Op):
    """Numbers of a byte plus offsets that repeat, in `shape`; neighbours along the axis `pairs` share a byte."""

    shape: tuple[int, ...]
    pairs: int | None

    def reference(self, numbers: Array, offsets: NDArray[np.uint8]) -> Array:
        """Return the sums modulo 256."""
        return arranged(numbers.view(np.uint8) + offsets, self.shape, self.pairs)


def stored_bytes(constant: Array | Deferred, found: Parts, sums: tuple[int, ...]) -> Array | Deferred:
    """Return the numbers of a constant's parts as bytes, two of 4 bits in one.

    They are deferred if the constant comes from a file whose numbers differ by offsets only.
    """
    pairs, shape = sums[0] if found.bits == 4 else None, found.numbers.shape
    made = arranged(found.numbers.view(np.uint8), shape, pairs)
    split = split_shape(shape, sums, found.size)
    given = scaled(constant, split) if found.whole and isinstance(constant, Deferred) else None
    if given is None or given.numbers.dtype.itemsize != 1 or not np.may_share_memory(given.numbers, _origin(constant)):
        return made
    zeros = np.expand_dims(found.zeros, sums[0] + 1) if found.size else found.zeros
    operation, offsets = Shifted(shape, pairs), (zeros - given.zeros).astype(np.int16).astype(np.uint8)
    if not np.array_equal(operation.reference(given.numbers, offsets), made):  # a common divisor was taken out
        return made
    types = tuple(TensorType(dtype_of(a), a.shape) for a in (given.numbers, offsets))
    return Deferred(operation, (given.numbers, offsets), types, TensorType(dtype_of(made), made.shape))


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
