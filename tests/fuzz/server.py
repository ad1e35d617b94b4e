"""A fork server: everything is imported once, and each case runs in a forked child under limits.

parent: imports, draws -> fork -> child: setrlimit, judge(case) -> pipe -> parent: Outcome
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aot.runtime.errors import AotError

ROOT = Path(__file__).resolve().parents[2]
OURS = ("aot", "codegen", "runtime")
GIGABYTE = 1 << 30
MAX_TEXT = 2000
LAST_WORDS = 5  # seconds from the request to write the stack until the end


@dataclass(frozen=True)
class Limits:
    """Limits of one case. `memory` is added to what the parent has mapped; `seconds` are of processor time."""

    memory: int = 2 * GIGABYTE
    seconds: int = 60

    @property
    def wall(self) -> int:
        """Seconds after which the child is killed in any case: other processes may have the processor meanwhile."""
        return 4 * self.seconds + 10


@dataclass(frozen=True)
class Outcome:
    """`kind` is one of KINDS; `place` says where it happened, so that equal faults can be told from new ones."""

    kind: str
    text: str = ""
    place: str = ""
    code: int = 0  # the exit code of the command line
    seconds: float = 0.0

    @property
    def finding(self) -> bool:
        return self.kind not in GOOD

    @property
    def key(self) -> str:
        """Equal for outcomes with the same cause, as far as that can be told."""
        return f"{self.kind} {self.place}"


GOOD = ("fine", "refused", "skipped")  # skipped: there was nothing to compare with
KINDS = (*GOOD, "bug", "wrong", "peer", "crash", "hang", "memory")


class Stage:
    """The part of a judgement that is running; the parent reads it from memory of both when the child has died."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Memory of its own for a parent that was forked itself."""
        self.file = os.memfd_create("stage")

    def enter(self, name: str) -> None:
        os.ftruncate(self.file, 0)
        os.pwrite(self.file, name.encode(), 0)

    def read(self) -> str:
        return os.pread(self.file, 100, 0).decode()


STAGE = Stage()
PEER = "peer"  # the stage in which another program computes
REFERENCE = "reference"  # the stage in which the references compute, which are slow


def refusal(error: Exception) -> Outcome:
    """The outcome of an exception that ended a compilation or an inference."""
    place = _place(error)
    text = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])[:MAX_TEXT]
    if isinstance(error, MemoryError):
        return Outcome("memory", text, place, 6)
    code = error.exit_code if isinstance(error, AotError) else 1
    return Outcome("bug" if code == 1 else "refused", text, f"{type(error).__name__} {place}", code)


def run(judge: Callable[[], Outcome], limits: Limits | None = None) -> Outcome:
    """Judge in a child. Its end by a signal is a `crash` or a `hang`; in the stage of an oracle, `skipped`."""
    limits = limits or Limits()
    begin, (reading, writing) = time.monotonic(), os.pipe()
    log = os.memfd_create("log")
    STAGE.enter("start")
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        os.close(reading)
        _child(judge, limits, writing, log)
    os.close(writing)
    try:
        sent = _received(reading, begin + limits.wall)
        if sent is None:
            os.kill(pid, signal.SIGXCPU)  # writes where it stands
            _ = _received(reading, time.monotonic() + LAST_WORDS)
            os.kill(pid, signal.SIGKILL)
        _, status, used = os.wait4(pid, 0)
        written = os.pread(log, 1 << 16, 0).decode(errors="replace")
        return _outcome(sent, status, used.ru_utime + used.ru_stime, written)
    finally:
        os.close(reading)
        os.close(log)


def _child(judge: Callable[[], Outcome], limits: Limits, writing: int, log: int) -> None:
    """Never returns."""
    status = 1
    try:
        faulthandler.enable(log)
        faulthandler.register(signal.SIGXCPU, log, chain=True)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        most = _mapped() + limits.memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds + 5))
        try:
            found = judge()
        except Exception as error:  # whatever a case may raise is its outcome
            found = refusal(error)
        os.write(writing, pickle.dumps(found))
        status = 0
    finally:
        os._exit(status)


def _mapped() -> int:
    """Bytes of address space of this process."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _received(reading: int, until: float) -> bytes | None:
    """All that the child writes; None after `until`."""
    parts = list[bytes]()
    while True:
        ready, _, _ = select.select([reading], [], [], max(until - time.monotonic(), 0))
        if not ready:
            return None
        part = os.read(reading, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _outcome(sent: bytes | None, status: int, seconds: float, log: str) -> Outcome:
    if sent:
        with suppress(pickle.UnpicklingError, EOFError):
            found: Outcome = pickle.loads(sent)
            return Outcome(found.kind, found.text, found.place, found.code, seconds)
    stage, number = STAGE.read(), os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if stage in (PEER, REFERENCE):
        return Outcome("skipped", f"the {stage} failed", seconds=seconds)
    place = _first_of_ours(log)
    if sent is None or number in (signal.SIGXCPU, signal.SIGKILL):
        return Outcome("hang", f"in stage {stage}\n{log}"[:MAX_TEXT], place or stage, 1, seconds)
    name = signal.Signals(number).name if number else f"status {status}"
    return Outcome("crash", f"{name} in stage {stage}\n{log}"[:MAX_TEXT], f"{name} {place or stage}", 1, seconds)


def _place(error: BaseException) -> str:
    """The innermost function of this project that an exception passed, by the cause where there is one."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if any(f.filename.startswith(f"{ROOT / name}/") for name in OURS)]
    own = [f"{Path(f.filename).relative_to(ROOT)}:{f.name}" for f in ours[-1:]]
    if error.__cause__ is not None:
        own.append(f"{type(error.__cause__).__name__} {_place(error.__cause__)}")
    return " < ".join(own)


def _first_of_ours(log: str) -> str:
    """The innermost function of this project in what faulthandler wrote of the thread that was running."""
    for line in log[max(log.find("Current thread"), 0) :].splitlines():
        if line.startswith('  File "'):
            name, _, rest = line.removeprefix('  File "').partition('"')
            if any(name.startswith(f"{ROOT / ours}/") for ours in OURS):
                return f"{Path(name).relative_to(ROOT)}:{rest.rpartition(' ')[2]}"
    return ""
