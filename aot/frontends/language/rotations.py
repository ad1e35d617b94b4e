"""Scalings of rotations for more tokens than a network was first trained on: what the rates are divided by."""

from __future__ import annotations

from math import ceil, floor, log, pi

import numpy as np

from aot.codegen.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Yarn:
    """YaRN (Peng et al., 2023): fast rotations stay as they are, slow ones are divided by `factor`.

    Those between turn `slow` to `fast` times within the `trained` tokens. `rounded`: the first and the last one of them
    are the whole numbers around them.
    """

    factor: float
    trained: float
    fast: float = 32.0
    slow: float = 1.0
    rounded: bool = True

    def divisors(self, base: float, rotated: int) -> tuple[float, ...]:
        """Return the divisor of the rate of each pair of `rotated` elements."""
        lengths = (self.trained / (turns * 2 * pi) for turns in (self.fast, self.slow))
        first, last = (rotated * log(length) / (2 * log(base)) for length in lengths)
        if self.rounded:
            first, last = floor(first), ceil(last)
        first, last = max(first, 0), min(last, rotated - 1)
        share = np.clip((np.arange(rotated // 2) - first) / (last - first or 0.001), 0, 1)  # of the slow ones
        return tuple((1 / (share / self.factor + 1 - share)).tolist())

    def amplitude(self, weight: float = 1.0) -> float:
        """Return the factor of cosines and sines."""
        return 0.1 * weight * log(self.factor) + 1 if self.factor > 1 else 1.0
