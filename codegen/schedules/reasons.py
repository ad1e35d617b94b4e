"""Reasons of a schedule, noted where the choice is made; nothing is noted unless `recorded` runs the choice.

recorded(lambda: choose(work, target, constants))   ->   ("y: a product: lanes j, rows i, sums k", ...)
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

_LINES: ContextVar[list[str] | None] = ContextVar("_LINES", default=None)


def recorded(choice: Callable[[], object]) -> tuple[str, ...]:
    """Run a choice and return its reasons in their order."""
    lines: list[str] = []
    token = _LINES.set(lines)
    try:
        choice()
    finally:
        _LINES.reset(token)
    return tuple(lines)


def is_recording() -> bool:
    """True inside of `recorded`."""
    return _LINES.get() is not None


def note(reason: Callable[[], str]) -> None:
    """Note a reason, unless it repeats the last one; its text is made only if reasons are recorded."""
    lines = _LINES.get()
    if lines is not None and (text := reason()) not in lines[-1:]:
        lines.append(text)
