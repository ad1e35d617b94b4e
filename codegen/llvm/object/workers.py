"""Compiles kernels in several processes at once: Python and LLVM's binding have a lock each, so threads would not help.

    submit -> kernels that wait, as pickled works -+-> thread -> process     the largest first
                                                   +-> the calling process, in `wait`

A result does not depend on the process that made it. Without enough work, or if no process can be started, the calling
one compiles everything; so it does what another one could not, to raise its error.
"""

from __future__ import annotations

import heapq
import pickle
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast

from aot.codegen.llvm.object.kernel_module import Head, KernelModule
from aot.codegen.llvm.object.worker import serve
from aot.runtime.errors import InternalError
from aot.runtime.systems import processor

WORTH_STARTING = 3 << 14  # bytes of pickled works for each process: they take four times as long as its start
LEAST_SHARE = 0.25  # least share of kernels by which the bytes of all are estimated: later layers repeat them
MAX_PROCESSES = 8
POLL = 0.1  # seconds
# Bytes of a kernel that is sent to a process before it has compiled the one before, so that it need not wait for this
# one: as many as a pipe takes without a reader.
MAX_SENT_AHEAD = 3 << 14 if sys.platform == "linux" else 0
T = TypeVar("T")


def _silent() -> None:
    pass


class Task:
    """A kernel that is compiled: `head` comes before `code`; seconds that its text and LLVM took."""

    def __init__(self, module: KernelModule) -> None:
        self.module = module
        self.head: Future[Head] = Future()
        self.code: Future[bytes] = Future()
        self.text_seconds = self.llvm_seconds = 0.0

    @staticmethod
    def of(module: KernelModule, head: Head, code: bytes) -> Task:
        """Return the task of a kernel whose code is kept."""
        task = Task(module)
        task.head.set_result(head)
        task.code.set_result(code)
        return task

    def receive(self, result: Head | bytes, seconds: float) -> None:
        """Take a result of the module."""
        if isinstance(result, bytes):
            self.llvm_seconds = seconds
            self.code.set_result(result)
        elif not self.head.done():  # another process may have had it, and then failed
            self.text_seconds = seconds
            self.head.set_result(result)

    def fail(self, error: Exception) -> None:
        """Let those who wait have an error."""
        for future in (self.head, self.code):
            if not future.done():
                future.set_exception(error)


_Waiting = tuple[int, int, bytes, Task]  # minus its bytes, its number, the pickled module


