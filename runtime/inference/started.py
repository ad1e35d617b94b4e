"""A started inference: queued, running or done; with its error."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from aot.runtime.errors import CancelledError, UsageError
from aot.runtime.inference.executor import Executor
from aot.runtime.inference.waiting import Waiters


class Started:
    """`run` and then `after` as one task, which runs once; exceptions are kept for `wait`."""

    def __init__(
        self, run: Callable[[], object], after: Callable[[Started], None], elsewhere: Executor | None = None
    ) -> None:
        """`after` gets this object as its argument; it runs in the thread of `run`, or on the executor `elsewhere`."""
        self._run, self._after, self._elsewhere = run, after, elsewhere
        self._following = threading.Lock()  # acquired once by the thread that runs `after`
        self._has_run = False
        self._begun = threading.Lock()  # acquired once, and never released
        self._thread: int | None = None  # the thread that runs it
        self._waiters = Waiters()
        self._followers: deque[Callable[[], object]] = deque()
        self._cancelled = False
        self.done = False
        self.error: BaseException | None = None

    def __call__(self) -> None:
        if not self._begun.acquire(blocking=False):
            return
        self._thread = threading.get_ident()
        self.error = self._caught(self._once)
        self._thread = None
        self._has_run = True
        if self._elsewhere is None:
            self._conclude()
            return
        self._waiters.notify()
        self._elsewhere.submit(self._conclude)

    def run_here(self) -> None:
        """Run in the calling thread if no other has begun: the thread may be the one that this is queued for."""
        self()
        if self._elsewhere is not None and self._elsewhere.runs_here():
            self._waiters.wait_for(lambda: self._has_run or self.done)
            self._conclude()

    def _conclude(self) -> None:
        if self.done or not self._following.acquire(blocking=False):
            return
        self._thread = threading.get_ident()
        failed = self._caught(lambda: self._after(self))
        self.error = self.error or failed
        self._thread = None
        self._end()

    def then(self, call: Callable[[], object]) -> None:
        """Call `call` once when it is done, in the thread that ran it; at once if it is done already."""
        self._followers.append(call)
        if self.done:
            self._follow()

    def _end(self) -> None:
        self.done = True
        self._waiters.notify()
        self._follow()

    def _follow(self) -> None:
        with suppress(IndexError):  # none is left: each is taken out by one thread
            while True:
                self._followers.popleft()()

    def give_up(self) -> bool:
        """Prevent it from running and release its waiters; return False if it has begun already."""
        given_up = self._begun.acquire(blocking=False)
        if given_up:
            self._end()
        return given_up

    def _once(self) -> None:
        if not self._cancelled:
            self._run()
        if self._cancelled:
            raise CancelledError("request: the inference was cancelled")

    @staticmethod
    def _caught(call: Callable[[], object]) -> BaseException | None:
        try:
            call()
        except BaseException as error:  # `wait` raises it, even one that ends a thread
            return error
        return None

    def cancel(self) -> None:
        """Cancel it: if queued it never runs, if running its end is ignored; both end with a CancelledError."""
        self._cancelled = True

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is done, at most `timeout` seconds; return False if it is not. Raises its error.

        UsageError in the thread that runs it, that is in its own callback: it is done when that returns.
        """
        if self._thread == threading.get_ident() and timeout != 0:
            rule = "must be called outside of the callback, as the inference is done when that returns"
            raise UsageError(f"wait: {rule}, got a call inside")
        if not self._waiters.wait_for(lambda: self.done, timeout):
            return False
        if self.error is not None:
            raise self.error
        return True
