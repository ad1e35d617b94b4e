"""Compiles modules in several processes at once: LLVM's Python binding holds one lock, so threads would not help.

The calling process compiles, too; a result does not depend on the process that made it. Without enough work, or if no
process can be started, the calling one compiles everything.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Self

from aot.codegen.llvm.object.optimize import compile_module
from aot.codegen.llvm.object.worker import serve
from aot.codegen.target import Target
from aot.runtime.errors import InternalError
from aot.runtime.systems import processor

WORTH_STARTING = 1 << 20  # bytes of text for each process: compiling them takes three times as long as starting one
MAX_PROCESSES = 8
POLL = 0.1  # seconds
_Task = tuple[int, str, int | None, "Future[bytes]"]


def _silent(done: int, total: int) -> None:
    del done, total


class Workers:
    """`submit` modules, then `finish`; the results are in the order of submission."""

    def __init__(self, target: Target, processes: int | None = None) -> None:
        """`processes` besides the calling one; by default one less than may run at once, `MAX_PROCESSES` at most."""
        self._target = target
        self._processes = (
            min(len(processor.allowed_processors()) - 1, MAX_PROCESSES) if processes is None else processes
        )
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._results: list[Future[bytes]] = []
        self._done: list[Future[bytes]] = []  # of these, in the order in which they are ready
        self._threads: list[threading.Thread] = []
        self.running: list[subprocess.Popen[bytes]] = []  # processes that were started
        self._bytes = 0
        self.seconds: list[float] = []  # of LLVM, for each module

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:
            self._drain()
            for process in self.running:  # their results are not needed any more, and may take long
                process.kill()
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()

    def submit(
        self, text: str, level: int | None, keep: Callable[[bytes], None] | None = None, share: float = 1.0
    ) -> None:
        """Submit a module; `keep` gets its object code, in any thread.

        `share`: part of all modules that are known so far, from which the bytes of all are estimated.
        """
        future: Future[bytes] = Future()
        future.add_done_callback(self._done.append)
        if keep is not None:
            future.add_done_callback(lambda done: None if done.exception() else keep(done.result()))
        self._results.append(future)
        self._tasks.put((len(self.seconds), text, level, future))
        self.seconds.append(0.0)
        self._bytes += len(text)
        worth = WORTH_STARTING * share * (len(self._threads) + 1)
        if self._bytes >= worth and len(self._threads) < self._processes:
            self._threads.append(threading.Thread(target=self._serve, daemon=True))
            self._threads[-1].start()

    def finish(self, progress: Callable[[int, int], None] = _silent) -> list[bytes]:
        """Return each module's object code; InternalError if LLVM refuses one. `progress(done, total)` counts them."""
        while True:
            try:
                task = self._tasks.get_nowait()
            except Empty:
                break
            if task is not None:
                number, text, level, future = task
                future.set_result(self._compiled(number, None, text, level))
                progress(len(self._done), len(self._results))
        objects: list[bytes] = []
        for future in self._results:
            while not future.done():  # a wait without a timeout could not be interrupted
                wait([future], timeout=POLL)
            objects.append(future.result())
            progress(len(self._done), len(self._results))
        return objects

    def _compiled(self, number: int, process: subprocess.Popen[bytes] | None, text: str, level: int | None) -> bytes:
        begin = time.perf_counter()
        code = _object_bytes(process, text, self._target, level)
        self.seconds[number] = time.perf_counter() - begin
        return code

    def _drain(self) -> None:
        while True:
            try:
                self._tasks.get_nowait()
            except Empty:
                return

    def _serve(self) -> None:
        """Feed one process, in a thread of its own."""
        process = _start()
        if process is not None:
            self.running.append(process)
        while (task := self._tasks.get()) is not None:
            number, text, level, future = task
            try:
                future.set_result(self._compiled(number, process, text, level))
            except Exception as error:
                future.set_exception(error)
        if process is not None:
            process.communicate()


def _object_bytes(process: subprocess.Popen[bytes] | None, text: str, target: Target, level: int | None) -> bytes:
    if process is None:
        return compile_module(text, target, level)
    assert process.stdin is not None and process.stdout is not None
    try:
        pickle.dump((text, target, level), process.stdin)
        process.stdin.flush()
        answer = pickle.load(process.stdout)
    except (EOFError, OSError) as error:
        raise InternalError(f"emit: a process that compiles has ended, got exit code {process.wait()}") from error
    if not isinstance(answer, bytes):
        raise InternalError(str(answer))
    return answer


def _start() -> subprocess.Popen[bytes] | None:
    """Start a process and wait until it is ready; None if this Python cannot start itself."""
    if "python" not in Path(sys.executable or "").name:
        return None
    path = sorted(sys.path, key=lambda folder: folder == "")  # the working folder, which may have changed, comes last
    code = f"import sys; sys.path[:] = {path!r}; from {serve.__module__} import {serve.__name__}; {serve.__name__}()"
    try:
        process = subprocess.Popen([sys.executable, "-P", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError:
        return None
    assert process.stdout is not None
    try:
        pickle.load(process.stdout)
    except (EOFError, pickle.UnpicklingError):
        process.communicate()
        return None
    return process
