"""Limits of one compilation: the memory it may add to the process, and the time it may take.

    budget.run(work)    a thread looks at both a few times a second, and raises in the compiling thread
                        BudgetError: compile: at most 2147.5 MB of memory (--max-memory), got 2150.1 MB in layer 'conv1'

Values whose size can be estimated are refused before they are made (`aot.ir.values.estimate`); this bounds the rest.
Only the compiling thread is touched: the process belongs to the program around us. The command line, which owns its
process, has the system enforce limits too (`hard`).

A user's `--max-seconds` counts wall-clock seconds. The default limit counts CPU seconds (`clock`): a machine that many
share compiles the same models as a quiet one.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import re
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import TypeVar

from aot.codegen.dataclass import COMPLETING
from aot.codegen.ir.loops import Kernel
from aot.compilation.cache import files_of
from aot.compilation.limits.clock import Clock
from aot.compilation.limits.garbage import FEWER_COLLECTIONS
from aot.ir.graph import Node
from aot.lowering.ir.steps import Step
from aot.runtime.describe import size_text
from aot.runtime.errors import BudgetError

MEMORY = 2 << 30  # bytes for a network without weights; the networks of docs/use/compile/budget.md add less than 0.2 GB
PER_BYTE = 10  # bytes for each byte of the files of a model: BERT-base, of 438 MB, takes 0.4 of them
SECONDS = 120.0  # for a network of a few nodes, which takes about one
PER_NODE = 0.05  # seconds for each node; yolov8n takes 0.02 CPU seconds
PER_MEGABYTE = 0.2  # seconds for 2^20 bytes of the model's files
MAX_SEARCHED_BYTES = 256 << 20  # bytes: a larger file holds its weights itself, and is not searched for names of others
INTERVAL = 0.05  # seconds between two looks, or a quarter of the limit; in these a compilation takes 50 MB at most
REPEAT_SECONDS = 1.0  # seconds until the exception is raised once more, if something swallowed it

SLACK = 1 << 30  # bytes of address space that threads and their allocators reserve
GRACE = 5.0  # seconds until the alarm, after which a thread that can be interrupted has ended

T = TypeVar("T")

if sys.platform == "linux":
    import resource


class _Over(BaseException):
    """Raised in the compiling thread by the watching one; no `except Exception` on the way catches it."""


class Budget:
    """At most `max_memory` bytes and `max_seconds`; None: as many as suit a model of that size (`allow`).

    Where the system does not say how much memory a process has (no /proc), time alone counts. `hard`: the process is
    ours, and while something runs it has limits of its own (RLIMIT_DATA, an alarm that ends it), which stop even what
    holds the interpreter's lock.
    """

    def __init__(self, max_memory: int | None = None, max_seconds: float | None = None, *, hard: bool = False) -> None:
        self._asked, self._hard = (max_memory, max_seconds), hard and sys.platform == "linux"
        self._spent, self._base = 0.0, 0
        self._watch: _Watch | None = None
        self.memory, self.seconds = 0, 0.0
        self.allow(0)

    def allow(self, size: int, nodes: int = 0, more: float = 0.0) -> None:
        """Set the limits that the user left open, by the `size` of the model's files, its nodes, and `more` seconds."""
        memory, seconds = self._asked
        self.memory = MEMORY + PER_BYTE * size if memory is None else memory
        usual = SECONDS + PER_NODE * nodes + PER_MEGABYTE * size / (1 << 20) + more
        self.seconds = usual if seconds is None else seconds
        if self._watch is not None and self._hard:
            self._arm()

    def run(self, work: Callable[[], T]) -> T:
        """Return the result of `work`; raise BudgetError beyond the limits, and for MemoryError and RecursionError.

        `work` may call it again; the time between two calls does not count.
        """
        if self._watch is not None:
            return work()
        self._base = anonymous_bytes() or 0
        watch = self._watch = _Watch(self, threading.get_ident(), Clock(waits=self._asked[1] is None))
        limit = self._arm() if self._hard else None
        try:
            try:
                watch.start()
                result = work()
            finally:
                watch.stop()
            if watch.over:  # the interpreter drops exceptions that arrive in a finalizer
                raise BudgetError(f"compile: {watch.over}")
            return result
        except _Over as error:
            watch.stop()  # the exception may have come while it was stopped
            raise BudgetError(f"compile: {watch.over}{_where(error.__traceback__)}") from None
        except (MemoryError, RecursionError) as error:
            rule = "more memory than there is" if isinstance(error, MemoryError) else "too deep a recursion"
            raise BudgetError(f"compile: {rule}{_where(error.__traceback__)}, got {error!r}") from error
        finally:
            self._watch = None
            self._spent += watch.clock.seconds
            if limit is not None:
                _disarm(limit)

    def excess(self, elapsed: float) -> str:
        """Return the broken rule with its figure; empty if all is within the limits."""
        seconds, taken = self._spent + elapsed, anonymous_bytes()
        if seconds > self.seconds:
            return f"at most {self.seconds:.0f} s (--max-seconds), got {seconds:.0f} s"
        if taken is not None and taken - self._base > self.memory:
            limit, got = size_text(self.memory), size_text(taken - self._base)
            return f"at most {limit} of memory (--max-memory), got {got}"
        return ""

    def postpone(self, elapsed: float) -> None:
        """Set the alarm anew, if there is one, for the time that is left after `elapsed` seconds that count."""
        if sys.platform == "linux" and self._hard:
            signal.setitimer(signal.ITIMER_REAL, max(0.0, self.seconds - self._spent - elapsed) + GRACE)

    def _arm(self) -> tuple[int, int]:
        """Set limits of the process a little beyond ours; return its former limit of memory."""
        before = 0, 0
        if sys.platform == "linux":
            before = resource.getrlimit(resource.RLIMIT_DATA)
            status = Path("/proc/self/status").read_text() if Path("/proc/self/status").exists() else ""
            data = re.search(r"VmData:\s*(\d+) kB", status)
            if data is not None:
                allowed, hard = int(data[1]) * 1024 + self.memory + SLACK, before[1]
                soft = allowed if hard == resource.RLIM_INFINITY else min(allowed, hard)
                resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
            signal.setitimer(signal.ITIMER_REAL, max(0.0, self.seconds - self._spent) + GRACE)
        return before


