"""Weights that are integer multiples of a factor, as quantisation leaves them, recognised by their values.

    w[k, j] = n[k, j] t[j]     f32, rounded a few times     ->     n: whole numbers, t: f32
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from aot.ir.types import Array

CLOSE = 2.0**-20  # relative error of a number that is due to rounding
SMALLEST = np.finfo(np.float32).tiny  # least factor that f32 holds with full precision
SAMPLE = 32  # numbers of a row, and rows, that are tried first


def whole_numbers(w: Array, sums: tuple[int, ...], most: int) -> tuple[NDArray[np.int16], NDArray[np.float32]] | None:
    """Split `w` into integers of magnitude `most` at most and factors shared along `sums`; None if there are none.

    Factors have the shape of `w`, but 1 along `sums`.
    """
    others = [k for k in range(w.ndim) if k not in sums]
    rows = w.transpose(*others, *sums).reshape(prod(w.shape[k] for k in others), -1)
    if w.dtype == np.int32:
        within = rows.min(initial=0) >= -most and rows.max(initial=0) <= most
        factors = np.ones(len(rows), np.float32) if within else None
    else:
        factors = _factors(rows, most)
    if factors is None:
        return None
    scale = factors.reshape([1 if k in sums else n for k, n in enumerate(w.shape)])
    return np.rint(w / scale).astype(np.int16), scale


def _factors(rows: NDArray[np.float32], most: int) -> NDArray[np.float32] | None:
    """Largest factor of each row: its numbers are integer multiples, `most` times at most; None if a row has none."""
    if len(rows) > SAMPLE and _factors(rows[:SAMPLE], most) is None:
        return None
    largest = np.abs(rows).max(1, initial=0).astype(np.float64)
    if not np.isfinite(largest).all():
        return None
    if not _possible(rows, largest, most):
        return None
    factors = np.where(largest == 0, 1.0, 0.0)
    for count in range(1, most + 1):
        left = np.flatnonzero(factors == 0)
        left = left[_are_whole(rows[left, :SAMPLE], largest[left] / count)]
        left = left[_are_whole(rows[left], largest[left] / count)]
        factors[left] = largest[left] / count
    return factors.astype(np.float32) if (factors >= SMALLEST).all() else None


def _possible(rows: NDArray[np.float32], largest: NDArray[np.float64], most: int) -> bool:
    """Cheap rejection test on some numbers of the first row: ordinary f32 weights fail it."""
    if not len(rows) or largest[0] == 0:
        return True
    return bool(_are_whole(rows[:1, :SAMPLE], largest[0] / np.arange(1, most + 1)).any())


def _are_whole(rows: NDArray[np.float32], steps: NDArray[np.float64]) -> NDArray[np.bool_]:
    ratio = rows / steps[:, None]
    near = np.rint(ratio)
    return np.all(np.abs(ratio - near) <= CLOSE * np.abs(near), axis=1)
