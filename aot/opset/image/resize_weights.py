"""Interpolation along one axis as a matrix: the share of each input element in each output element.

matrix(...)[i, j]    share of element j of n in element i of m; rows sum up to 1
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from aot.ir.types import Array

Weights = NDArray[np.float64]


class Mode(StrEnum):
    """Method of interpolation; both linear modes are the same but for `antialias`."""

    NEAREST = "nearest"
    LINEAR = "linear"
    LINEAR_ONNX = "linear_onnx"
    CUBIC = "cubic"
    BILINEAR_PILLOW = "bilinear_pillow"
    BICUBIC_PILLOW = "bicubic_pillow"
    AREA = "area"


class Coordinates(StrEnum):
    """Position in the input of element i of the result; scale = result / input."""

    HALF_PIXEL = "half_pixel"  # (i + 1/2) / scale - 1/2
    PYTORCH_HALF_PIXEL = "pytorch_half_pixel"  # the same, but 0 if there is one element only
    ASYMMETRIC = "asymmetric"  # i / scale
    TF_HALF_PIXEL_FOR_NN = "tf_half_pixel_for_nn"  # (i + 1/2) / scale
    ALIGN_CORNERS = "align_corners"  # i * (input - 1) / (result - 1)


class Rounding(StrEnum):
    """Choice of the nearest neighbour; SIMPLE: the next one if the result is smaller, otherwise the previous one."""

    ROUND_PREFER_FLOOR = "round_prefer_floor"
    ROUND_PREFER_CEIL = "round_prefer_ceil"
    FLOOR = "floor"
    CEIL = "ceil"
    SIMPLE = "simple"


def coordinates(kind: Coordinates, n: int, m: int, up: int, down: int) -> Weights:
    """Return the positions of the m elements; scale = up / down. One division each, so that halves are exact."""
    i = np.arange(m, dtype=np.float64)
    match kind:
        case Coordinates.ALIGN_CORNERS:
            return i * (n - 1) / max(m - 1, 1)
        case Coordinates.ASYMMETRIC:
            return i * down / up
        case Coordinates.TF_HALF_PIXEL_FOR_NN:
            return (2 * i + 1) * down / (2 * up)
        case Coordinates.PYTORCH_HALF_PIXEL if m == 1:
            return np.zeros(1)
        case _:
            return ((2 * i + 1) * down - up) / (2 * up)


def nearest(x: Weights, rounding: Rounding, n: int, smaller: bool) -> NDArray[np.int64]:
    """Return the indices of the nearest elements."""
    match rounding:
        case Rounding.ROUND_PREFER_FLOOR:
            indices = np.ceil(x - 0.5)
        case Rounding.ROUND_PREFER_CEIL:
            indices = np.floor(x + 0.5)
        case Rounding.FLOOR:
            indices = np.floor(x)
        case Rounding.CEIL:
            indices = np.ceil(x)
        case Rounding.SIMPLE:
            indices = np.ceil(x) if smaller else np.trunc(x)
    return np.clip(indices, 0, n - 1).astype(np.int64)


def linear(x: Weights, n: int, steepness: float = 1.0) -> Weights:
    """Return triangle weights; a steepness below 1 blends more elements. Rows that reach no element are 0."""
    coordinates = np.clip(x, 0, n - 1) if steepness == 1.0 else x
    shares = np.maximum(0.0, 1 - np.abs(steepness * (coordinates[:, None] - np.arange(n))))
    total = shares.sum(1, keepdims=True)
    return np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)


def cubic(x: Weights, n: int, a: float) -> Weights:
    """Return weights of four elements; those outside of the input take the value of the border."""
    first = np.floor(x)
    weights = np.zeros((len(x), n))
    for k in range(-1, 3):
        indices = np.clip(first + k, 0, n - 1).astype(np.int64)
        np.add.at(weights, (np.arange(len(x)), indices), _cubic_kernel(x - first - k, a))
    return weights


def _cubic_kernel(x: Weights, a: float) -> Weights:
    d = np.abs(x)
    inner = ((a + 2) * d - (a + 3)) * d * d + 1
    outer = ((d - 5) * d + 8) * d * a - 4 * a
    return np.where(d < 1, inner, np.where(d < 2, outer, 0.0))


def pillow(mode: Mode, n: int, m: int, a: float) -> Weights:
    """Return weights as in the Pillow library: the kernel widens with the reduction, and is cut off at the border."""
    ratio = n / m
    wide = max(ratio, 1.0)
    reach = wide * (1.0 if mode is Mode.BILINEAR_PILLOW else 2.0)
    weights = np.zeros((m, n))
    for i in range(m):
        center = (i + 0.5) * ratio
        low, high = max(int(center - reach + 0.5), 0), min(int(center + reach + 0.5), n)
        x = (np.arange(low, high, dtype=np.float64) - center + 0.5) / wide
        shares = np.maximum(0.0, 1 - np.abs(x)) if mode is Mode.BILINEAR_PILLOW else _cubic_kernel(x, a)
        weights[i, low:high] = shares / shares.sum()
    return weights


def taps(matrix: Weights) -> tuple[NDArray[np.int64], Weights]:
    """Return indices [m, t] and shares [m, t] of the elements with weight; t is the largest number of any row."""
    m = len(matrix)
    count = max(int((matrix != 0).sum(1).max(initial=0)), 1)
    indices, shares = np.zeros((m, count), np.int64), np.zeros((m, count))
    for i, row in enumerate(matrix):
        used = np.flatnonzero(row)
        indices[i, : len(used)], shares[i, : len(used)] = used, row[used]
        indices[i, len(used) :] = used[-1] if len(used) else 0
    return indices, shares


def applied(x: Array, axes: Sequence[int], matrices: Sequence[Weights]) -> Array:
    """Apply each matrix along its axis in double precision, for references; integers round half to even."""
    total = x.astype(np.float64)
    for axis, matrix in zip(axes, matrices, strict=True):
        total = np.moveaxis(np.tensordot(matrix, total, (1, axis)), 0, axis)
    if x.dtype.kind not in "iu":
        return total.astype(x.dtype)
    limits = np.iinfo(x.dtype)
    rounded = np.rint(total.round(9))  # sums of weights miss an exact half by a few roundings
    return np.clip(rounded, limits.min, limits.max).astype(x.dtype)


def rational(scale: float) -> tuple[int, int]:
    """Return a scale as the simplest fraction that is the same number in f32."""
    for limit in (64, 4096, 1 << 20):
        up, down = _fraction(scale, limit)
        if np.float32(up / down) == np.float32(scale):
            return up, down
    return _fraction(scale, 1 << 24)


def _fraction(value: float, limit: int) -> tuple[int, int]:
    """Return the continued fraction of `value`, with denominators up to `limit`."""
    before, now, rest = (0, 1), (1, 0), value
    while True:
        whole = math.floor(rest)
        following = (whole * now[0] + before[0], whole * now[1] + before[1])
        if following[1] > limit:
            return now
        before, now = now, following
        if rest - whole < 1e-9:
            return now
        rest = 1 / (rest - whole)
