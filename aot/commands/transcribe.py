"""`aot transcribe`: the text of speech in an audio file."""

from __future__ import annotations

from typing import Annotated

from aot.commands.line import arguments as arg
from aot.commands.line.declared import argument, echo, option
from aot.commands.output import echo_json


def transcribe(
    model: arg.Library,
    audio: Annotated[arg.Path, argument(exists=True, dir_okay=False, help="a.wav, of 16-bit PCM")],
    language: Annotated[
        str | None, option(help="Language that is spoken: de; default: the one that is detected")
    ] = None,
    timestamps: Annotated[bool, option("--timestamps", help="Write the time of each segment before it")] = False,
    as_json: arg.Json = False,
    threads: arg.Threads = None,
    debug: arg.Debug = False,
) -> None:
    """Write the text of speech in an audio file, with Whisper."""
    from aot.runtime.model import load
    from aot.speech.transcribing import RATE, Transcriber
    from aot.speech.wave_file import read_wave
    from aot.text.tokenizers.tokenizer import read_tokenizer

    samples = read_wave(audio, RATE)
    loaded = load(model, threads, strict=True)
    transcriber = Transcriber(loaded, read_tokenizer(model), language=language)
    segments: list[dict[str, object]] = []
    for segment in transcriber.segments(samples, timestamps=timestamps or as_json):
        text = transcriber.text(segment).strip()
        segments.append({"start": round(segment.start, 3), "end": round(segment.end, 3), "text": text})
        if not as_json:
            echo(f"[{_clock(segment.start)} - {_clock(segment.end)}] {text}" if timestamps else text)
    if as_json:
        whole = " ".join(str(segment["text"]) for segment in segments)
        echo_json({"text": whole, "language": transcriber.language, "segments": segments})


def _clock(seconds: float) -> str:
    """Return a time as 01:02:03.450."""
    whole, milliseconds = divmod(round(1000 * seconds), 1000)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}.{milliseconds:03}"
