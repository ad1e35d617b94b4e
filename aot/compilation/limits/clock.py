"""Time of a compilation: wall-clock seconds, or seconds of processor time."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

WAITING_WEIGHT = 0.1  # seconds that count for each second in which neither this process nor a child of it ran
_TICKS = os.sysconf("SC_CLK_TCK") if sys.platform == "linux" else 1  # clock ticks of /proc per second


class Clock:
    """The seconds since the clock was made.

    `waits`: seconds spent waiting for a processor count little (`WAITING_WEIGHT`).
    """

    def __init__(self, *, waits: bool) -> None:
        self._begin = time.monotonic()
        self._processor = processor_seconds() if waits else None

    @property
    def wall(self) -> float:
        """Wall-clock seconds."""
        return time.monotonic() - self._begin

    @property
    def seconds(self) -> float:
        """The seconds that count."""
        now = None if self._processor is None else processor_seconds()
        if now is None or self._processor is None:
            return self.wall
        return min(self.wall, max(now - self._processor, self.wall * WAITING_WEIGHT))


def processor_seconds() -> float | None:
    """Return processor time of this process and its children; None if the system does not report it (no /proc)."""
    times = os.times()
    seconds = times.user + times.system + times.children_user + times.children_system
    try:
        children = {child for task in os.listdir("/proc/self/task") for child in _children(task)}
    except OSError:
        return None
    for child in children:
        with suppress(OSError):  # it has ended; the system adds it to the times above when it is waited for
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            seconds += (int(fields[11]) + int(fields[12])) / _TICKS
    return seconds


def _children(task: str) -> list[str]:
    """Return the processes that a thread of this one has started."""
    with suppress(OSError), open(f"/proc/self/task/{task}/children", encoding="ascii") as stream:  # it may have ended
        return stream.read().split()
    return []
