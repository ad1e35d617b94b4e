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

    @property
    def facts(self) -> dict[str, object]:
        """Number of tokens, milliseconds to the first, and tokens a second after it (or with it, if alone)."""
        count = len(self._times)
        if not count:
            return {"count": 0}
        first = self._times[0] - self._begin
        generated, spent = (count - 1, self._times[-1] - self._times[0]) if count > 1 else (1, first)
        return {"count": count, "first_ms": 1e3 * first, "tokens_per_second": generated / max(spent, 1e-9)}

    def __str__(self) -> str:
        """Return the facts in words."""
        facts, count = self.facts, len(self._times)
        if not count:
            return "no tokens"
        rate = f"{facts['tokens_per_second']:.4g} tokens/s"
        then = f", then {rate}" if count > 1 else f": {rate}"
        return f"{count} token{'s' * (count > 1)}, the first one after {facts['first_ms']:.4g} ms{then}"
