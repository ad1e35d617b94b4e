"""The loop around a stateful language model: tokens in, logits, the next token, which is fed back.

generator = Generator(load("m.so"))
generator.generate([1, 2, 3], tokens=64, on_token=print)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

import numpy as np

from aot.runtime.arrays.tensors import Array
from aot.runtime.errors import UsageError
from aot.runtime.generation.interface import CHUNK, IDS, INPUTS, LORA, NAMES, logits_of, step_inputs
from aot.runtime.generation.sampling import Sampler
from aot.runtime.generation.saved import packed, unpacked
from aot.runtime.generation.token_loop import Continuation, TokenLoop
from aot.runtime.inference.request import InferRequest
from aot.runtime.model import CompiledModel


def check_inputs(names: Collection[str]) -> None:
    """Raise UsageError unless inputs with these names are those of a language model."""
    if IDS not in names or not NAMES.union(LORA).issuperset(names):
        raise UsageError(f"generate: inputs: a language model must have {INPUTS}, got {', '.join(sorted(names))}")


class Generator(TokenLoop):
    """One sequence of tokens; a request keeps its keys and values.

    The model has the inputs of language models that OpenVINO's exporters write: `input_ids` [1, n], and of
    `attention_mask` [1, past + n], `position_ids` [1, n] and `beam_idx` [1] those that it needs; output `logits`.
    """

    def __init__(self, model: CompiledModel, adapter: dict[str, Array] | None = None) -> None:
        """UsageError for a model with other inputs or without variables."""
        self._model, self._names = model, {t.name for t in model.inputs}
        check_inputs(self._names)
        lora = (t for t in model.inputs if t.name in LORA)
        self.adapter = adapter or {t.name: np.zeros((0, cast("int", t.shape[1])), np.float32) for t in lora}
        self._request = model.create_infer_request()
        if not self._request.query_state():
            raise UsageError(
                "generate: a language model must keep keys and values in variables, got a model without state"
            )
        self._output = logits_of(model.manifest)
        sizes = model.outputs[self._output].shape[-1:]
        self._vocab_size = next((n for n in sizes if isinstance(n, int)), None)
        self._tokens: list[int] = []

    @property
    def tokens(self) -> tuple[int, ...]:
        """Tokens with their keys and values kept."""
        return tuple(self._tokens)

    @property
    def vocab_size(self) -> int | None:
        """Size of the vocabulary: tokens are below it; None if it varies."""
        return self._vocab_size

    @property
    def gives_all_logits(self) -> bool:
        """True if a call gives the logits of all its tokens, not of the last one only."""
        return self._model.outputs[self._output].shape[-2:-1] != (1,)

    @property
    def request(self) -> InferRequest:
        """The request that keeps the keys and values."""
        return self._request

    def reset(self) -> None:
        """Forget all tokens."""
        self._request.reset_state()
        self._tokens.clear()

    def truncate(self, count: int) -> None:
        """Keep the first `count` tokens only; UsageError for a count that is not 0 to the number of tokens."""
        past = len(self._tokens)
        if not 0 <= count <= past:
            raise UsageError(f"truncate: must be 0 to {past} tokens, got {count}")
        if count == 0:
            self.reset()
        elif count < past:
            for variable in self._request.query_state():
                variable.truncate(count)
            del self._tokens[count:]

    def fork(self) -> Generator:
        """Return a copy of the sequence, which continues independently."""
        generator = Generator(self._model, self.adapter)
        generator.replace(self._tokens, [variable.state for variable in self._request.query_state()])
        return generator

    def save(self) -> bytes:
        """Return the tokens with their keys and values, for `restore`."""
        return packed(self._tokens, [variable.state for variable in self._request.query_state()])

    def restore(self, saved: bytes) -> None:
        """Continue from the bytes that `save` of the same model returned.

        UsageError for bytes that do not fit the model, of which nothing is taken: the sequence stays as it was.
        """
        self.replace(*unpacked(saved, self._model.manifest.variables, self._vocab_size))

    def replace(self, tokens: Sequence[int], states: Sequence[Array]) -> None:
        """Replace all tokens and their states, one of each variable; after an error there are none."""
        self.reset()
        if not tokens:
            return
        try:
            for variable, state in zip(self._request.query_state(), states, strict=True):
                variable.state = state
        except BaseException:
            self._request.reset_state()
            raise
        self._tokens = list(tokens)

    def feed(self, ids: Sequence[int], chunk: int = CHUNK) -> Array:
        """Append tokens and return the logits [vocabulary] after the last one; after an error none of them is kept.

        `chunk`: that many at a time (0: all).
        """
        if chunk < 0:
            raise UsageError(f"feed: chunk: must be 0 or more tokens, got {chunk}")
        self._check(ids)
        logits, past = np.empty((0, 0), np.float32), len(self._tokens)
        size = chunk or len(ids)
        try:
            for start in range(0, len(ids), size):
                logits = self._step(list(ids[start : start + size]))
        except BaseException:
            self.truncate(past)
            raise
        return logits[-1]

    def feed_all(self, ids: Sequence[int]) -> Array:
        """Append tokens and return the logits [tokens, vocabulary] after each one, or the last (`gives_all_logits`)."""
        self._check(ids)
        return self._step(list(ids))

    def _check(self, ids: Sequence[int]) -> None:
        """Raise UsageError unless these are tokens."""
        if not ids:
            raise UsageError("feed: needs one token or more, got none")
        wrong = next((n for n in ids if n < 0 or (self._vocab_size is not None and n >= self._vocab_size)), None)
        if wrong is not None:
            most = "the vocabulary's size" if self._vocab_size is None else self._vocab_size - 1
            raise UsageError(f"feed: tokens must be 0 to {most}, got {wrong}")

    def _continue(self, ids: Sequence[int], continuation: Continuation) -> None:
        sampler, logits = Sampler(continuation.sampling), self.feed(ids)
        while continuation.max_tokens > 0 and continuation.take(sampler.choose(logits)):
            logits = self.feed(continuation.tokens[-1:])

    def _step(self, ids: list[int]) -> Array:
        outputs = self._request.infer(step_inputs(ids, len(self._tokens), self._names) | self.adapter)
        self._tokens += ids
        return outputs[self._output].reshape(-1, outputs[self._output].shape[-1])
