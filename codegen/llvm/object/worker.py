"""A process that compiles modules for another one, which imports `serve` from this module by its name.

<-- (text, target, level)     --> object code, or the text of the error     pickled, until standard input ends
"""

from __future__ import annotations

import os
import pickle
import signal
import sys

from aot.codegen.llvm.object.optimize import compile_module
from aot.runtime.errors import InternalError


def serve() -> None:
    """Serve requests until standard input ends; send `ready` first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it; if it ends, so does the input
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of LLVM must not mix with the answers
    answer: bytes | str = "ready"
    while True:
        try:
            pickle.dump(answer, answers)
            answers.flush()
            text, target, level = pickle.load(sys.stdin.buffer)
        except (EOFError, BrokenPipeError):
            return
        try:
            answer = compile_module(text, target, level)
        except InternalError as error:
            answer = str(error)
