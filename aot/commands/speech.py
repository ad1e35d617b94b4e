"""`aot transcribe`: the text of speech in an audio file; `aot speak`: a text as speech, in an audio file."""

from __future__ import annotations

import time
from pathlib import Path
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
        full_text = " ".join(str(segment["text"]) for segment in segments)
        echo_json({"text": full_text, "language": transcriber.language, "segments": segments})


def _clock(seconds: float) -> str:
    """Return a time as 01:02:03.450."""
    whole_seconds, milliseconds = divmod(round(1000 * seconds), 1000)
    return f"{whole_seconds // 3600:02}:{whole_seconds // 60 % 60:02}:{whole_seconds % 60:02}.{milliseconds:03}"


def speak(
    model: Annotated[Path, argument(exists=True, help="m.so, or the folder of a model of text to speech")],
    text: Annotated[str, argument(help="Text to speak; with --ids, numbers of tokens: 5,1,40")],
    output: Annotated[Path, option("-o", "--output", help="speech.wav")] = Path("speech.wav"),
    speed: Annotated[float, option(min=0.1, max=10, help="2: twice as fast")] = 1.0,
    speaker: Annotated[int, option(min=0, metavar="N", help="Number of a speaker, of a model with several")] = 0,
    even: Annotated[bool, option("--even", help="Without the noise that makes speech lively")] = False,
    phonemes: Annotated[bool, option("--phonemes", help="The text is of phonemes, or in Latin letters")] = False,
    ids: Annotated[bool, option("--ids", help="Read numbers of tokens instead of text")] = False,
    threads: arg.Threads = None,
    quiet: arg.Quiet = False,
    debug: arg.Debug = False,
) -> None:
    """Speak a text into a WAV file, with VITS. Equal texts give equal files."""
    from aot.commands import loading
    from aot.commands.line.progress import Watch, terminal
    from aot.runtime.errors import UsageError
    from aot.speech.speaking import speech, voice_of
    from aot.speech.wave_file import write_wave
    from aot.text.stream import ids_of

    with Watch(None if quiet else terminal()) as watch:
        loaded = loading.ready(model, threads, strict=True, on_event=watch)
    voice = voice_of(loaded.manifest)
    if voice.needs and not (phonemes or ids):
        rule = "phonemes" if voice.needs == "phonemize" else "Latin letters"
        raise UsageError(f"text: {loaded.name} reads {rule}: give these with --phonemes, got a text as it is written")
    begin = time.perf_counter()
    samples = speech(
        loaded, ids_of(text) if ids else voice.ids(text), voice, speed=speed, speaker=speaker, varied=not even
    )
    write_wave(output, samples, voice.rate)
    if not quiet:
        seconds = time.perf_counter() - begin
        echo(f"{output}: {len(samples) / voice.rate:.2f} s of speech in {seconds:.2f} s", err=True)
