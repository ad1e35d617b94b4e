"""Wait for an event that nothing announces: poll a condition, with a generous limit."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT = 120.0  # seconds; a busy machine may need many of them


def becomes_true(condition: Callable[[], object], limit: float = LIMIT) -> bool:
    """True as soon as `condition` is true; False if it is not within `limit` seconds."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def until(condition: Callable[[], object], limit: float = LIMIT) -> None:
    """Wait for `condition`; AssertionError if it is not true within `limit` seconds."""
    assert becomes_true(condition, limit), f"not true within {limit:.0f} s"
