"""Special tokens of Whisper: languages, tasks and timestamps, and which of them may follow which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import cast

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.frontends.language.config import Values
from aot.ir.types import Array
from aot.runtime.errors import UsageError
from aot.runtime.loading.manifest import Manifest
from aot.text.library_texts import AUDIO, SPEECH, folder_object

STEP = 0.02  # seconds from one time to the next
MAX_WORDS = 1 << 31
TRANSCRIBE = "transcribe"
MAX_INITIAL, NO_TIMESTAMPS = "max_initial_timestamp_index", "no_timestamps_token_id"


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Special tokens, and tokens that are never written (`suppressed`), or not as the first one (`suppressed_first`).

    `no_timestamps`: the token of texts without timestamps, which follow it in the vocabulary; `max_initial`: greatest
    index of the first timestamp, None: any.
    """

    end: int
    no_timestamps: int | None = None
    languages: Mapping[str, int] = field(default_factory=dict[str, int])
    tasks: Mapping[str, int] = field(default_factory=dict[str, int])
    suppressed: tuple[int, ...] = ()
    suppressed_first: tuple[int, ...] = ()
    max_initial: int | None = None

    @property
    def first_timestamp(self) -> int:
        """Token of the time 0; a number above all tokens for a model without timestamps."""
        return MAX_WORDS if self.no_timestamps is None else self.no_timestamps + 1

    def language(self, name: str) -> int:
        """Return the token of a language: de, German's code; UsageError for one that the model does not know."""
        token = self.languages.get(f"<|{name}|>")
        if token is None:
            known = ", ".join(key.strip("<|>") for key in self.languages) or "none: it knows one"
            raise UsageError(f"--language: must be one of the model's, {known}, got {name[:20]!r}")
        return token


def is_speech_model(manifest: Manifest) -> bool:
    """True if a library is a model of speech to text."""
    return AUDIO in {tensor.name for tensor in manifest.inputs} and bool(manifest.variables)


def special_tokens_of(manifest: Manifest) -> SpecialTokens:
    """Return the special tokens that a library keeps; UsageError for a model without speech, or one that keeps none."""
    name = manifest.name
    if not is_speech_model(manifest):
        got = ", ".join(tensor.name for tensor in manifest.inputs)
        raise UsageError(f"{name}: must be a model of speech, with the input {AUDIO}, got one with {got}")
    settings = folder_object(manifest.json, name, SPEECH)
    if settings is None:
        raise UsageError(f"{name}: must keep a tokenizer and settings of speech, got none")
    return special_tokens_in(Values(name, settings))


def special_tokens_in(v: Values) -> SpecialTokens:
    """Return the special tokens of a generation_config.json; CorruptError for values of another type."""
    max_initial, no_timestamps = (v.find(name) for name in (MAX_INITIAL, NO_TIMESTAMPS))
    return SpecialTokens(
        v.integer("eos_token_id", least=0, most=MAX_WORDS),
        None if no_timestamps is None else v.integer(NO_TIMESTAMPS, most=MAX_WORDS),
        _numbered(v, "lang_to_id"),
        _numbered(v, "task_to_id"),
        _listed(v, "suppress_tokens"),
        _listed(v, "begin_suppress_tokens"),
        None if max_initial is None else v.integer(MAX_INITIAL, least=0, most=MAX_WORDS),
    )


def allowed_logits(special: SpecialTokens, tokens: Sequence[int], logits: Array, *, timestamps: bool) -> Array:
    """Return the logits of the tokens that may follow `tokens` of a text, -inf for others."""
    result = logits.copy()
    for suppressed in (special.suppressed, () if tokens else special.suppressed_first):
        result[[n for n in suppressed if n < len(result)]] = -np.inf
    first = special.first_timestamp
    if not timestamps or first >= len(result):
        return result
    result[first - 1] = -np.inf
    _suppress_times(special, tokens, result, first)
    chances = np.exp(result - result.max())
    if chances[first:].sum(dtype=np.float64) > chances[:first].max():
        result[:first] = -np.inf  # together, times are more probable than any word
    return result


def _suppress_times(special: SpecialTokens, tokens: Sequence[int], logits: Array, first: int) -> None:
    """Suppress timestamps that cannot follow: they never decrease, and come in pairs except at both ends."""
    times = [n for n in tokens if n >= first]
    last, before = bool(tokens) and tokens[-1] >= first, len(tokens) < 2 or tokens[-2] >= first
    if last and before:
        logits[first:] = -np.inf
    elif last:
        logits[: special.end] = -np.inf
    if times:
        logits[first : times[-1] + (0 if last and not before else 1)] = -np.inf
    if not tokens:
        logits[:first] = -np.inf
        if special.max_initial is not None:
            logits[first + special.max_initial + 1 :] = -np.inf


def _numbered(v: Values, key: str) -> Mapping[str, int]:
    ids = v.find(key, {})
    if not isinstance(ids, dict):
        raise v.wrong(key, "an object", ids)
    entries = cast("dict[str, object]", ids)
    return {name: Values(v.file, entries).integer(name, least=0, most=MAX_WORDS) for name in entries}


def _listed(v: Values, key: str) -> tuple[int, ...]:
    ids = v.find(key, [])
    entries = cast("list[object]", ids) if isinstance(ids, list) else [ids]
    if any(type(n) is not int for n in entries):
        raise v.wrong(key, "a list of tokens", entries)
    return tuple(n for n in cast("list[int]", entries) if n >= 0)  # -1 stands for a list that the library chooses
