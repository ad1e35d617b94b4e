"""Differences between two arrays, over the largest expected number: the measure of all comparisons.

error = max |actual - expected| / max |expected|        1.2e-07 at [0,3]: expected 0.25, got 0.25000003
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from aot.runtime.abi import DType
from aot.runtime.arrays.tensors import Array

BOUNDS = {  # errors of whole networks that compute in a type, or whose weights lie in it
    DType.F64: 1e-8,
    DType.F32: 1e-4,
    DType.F16: 1e-2,
    DType.BF16: 5e-2,
    DType.I8: 5e-2,
    DType.I4: 2e-1,
}
CHUNK = 1 << 20  # elements that are widened at a time
SMALLEST_SCALE = 1e-30  # largest |expected| below which errors are absolute


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest error of an array, and the element that has it: infinite for other shapes, a lost NaN or infinity.

    `beyond`: number of elements whose error is above `bound`, of `count`.
    """

    error: float
    bound: float
    place: tuple[int, ...]
    expected: object
    actual: object
    beyond: int
    count: int

    @property
    def agrees(self) -> bool:
        """True if no element is beyond the bound."""
        return self.error <= self.bound

    def __str__(self) -> str:
        if self.error == 0:
            return "equal"
        at = f" at [{','.join(map(str, self.place))}]" if self.place else ""
        return f"{self.error:.1e}{at}: expected {_text(self.expected)}, got {_text(self.actual)}"


def difference(expected: Array, actual: Array, bound: float) -> Difference:
    """Return the largest error of `actual`; numbers, booleans or strings, of any types."""
    if expected.shape != actual.shape:
        return Difference(math.inf, bound, (), list(expected.shape), list(actual.shape), actual.size, actual.size)
    if not expected.size:
        return Difference(0.0, bound, (), None, None, 0, 0)
    if expected.dtype.kind in "OUS":
        return _texts(expected, actual, bound)
    scale = max(_largest(part) for part in _parts(expected))
    scale = scale if scale > SMALLEST_SCALE else 1.0
    worst, flat_index, beyond = -1.0, 0, 0
    for n, (one, other) in enumerate(zip(_parts(expected), _parts(actual), strict=True)):
        with np.errstate(invalid="ignore", over="ignore"):
            errors = np.abs(other - one) / scale
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        errors[same] = 0.0
        errors[~same & ~(np.isfinite(one) & np.isfinite(other))] = math.inf
        beyond += int(np.count_nonzero(errors > bound))
        if errors.max() > worst:
            worst, flat_index = float(errors.max()), n * CHUNK + int(errors.argmax())
    at = tuple(map(int, np.unravel_index(flat_index, expected.shape)))
    return Difference(worst, bound, at, expected[at].item(), actual[at].item(), beyond, actual.size)


def numbers(array: Array, dtype: DType) -> Array:
    """Return an array as numbers that NumPy knows: bf16, which is stored as its bits, as f32."""
    if dtype is DType.BF16 and array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


def bound_of(dtype: DType, bound: float | None = None, precision: DType = DType.F32) -> float:
    """Return the bound of a tensor's error: `bound` for floats, else its type's or a coarser `precision`'s.

    Integers are equal.
    """
    if not dtype.is_float:
        return 0.0
    return max(BOUNDS.get(dtype, 0.0), BOUNDS[precision]) if bound is None else bound


def _texts(expected: Array, actual: Array, bound: float) -> Difference:
    wrong = np.asarray(expected.astype(str) != actual.astype(str))
    at = tuple(map(int, np.unravel_index(int(wrong.argmax()), expected.shape)))
    beyond = int(np.count_nonzero(wrong))
    return Difference(math.inf if beyond else 0.0, bound, at, expected[at], actual[at], beyond, actual.size)


def _parts(array: Array) -> Iterator[Array]:
    flat = array.reshape(-1)
    for begin in range(0, flat.size, CHUNK):
        yield flat[begin : begin + CHUNK].astype(np.float64)


def _largest(part: Array) -> float:
    """Return the largest size of a finite number."""
    return float(np.abs(part, where=np.isfinite(part), out=np.zeros_like(part)).max())


def _text(value: object) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)
