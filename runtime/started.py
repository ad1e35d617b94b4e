"""An inference that was started and is waited for: queued, running, done; with its error."""

from __future__ import annotations

import threading
from collections.abc import Callable

from runtime.errors import CancelledError


class Started:
    """`run` and then `after` as one task; what they raise is kept for those who wait."""

    def __init__(self, run: Callable[[], object], after: Callable[[], None]) -> None:
        self._run, self._after = run, after
        self._done = threading.Event()
        self._cancelled = False
        self.error: BaseException | None = None

    def __call__(self) -> None:
        self.error = self._caught(self._once)
        failed = self._caught(self._after)
        self.error = self.error or failed
        self._done.set()

    def _once(self) -> None:
        if not self._cancelled:
            self._run()
        if self._cancelled:
            raise CancelledError("request: the inference is finished, got cancel()")

    @staticmethod
    def _caught(call: Callable[[], object]) -> BaseException | None:
        try:
            call()
        except BaseException as error:  # whoever waits gets it, even one that ends a thread
            return error
        return None

    @property
    def done(self) -> bool:
        return self._done.is_set()

    def cancel(self) -> None:
        """One that waits never runs, one that runs ends unheeded; both end with a CancelledError."""
        self._cancelled = True

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it is done within `timeout` seconds; raises its error."""
        if not self._done.wait(timeout):
            return False
        if self.error is not None:
            raise self.error
        return True
