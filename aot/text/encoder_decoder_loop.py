"""The loop around an encoder with a decoder: a source in, then tokens about it, each fed back.

loop = EncoderDecoderLoop(load("m.so"), source_inputs(source))
loop.generate(start_of(manifest), tokens=64)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from aot.ir.types import Array
from aot.runtime.errors import CorruptError, UsageError
from aot.runtime.generation.interface import IDS, ROWS, logits_of
from aot.runtime.generation.sampling import Sampler
from aot.runtime.generation.token_loop import Continuation, TokenLoop
from aot.runtime.loading.manifest import Manifest
from aot.runtime.model import CompiledModel
from aot.text.library_texts import AUDIO, SOURCE_IDS, SOURCE_MASK, START, json_of

READ: Mapping[str, Callable[[Array], Array]] = {SOURCE_IDS: lambda a: a[:, :0], AUDIO: lambda a: a[:0]}  # once read
Rule = Callable[[Sequence[int], Array], Array]


def is_text_to_text(manifest: Manifest) -> bool:
    """True if a library has an encoder that reads a text, and a decoder."""
    return {SOURCE_IDS, IDS} <= {tensor.name for tensor in manifest.inputs} and bool(manifest.variables)


def start_of(manifest: Manifest) -> list[int]:
    """Return the tokens that begin each text of a library's decoder; UsageError if its manifest has none."""
    start = manifest.json.get(START)
    if start is None:
        raise UsageError(f"{manifest.name}: must tell the tokens that begin a text ({START}), got none")
    tree = json_of(start)
    tokens = cast("list[object]", tree) if isinstance(tree, list) else []
    if not tokens or any(type(n) is not int or n < 0 for n in tokens):
        raise CorruptError(f"{manifest.name}: {START} is a list of tokens, got {str(start)[:60]}")
    return cast("list[int]", tokens)


def source_inputs(source: Sequence[int]) -> dict[str, Array]:
    """Return the inputs for the tokens of a source; UsageError without any."""
    if not source:
        raise UsageError("source: one token or more, got none")
    ids = np.array([source], np.int64)
    return {SOURCE_IDS: ids, SOURCE_MASK: np.ones_like(ids)}


class EncoderDecoderLoop(TokenLoop):
    """A text about one source. The first call reads the source; a request keeps its keys and values."""

    def __init__(self, model: CompiledModel, source: Mapping[str, Array], rule: Rule | None = None) -> None:
        """`source`: its inputs, which are empty in later calls, but for the mask of what is kept.

        `rule`: changes the logits after the tokens so far, from which the next one is chosen.
        """
        self._request, self._source, self._rule = model.create_infer_request(), dict(source), rule
        self._output = logits_of(model.manifest)
        vocab_size = model.outputs[self._output].shape[-1]
        if not isinstance(vocab_size, int):
            raise UsageError(f"{model.name}: must have a vocabulary of fixed size, got {vocab_size}")
        self._vocab_size = vocab_size
        if SOURCE_IDS in self._source:
            self._check("source", self._source[SOURCE_IDS].ravel().tolist())
        self._rows = {ROWS: np.zeros(1, np.int32)} if any(t.name == ROWS for t in model.inputs) else {}
        self._tokens: list[int] = []

    @property
    def tokens(self) -> tuple[int, ...]:
        """Tokens with their keys and values kept."""
        return tuple(self._tokens)

    def feed(self, ids: Sequence[int]) -> Array:
        """Append tokens and return the logits [vocabulary] after the last one; UsageError for others."""
        self._check("feed", ids)
        logits = self._fed(np.array([ids], np.int64))
        self._tokens += ids
        return logits[0, -1]

    def _fed(self, ids: Array) -> Array:
        """Append tokens [rows, length] and return logits [rows, length or 1, vocabulary]."""
        outputs = self._request.infer({**self._source, IDS: ids, **self._rows})
        self._source |= {name: cut(self._source[name]) for name, cut in READ.items() if name in self._source}
        return outputs[self._output].reshape(len(ids), -1, self._vocab_size)

    def _check(self, what: str, ids: Sequence[int]) -> None:
        """Raise UsageError unless these are tokens, one or more."""
        if not ids or not all(0 <= n < self._vocab_size for n in ids):
            raise UsageError(f"{what}: tokens must be 0 to {self._vocab_size - 1}, got {list(ids)[:9]}")

    def _continue(self, ids: Sequence[int], continuation: Continuation) -> None:
        sampler, logits = Sampler(continuation.sampling), self.feed(ids)
        while continuation.max_tokens > 0 and continuation.take(sampler.choose(self._ruled(logits))):
            logits = self.feed(continuation.tokens[-1:])

    def _ruled(self, logits: Array) -> Array:
        return logits if self._rule is None else self._rule(self._tokens, logits)
