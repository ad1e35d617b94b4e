"""Processes that answer at one port: `aot serve --workers 4`.

The process that was started starts the others, hands signals on to them, and starts a new one for one that has ended
unasked. Code and weights of libraries lie in memory once; queues, batches and kept prefixes are each process's own.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import FrameType

from aot.runtime.errors import UsageError

SHARED_METRICS = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client reads it: folder of the figures of all processes
_STOPS = (signal.SIGTERM, signal.SIGINT)
_PAUSE = 1.0  # seconds between starts of a process that ends again and again
_LOG = logging.getLogger(__name__)

OnReady = Callable[[], object]


@contextmanager
def shared_metrics(workers: int) -> Generator[None]:
    """Keep the figures of several processes in one folder until the block ends in the one that began it.

    prometheus_client must not have been imported before.
    """
    if workers == 1:
        yield
        return
    owner, folder = os.getpid(), tempfile.mkdtemp(prefix="aot-serve-")
    os.environ[SHARED_METRICS] = folder
    try:
        yield
    finally:
        if os.getpid() == owner:
            del os.environ[SHARED_METRICS]
            shutil.rmtree(folder, ignore_errors=True)


def run_workers(count: int, serve: Callable[[OnReady | None], None]) -> None:
    """Serve in `count` processes until a signal comes; SystemExit with the status of the first one if it cannot start.

    `serve` runs in each of them; in the first one with what it calls when requests are answered. UsageError on
    systems without fork.
    """
    if sys.platform == "win32":
        raise UsageError("serve: --workers must be 1 on this system, which cannot fork")
    workers = _Workers(count)
    if workers.start():
        serve(workers.on_ready)


class _Workers:
    """The processes of a server, as the one that started them sees them."""

    def __init__(self, count: int) -> None:
        self._count, self._parent = count, os.getpid()
        self._alive: set[int] = set()
        self._is_asked = False  # to stop
        self._life, self._held = os.pipe()  # the second end is the parent's alone, and is closed with it
        self.on_ready: OnReady | None = None

    def start(self) -> bool:
        """True in each process that serves; False in the parent when all have ended, or SystemExit if not with 0."""
        before = {number: signal.signal(number, self._hand_on) for number in (*_STOPS, signal.SIGHUP)}
        read_fd, write_fd = os.pipe()
        if self._forks():
            self.on_ready = partial(os.write, write_fd, b"1")
            return True
        os.close(write_fd)
        is_ready = bool(os.read(read_fd, 1))  # nothing if the first process ends before
        if is_ready and any(self._forks() for _ in range(self._count - 1)):
            return True
        status, started = 0, time.monotonic()
        while self._alive:
            process, ended = os.wait()
            self._alive.discard(process)
            code = os.waitstatus_to_exitcode(ended)
            if self._is_asked or not is_ready:
                status = status or code
                continue
            import_module("prometheus_client.multiprocess").mark_process_dead(process)
            _LOG.error("process %d has ended with %d: another one starts", process, code)
            time.sleep(max(0.0, started + _PAUSE - time.monotonic()))
            started = time.monotonic()
            if not self._is_asked and self._forks():
                return True
        for number, handler in before.items():
            signal.signal(number, handler)
        if status:
            raise SystemExit(status if status > 0 else 128 - status)
        return False

    def _forks(self) -> bool:
        """Start a process; True in it, with the handlers of signals that it would have alone."""
        process = os.fork()
        if process:
            self._alive.add(process)
            return False
        os.close(self._held)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setpgid(0, 0)  # Ctrl-C reaches the parent, which hands it on
        threading.Thread(target=self._end_with_parent, daemon=True).start()
        return True

    def _end_with_parent(self) -> None:
        os.read(self._life, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    def _hand_on(self, number: int, frame: FrameType | None) -> None:
        del frame
        if os.getpid() != self._parent:  # a process that has just begun
            os._exit(0)
        self._is_asked = self._is_asked or number in _STOPS
        for process in self._alive:
            os.kill(process, number)
