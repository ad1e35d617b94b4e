"""Ends an inference with unbounded loops: by `cancel()` from any thread, or by a signal in the main thread.

Signal handlers of Python run in the main thread between bytecodes, so not while compiled code runs. Loops without a
static bound call a function at intervals (`codegen/llvm/pool/cancel.ll`), which lets handlers run; their exceptions end
the inference.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Generator

_ASK = ctypes.CFUNCTYPE(ctypes.c_int32)
_main = [threading.main_thread().ident]


def _forked() -> None:
    """Make the forking thread the main thread of the child, as Python does."""
    _main[0] = threading.get_ident()


if sys.platform != "win32":  # which has no fork
    os.register_at_fork(after_in_child=_forked)


class Cancel:
    """The two cancel words of one request; `at` is their index in its symbols, see `aot.runtime.abi.Request`."""

    def __init__(self, symbols: ctypes.Array[ctypes.c_int64], at: int) -> None:
        self._symbols, self._at = symbols, at
        self._set = False
        self._raised: list[BaseException] = []
        answers = _answers(self._raised)
        next(answers)  # enters its `try`; in a function, a handler could raise before the first line
        try:
            self._ask = _ASK(answers.__next__)  # pyrefly: ignore[possibly-uninitialized-attribute]  set here
            self._address = ctypes.cast(self._ask, ctypes.c_void_p).value or 0
        except MemoryError:  # the system forbids executable memory: signals wait until the inference ends
            self._address = 0

    def reset(self) -> None:
        """Forget that an earlier inference was cancelled."""
        if self._set:
            self._set = False
            self._symbols[self._at] = 0

    def set(self) -> None:
        """Cancel the inference that runs."""
        self._symbols[self._at] = 1
        self._set = True  # last, because `reset` may run in between

    def watch(self) -> None:
        """Let the next inference look for signals, if it is in the main thread."""
        self._symbols[self._at + 1] = self._address if threading.get_ident() == _main[0] else 0

    def reraise(self) -> None:
        """Raise the exception that a signal handler has raised during the inference, if any."""
        if self._raised:
            raise self._raised.pop()


def _answers(raised: list[BaseException]) -> Generator[int]:
    """Yield 0 each time it is resumed; after an exception of a signal handler, append that to `raised` and yield 1."""
    answer = 0
    while True:
        try:
            while True:
                yield answer
                answer = 0
        except GeneratorExit:
            return
        except BaseException as error:  # `reraise` raises it
            raised.append(error)
            answer = 1
