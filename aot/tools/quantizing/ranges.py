"""Ranges of activations from samples: all values, most of them, or those that keep their distribution.

values of all samples -> least and greatest -> histogram -> limits, with 0 on one of 256 levels
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array
from aot.runtime.errors import UsageError
from aot.tools.quantizing.choices import Ranges

LEVELS = 256
BINS = 2048  # bins of a histogram: eight for each level
CUTS = 64  # ranges that entropy compares
LEAST_RANGE = 1e-6  # range that is assumed for values that are all 0


def _no_counts() -> Array:
    return np.zeros(BINS, np.int64)


@dataclass(slots=True)
class Seen:
    """Values of a tensor in all samples: `low` to `high`, and a histogram of `BINS` equal bins between them."""

    low: float = 0.0
    high: float = 0.0
    counts: Array = field(default_factory=_no_counts)

    def widen(self, low: float, high: float, name: str) -> None:
        """Take the extremes of a sample; UsageError, which names the layer, if they are no finite numbers."""
        if not np.isfinite([low, high]).all():
            raise UsageError(f"quantize: values must be finite, got {low} to {high} of {name!r}")
        self.low, self.high = min(self.low, float(low)), max(self.high, float(high))

    def count(self, values: Array) -> None:
        """Add the values of a sample to the histogram."""
        if self.high > self.low:
            self.counts += np.histogram(values, BINS, (self.low, self.high))[0]

    def range(self, how: Ranges, percentile: float) -> tuple[float, float]:
        """Return the least and the greatest number that quantisation keeps; the range has 0 in it."""
        if how is Ranges.MINMAX or not self.counts.any():
            return self.low, self.high
        edges = np.linspace(self.low, self.high, BINS + 1)
        if how is Ranges.PERCENTILE:
            first, last = _percentiles(self.counts, percentile)
        else:
            first, last = _least_divergence(self.counts, int(np.searchsorted(edges, 0.0, "right")) - 1)
        return min(float(edges[first]), 0.0), max(float(edges[last]), 0.0)


def _percentiles(counts: Array, percentile: float) -> tuple[int, int]:
    """Return the first bin of the histogram without both tails, and the end of its last bin."""
    below: Array = np.cumsum(counts)
    tail = float(below[-1]) * (1 - percentile / 100)
    first = int(np.searchsorted(below, tail, "right"))
    last = int(np.searchsorted(below, float(below[-1]) - tail, "left")) + 1
    return min(first, BINS - 1), max(last, first + 1)


def _least_divergence(counts: Array, zero: int) -> tuple[int, int]:
    """Return the bins between which 256 levels keep the distribution best, by Kullback and Leibler's divergence.

    Both sides of bin `zero`, where 0 lies, are cut in proportion.
    """
    least, bins = np.inf, (0, BINS)
    for share in np.linspace(1.0, 1 / 8, CUTS):
        first, last = round(zero * (1 - share)), round(zero + (BINS - zero) * share)
        if last - first < LEVELS:
            break
        if (divergence := _divergence(counts, first, last)) < least:
            least, bins = divergence, (first, last)
    return bins


def _divergence(counts: Array, first: int, last: int) -> float:
    """Return the divergence of the histogram, with its tails in the outer bins, from its form in 256 levels."""
    inside = counts[first:last].astype(np.float64)
    clamped = inside.copy()
    clamped[0] += counts[:first].sum()
    clamped[-1] += counts[last:].sum()
    level = np.arange(last - first) * LEVELS // (last - first)
    used = clamped > 0
    sums = np.bincount(level, inside, LEVELS)
    bins = np.bincount(level, used, LEVELS)
    left = np.where(used, (sums / np.maximum(bins, 1))[level], 0.0)
    p, q = clamped / max(clamped.sum(), 1.0), left / max(left.sum(), 1.0)
    return float(np.sum(p[used] * np.log(p[used] / np.maximum(q[used], 1e-12))))


def limits(low: float, high: float) -> tuple[np.float32, np.float32]:
    """Return the limits of 256 levels that hold `low` to `high`, with 0 on a level, so that padding keeps its value."""
    low, high = min(low, 0.0), max(high, 0.0)
    step = max(high - low, LEAST_RANGE) / (LEVELS - 1)
    zero = round(-low / step)
    return np.float32(-zero * step), np.float32((LEVELS - 1 - zero) * step)