class Workers:
    """`submit` kernels, then `wait` for results."""

    def __init__(self, processes: int | None = None) -> None:
        """`processes` besides the calling one; by default one less than may run at once, `MAX_PROCESSES` at most."""
        self._processes = (
            min(len(processor.allowed_processors()) - 1, MAX_PROCESSES) if processes is None else processes
        )
        self._changed = threading.Condition()  # guards the next three
        self._waiting: list[_Waiting] = []  # a heap
        self._own: deque[Task] = deque()  # of the calling process
        self._closed = False
        self._threads: list[threading.Thread] = []
        self.running: list[subprocess.Popen[bytes]] = []  # processes that were started
        self._count = self._bytes = self._fed = 0  # kernels and their bytes; threads that feed a process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        if error is not None:
            for process in self.running:  # their results are not needed any more, and may take long
                process.kill()
        for thread in self._threads:
            thread.join()

    def submit(self, module: KernelModule, share: float = 1.0) -> Task:
        """Submit a kernel. `share`: part of all kernels known so far, from which the bytes of all are estimated."""
        task = Task(module)
        data = _pickled(module) if self._processes > 0 else None
        with self._changed:
            if data is None:
                self._own.append(task)
            else:
                self._count += 1
                heapq.heappush(self._waiting, (-len(data), self._count, data, task))
                self._changed.notify()
        if data is not None:
            self._bytes += len(data)
            worth = WORTH_STARTING * max(share, LEAST_SHARE) * (self._fed + 1)
            if self._bytes >= worth and self._fed < self._processes:
                self._fed += 1
                self._threads.append(threading.Thread(target=self._serve, daemon=True))
                self._threads[-1].start()
        return task

    def run(self, make: Callable[[], T]) -> Future[T]:
        """Begin to compute a value in a thread of this process: LLVM runs beside its Python."""
        future: Future[T] = Future()

        def compute() -> None:
            try:
                future.set_result(make())
            except Exception as error:
                future.set_exception(error)

        self._threads.append(threading.Thread(target=compute, daemon=True))
        self._threads[-1].start()
        return future

    def wait(self, future: Future[T], progress: Callable[[], None] = _silent) -> T:
        """Return a result; this process compiles until it is there. InternalError for a process that has ended.

        `progress` is called when a kernel may have been compiled.
        """
        while not future.done():
            task = self._own.popleft() if self._own else self._take()
            if task is not None:
                _run(task)
            else:  # a wait without a timeout could not be interrupted
                wait([future], timeout=POLL)
            progress()
        return future.result()

    def _take(self) -> Task | None:
        """Return the largest kernel that waits, None without one."""
        with self._changed:
            return heapq.heappop(self._waiting)[-1] if self._waiting else None

    def _next(self, sent: int) -> tuple[bytes, Task] | None:
        """Return the next kernel for a process that has `sent` ones; None if it finishes these first, or at the end."""
        with self._changed:
            while not (self._waiting or sent or self._closed):
                self._changed.wait()
            if not self._waiting or (sent and -self._waiting[0][0] > MAX_SENT_AHEAD):
                return None
            return heapq.heappop(self._waiting)[2:]

    def _serve(self) -> None:
        """Feed one process, in a thread of its own."""
        process = _start()
        if process is None:
            return
        self.running.append(process)
        sent: deque[Task] = deque()
        try:
            while True:
                while len(sent) < 2 and (given := self._next(len(sent))) is not None:
                    data, task = given
                    sent.append(task)
                    _send(process, data)
                if not sent:
                    break
                if not _received(process, sent[0]):
                    self._own.append(sent[0])
                sent.popleft()
        except Exception as error:  # of any kind: a task without a result would be awaited for ever
            if not isinstance(error, EOFError):  # it may be alive, for instance after bytes that are no answer
                process.kill()
            ended = InternalError(f"emit: a process that compiles has ended, got exit code {process.wait()}")
            ended.__cause__ = error
            for task in sent:
                task.fail(ended)
        process.communicate()


def _run(task: Task) -> None:
    """Compile a kernel in this process."""
    begin = time.perf_counter()
    for result in task.module.results():
        task.receive(result, time.perf_counter() - begin)
        begin = time.perf_counter()


def _pickled(module: KernelModule) -> bytes | None:
    """Return a kernel as another process gets it; None if it is nested too deeply."""
    try:
        return pickle.dumps(module, pickle.HIGHEST_PROTOCOL)
    except RecursionError:
        return None


def _send(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


def _received(process: subprocess.Popen[bytes], task: Task) -> bool:
    """Wait for the results of a kernel; return False if the process could not make them."""
    assert process.stdout is not None
    while not task.code.done():
        answer = cast("tuple[Head | bytes, float] | None", pickle.load(process.stdout))
        if answer is None:
            return False
        task.receive(*answer)
    return True


def _start() -> subprocess.Popen[bytes] | None:
    """Start a process and wait until it is ready; None if this Python cannot start itself."""
    if "python" not in Path(sys.executable or "").name:
        return None
    # The working folder, which may have changed, comes last. Without `site`, which takes 0.03 s, nothing of the user's
    # can print into the answers, and no finder of an editable installation knows this package.
    package = str(Path(__file__).parents[serve.__module__.count(".")])
    path = [*(folder for folder in sys.path if folder), package, ""]
    code = f"import sys; sys.path[:] = {path!r}; from {serve.__module__} import {serve.__name__}; {serve.__name__}()"
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    except OSError:
        return None
    assert process.stdout is not None
    try:
        pickle.load(process.stdout)
    except Exception:  # of any kind: what a process says that is not ours
        process.kill()
        process.communicate()
        return None
    return process
