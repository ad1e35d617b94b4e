"""The loop over tokens that is compiled into a library: Python is called for each new token, and nothing else."""

from __future__ import annotations

import ctypes
import weakref
from collections import abc
from collections.abc import Sequence
from types import GeneratorType

import numpy as np

from aot.runtime.abi import ERROR_MEMORY, ERROR_SIZE, ERROR_TOKENS, ERROR_UNKNOWN, ERROR_VALUE, Generation
from aot.runtime.arrays.tensors import Array
from aot.runtime.errors import AotError, BudgetError, InternalError, UsageError
from aot.runtime.generation.generator import Generator
from aot.runtime.generation.interface import CHUNK
from aot.runtime.generation.sampling import Sampling
from aot.runtime.generation.token_loop import Continuation, TokenLoop
from aot.runtime.loading.library import Library, Pool
from aot.runtime.model import CompiledModel

SEEDS = 1 << 64  # seeds that a library's loop takes
_TELL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.py_object, ctypes.c_int64)


class CompiledLoop(TokenLoop):
    """One sequence of tokens; its library keeps keys and values. Gives the tokens of `Generator`."""

    def __init__(self, library: Library, pool: Pool) -> None:
        """`library`: one with a loop (`has_loop`). `pool`: threads that work on each token.

        MemoryError if the system forbids executable memory, which a callback needs.
        """
        self._library, self._pool = library, pool
        # in C, so that no handler of a signal can raise outside of `_answers`
        self._tell = _TELL(GeneratorType.send)
        self._state = Generation(pool=pool.address, threads=pool.threads)
        self._count = 0
        weakref.finalize(self, _forget, library, self._state)

    def _continue(self, ids: Sequence[int], continuation: Continuation) -> None:
        raised, state, sampling = list[BaseException](), self._state, continuation.sampling
        answers = _answers(continuation, raised)
        next(answers)  # enters its `try`
        state.on_token, state.user = ctypes.cast(self._tell, ctypes.c_void_p), id(answers)
        state.temperature, state.top_k, state.top_p = sampling.temperature, sampling.top_k, sampling.top_p
        state.seed = sampling.seed
        last = max(len(ids) - 1, 0) // CHUNK * CHUNK
        for start in range(0, last, CHUNK):  # between chunks, signals are handled
            self._run(ids[start : start + CHUNK], 0)
        self._run(ids[last:], continuation.max_tokens)
        if raised:
            raise raised[0]

    def _run(self, ids: Sequence[int], tokens: int) -> None:
        array, state = np.array(ids, np.int64), self._state
        state.ids, state.count, state.most = array.ctypes.data, len(array), tokens
        code = self._library.generate(ctypes.addressof(state))
        if code:
            raise self._failure(code, array, self._count + len(ids) + state.made)
        self._count += len(ids) + max(state.made - 1, 0)

    def _failure(self, code: int, ids: Array, tokens: int) -> AotError:
        text = self._library.error_text(code)
        if code == ERROR_TOKENS:
            return UsageError(f"{text}, got {f'{ids.min()} to {ids.max()}' if ids.size else 'none'}")
        if code in (ERROR_MEMORY, ERROR_SIZE):
            return BudgetError(f"{text}, for a sequence of {tokens} tokens")
        if code <= ERROR_VALUE:
            return UsageError(f"generate: sequences that the model has room for, got one of {tokens} tokens")
        return InternalError(f"generate: {text}") if code <= ERROR_UNKNOWN else UsageError(text)


def loop_of(model: CompiledModel, sampling: Sampling) -> CompiledLoop | Generator:
    """Return the loop of the model's library, or Python's if it has none that draws so."""
    if model.library.has_loop and model.streams == 1 and sampling.seed < SEEDS:
        try:
            return CompiledLoop(model.library, model.pool)
        except MemoryError:
            pass
    return Generator(model)


def _answers(continuation: Continuation, raised: list[BaseException]) -> abc.Generator[int, int]:
    """Take a token each time that it is resumed, and yield 0, or 1 to end; C has no exceptions, so they are kept."""
    answer = 0
    while True:
        try:
            while True:
                answer = int(not continuation.take((yield answer)))
        except GeneratorExit:
            return
        except BaseException as error:  # `generate` raises it
            raised.append(error)
            answer = 1


def _forget(library: Library, state: Generation) -> None:
    library.forget(ctypes.addressof(state))
