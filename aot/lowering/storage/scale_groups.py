"""Constants that are whole numbers of 4 or 8 bits less zero points, times factors of an output or of a part of a sum.

w[k, j] = (n[k, j] - z[k // 32, j]) t[k // 32, j]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array, TensorType
from aot.ir.values.deferred import Deferred, value_of
from aot.lowering.storage.compressed import Scaled, Seen, numbers_of, scaled
from aot.lowering.storage.integers import Reduced, reduced, whole_numbers
from aot.lowering.storage.stored_bytes import Shifted, rearranged
from aot.runtime.abi import DType

SPAN = 255  # greatest difference between the largest and the least number of a part
NIBBLE = 15  # greatest unsigned number of 4 bits
SIZES = (256, 128, 64, 32, 16)  # elements of a part, in the order in which they are tried


@dataclass(frozen=True, slots=True)
class Parts:
    """A constant is `(numbers - zeros) * factors`.

    `numbers` have its shape: u8 of 0..15 if `bits` is 4, else i8; they are deferred if they are a file's plus offsets.
    `size` neighbours along the only dimension of a sum share a zero point and a factor (0: all elements of the sum do);
    these have one element along it for each part.
    `zeros`: whole numbers, where `whole` says so. `codes`: the type whose codes the numbers are; None for integers.
    """

    numbers: Array | Deferred
    zeros: Array | Deferred
    factors: Array | Deferred
    size: int
    bits: int
    whole: bool
    codes: DType | None = None
    held: Array | None = None  # what deferred zero points are, which are not made again while this lives


def in_parts(data: Array | Deferred, sums: tuple[int, ...]) -> Parts | None:
    """Split a constant of f32 that is summed along its dimensions `sums`; None for any other.

    As its file has it, if that splits it; else by its values.
    """
    forms = [_form(data.shape, sums, n) for n in (0, *(SIZES if len(sums) == 1 else ())) if not _cuts(data, sums, n)]
    if isinstance(data, Deferred) and (parts := _of_file(data, forms)) is not None:
        return parts
    read = value_of(numbers_of(data))  # held for all forms
    for form in forms:
        split_constant = None if form.is_of_file(data) else whole_numbers(data, form.inner, SPAN, form.split)
        if split_constant is not None:
            return form.of_whole(*split_constant)
    del read
    return None


def _cuts(data: Array | Deferred, sums: tuple[int, ...], size: int) -> bool:
    """True if parts of a size do not divide a sum."""
    return bool(size) and data.shape[sums[0]] % size > 0


def _form(shape: tuple[int, ...], sums: tuple[int, ...], size: int) -> _Form:
    inner = tuple(k + 1 for k in sums) if size else sums
    return _Form(shape, split_shape(shape, sums, size), inner, size, len(sums) == 1 and shape[sums[0]] % 2 == 0)


def _of_file(data: Deferred, forms: list[_Form]) -> Parts | None:
    """Return the parts of a constant as the file stores them; None if the file stores other parts."""
    for form in forms:
        weights = scaled(data, form.split, whole=False)
        if weights is None or not weights.is_shared(form.inner):
            continue
        if not weights.has_whole_zeros:
            return form.as_given(weights)
        rounded = weights.with_whole_zeros()
        if rounded is not None and form.pairs and rounded.seen.dtype is DType.U4:
            return form.as_given(rounded)
        if rounded is not None and rounded.seen.limits is not None:
            return form.as_limited(rounded, *rounded.seen.limits)
        read = value_of(weights.seen.origin)  # held while its numbers are looked at
        fewer = None if rounded is None else reduced(rounded, form.inner, SPAN)
        parts = None if fewer is None else form.of_file(fewer)
        del read
        if parts is not None:
            return parts
    return None


def split_shape(shape: tuple[int, ...], sums: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Return a shape with the dimensions of `sums` split into parts of `size` elements; the same shape for size 0."""
    return tuple(n for k, m in enumerate(shape) for n in ((m // size, size) if size and k in sums else (m,)))


@dataclass(frozen=True, slots=True)
class _Form:
    """A way to split a constant: `inner` are the dimensions, in the split shape, along which a part lies.

    `pairs`: two numbers of 4 bits may share a byte.
    """

    shape: tuple[int, ...]
    split: tuple[int, ...]
    inner: tuple[int, ...]
    size: int
    pairs: bool

    def is_of_file(self, data: Array | Deferred) -> bool:
        """True if the file of a constant splits it so, or has zero points that are no whole numbers."""
        weights = scaled(data, self.split, whole=False) if isinstance(data, Deferred) else None
        if weights is None or not weights.has_whole_zeros:
            return weights is not None
        return weights.is_shared(self.inner) and weights.with_whole_zeros() is not None

    def of_whole(self, integers: NDArray[np.int16], factors: NDArray[np.float32]) -> Parts | None:
        """Return parts of whole numbers, with zero points that make them fit their bits."""
        low, high = integers.min(self.inner, keepdims=True), integers.max(self.inner, keepdims=True)
        if (high - low > SPAN).any():
            return None
        zeros, small = self._zeros(low, high)
        numbers = (integers + zeros).astype(np.uint8 if small else np.int8).reshape(self.shape)
        return self._parts(numbers, zeros, factors, small)

    def of_file(self, quotients: Reduced) -> Parts | None:
        """Return parts of whole numbers that a file has."""
        if (quotients.high - quotients.low > SPAN).any():
            return None
        zeros, small = self._zeros(quotients.low, quotients.high)
        if quotients.is_plain:
            numbers = self._shifted(quotients.parts.seen, zeros - value_of(quotients.parts.zeros), small)
        else:
            numbers = quotients.plus(zeros, np.uint8 if small else np.int8).reshape(self.shape)
        return self._parts(numbers, zeros, quotients.factors, small)

    def as_limited(self, weights: Scaled, least: int, greatest: int) -> Parts:
        """Return parts with numbers that the file format bounds; no number is read."""
        file_zeros = value_of(weights.zeros).astype(np.int16, copy=False)
        zeros, small = self._zeros(least - file_zeros, greatest - file_zeros)
        numbers = self._shifted(weights.seen, zeros - file_zeros, small)
        factor_shape = self._shared(weights.shape)
        factors = self._kept(weights.scales, weights.deferred[1] if weights.deferred else None, 0, factor_shape)
        return Parts(
            numbers, self._kept(zeros, None, 0, factor_shape), factors, self.size, 4 if small else 8, whole=True
        )

    def _shared(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a shape with 1 along the dimensions of a part."""
        return tuple(1 if k in self.inner else n for k, n in enumerate(shape))

    def as_given(self, weights: Scaled) -> Parts:
        """Return parts with the numbers of a file, unchanged but for their signedness."""
        limits = (0, NIBBLE) if weights.seen.dtype is DType.U4 else weights.seen.limits
        low, high = limits or (int(weights.numbers.min()), int(weights.numbers.max()))
        small = self.pairs and low >= 0 and high <= NIBBLE
        shift = 128 if not small and high > 127 else 0
        factor_shape = self._shared(weights.shape)
        numbers = self._shifted(weights.seen, np.full((1,) * len(factor_shape), -shift), small)
        pairs = zip((weights.zeros, weights.scales), weights.deferred or (None, None), (shift, 0), strict=True)
        zeros, factors = (self._kept(values, file, less, factor_shape) for values, file, less in pairs)
        has_whole_zeros = weights.has_whole_zeros
        return Parts(
            numbers, zeros, factors, self.size, 4 if small else 8, has_whole_zeros, weights.codes, weights.held
        )

    def _kept(
        self, values: Array | Deferred, file: Array | Deferred | None, less: int, full_shape: tuple[int, ...]
    ) -> Array | Deferred:
        """Return zero points or factors, deferred if a file has them."""
        shape = tuple(n for k, n in enumerate(full_shape) if not self.size or k not in self.inner)
        if isinstance(file, Deferred) and file.shape == full_shape and not less:
            return rearranged(file, file.type.dtype, shape)
        return np.broadcast_to(value_of(values).astype(np.float32) - np.float32(less), full_shape).reshape(shape)

    def _zeros(self, low: NDArray[np.int16], high: NDArray[np.int16]) -> tuple[NDArray[np.int16], bool]:
        """Return zero points, and True if the numbers plus these have 4 bits."""
        if self.pairs and not (high - low > NIBBLE).any():
            return np.where((low < -8) | (high > 7), -low, 8).astype(np.int16), True
        return np.where((low < -128) | (high > 127), -128 - low, 0).astype(np.int16), False

    def _shifted(self, seen: Seen, offsets: Array, small: bool) -> Array | Deferred:
        """Return the numbers plus offsets, modulo 256; deferred if they lie in memory as they are read."""
        operation = Shifted(self.shape, seen.shape, seen.strides, signed=not small)
        added = offsets.astype(np.int16).astype(np.uint8)
        if not seen.is_as_read:
            return operation.reference(seen.array, added)
        types = TensorType(seen.dtype, seen.origin.shape), TensorType(DType.U8, added.shape)
        return Deferred(operation, (seen.origin, added), types, TensorType(operation.dtype, self.shape))

    def _parts(self, numbers: Array | Deferred, zeros: Array, factors: Array, small: bool) -> Parts:
        zeros, factors = (a.squeeze(self.inner) if self.size else a for a in (zeros.astype(np.float32), factors))
        return Parts(numbers, zeros, factors, self.size, 4 if small else 8, whole=True)
