"""Threads that run tasks in the order they come: for asynchronous requests, and for the stages of a pipeline."""

from __future__ import annotations

import os
import threading
import weakref
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

from aot.runtime.errors import UsageError

Task = Callable[[], object]
Entry = tuple[Task]
_IDLE_SECONDS = 10.0  # seconds after which an idle thread ends: an unused model costs nothing


class Executor:
    """Up to `threads` threads, started on demand. Tasks must not raise: each one stores its own error.

    They end when the executor is no longer referenced and all tasks are done. A forked child has none of its parent's
    threads and starts its own; waiting tasks stay with the parent. An exception of a signal handler in `submit` may
    leave the task unsubmitted, but never leaves a waiting task without a thread.
    """

    def __init__(self, threads: int = 1, name: str = "aot", begin: Callable[[int], None] | None = None) -> None:
        """`begin`: called by each thread when it starts, with its number: 0 to `threads` - 1."""
        if threads < 1:
            raise UsageError(f"executor: needs one thread or more, got {threads}")
        self.threads = threads
        self._name, self._at_start = name, begin
        self._begin()

    def submit(self, task: Task) -> None:
        """Queue `task`; never blocks."""
        if self._process != os.getpid():
            self._begin()
        tasks, entry = self._tasks, (task,)
        try:
            tasks.unfinished[id(entry)] = entry
            if len(tasks.crew) < len(tasks.unfinished) and tasks.places:
                start_new_thread(_start, (tasks.work, self._name))
            tasks.waiting.put(entry)
        except BaseException:
            tasks.unfinished.pop(id(entry), None)
            raise

    def runs_here(self) -> bool:
        """True if the calling thread is one of the executor's."""
        return threading.get_ident() in self._tasks.crew

    def _begin(self) -> None:
        self._process = os.getpid()
        self._tasks = _Tasks(self.threads, self._at_start)
        weakref.finalize(self, self._tasks.close).atexit = False


def _start(work: Callable[[], object], name: str) -> None:
    """Start a thread from a thread without signal handlers: `Thread.start` does not survive their exceptions."""
    threading.Thread(target=work, name=name, daemon=True).start()


class _Tasks:
    """State shared by threads, which does not keep the executor alive. Every change is one call of C: see `waiting`."""

    def __init__(self, threads: int, begin: Callable[[int], None] | None) -> None:
        self.begin = begin
        self.waiting: SimpleQueue[Entry | None] = SimpleQueue()  # None, the last entry, ends all threads
        self.unfinished: dict[int, Entry] = {}  # by identity
        self.places = deque(range(threads))  # numbers that no thread has
        self.crew: set[int] = set()  # identifiers of the threads that have a number
        self.closed = False

    def close(self) -> None:
        self.closed = True
        self.waiting.put(None)

    def work(self) -> None:
        here = threading.get_ident()
        while True:
            try:
                number = self.places.popleft()
            except IndexError:  # more threads were started at once than there are numbers
                return
            self.crew.add(here)
            if self.begin is not None:
                self.begin(number)
            self._serve()
            self.crew.discard(here)
            self.places.append(number)
            if self.closed or not self.unfinished:  # `submit` adds the task first, then looks for a number
                return

    def _serve(self) -> None:
        """Run tasks until none arrives for `_IDLE_SECONDS`."""
        with suppress(Empty):
            while (entry := self.waiting.get(timeout=_IDLE_SECONDS)) is not None:
                entry[0]()
                self.unfinished.pop(id(entry), None)
                del entry  # free its objects while the thread waits
            self.waiting.put(None)  # for the other threads
