"""Requests for a text as speech, `/v1/audio/speech`, and the audio that answers them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from aot.codegen.dataclass import dataclass
from aot.serve.metrics import Times
from aot.serve.openai.admission_queue import AdmissionQueue
from aot.serve.openai.completion_request import WITHOUT_EFFECT, model_of
from aot.serve.openai.fields import FieldError, check_others, real_of
from aot.serve.served_model import ServedModel
from aot.serve.settings import Settings
from aot.speech.speaking import speech, voice_of
from aot.speech.wave_file import pcm, wave_of

MAX_TEXT = 4096  # characters, as OpenAI has it
WAV, PCM = "wav", "pcm"
MEDIA = {WAV: "audio/wav", PCM: "audio/pcm"}
FIELDS = ("model", "input", "voice", "response_format", "speed")
NEUTRAL: dict[str, tuple[object, ...]] = {"stream_format": ("audio",), "instructions": ("",)}


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """A request. `speaker`: number of one of several; `format`: how the audio is written."""

    model: str
    text: str
    speaker: int
    format: str
    speed: float


def speech_request_of(tree: Mapping[str, object]) -> SpeechRequest:
    """Return a request; FieldError for a field that is missing, of another type or range, or not supported."""
    check_others("", tree, (*FIELDS, *WITHOUT_EFFECT), NEUTRAL)
    text, voice, file_format = tree.get("input"), tree.get("voice", "0"), tree.get("response_format", WAV)
    if not isinstance(text, str) or not 1 <= len(text) <= MAX_TEXT:
        raise FieldError("input", f"a text of 1 to {MAX_TEXT} characters", text)
    if not isinstance(voice, str) or len(voice) > 9:
        raise FieldError("voice", "the number of a speaker, or any name for a model with one", voice)
    if file_format not in MEDIA:
        raise FieldError("response_format", " or ".join(MEDIA), file_format)
    speaker = int(voice) if voice.isascii() and voice.isdecimal() else 0
    return SpeechRequest(model_of(tree), text, speaker, str(file_format), real_of(tree, "speed", 1.0, 0.25, 4))


class ServedVoice:
    """A model of a server that speaks."""

    def __init__(self, served: ServedModel, settings: Settings) -> None:
        """UsageError for a model that does not speak, or keeps no characters."""
        self.served, self._voice = served, voice_of(served.model.manifest)
        self._admission = AdmissionQueue(served.name, settings.sequences, settings.of(served.name).queue)

    async def answer(self, request: SpeechRequest, times: Times) -> bytes:
        """Return the audio; `times` gets begin and end of the inference."""
        ids = self._voice.ids(request.text)
        async with self._admission.taken():
            times.begin(time.monotonic())
            try:
                return await asyncio.to_thread(self._audio, ids, request)
            finally:
                times.end(time.monotonic())

    def _audio(self, ids: list[int], request: SpeechRequest) -> bytes:
        model = self.served.model
        samples = speech(model, ids, self._voice, speed=request.speed, speaker=request.speaker)
        return pcm(samples) if request.format == PCM else wave_of(samples, self._voice.rate)
