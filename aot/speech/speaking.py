"""Text to speech: characters of a text as tokens, and the audio that a network makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.frontends.language.config import Values
from aot.ir.types import Array
from aot.runtime.errors import CorruptError, UsageError
from aot.runtime.generation.interface import IDS
from aot.runtime.loading.manifest import Manifest
from aot.runtime.model import CompiledModel
from aot.text.library_texts import SCALES, SPEAKER, VOICE, folder_object

BLANK = 0  # the token between characters
MAX_RATE = 768000  # samples of a second
VARIANTS = {"ron": str.maketrans("ț", "ţ")}  # letters that models of a language know in another form
OF_TEXT = "phonemize", "is_uroman"  # settings of models that read what a program makes of the text


@dataclass(frozen=True, slots=True)
class Voice:
    """Speech of a library: tokens of characters, the rate of its audio, and how it varies.

    `blank`: a token stands around each character; `lower`: text is read in lower case, without unknown characters;
    `needs`: the text must be of phonemes or of Latin letters; `noise`, `duration_noise`: how much speech varies.
    """

    tokens: Mapping[str, int]
    rate: int
    blank: bool = True
    lower: bool = True
    language: str = ""
    needs: str = ""
    unknown: int | None = None
    noise: float = 0.667
    duration_noise: float = 0.8
    speed: float = 1.0
    speakers: int = 1

    def ids(self, text: str) -> list[int]:
        """Return the tokens of a text, which is of the kind that the model reads; UsageError for one without any."""
        text = (self._lowered(text) if self.lower else text).translate(VARIANTS.get(self.language, {}))
        if self.lower and not self.needs:
            text = "".join(c for c in text if c in self.tokens).strip()
        numbers = [n for c in text if (n := self.tokens.get(c, self.unknown)) is not None]
        if not numbers:
            raise UsageError(f"text: must have characters that the model knows, got {text[:60]!r}")
        return [n for token in numbers for n in (BLANK, token)] + [BLANK] if self.blank else numbers

    def _lowered(self, text: str) -> str:
        return "".join(c if c in self.tokens else c.lower() for c in text)


def is_speaking(manifest: Manifest) -> bool:
    """True if a library makes speech of a text."""
    return {IDS, SCALES} <= {tensor.name for tensor in manifest.inputs}


def voice_of(manifest: Manifest) -> Voice:
    """Return the voice that a library keeps; UsageError for one that does not speak, or keeps none."""
    name = manifest.name
    if not is_speaking(manifest):
        got = ", ".join(tensor.name for tensor in manifest.inputs)
        raise UsageError(f"{name}: must be a model of text to speech, with the input {SCALES}, got one with {got}")
    settings = folder_object(manifest.json, name, VOICE)
    if settings is None:
        raise UsageError(f"{name}: must keep a vocabulary of characters, got none: give tokens by --ids")
    return voice_in(Values(name, settings))


def voice_in(v: Values) -> Voice:
    """Return the voice of the settings of a folder; CorruptError for values of another type."""
    value = v.find("vocab")
    vocab = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    if not vocab or any(type(n) is not int or n < 0 for n in vocab.values()):
        raise CorruptError(f"{v.file}: vocab.json must be an object of tokens, got {str(vocab)[:60]}")
    tokens = cast("dict[str, int]", vocab)
    return Voice(
        tokens,
        v.integer("sampling_rate", 16000, 1000, MAX_RATE),
        v.find("add_blank", True) is True,
        v.find("normalize", True) is True,
        str(v.find("language", "")),
        next((key for key in OF_TEXT if v.find(key) is True), ""),
        tokens.get(str(v.find("unk_token", "<unk>"))),
        v.real("noise_scale", 0.0),
        v.real("noise_scale_duration", 0.0),
        v.real("speaking_rate", 1.0),
        v.integer("num_speakers", 1),
    )


def speech(
    model: CompiledModel, ids: list[int], voice: Voice, *, speed: float = 1.0, speaker: int = 0, varied: bool = True
) -> Array:
    """Return the samples that a model makes of tokens. UsageError for a speaker that it does not have.

    `speed`: 2 is twice as fast; `speaker`: number of one of several; `varied`: with the noise of the voice.
    """
    if not 0 <= speaker < voice.speakers:
        raise UsageError(f"--speaker: {model.name} has {voice.speakers}, counted from 0, got {speaker}")
    noise = (voice.noise, voice.duration_noise) if varied else (0.0, 0.0)
    scales = np.array([noise[0], 1 / (voice.speed * speed), noise[1]], np.float32)
    inputs: dict[str, Array] = {IDS: np.array([ids], np.int64), SCALES: scales}
    if any(t.name == SPEAKER for t in model.inputs):
        inputs[SPEAKER] = np.array([speaker], np.int64)
    return model(inputs)[0].reshape(-1)
