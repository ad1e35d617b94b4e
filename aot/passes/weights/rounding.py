"""Weights as small integers with scales: `(integers - zeros) * scales`, with the least error among some scales."""

from __future__ import annotations

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array
from aot.ir.values.deferred import Deferred, value_of

LARGEST_STEP = 127  # largest integer of weights in 8 bits: as many steps below 0 as above
SHARES = np.linspace(1.0, 0.7, 13)  # shares of the whole range that are tried; below 0.7 errors grow
LEAST_SCALE = 1e-12  # scale of weights that are all 0


@dataclass(frozen=True, slots=True)
class Rounded:
    """Weights as `integers`; `scales` and `zeros` have size 1 where they are equal. `zeros` is None for all 0."""

    integers: Array | Deferred
    scales: Array
    zeros: Array | None = None

    @property
    def floats(self) -> Array:
        """Return the numbers that the integers stand for: integer times scale."""
        integers = value_of(self.integers).astype(np.float32)
        return (integers if self.zeros is None else integers - self.zeros.astype(np.float32)) * self.scales.astype(
            np.float32
        )


def round_channels(weights: Array, sums: tuple[int, ...]) -> Rounded:
    """Return weights as i8 with a scale for each channel; `sums`: the dimensions inside of a channel."""
    largest = np.maximum(np.abs(weights).max(sums, keepdims=True), LEAST_SCALE)
    scales = (largest / LARGEST_STEP).astype(np.float32)
    return Rounded(np.rint(weights / scales).clip(-LARGEST_STEP, LARGEST_STEP).astype(np.int8), scales)


def round_groups(groups: Array, bits: int, importance: Array | None = None) -> Rounded:
    """Return weights [.., group] as unsigned integers of `bits` with a scale in f16 and a zero point for each group.

    Of some shares of a group's range the one with the least sum of squared errors is taken; `importance`
    [.., group] weighs them, as mean squares of the data that weights are multiplied with do.
    """
    steps = 2**bits - 1
    low, high = (f(groups, -1, keepdims=True) for f in (np.min, np.max))
    low, high = np.minimum(low, 0), np.maximum(high, 0)
    least_errors = np.full(low.shape, np.inf)
    scales, zeros = np.zeros(low.shape, np.float16), np.zeros(low.shape, np.uint8)
    near = np.empty_like(groups)  # no array is made for each share: that took twice as long
    for share in SHARES:
        scale = np.maximum((high - low) * share / steps, 2.0**-24).astype(np.float16)
        wide = scale.astype(np.float32)
        zero = np.rint(-low * share / wide).clip(0, steps)
        np.rint(np.divide(groups, wide, out=near), out=near)
        np.minimum(np.maximum(near, -zero, out=near), steps - zero, out=near)
        np.square(np.subtract(np.multiply(near, wide, out=near), groups, out=near), out=near)
        error = (near if importance is None else near * importance).sum(-1, keepdims=True)
        better = error < least_errors
        least_errors = np.where(better, error, least_errors)
        scales, zeros = np.where(better, scale, scales), np.where(better, zero, zeros).astype(np.uint8)
    wide = scales.astype(np.float32)
    integers = (np.rint(groups / wide) + zeros).clip(0, steps).astype(np.uint8)
    return Rounded(integers, scales, zeros)
