"""Constants that are whole numbers of 4 or 8 bits less zero points, times factors of an output or of a part of a sum.

w[k, j] = (n[k, j] - z[k // 32, j]) t[k // 32, j]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array, TensorType, dtype_of
from aot.ir.values.deferred import Deferred, value_of
from aot.lowering.storage.compressed import Scaled, numbers_of, with_any_zeros
from aot.lowering.storage.integers import Reduced, reduced, shared, whole_numbers
from aot.lowering.storage.stored_bytes import Shifted
from aot.runtime.abi import DType

SPAN = 255  # greatest difference between the largest and the least number of a part
NIBBLE = 15  # that of numbers of 4 bits
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
    zeros: NDArray[np.float32]
    factors: NDArray[np.float32]
    size: int
    bits: int
    whole: bool
    codes: DType | None = None


def in_parts(data: Array | Deferred, sums: tuple[int, ...]) -> Parts | None:
    """Split a constant of f32 that is summed along its dimensions `sums`; None for any other."""
    origin = numbers_of(data)
    read = value_of(origin) if isinstance(data, Deferred) else None  # once for all that look at it below
    for size in (0, *(SIZES if len(sums) == 1 else ())):
        if size and data.shape[sums[0]] % size:
            continue
        shape = split_shape(data.shape, sums, size)
        inner = tuple(k + 1 for k in sums) if size else sums
        form = _Form(data.shape, inner, size, len(sums) == 1 and data.shape[sums[0]] % 2 == 0, origin, read)
        any_zeros = with_any_zeros(data, shape) if isinstance(data, Deferred) else None
        if any_zeros is not None:
            if any_zeros.is_shared(inner):
                return form.as_given(any_zeros)
            continue
        parts = shared(data, inner, shape)
        if parts is not None:
            found = reduced(parts, inner, SPAN)
            if found is not None:
                return form.of_file(found)
        elif (whole := whole_numbers(data, inner, SPAN, shape)) is not None:
            return form.of_whole(*whole)
    return None


def split_shape(shape: tuple[int, ...], sums: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Return a shape whose dimension of `sums` is two: parts, and their `size` elements; the same for size 0."""
    return tuple(n for k, m in enumerate(shape) for n in ((m // size, size) if size and k in sums else (m,)))


@dataclass(frozen=True, slots=True)
class _Form:
    """A way to split a constant: `inner` are the dimensions, in the split shape, along which a part lies.

    `pairs`: two numbers of 4 bits may share a byte. `origin`: the numbers of its file, and `read`, the same as array.
    """

    shape: tuple[int, ...]
    inner: tuple[int, ...]
    size: int
    pairs: bool
    origin: Array | Deferred
    read: Array | None

    def of_whole(self, whole: NDArray[np.int16], factors: NDArray[np.float32]) -> Parts | None:
        """Return parts of whole numbers, with zero points by which they fit their bits."""
        low, high = whole.min(self.inner, keepdims=True), whole.max(self.inner, keepdims=True)
        if (high - low > SPAN).any():
            return None
        zeros, small = self._zeros(low, high)
        numbers = (whole + zeros).astype(np.uint8 if small else np.int8).reshape(self.shape)
        return self._parts(numbers, zeros, factors, small)

    def of_file(self, found: Reduced) -> Parts | None:
        """Return parts of whole numbers that a file has."""
        if (found.high - found.low > SPAN).any():
            return None
        zeros, small = self._zeros(found.low, found.high)
        if found.is_plain:
            numbers = self._shifted(found.parts.numbers, zeros - found.parts.zeros, small)
        else:
            numbers = found.plus(zeros, np.uint8 if small else np.int8).reshape(self.shape)
        return self._parts(numbers, zeros, found.factors, small)

    def as_given(self, found: Scaled) -> Parts:
        """Return parts of the numbers of a file: codes, or integers with zero points that are none."""
        low, high = int(found.numbers.min()), int(found.numbers.max())
        small = self.pairs and low >= 0 and high <= NIBBLE
        shift = 128 if not small and high > 127 else 0
        kept = [1 if k in self.inner else n for k, n in enumerate(found.numbers.shape)]
        numbers = self._shifted(found.numbers, np.full((1,) * len(kept), -shift), small)
        zeros, factors = (
            np.broadcast_to(a, kept) for a in (found.zeros.astype(np.float32) - np.float32(shift), found.scales)
        )
        return self._parts(numbers, zeros, factors, small, whole=False, codes=found.codes)

    def _zeros(self, low: NDArray[np.int16], high: NDArray[np.int16]) -> tuple[NDArray[np.int16], bool]:
        """Return zero points, and True if the numbers plus these have 4 bits."""
        if self.pairs and not (high - low > NIBBLE).any():
            return np.where((low < -8) | (high > 7), -low, 8).astype(np.int16), True
        return np.where((low < -128) | (high > 127), -128 - low, 0).astype(np.int16), False

    def _shifted(self, numbers: Array, offsets: Array, small: bool) -> Array | Deferred:
        """Return the numbers plus offsets, modulo 256; deferred if they lie in memory as they were read."""
        operation = Shifted(self.shape, numbers.shape, numbers.strides, signed=not small)
        added = offsets.astype(np.int16).astype(np.uint8)
        if self.read is None or not np.may_share_memory(numbers, self.read):
            return operation.reference(numbers, added)
        types = tuple(
            a.type if isinstance(a, Deferred) else TensorType(dtype_of(a), a.shape) for a in (self.origin, added)
        )
        return Deferred(operation, (self.origin, added), types, TensorType(operation.dtype, self.shape))

    def _parts(
        self,
        numbers: Array | Deferred,
        zeros: Array,
        factors: Array,
        small: bool,
        whole: bool = True,
        codes: DType | None = None,
    ) -> Parts:
        zeros, factors = (a.squeeze(self.inner) if self.size else a for a in (zeros.astype(np.float32), factors))
        return Parts(numbers, zeros, factors, self.size, 4 if small else 8, whole, codes)
