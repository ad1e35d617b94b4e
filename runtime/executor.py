"""Threads that run tasks in the order they come: for asynchronous requests, and for the stages of a pipeline."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

from runtime.errors import UsageError

Task = Callable[[], object]
_IDLE_SECONDS = 10.0  # then a thread ends: a model that is not used costs nothing


class Executor:
    """Up to `threads` threads, started as tasks come. Tasks must not raise: each knows to whom it owes its error.

    A forked child has none of its parent's threads and starts its own; tasks that waited stay with the parent.
    """

    def __init__(self, threads: int = 1, name: str = "aot") -> None:
        if threads < 1:
            raise UsageError(f"executor: one thread or more, got {threads}")
        self.threads = threads
        self._name = name
        self._begin()

    def submit(self, task: Task) -> None:
        """Run `task` soon; never blocks."""
        if self._process != os.getpid():
            self._begin()
        with self._changed:
            self._tasks.append(task)
            if self._idle >= len(self._tasks):
                self._changed.notify()
            elif self._alive < self.threads:
                self._alive += 1
                threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._changed = threading.Condition(threading.Lock())
        self._tasks: deque[Task] = deque()
        self._idle = self._alive = 0

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while not self._tasks:
                    if not self._changed.wait(_IDLE_SECONDS) and not self._tasks:
                        self._idle -= 1
                        self._alive -= 1
                        return
                self._idle -= 1
                task = self._tasks.popleft()
            task()
            del task  # what it holds is free while the thread waits
