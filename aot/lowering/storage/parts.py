"""Constants that are whole numbers of 4 or 8 bits less zero points, times factors of an output or of a part of a sum.

w[k, j] = (n[k, j] - z[k // 32, j]) t[k // 32, j]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aot.ir.types import Array
from aot.ir.values.deferred import Deferred
from aot.lowering.storage.compressed import Scaled, with_any_zeros
from aot.lowering.storage.integers import whole_numbers
from runtime.abi import DType

SPAN = 255  # greatest difference between the largest and the least number of a part
NIBBLE = 15  # that of numbers of 4 bits
SIZES = (256, 128, 64, 32, 16)  # elements of a part, in the order in which they are tried


@dataclass(frozen=True, slots=True)
class Parts:
    """A constant is `(numbers - zeros) * factors`.

    `numbers` have its shape: u8 of 0..15 if `bits` is 4, else i8. `size` neighbours along the only dimension of a sum
    share a zero point and a factor (0: all elements of the sum do); these have one element along it for each part.
    `zeros`: whole numbers, where `whole` says so. `codes`: the type whose codes the numbers are; None for integers.
    """

    numbers: Array
    zeros: NDArray[np.float32]
    factors: NDArray[np.float32]
    size: int
    bits: int
    whole: bool
    codes: DType | None = None


def in_parts(data: Array | Deferred, sums: tuple[int, ...]) -> Parts | None:
    """Split a constant of f32 whose dimensions `sums` a sum runs over; None if it is no such constant."""
    for size in (0, *(SIZES if len(sums) == 1 else ())):
        if size and data.shape[sums[0]] % size:
            continue
        shape = split_shape(data.shape, sums, size)
        inner = tuple(k + 1 for k in sums) if size else sums
        pairs = len(sums) == 1 and data.shape[sums[0]] % 2 == 0
        any_zeros = with_any_zeros(data, shape) if isinstance(data, Deferred) else None
        if any_zeros is not None:
            if any_zeros.is_shared(inner):
                return _as_given(any_zeros, data.shape, inner, size, pairs)
            continue
        found = whole_numbers(data, inner, SPAN, shape)
        if found is not None:
            return _of_whole(*found, data.shape, inner, size, pairs)
    return None


def split_shape(shape: tuple[int, ...], sums: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Return a shape whose dimension of `sums` is two: parts, and their `size` elements; the same for size 0."""
    return tuple(n for k, m in enumerate(shape) for n in ((m // size, size) if size and k in sums else (m,)))


def _of_whole(
    whole: NDArray[np.int16],
    factors: NDArray[np.float32],
    shape: tuple[int, ...],
    inner: tuple[int, ...],
    size: int,
    pairs: bool,
) -> Parts | None:
    """Return parts of whole numbers, with zero points by which they fit their bits."""
    low, high = whole.min(inner, keepdims=True), whole.max(inner, keepdims=True)
    if (high - low > SPAN).any():
        return None
    small = pairs and not (high - low > NIBBLE).any()
    zeros = (
        np.where((low < -8) | (high > 7), -low, 8) if small else np.where((low < -128) | (high > 127), -128 - low, 0)
    )
    numbers = (whole + zeros).astype(np.uint8 if small else np.int8).reshape(shape)
    zeros, factors = (a.squeeze(inner) if size else a for a in (zeros.astype(np.float32), factors))
    return Parts(numbers, zeros, factors, size, 4 if small else 8, True)


def _as_given(found: Scaled, shape: tuple[int, ...], inner: tuple[int, ...], size: int, pairs: bool) -> Parts:
    """Return parts of the numbers of a file: codes, or integers with zero points that are none."""
    numbers, zeros = found.numbers.astype(np.int16), found.zeros.astype(np.float32)
    small = pairs and numbers.min() >= 0 and numbers.max() <= NIBBLE
    shift = 128 if not small and numbers.max() > 127 else 0
    numbers = (numbers - shift).astype(np.uint8 if small else np.int8).reshape(shape)
    kept = [1 if k in inner else n for k, n in enumerate(found.numbers.shape)]
    both = (np.broadcast_to(a, kept) for a in (zeros - np.float32(shift), found.scales))
    zeros, factors = (a.squeeze(inner) if size else a for a in both)
    return Parts(numbers, zeros, factors, size, 4 if small else 8, False, found.codes)
