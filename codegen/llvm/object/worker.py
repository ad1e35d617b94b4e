"""A process that compiles kernels for another one, which imports `serve` from this module by its name.

<-- KernelModule     --> facts, object code; None if one of them cannot be made     pickled, until standard input ends
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable

from aot.codegen.llvm.object.kernel_module import RESULTS, KernelModule

NEW_OBJECTS = 100_000  # made between two runs of the garbage collector: text takes 6 % less than with Python's 700


def serve() -> None:
    """Serve requests until standard input ends, which ends the process; send `ready` first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it; if it ends, so does the input
    answers = os.fdopen(os.dup(1), "wb")
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)
    os.dup2(2, 1)  # output of LLVM must not mix with the answers

    def answer(value: object) -> None:
        pickle.dump(value, answers)
        answers.flush()

    try:
        answer("ready")
        while True:
            module: KernelModule = pickle.load(sys.stdin.buffer)
            _compile(module, answer)
    except (EOFError, BrokenPipeError):
        os._exit(0)  # at once: the parent waits for it


def _compile(module: KernelModule, answer: Callable[[object], None]) -> None:
    """Answer with each result and the seconds that it took; None for an error, which the parent will have itself."""
    results = module.results()
    for _ in range(RESULTS):
        begin = time.perf_counter()
        try:
            result = next(results)
        except Exception:
            answer(None)
            return
        answer((result, time.perf_counter() - begin))
