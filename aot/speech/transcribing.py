"""The loop around Whisper: windows of 30 s of audio in, pieces of text with their times out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array
from aot.runtime.model import CompiledModel
from aot.speech.rules import STEP, TRANSCRIBE, Marks, marks_of, ruled
from aot.text.library_texts import AUDIO
from aot.text.reading_loop import ReadingLoop, start_of
from aot.text.tokenizers.tokenizer import Tokenizer

RATE = 16000  # samples of a second
WINDOW = 30 * RATE  # samples
DEFAULT_CONTEXT = 448  # tokens of a window's text


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text, from `start` to `end` in seconds."""

    start: float
    end: float
    tokens: tuple[int, ...]


class Transcriber:
    """Writes the text of audio. `language`: that of the first window, unless one is named; None: the model's only."""

    def __init__(self, model: CompiledModel, tokenizer: Tokenizer, *, language: str | None = None) -> None:
        """UsageError for a model that hears no speech, or does not know the language."""
        self._model, self._tokenizer, self._marks = model, tokenizer, marks_of(model.manifest)
        self._start = start_of(model.manifest)
        self._language = None if language is None else self._marks.language(language)
        self._context = tokenizer.context or DEFAULT_CONTEXT

    @property
    def language(self) -> str | None:
        """Code of the language that was named or heard."""
        names = {n: name.strip("<|>") for name, n in self._marks.languages.items()}
        return None if self._language is None else names[self._language]

    def text(self, piece: Piece) -> str:
        """Return the text of a piece."""
        return self._tokenizer.decode([n for n in piece.tokens if n < self._marks.end])

    def pieces(self, audio: Array, *, timed: bool = False) -> Iterator[Piece]:
        """Yield the pieces of audio, at 16 kHz; `timed`: with times, which more than one window always has.

        A window begins behind the last piece that the one before it ends.
        """
        timed = self._marks.untimed is not None and (timed or len(audio) > WINDOW)
        at = 0
        while at < len(audio):
            part = audio[at : at + WINDOW]
            tokens = self.tokens(np.pad(part, (0, WINDOW - len(part))), timed=timed)
            found, used = cut(tokens, self._marks, len(part) / RATE) if timed else ([], None)
            if not timed:
                found = [Piece(0.0, len(part) / RATE, tuple(tokens))]
            for piece in found:
                yield Piece(at / RATE + piece.start, at / RATE + piece.end, piece.tokens)
            at += len(part) if used is None else max(round(used * RATE), 1)

    def tokens(self, window: Array, *, timed: bool) -> list[int]:
        """Return the tokens of a window [samples], `timed`: with those of times."""
        marks, prompt = self._marks, list(self._start[:1])

        def rule(tokens: Sequence[int], logits: Array) -> Array:
            return ruled(marks, tokens[len(prompt) :], logits, timed=timed)

        loop = ReadingLoop(self._model, {AUDIO: window[None]}, rule)
        if marks.languages:
            if self._language is None:
                names = list(marks.languages.values())
                self._language = names[int(loop.feed(prompt)[names].argmax())]
            prompt += [self._language, *(n for name, n in marks.tasks.items() if name == TRANSCRIBE)]
        if not timed and marks.untimed is not None:
            prompt.append(marks.untimed)
        found = loop.generate(prompt[len(loop.tokens) :], self._context - len(prompt), stop=(marks.end,))
        return found[:-1] if found[-1:] == [marks.end] else found


def cut(tokens: Sequence[int], marks: Marks, duration: float) -> tuple[list[Piece], float | None]:
    """Return the pieces of a window's tokens, and the seconds that they take; None: the whole window.

    Two times side by side end a piece and begin the next one. What follows the last pair is heard again by the next
    window, unless a time alone ends it.
    """
    first = marks.first_time
    times = [n >= first for n in tokens]
    ends = [n for n in range(1, len(tokens)) if times[n - 1] and times[n]]
    alone = times[-2:] == [False, True]
    if not ends:
        known = [n for n in tokens if n >= first]
        end = (known[-1] - first) * STEP if known and known[-1] != first else duration
        return [Piece(0.0, end, tuple(tokens))], None
    places = [0, *ends, *([len(tokens)] if alone else [])]
    found = [
        Piece((tokens[a] - first) * STEP, (tokens[b - 1] - first) * STEP, tuple(tokens[a:b]))
        for a, b in pairwise(places)
    ]
    return found, None if alone else (tokens[places[-1] - 1] - first) * STEP
