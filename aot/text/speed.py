"""Times of the tokens of an answer."""

from __future__ import annotations

import time
from collections.abc import Callable


class Speed:
    """Passes tokens on and takes the time of each one."""

    def __init__(self, take: Callable[[int], object], clock: Callable[[], float] = time.perf_counter) -> None:
        """Begin the time of an answer. `clock`: in seconds."""
        self._take, self._clock = take, clock
        self._begin = clock()
        self._times: list[float] = []

    def add(self, token: int) -> object:
        """Take a token; return what its reader returns."""
        self._times.append(self._clock())
        return self._take(token)

    def __str__(self) -> str:
        """Number of tokens, time to the first one, and rate of those behind it."""
        count = len(self._times)
        if not count:
            return "no tokens"
        first = self._times[0] - self._begin
        behind, spent = (count - 1, self._times[-1] - self._times[0]) if count > 1 else (1, first)
        rate = f"{behind / max(spent, 1e-9):.4g} tokens/s"
        then = f", then {rate}" if count > 1 else f": {rate}"
        return f"{count} token{'s' * (count > 1)}, the first one after {1e3 * first:.4g} ms{then}"
