"""Conversion of numbers to the bits of floats that NumPy does not have."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from aot.runtime.abi import FLOAT_FORMATS, DType, FloatFormat

Array = np.ndarray[Any, np.dtype[Any]]


_WIDER = FLOAT_FORMATS | {DType.BF16: FloatFormat(7, 127, 0x8000, 0x7FC0, 0x7F80)}
_POWER_BIAS = 127  # F8E8M0: the code c is 2^(c - 127), 255 is NaN
_POWER_NAN = 255


def bits_of(dtype: DType, numbers: Array) -> Array:
    """Round numbers of f64 to the nearest of bf16, f8 or f4, ties to even; return their bits as i64.

    ValueError for a number, an infinity or a NaN that the type does not have.
    """
    if dtype is DType.F8E8M0:
        return _powers(numbers)
    form = _WIDER[dtype]
    values, size = _values(form), np.abs(numbers)
    middles = (values[1:] + values[:-1]) / 2
    codes = np.searchsorted(middles, size)  # rounds a tie down
    ties = middles[np.minimum(codes, len(middles) - 1)] == size
    codes = codes + (ties & (codes % 2 == 1))
    nan, infinite = np.isnan(numbers), np.isinf(numbers)
    _refuse(numbers, nan & (form.nan is None) | infinite & (form.infinite is None))
    _refuse(numbers, ~nan & ~infinite & (codes >= form.finite), f"must be at most {values[-2]:g}")
    codes = np.where(nan, form.nan or 0, np.where(infinite, form.infinite or 0, codes))
    signed = np.signbit(numbers) & ~(form.unsigned_zero & ((codes == 0) | nan))
    return np.where(signed, codes | form.sign, codes)


@cache
def _values(form: FloatFormat) -> Array:
    """Return the values of the finite codes that are not negative, and the one that would follow; f64."""
    codes = np.arange(form.finite + 1)
    exponent, mantissa = codes >> form.mantissa, codes & ((1 << form.mantissa) - 1)
    whole = np.where(exponent > 0, mantissa + (1 << form.mantissa), mantissa)
    return np.ldexp(whole.astype(np.float64), np.maximum(exponent, 1) - form.bias - form.mantissa)


def _powers(numbers: Array) -> Array:
    """Round to powers of two, ties up."""
    nan = np.isnan(numbers)
    _refuse(numbers, ~nan & ~(numbers > 0), "must be positive")
    part, exponent = np.frexp(np.where(nan, 1.0, numbers))  # numbers = part * 2^exponent, 1/2 <= part < 1
    codes = np.maximum(exponent - 1 + (part >= 0.75) + _POWER_BIAS, 0)
    _refuse(numbers, ~nan & ((codes >= _POWER_NAN) | np.isinf(numbers)), "must be at most 2^127")
    return np.where(nan, _POWER_NAN, codes)


def _refuse(numbers: Array, wrong: Array, rule: str = "must be a value of the type") -> None:
    if wrong.any():
        raise ValueError(f"a number {rule}, got {numbers[wrong][0]:g}")