def _disarm(before: tuple[int, int]) -> None:
    if sys.platform == "linux":
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_DATA, before)


class _Watch:
    """A thread that compares a compilation with its budget from `start` to `stop`."""

    def __init__(self, budget: Budget, thread: int, clock: Clock) -> None:
        self._budget, self._thread, self.clock = budget, thread, clock
        self._lock, self._ended = threading.Lock(), threading.Event()
        self.over, self._raised = "", 0.0
        self._watcher = threading.Thread(target=self._run, name="aot-budget", daemon=True)

    def start(self) -> None:
        """Begin to watch; from now on an exception may arrive at the calling thread."""
        self._watcher.start()

    def stop(self) -> None:
        """Stop watching: no exception arrives any more at the calling thread. May be called again."""
        with self._lock:
            self._ended.set()
        if self._raised:
            _receive()
        self._watcher.join()

    def _run(self) -> None:
        while not self._ended.wait(min(INTERVAL, self._budget.seconds / 4)):
            over = self.over or self._excess()
            with self._lock:
                self.over = over
                due = not self._raised or self.clock.wall - self._raised > REPEAT_SECONDS
                if over and due and not self._ended.is_set() and not _is_finalizing(self._thread):
                    self._raised = self.clock.wall
                    with COMPLETING:
                        _raise_in(self._thread)

    def _excess(self) -> str:
        """Return the broken rule; CPU seconds are read only once the wall-clock seconds exceed the limit."""
        if not self._budget.excess(self.clock.wall):
            return ""
        seconds = self.clock.seconds
        self._budget.postpone(seconds)
        return self._budget.excess(seconds)


def _raise_in(thread: int) -> None:
    """Raise `_Over` in another thread soon."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(_Over))


def _receive() -> None:
    """Receive an exception that another thread may have raised in this one.

    To take it back would leave the interpreter asking for it: every call would be slower, and CPython 3.11 would repeat
    the first instruction of a traced function for ever.
    """
    with suppress(_Over):
        _raise_in(threading.get_ident())
        while True:
            pass


def _is_finalizing(thread: int) -> bool:
    """True if the thread runs a finalizer or a callback of the garbage collector.

    The interpreter prints an exception that leaves one of them, and goes on as if there were none.
    """
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    frames: dict[int, FrameType] = vars(sys)["_current_frames"]()
    frame = frames.get(thread)
    while frame is not None:
        if frame.f_code in callbacks or frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def anonymous_bytes() -> int | None:
    """Return the bytes of this process's memory that no file backs; None if the system does not say."""
    try:
        fields = Path("/proc/self/statm").read_text().split()
    except OSError:
        return None
    return (int(fields[1]) - int(fields[2])) * mmap.PAGESIZE


def _where(at: TracebackType | None) -> str:
    """Return the layer being compiled, from the local variables of the innermost frame that has one."""
    for frame, _ in reversed(list(walk_tb(at))):
        for value in list(frame.f_locals.values()):
            match value:
                case Node():
                    return f" in layer {value.name!r}"
                case Step(layers=(name, *_)):
                    return f" in layer {name!r}"
                case Kernel(name=name) if name:
                    return f" in kernel {name!r}"
                case _:
                    continue
    return ""


def run_within(budget: Budget, work: Callable[[], T]) -> T:
    """Return the result of `work`, which runs within a budget; the garbage collector runs less often meanwhile."""
    with FEWER_COLLECTIONS:
        return budget.run(work)


def file_bytes(model: Path) -> int:
    """Return the size of a model's files; 0 if there are none."""
    if not model.exists():  # the reader raises the error
        return 0
    try:
        size = model.stat().st_size if model.is_file() else 0
        return size if size > MAX_SEARCHED_BYTES else sum(path.stat().st_size for path in files_of(model))
    except OSError:
        return 0
