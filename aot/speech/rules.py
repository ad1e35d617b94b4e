"""Tokens of Whisper that have a meaning: languages, tasks and times, and which of them may follow which."""

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
from aot.text.library_texts import AUDIO, SPEECH, folder_texts, json_of

STEP = 0.02  # seconds from one time to the next
MOST_WORDS = 1 << 31
TRANSCRIBE = "transcribe"
LATEST, UNTIMED = "max_initial_timestamp_index", "no_timestamps_token_id"


@dataclass(frozen=True, slots=True)
class Marks:
    """Tokens with a meaning, and those that are never written (`hidden`), or not as the first one (`hidden_first`).

    `untimed`: the token of texts without times, behind which those of times begin; `latest`: the first time is this
    one at most, None: any.
    """

    end: int
    untimed: int | None = None
    languages: Mapping[str, int] = field(default_factory=dict[str, int])
    tasks: Mapping[str, int] = field(default_factory=dict[str, int])
    hidden: tuple[int, ...] = ()
    hidden_first: tuple[int, ...] = ()
    latest: int | None = None

    @property
    def first_time(self) -> int:
        """Token of the time 0; behind all tokens where there are no times."""
        return MOST_WORDS if self.untimed is None else self.untimed + 1

    def language(self, name: str) -> int:
        """Return the token of a language: de, German's code; UsageError for one that the model does not know."""
        found = self.languages.get(f"<|{name}|>")
        if found is None:
            known = ", ".join(key.strip("<|>") for key in self.languages) or "none: it knows one"
            raise UsageError(f"--language: must be one of the model's, {known}, got {name[:20]!r}")
        return found


def is_speech_model(manifest: Manifest) -> bool:
    """True if a library hears speech and writes a text."""
    return AUDIO in {tensor.name for tensor in manifest.inputs} and bool(manifest.variables)


def marks_of(manifest: Manifest) -> Marks:
    """Return the marks that a library keeps; UsageError for one that hears no speech, or keeps none."""
    name = manifest.name
    if not is_speech_model(manifest):
        got = ", ".join(tensor.name for tensor in manifest.inputs)
        raise UsageError(f"{name}: must be a model of speech, with the input {AUDIO}, got one with {got}")
    given = folder_texts(manifest.json, name).get(SPEECH)
    if given is None:
        raise UsageError(f"{name}: must keep a tokenizer and settings of speech, got none")
    tree = json_of(given)
    return marks_in(Values(name, cast("dict[str, object]", tree) if isinstance(tree, dict) else {}))


def marks_in(v: Values) -> Marks:
    """Return the marks that generation_config.json says; CorruptError for values of another type."""
    latest, untimed = (v.find(name) for name in (LATEST, UNTIMED))
    return Marks(
        v.integer("eos_token_id", least=0, most=MOST_WORDS),
        None if untimed is None else v.integer(UNTIMED, most=MOST_WORDS),
        _numbered(v, "lang_to_id"),
        _numbered(v, "task_to_id"),
        _listed(v, "suppress_tokens"),
        _listed(v, "begin_suppress_tokens"),
        None if latest is None else v.integer(LATEST, least=0, most=MOST_WORDS),
    )


def ruled(marks: Marks, tokens: Sequence[int], logits: Array, *, timed: bool) -> Array:
    """Return the logits of the tokens that may follow `tokens` of a text, -inf for others; `timed`: it has times."""
    found = logits.copy()
    for hidden in (marks.hidden, () if tokens else marks.hidden_first):
        found[[n for n in hidden if n < len(found)]] = -np.inf
    first = marks.first_time
    if not timed or first >= len(found):
        return found
    found[first - 1] = -np.inf
    _hide_times(marks, tokens, found, first)
    chances = np.exp(found - found.max())
    if chances[first:].sum(dtype=np.float64) > chances[:first].max():
        found[:first] = -np.inf  # together, times are more probable than any word
    return found


def _hide_times(marks: Marks, tokens: Sequence[int], found: Array, first: int) -> None:
    """Hide times that cannot follow: they come in pairs, but at the begin and at the end, and never decrease."""
    times = [n for n in tokens if n >= first]
    last, before = bool(tokens) and tokens[-1] >= first, len(tokens) < 2 or tokens[-2] >= first
    if last and before:
        found[first:] = -np.inf
    elif last:
        found[: marks.end] = -np.inf
    if times:
        found[first : times[-1] + (0 if last and not before else 1)] = -np.inf
    if not tokens:
        found[:first] = -np.inf
        if marks.latest is not None:
            found[first + marks.latest + 1 :] = -np.inf


def _numbered(v: Values, key: str) -> Mapping[str, int]:
    given = v.find(key, {})
    if not isinstance(given, dict):
        raise v.wrong(key, "an object", given)
    found = cast("dict[str, object]", given)
    return {name: Values(v.file, found).integer(name, least=0, most=MOST_WORDS) for name in found}


def _listed(v: Values, key: str) -> tuple[int, ...]:
    given = v.find(key, [])
    found = cast("list[object]", given) if isinstance(given, list) else [given]
    if any(type(n) is not int for n in found):
        raise v.wrong(key, "a list of tokens", found)
    return tuple(n for n in cast("list[int]", found) if n >= 0)  # -1 stands for a list that the library chooses
