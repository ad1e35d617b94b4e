"""Ends an inference whose loops need not end: by `cancel()` from any thread, or by a signal in the main thread.

Signal handlers of Python run in the main thread between bytecodes, so not while compiled code runs. Where that may take
for ever, its loops call a function now and then (`codegen/llvm/cancel.ll`), which lets handlers run; what these raise
ends the inference.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Generator

_ASK = ctypes.CFUNCTYPE(ctypes.c_int32)
_main = [threading.main_thread().ident]


def _forked() -> None:
    """Make the thread that has forked the main thread, as Python does in the child."""
    _main[0] = threading.get_ident()


os.register_at_fork(after_in_child=_forked)


class Cancel:
    """The two words of one request; `at` is where they are in its symbols, see `runtime.abi.Request`."""

    def __init__(self, symbols: ctypes.Array[ctypes.c_int64], at: int) -> None:
        self._symbols, self._at = symbols, at
        self._set = False
        self._raised: list[BaseException] = []
        answers = _answers(self._raised)
        next(answers)  # from now on it stands in its `try`; a function would let handlers raise before its first line
        try:
            self._ask = _ASK(answers.__next__)
            self._address = ctypes.cast(self._ask, ctypes.c_void_p).value or 0
        except MemoryError:  # of a system that lets no code be made: signals wait until the inference ends
            self._address = 0

    def reset(self) -> None:
        """Forget that an earlier inference was cancelled."""
        if self._set:
            self._set = False
            self._symbols[self._at] = 0

    def set(self) -> None:
        """Cancel the inference that runs."""
        self._symbols[self._at] = 1
        self._set = True  # last: `reset` may come in between

    def watch(self) -> None:
        """Let the next inference look for signals, if it is in the main thread."""
        self._symbols[self._at + 1] = self._address if threading.get_ident() == _main[0] else 0

    def reraise(self) -> None:
        """Raise what a signal handler has raised in the inference, if anything."""
        if self._raised:
            raise self._raised.pop()


def _answers(raised: list[BaseException]) -> Generator[int]:
    """Gives 0 each time it is resumed, and 1 after an exception of a signal handler, which goes to `raised`."""
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
