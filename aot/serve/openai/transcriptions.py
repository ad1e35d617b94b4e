"""Requests for the text of speech, `/v1/audio/transcriptions`, and their answers as OpenAI writes them."""

from __future__ import annotations

import asyncio
import io
import re
import time
from collections.abc import Sequence
from email import message_from_bytes

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array
from aot.runtime.errors import CorruptError, UnsupportedError, UsageError
from aot.serve.json_texts import written
from aot.serve.metrics import Times
from aot.serve.openai.admission_queue import AdmissionQueue
from aot.serve.openai.fields import FieldError
from aot.serve.served_model import ServedModel
from aot.serve.settings import Settings
from aot.speech.special_tokens import TRANSCRIBE, special_tokens_of
from aot.speech.transcribing import RATE, Segment, Transcriber
from aot.speech.wave_file import samples_of
from aot.text.tokenizers.tokenizer import read_tokenizer

JSON, TEXT, VERBOSE, SRT, VTT = "json", "text", "verbose_json", "srt", "vtt"
FORMS = (JSON, TEXT, VERBOSE, SRT, VTT)
MEDIA = {TEXT: "text/plain", SRT: "text/plain", VTT: "text/vtt"}  # JSON for others
FIELDS = ("file", "model", "language", "response_format", "timestamp_granularities[]")
NEUTRAL = {"temperature": ("0", "0.0", ""), "prompt": ("",), "stream": ("false",)}  # values that change nothing
MAX_PARTS = 64


@dataclass(frozen=True, slots=True)
class TranscriptionRequest:
    """A request. `form`: how the answer is written."""

    model: str
    samples: Array
    language: str | None
    form: str


def wanted_of(kind: str, body: bytes) -> TranscriptionRequest:
    """Return a request of content type `kind`; FieldError for a field that is missing, or not supported."""
    parts = parts_of(kind, body)
    audio, texts = parts.pop("file", None), {name: value.decode("utf-8", "replace") for name, value in parts.items()}
    for name, text in texts.items():
        if name not in FIELDS and text not in NEUTRAL.get(name, ()):
            raise FieldError(name[:60], "left out (others are not supported)", text)
    if "model" not in texts:
        raise FieldError("model", "the name of a model", None)
    if audio is None:
        raise FieldError("file", "an audio file", None)
    form = texts.get("response_format", JSON)
    if form not in FORMS:
        raise FieldError("response_format", " or ".join(FORMS), form)
    if texts.get("timestamp_granularities[]", "segment") != "segment":
        raise FieldError("timestamp_granularities[]", "segment", texts["timestamp_granularities[]"])
    try:
        samples = samples_of(io.BytesIO(audio), "file", RATE)
    except (CorruptError, UnsupportedError) as error:
        raise FieldError("file", "audio in WAV of 16-bit PCM", error) from None
    return TranscriptionRequest(texts["model"], samples, texts.get("language") or None, form)


def parts_of(kind: str, body: bytes) -> dict[str, bytes]:
    """Return the parts of a form by name, the last one of each; UsageError for another body."""
    match = re.match(r"""multipart/form-data\s*;.*?boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))""", kind, re.I)
    if match is None:
        raise UsageError(f"request: must be multipart/form-data with a boundary, got {kind[:60]}")
    line = b"\r\n--" + (match[1] or match[2]).encode()
    pieces = (b"\r\n" + body).split(line, MAX_PARTS + 2)
    if len(pieces) < 2 or len(pieces) > MAX_PARTS + 2 or not pieces[-1].startswith(b"--"):
        raise UsageError(f"request: must be a whole form of at most {MAX_PARTS} parts, got another one")
    parts: dict[str, bytes] = {}
    for piece in pieces[1:-1]:
        head, between, value = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        name = message_from_bytes(head + b"\r\n\r\n").get_param("name", header="content-disposition")
        if not between or not isinstance(name, str):
            raise UsageError("request: each part of a form must have a name and a value, got one without")
        parts[name] = value
    return parts


class ServedSpeechModel:
    """A model of speech of a server, with its tokenizer."""

    def __init__(self, served: ServedModel, settings: Settings) -> None:
        """UsageError for a model without speech, or without a tokenizer."""
        special_tokens_of(served.model.manifest)
        self.served, self.tokenizer = served, read_tokenizer(served.path)
        self._admission = AdmissionQueue(served.name, settings.sequences, settings.of(served.name).queue)

    async def answer(self, request: TranscriptionRequest, times: Times) -> bytes:
        """Return the answer, as JSON or as a text; `times` gets begin and end of the inferences."""
        transcriber = Transcriber(self.served.model, self.tokenizer, language=request.language)
        async with self._admission.taken():
            times.begin(time.monotonic())
            try:
                return await asyncio.to_thread(self._written, transcriber, request)
            finally:
                times.end(time.monotonic())

    def _written(self, transcriber: Transcriber, request: TranscriptionRequest) -> bytes:
        segments = list(transcriber.segments(request.samples, timestamps=request.form in (VERBOSE, SRT, VTT)))
        texts = [transcriber.text(segment).strip() for segment in segments]
        full_text = " ".join(texts)
        if request.form == TEXT:
            return f"{full_text}\n".encode()
        if request.form == JSON:
            return written({"text": full_text})
        if request.form != VERBOSE:
            return subtitles(segments, texts, request.form).encode()
        rows = [
            {"id": n, "start": round(segment.start, 3), "end": round(segment.end, 3), "text": text}
            for n, (segment, text) in enumerate(zip(segments, texts, strict=True))
        ]
        facts = {"task": TRANSCRIBE, "language": transcriber.language, "duration": len(request.samples) / RATE}
        return written({**facts, "text": full_text, "segments": rows})


def subtitles(segments: Sequence[Segment], texts: Sequence[str], form: str) -> str:
    """Return segments with their times as SubRip (`srt`) or WebVTT."""
    parts = ["WEBVTT\n"] if form == VTT else []
    for n, (segment, text) in enumerate(zip(segments, texts, strict=True), 1):
        number = f"{n}\n" if form == SRT else ""
        parts.append(f"{number}{_time(segment.start, form)} --> {_time(segment.end, form)}\n{text}\n")
    return "\n".join(parts)


def _time(seconds: float, form: str) -> str:
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    point = "," if form == SRT else "."
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest // 1000:02}{point}{rest % 1000:03}"
