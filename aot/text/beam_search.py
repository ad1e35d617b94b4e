"""Beam search: of several texts about one source, the one with the most probable tokens together.

    score of a text = sum of the logarithms of its tokens' probabilities / number of its tokens

As transformers' `num_beams` with its usual settings: texts that end leave the search, which itself ends once no text
that goes on has a better score than all that have ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array
from aot.runtime.errors import UsageError
from aot.runtime.generation.interface import ROWS
from aot.runtime.generation.token_loop import GREEDY, Continuation
from aot.runtime.model import CompiledModel
from aot.text.encoder_decoder_loop import EncoderDecoderLoop


@dataclass(frozen=True, slots=True)
class Beam:
    """A text so far: its tokens, the sum of their logarithms of probabilities, and the row that it goes on from."""

    tokens: tuple[int, ...]
    total: float
    row: int

    @property
    def score(self) -> float:
        return self.total / len(self.tokens)


class BeamSearch(EncoderDecoderLoop):
    """The best of `count` texts about one source that are continued together."""

    def __init__(self, model: CompiledModel, source: Mapping[str, Array], count: int) -> None:
        super().__init__(model, source)
        if not self._rows:
            raise UsageError(f"--beams: {model.name}: must have the input {ROWS}, got none")
        self._count = count

    def _continue(self, ids: Sequence[int], continuation: Continuation) -> None:
        if continuation.sampling != GREEDY:
            raise UsageError("--beams: chooses by probabilities alone, got rules of sampling")
        logits, going, ended = self.feed(ids)[None], [Beam((), 0.0, 0)], list[Beam]()
        while going and len(going[0].tokens) < continuation.max_tokens:
            beams = self._best(logits, going, self._count * max(2, 1 + len(continuation.stop)))
            last = [
                len(beam.tokens) == continuation.max_tokens or beam.tokens[-1] in continuation.stop for beam in beams
            ]
            ended += [beam for beam, is_last in zip(beams[: self._count], last, strict=False) if is_last]
            ended = sorted(ended, key=lambda beam: -beam.score)[: self._count]
            going = [beam for beam, is_last in zip(beams, last, strict=True) if not is_last][: self._count]
            if not going or (len(ended) == self._count and going[0].score <= ended[-1].score):
                break
            logits = self._step(going)
        for token in ended[0].tokens if ended else ():
            if not continuation.take(token):
                break

    @staticmethod
    def _best(logits: Array, going: Sequence[Beam], count: int) -> list[Beam]:
        """Return the best continuations by a token, `count` at most; equal ones in the order of beams and tokens."""
        wide = logits.astype(np.float64)
        wide -= wide.max(-1, keepdims=True)
        totals = wide - np.log(np.exp(wide).sum(-1, keepdims=True)) + np.array([[beam.total] for beam in going])
        order = np.argsort(-totals, axis=None, kind="stable")[:count]
        choices = ((int(row), int(token)) for row, token in zip(*np.unravel_index(order, totals.shape), strict=True))
        return [Beam((*going[row].tokens, token), float(totals[row, token]), row) for row, token in choices]

    def _step(self, going: Sequence[Beam]) -> Array:
        """Feed the last token of each text and return a row of logits for each."""
        count = len(going)
        self._rows = {ROWS: np.array([beam.row for beam in going], np.int32)}
        self._source = {k: np.repeat(a[:1], count, 0) for k, a in self._source.items()}
        return self._fed(np.array([beam.tokens[-1:] for beam in going], np.int64))[:, -1]
