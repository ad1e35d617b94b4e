"""Running of a command: its errors become sentences and exit codes, in a process of its own even its sudden end.

aot compile m.onnx     parent: waits     child: compiles; an alarm, a refused allocation or the system may end it
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable
from functools import wraps
from threading import Event
from types import FrameType
from typing import ParamSpec

from aot.runtime.describe import error_text, hint
from aot.runtime.errors import AotError, BudgetError, InternalError, UsageError

BUDGET_SIGNALS = {  # signals that end a process over its limit of time or memory
    "SIGALRM": "the time limit (--max-seconds) is over",
    "SIGKILL": "the system has ended it: memory was short",
    "SIGABRT": "an allocation was refused: memory was short (--max-memory)",
    "SIGXCPU": "the processor time that the shell allows is over",
}
PR_SET_PDEATHSIG = 1
OWN_PROCESS = Event()  # set in a process that runs one command and ends

P = ParamSpec("P")


def guarded(run: Callable[P, None], leave: type[Exception]) -> Callable[P, None]:
    """Return the command; an error ends it by `leave(exit code)`, after --debug with a traceback."""

    @wraps(run)
    def reported(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            run(*args, **kwargs)
        except leave:
            raise
        except Exception as error:
            if kwargs.get("debug"):
                traceback.print_exception(error)
            raise leave(report(error, run.__name__)) from None

    return reported


def report(error: Exception, command: str) -> int:
    """Print the error of a command, its notes and the next step on stderr; return the exit code."""
    sys.stderr.write(f"error: {error_text(error)}\nnext: {hint(error, command)}\n")
    match error:
        case AotError():
            return error.exit_code
        case MemoryError():
            return BudgetError.exit_code
        case OSError():
            return UsageError.exit_code
        case _:
            return InternalError.exit_code


def is_supervised() -> bool:
    """True if the command runs in a process of its own and may set that process's limits."""
    return OWN_PROCESS.is_set()


def supervised(run: Callable[..., object]) -> int:
    """Call `run` in a child process, or here if none can be started; return the exit code of `run` or of its error.

    Windows has no fork, and a child of macOS may not call most of what its parent has loaded.
    """
    if sys.platform == "linux":
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            child = os.fork()
        except OSError:
            return _code(run)
        if not child:
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # killing the parent must also stop the child
            OWN_PROCESS.set()
            os._exit(_code(run))

        def pass_on(number: int, frame: FrameType | None) -> None:
            del frame
            os.kill(child, number)

        signal.signal(signal.SIGTERM, pass_on)
        at_terminal = sys.stdin is not None and sys.stdin.isatty()  # which sends an interrupt to both
        signal.signal(signal.SIGINT, signal.SIG_IGN if at_terminal else pass_on)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            return os.WEXITSTATUS(status)
        number = os.WTERMSIG(status)
        if number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            return 128 + number
        reason = BUDGET_SIGNALS.get(signal.Signals(number).name)
        error = BudgetError if reason else InternalError
        sys.stderr.write(f"error: the compiler was ended: {reason or signal.strsignal(number)}\n")
        return error.exit_code
    return _code(run)


def _code(run: Callable[..., object]) -> int:
    try:
        run()
        code: object = 0
    except SystemExit as end:
        code = end.code
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (BrokenPipeError, ValueError):
            code = code or 1
    return code if isinstance(code, int) else 0 if code is None else 1
