"""Waiting that survives exceptions of signal handlers, KeyboardInterrupt above all.

A handler may raise after any call that the main thread makes, also between taking a lock and the `try` that releases
it. So nothing here holds a lock that another thread needs: each waiting thread has its own lock, and a slot is claimed
by one call of C for a token, by which a `finally` block finds out whether it must release the slot.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Waiters:
    """Threads that wait until a condition holds."""

    def __init__(self) -> None:
        self._locks: dict[int, threading.Lock] = {}

    def wait_for(self, ready: Callable[[], object], timeout: float | None = None) -> bool:
        """Wait until `ready()` holds, at most `timeout` seconds; return False if it does not hold by then."""
        end = None if timeout is None else time.monotonic() + timeout
        while not ready():
            own_lock = threading.Lock()
            own_lock.acquire()
            self._locks[id(own_lock)] = own_lock
            try:
                left = -1.0 if end is None else min(max(0.0, end - time.monotonic()), threading.TIMEOUT_MAX)
                if not ready() and not own_lock.acquire(timeout=left):
                    return bool(ready())
            finally:
                self._locks.pop(id(own_lock), None)
        return True

    def notify(self) -> None:
        """Let all waiting threads check their conditions again."""
        for key in list(self._locks):
            lock = self._locks.pop(key, None)
            if lock is not None:
                lock.release()


class Slots:
    """Numbered slots that tokens claim, one at a time."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._taken: dict[int, object] = {}
        self.waiters = Waiters()  # notified of every slot that becomes free

    @property
    def free(self) -> int:
        """Number of slots that are free."""
        return self._count - len(self._taken)

    def first(self) -> int | None:
        """Return the number of the first free slot; None if there is none."""
        return next((i for i in range(self._count) if i not in self._taken), None)

    def take(self, token: object) -> int | None:
        """Give `token` the first free slot and return its number; None if there is none."""
        return next((i for i in range(self._count) if self._taken.setdefault(i, token) is token), None)

    def give_back(self, token: object) -> None:
        """Free the slots of `token`."""
        for slot, owner in list(self._taken.items()):
            if owner is token:
                del self._taken[slot]
        self.waiters.notify()
