"""Threads that run tasks in the order they come: for asynchronous requests, and for the stages of a pipeline."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable

from runtime.errors import UsageError

Task = Callable[[], object]
_IDLE_SECONDS = 10.0  # then a thread ends: a model that is not used costs nothing


class Executor:
    """Up to `threads` threads, started as tasks come. Tasks must not raise: each knows to whom it owes its error.

    They end when nobody has the executor any more and all tasks are done. A forked child has none of its parent's
    threads and starts its own; tasks that waited stay with the parent.
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
        tasks = self._tasks
        with tasks.changed:
            tasks.waiting.append(task)
            if tasks.idle >= len(tasks.waiting):
                tasks.changed.notify()
            elif tasks.alive < self.threads:
                tasks.alive += 1
                threading.Thread(target=tasks.work, name=self._name, daemon=True).start()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._tasks = _Tasks()
        weakref.finalize(self, self._tasks.close).atexit = False


class _Tasks:
    """What the threads share; they do not keep the executor alive."""

    def __init__(self) -> None:
        # reentrant: an executor may be collected, and closed, in a thread that is just submitting to another
        self.changed = threading.Condition(threading.RLock())
        self.waiting: deque[Task] = deque()
        self.idle = self.alive = 0
        self.closed = False

    def close(self) -> None:
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def work(self) -> None:
        while (task := self._next()) is not None:
            task()
            del task  # what it holds is free while the thread waits

    def _next(self) -> Task | None:
        """None when the thread is to end."""
        with self.changed:
            self.idle += 1
            while not self.waiting and not self.closed and self.changed.wait(_IDLE_SECONDS):
                pass
            self.idle -= 1
            if self.waiting:
                return self.waiting.popleft()
            self.alive -= 1
            return None
