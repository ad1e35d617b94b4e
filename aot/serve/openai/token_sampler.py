"""Choice of an answer's tokens: rules of sampling, penalties, tokens that are made more probable, a grammar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from math import log

import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.runtime.errors import UsageError
from aot.runtime.generation.sampling import Logits, Sampler, Sampling
from aot.text.grammars import Constraint


@dataclass(frozen=True, slots=True)
class SamplingRules:
    """Rules for sampling the tokens of an answer.

    `bias`: is added to logits of tokens. `presence_penalty`, `frequency_penalty`: are taken from the logit of a token
    that the answer has, once, and each time. `repetition_penalty`: divides logits above 0 of tokens that prompt or
    answer have, and multiplies others. `min_p`: least probability of a token, as a part of the greatest one.
    `top_logprobs`: number of further tokens whose probabilities are sent; None: no probabilities.
    """

    sampling: Sampling
    bias: Mapping[int, float] = field(default_factory=dict[int, float])
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    min_p: float = 0.0
    top_logprobs: int | None = None

    def numbered(self, n: int) -> SamplingRules:
        """Return the rules of answer `n` to one request: its seed differs."""
        return replace(self, sampling=replace(self.sampling, seed=self.sampling.seed + n)) if n else self


@dataclass(frozen=True, slots=True)
class SampledToken:
    """A token, its log probability, and the most probable tokens with theirs, if the client wants them."""

    token: int
    log: float | None = None
    others: tuple[tuple[int, float], ...] = ()


class TokenSampler:
    """Samples one token after another by the rules of a request."""

    def __init__(self, rules: SamplingRules, prompt: Sequence[int], constraint: Constraint | None = None) -> None:
        self._rules, self._prompt, self._constraint = rules, prompt, constraint
        self._sampler = Sampler(rules.sampling)
        self._counts: NDArray[np.int64] | None = None  # of each token in the answer
        least = rules.min_p > 0 and rules.sampling.temperature > 0
        self._counted = bool(rules.presence_penalty or rules.frequency_penalty or rules.repetition_penalty != 1)
        self._changes = bool(self._counted or rules.bias or constraint is not None or least)

    @property
    def is_done(self) -> bool:
        """True if the answer is whole by its grammar."""
        return self._constraint is not None and self._constraint.is_done

    def choose(self, logits: Logits) -> SampledToken:
        """Return the next token; UsageError for a token of `logit_bias` that there is not."""
        token = self._sampler.choose(self._changed(logits) if self._changes else logits)
        if self._counts is not None:
            self._counts[token] += 1
        if self._constraint is not None:
            self._constraint.take(token)
        return (
            SampledToken(token)
            if self._rules.top_logprobs is None
            else _with_logprobs(token, logits, self._rules.top_logprobs)
        )

    def _changed(self, logits: Logits) -> Logits:
        rules, result = self._rules, np.array(logits, np.float32)
        if self._counted:
            self._penalise(result)
        for token, value in rules.bias.items():
            if not 0 <= token < len(result):
                raise UsageError(f"logit_bias: tokens must be 0 to {len(result) - 1}, got {token}")
            result[token] += value
        if self._constraint is not None:
            self._constraint.mask(result)
        if rules.min_p and rules.sampling.temperature:
            result[result < result.max() + rules.sampling.temperature * log(rules.min_p)] = -np.inf
        return result

    def _penalise(self, logits: Logits) -> None:
        rules = self._rules
        if self._counts is None:
            self._counts = np.zeros(len(logits), np.int64)
        counts = self._counts
        seen = np.union1d(self._prompt, np.flatnonzero(counts)).astype(np.int64)
        kept = logits[seen]
        logits[seen] = np.where(kept > 0, kept / rules.repetition_penalty, kept * rules.repetition_penalty)
        logits -= (rules.presence_penalty * (counts > 0) + rules.frequency_penalty * counts).astype(np.float32)


def _with_logprobs(token: int, logits: Logits, top: int) -> SampledToken:
    """Return a token and the `top` most probable tokens with their log probabilities before any rule."""
    wide = np.asarray(logits, np.float64)
    logs = wide - wide.max()
    logs -= np.log(np.exp(logs).sum())
    first = np.argsort(-logs, kind="stable")[:top]
    return SampledToken(token, float(logs[token]), tuple((int(n), float(logs[n])) for n in first))
