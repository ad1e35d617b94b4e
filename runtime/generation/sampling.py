"""Choice of the next token from its logits: greedy, or drawn from the most probable ones."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from runtime.errors import UsageError

Logits = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Sampling:
    """Rules by which tokens are drawn.

    `temperature` 0 takes the greatest logit, the first of equal ones. Above it, logits are divided by the temperature,
    and a token is drawn by `seed` among the `top_k` greatest (0: all), and among those the fewest whose probabilities
    sum up to `top_p`.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        rules = {
            f"temperature: must be 0 or more, got {self.temperature}": isfinite(self.temperature)
            and self.temperature >= 0,
            f"top_k: must be 0 or more, got {self.top_k}": self.top_k >= 0,
            f"top_p: must be above 0 and at most 1, got {self.top_p}": 0 < self.top_p <= 1,
            f"seed: must be 0 or more, got {self.seed}": self.seed >= 0,
        }
        for text, holds in rules.items():
            if not holds:
                raise UsageError(text)


class Sampler:
    """Draws one token after another; equal logits and an equal seed give equal tokens on all machines."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._random = np.random.Generator(np.random.PCG64(sampling.seed))

    def choose(self, logits: Logits) -> int:
        """Return the next token for logits [words]; UsageError if none of them is a number."""
        if np.isnan(logits).any():
            raise UsageError("sampling: logits must be numbers, got NaN")
        how = self._sampling
        if how.temperature == 0:
            return int(logits.argmax())
        order, shares = candidates(logits, how)
        return int(order[np.searchsorted(np.cumsum(shares), self._random.random() * shares.sum(), "right")])


def candidates(logits: Logits, how: Sampling) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the tokens that may be drawn, the most probable first, and their probabilities before they are cut off."""
    order = _greatest(logits, how.top_k)
    scaled = logits[order].astype(np.float64) / how.temperature
    shares = np.exp(scaled - scaled[0])
    shares /= shares.sum()
    count = int(np.searchsorted(np.cumsum(shares), how.top_p, "left")) + 1
    return order[:count], shares[:count]


def _greatest(logits: Logits, count: int) -> NDArray[np.intp]:
    """Return the places of the `count` greatest logits (0: of all), the greatest first, of equal ones the first."""
    if not 0 < count < len(logits):
        return np.argsort(-logits, kind="stable")
    least = np.partition(logits, -count)[-count]
    found = np.flatnonzero(logits >= least)
    return found[np.argsort(-logits[found], kind="stable")[:count]]
