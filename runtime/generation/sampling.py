"""Choice of the next token from its logits: greedy, or drawn from the most probable ones."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial, isfinite

import numpy as np
from numpy.typing import NDArray

from aot.runtime.errors import UsageError

Logits = NDArray[np.floating]
LEAST_EXPONENT = -700.0  # exp of it, 1e-304, is a normal number
LOG2_E = 1.4426950408889634
LN2_HIGH = float.fromhex("0x1.62e42feep-1")  # the first bits of ln 2: products with small integers are exact
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
SORTED = 256  # most probable tokens that are sorted before others: most draws are one of them
EXP_TERMS = tuple(1 / factorial(n) for n in range(13, -1, -1))  # series of exp; the rest adds up to 4e-18


@dataclass(frozen=True, slots=True)
class Sampling:
    """Rules for drawing tokens.

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
    """Draws one token after another; equal logits and an equal seed give equal tokens on all machines.

    A library's own loop (`codegen/llvm/driver/sampling.py`) does the same arithmetic, in the same order.
    """

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._random = np.random.Generator(np.random.PCG64(sampling.seed))

    def choose(self, logits: Logits) -> int:
        """Return the next token for logits [vocabulary]; UsageError if none of them is a number."""
        if np.isnan(logits).any():
            raise UsageError("sampling: logits must be numbers, got NaN")
        how, first = self._sampling, int(logits.argmax())
        if how.temperature == 0 or np.isinf(logits[first]):
            return first
        return drawn(logits, how, self._random.random())


def drawn(logits: Logits, how: Sampling, number: float) -> int:
    """Return the token that a number from 0 to 1 draws.

    A weight is exp((logit - greatest logit) / temperature). Sums are added up one by one: of all tokens in the order
    of their numbers, else of the most probable first, of which no more are sorted than the draw needs.
    """
    weights = exponentials((logits.astype(np.float64) - np.float64(logits.max())) / how.temperature)
    most = how.top_k if 0 < how.top_k < len(logits) else len(logits)
    total = float(np.cumsum(weights)[-1]) if most == len(logits) else 0.0
    size = min(most, SORTED) if total else most
    while True:
        order = greatest(logits, size)
        sums = np.cumsum(weights[order])
        whole, count = total or float(sums[-1]), most
        if how.top_p < 1:
            count = min(int(np.searchsorted(sums, how.top_p * whole, "left")) + 1, most)
            whole = float(sums[:count][-1])
        rank = int(np.searchsorted(sums[:count], number * whole, "right"))
        if count <= size or (how.top_p == 1 and rank < size):
            return int(order[min(rank, count - 1)])
        size = min(16 * size, most)


def exponentials(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return exp(x) for x of 0 or less, 0 below LEAST_EXPONENT, by additions and products alone.

    So all processors give equal bits, as libraries of mathematics do not; within 2 units of the last place.
    """
    bounded = np.where(x >= LEAST_EXPONENT, x, LEAST_EXPONENT)
    twos = np.rint(bounded * LOG2_E)
    rest = (bounded - twos * LN2_HIGH) - twos * LN2_LOW
    sums = np.full_like(rest, EXP_TERMS[0])
    for term in EXP_TERMS[1:]:
        sums *= rest
        sums += term
    return np.where(x >= LEAST_EXPONENT, np.ldexp(sums, twos.astype(np.int32)), 0.0)


def greatest(logits: Logits, count: int) -> NDArray[np.intp]:
    """Return the places of the `count` greatest logits (0: of all), the greatest first, of equal ones the first."""
    if not 0 < count < len(logits):
        return np.argsort(-logits, kind="stable")
    least = np.partition(logits, -count)[-count]
    indices = np.flatnonzero(logits >= least)
    return indices[np.argsort(-logits[indices], kind="stable")[:count]]
