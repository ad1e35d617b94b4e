"""Says how far a compilation is: a bar for each stage on a terminal, else a line when one is done."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Watch:
    """Takes the events of `CompileOptions.on_event`; `seconds` by stage and of each of its steps, `total` so far."""

    def __init__(self, stream: TextIO | None) -> None:
        """`stream` None: nothing is shown."""
        self.seconds: dict[str, float] = {}
        self.steps: dict[str, list[float]] = {}
        self._stream = stream
        self._begin = self._last = time.perf_counter()
        self._line = ""
        self._tasks: dict[str, TaskID] = {}
        self._bars = _bars(stream) if stream is not None and stream.isatty() else None

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._finish()
        if self._bars is not None:
            self._bars.stop()

    @property
    def total(self) -> float:
        return time.perf_counter() - self._begin

    def __call__(self, stage: str, done: int, total: int) -> None:
        """`done` of `total` steps of a stage are done."""
        if stage not in self.seconds:
            self._finish()
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self.steps.setdefault(stage, []).append(now - self._last)
        self._last = now
        self._line = f"{stage:9} {done:4}/{total:<4} {self.seconds[stage]:6.2f} s, {self.total:.2f} s in all"
        if self._bars is not None:
            if stage not in self._tasks:
                self._tasks[stage] = self._bars.add_task(stage, total=total)
            self._bars.update(self._tasks[stage], completed=done, total=total)

    def _finish(self) -> None:
        if self._bars is None and self._stream is not None and self._line:
            self._stream.write(self._line + "\n")
            self._stream.flush()
        self._line = ""


def _bars(stream: TextIO) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description:12}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn()
    return Progress(*columns, console=Console(file=stream))


def terminal() -> TextIO | None:
    """Return standard error if it is a terminal: progress of text generation is shown to a terminal only."""
    return sys.stderr if sys.stderr.isatty() else None
