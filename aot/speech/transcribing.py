"""The loop around Whisper: windows of 30 s of audio in, segments of text with timestamps out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array
from aot.runtime.model import CompiledModel
from aot.speech.special_tokens import STEP, TRANSCRIBE, SpecialTokens, allowed_logits, special_tokens_of
from aot.text.encoder_decoder_loop import EncoderDecoderLoop, start_of
from aot.text.library_texts import AUDIO
from aot.text.tokenizers.tokenizer import Tokenizer

RATE = 16000  # samples of a second
WINDOW = 30 * RATE  # samples
DEFAULT_CONTEXT = 448  # tokens of a window's text


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of text, from `start` to `end` in seconds."""

    start: float
    end: float
    tokens: tuple[int, ...]


class Transcriber:
    """Writes the text of audio. `language`: of the audio; None: it is detected in the first window."""

    def __init__(self, model: CompiledModel, tokenizer: Tokenizer, *, language: str | None = None) -> None:
        """UsageError for a model without speech, or one that does not know the language."""
        self._model, self._tokenizer, self._special = model, tokenizer, special_tokens_of(model.manifest)
        self._start = start_of(model.manifest)
        self._language = None if language is None else self._special.language(language)
        self._context = tokenizer.context or DEFAULT_CONTEXT

    @property
    def language(self) -> str | None:
        """Code of the language that was named or detected."""
        names = {n: name.strip("<|>") for name, n in self._special.languages.items()}
        return None if self._language is None else names[self._language]

    def text(self, segment: Segment) -> str:
        """Return the text of a segment."""
        return self._tokenizer.decode([n for n in segment.tokens if n < self._special.end])

    def segments(self, audio: Array, *, timestamps: bool = False) -> Iterator[Segment]:
        """Yield the segments of audio at 16 kHz; audio of more than one window always gets `timestamps`.

        A window begins where the last complete segment of the window before it ends.
        """
        timestamps = self._special.no_timestamps is not None and (timestamps or len(audio) > WINDOW)
        at = 0
        while at < len(audio):
            part = audio[at : at + WINDOW]
            tokens = self.tokens(np.pad(part, (0, WINDOW - len(part))), timestamps=timestamps)
            seconds = len(part) / RATE
            segments, used_seconds = (
                segments_of(tokens, self._special, seconds)
                if timestamps
                else ([Segment(0.0, seconds, tuple(tokens))], None)
            )
            for segment in segments:
                yield Segment(at / RATE + segment.start, at / RATE + segment.end, segment.tokens)
            at += len(part) if used_seconds is None else max(round(used_seconds * RATE), 1)

    def tokens(self, window: Array, *, timestamps: bool) -> list[int]:
        """Return the tokens of a window [samples], with timestamps or without."""
        special, prompt = self._special, list(self._start[:1])

        def rule(tokens: Sequence[int], logits: Array) -> Array:
            return allowed_logits(special, tokens[len(prompt) :], logits, timestamps=timestamps)

        loop = EncoderDecoderLoop(self._model, {AUDIO: window[None]}, rule)
        if special.languages:
            if self._language is None:
                names = list(special.languages.values())
                self._language = names[int(loop.feed(prompt)[names].argmax())]
            prompt += [self._language, *(n for name, n in special.tasks.items() if name == TRANSCRIBE)]
        if not timestamps and special.no_timestamps is not None:
            prompt.append(special.no_timestamps)
        generated = loop.generate(prompt[len(loop.tokens) :], self._context - len(prompt), stop=(special.end,))
        return generated[:-1] if generated[-1:] == [special.end] else generated


def segments_of(tokens: Sequence[int], special: SpecialTokens, duration: float) -> tuple[list[Segment], float | None]:
    """Return the segments of a window's tokens, and the seconds that they take; None: the whole window.

    Two timestamps in a row end a segment and begin the next one. The tokens after the last pair are read again by the
    next window, unless the window ends with a single timestamp.
    """
    first = special.first_timestamp
    times = [n >= first for n in tokens]
    ends = [n for n in range(1, len(tokens)) if times[n - 1] and times[n]]
    alone = times[-2:] == [False, True]
    if not ends:
        known = [n for n in tokens if n >= first]
        end = (known[-1] - first) * STEP if known and known[-1] != first else duration
        return [Segment(0.0, end, tuple(tokens))], None
    bounds = [0, *ends, *([len(tokens)] if alone else [])]
    segments = [
        Segment((tokens[a] - first) * STEP, (tokens[b - 1] - first) * STEP, tuple(tokens[a:b]))
        for a, b in pairwise(bounds)
    ]
    return segments, None if alone else (tokens[bounds[-1] - 1] - first) * STEP
