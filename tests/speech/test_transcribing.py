"""A small Whisper: logits and tokens are those of transformers, and `aot transcribe` writes them."""

from __future__ import annotations

import io
import json
import re
import wave
from pathlib import Path

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from aot import compile_model
from aot.cli import app
from aot.frontends import read_model
from aot.runtime import load
from aot.runtime.errors import CorruptError, UsageError
from aot.runtime.model import CompiledModel
from aot.serve.openai.transcriptions import wanted_of
from aot.speech.special_tokens import SpecialTokens
from aot.speech.transcribing import Transcriber, segments_of
from aot.text.encoder_decoder_loop import EncoderDecoderLoop
from aot.text.library_texts import AUDIO
from aot.text.tokenizers.tokenizer import read_tokenizer
from tests.archives import arrays_of
from tests.frontends.huggingface.folders import weight, write
from tests.serve.conftest import listening
from tests.speech.sound import RATE, sound

CLOSE = 1e-4  # of the largest logit: powers are in f32
END, FIRST_TIME = 60, 68
FOUND = arrays_of(Path(__file__).with_name("whisper.npz"))


def network(folder: Path, **settings: object) -> Path:
    """Write the network; `settings`: changes of generation_config.json."""
    facts = json.loads(str(FOUND["facts"]))
    write(folder, facts["config"], {key: weight(key, shape, 1.0) for key, shape in facts["shapes"].items()})
    (folder / "generation_config.json").write_text(json.dumps(facts["generation"] | settings))
    return folder


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("speech")
    network(folder / "x")
    words = {f"w{n}": n for n in range(160)}
    tokenizer: dict[str, object] = {
        "version": "1.0",
        "added_tokens": [],
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "w0"},
    }
    (folder / "x" / "tokenizer.json").write_text(json.dumps(tokenizer))
    compile_model(folder / "x").export_model(folder / "m.so")
    return folder / "m.so"


@pytest.fixture(scope="module")
def model(library: Path) -> CompiledModel:
    return load(library, threads=1)


def window() -> NDArray[np.float32]:
    audio = sound(12)
    return np.pad(audio, (0, 30 * RATE - len(audio)))


def test_logits_are_those_of_pytorch(model: CompiledModel) -> None:
    loop = EncoderDecoderLoop(model, {AUDIO: window()[None]})
    got = np.stack([loop.feed([n]) for n in FOUND["ids"].tolist()])
    np.testing.assert_allclose(got, FOUND["logits"], rtol=0, atol=CLOSE * np.abs(FOUND["logits"]).max())


@pytest.mark.parametrize(("timestamps", "prompt"), [(False, 4), (True, 3)])
def test_tokens_are_those_of_transformers(model: CompiledModel, library: Path, timestamps: bool, prompt: int) -> None:
    wanted = FOUND["timed" if timestamps else "plain"].tolist()
    transcriber = Transcriber(model, read_tokenizer(library))
    assert transcriber.tokens(window(), timestamps=timestamps) == [n for n in wanted[prompt:] if n != END]
    name = {62: "en", 63: "de", 64: "fr"}[wanted[1]]
    assert transcriber.language == name
    named = Transcriber(model, read_tokenizer(library), language=name)
    assert named.tokens(window(), timestamps=timestamps) == [n for n in wanted[prompt:] if n != END]


def test_a_language_must_be_known(model: CompiledModel, library: Path) -> None:
    with pytest.raises(UsageError, match=r"must be one of the model's, de, en, fr, got 'xx'"):
        Transcriber(model, read_tokenizer(library), language="xx")


def times(*tokens: int | float) -> list[int]:
    """Return tokens; a float is a time in seconds."""
    return [FIRST_TIME + round(n / 0.02) if isinstance(n, float) else n for n in tokens]


@pytest.mark.parametrize(
    ("tokens", "segments", "used"),
    [
        ((0.0, 5, 6, 1.0, 1.0, 7, 2.0, 2.0, 8), [(0.0, 1.0), (1.0, 2.0)], 2.0),
        ((0.0, 5, 1.0, 1.0, 7, 2.0), [(0.0, 1.0), (1.0, 2.0)], None),
        ((0.0, 5, 6, 1.5), [(0.0, 1.5)], None),
        ((0.0, 5, 6), [(0.0, 9.0)], None),
        ((), [(0.0, 9.0)], None),
    ],
)
def test_windows_are_cut_at_pairs_of_times(
    tokens: tuple[int | float, ...], segments: list[tuple[float, float]], used: float | None
) -> None:
    found, taken = segments_of(times(*tokens), SpecialTokens(END, FIRST_TIME - 1), 9.0)
    assert [(round(p.start, 6), round(p.end, 6)) for p in found] == segments
    assert (None if taken is None else round(taken, 6)) == used


def recording() -> bytes:
    """Return a WAV file of one second."""
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes((sound(1) * 32767).astype("<i2").tobytes())
    return stream.getvalue()


def test_a_file_is_transcribed(library: Path, tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(recording())
    (tmp_path / "b.wav").write_bytes((tmp_path / "a.wav").read_bytes()[:20])

    def run(*args: object) -> tuple[int, str]:
        found = CliRunner().invoke(app, ["transcribe", *map(str, args)])
        return found.exit_code, found.output

    code, text = run(library, tmp_path / "a.wav", "--json", "--language", "de")
    told = json.loads(text)
    assert code == 0 and told["language"] == "de" and told["text"].startswith("w")
    code, text = run(library, tmp_path / "a.wav", "--timestamps")
    assert code == 0 and re.match(r"\[00:00:00\.\d{3} - 00:00:0\d\.\d{3}\] w\d+", text)
    assert run(library, tmp_path / "b.wav")[0] == 4
    assert run(library, library)[0] == 3


def test_the_server_answers_with_the_text(library: Path) -> None:
    with listening(library, grpc_port=None) as server:

        def post(**fields: str) -> httpx.Response:
            url = f"http://127.0.0.1:{server.port}/v1/audio/transcriptions"
            file = {} if fields.pop("file", None) == "none" else {"file": ("a.wav", recording())}
            return httpx.post(
                url, data={"model": "m", **fields}, files={**file, "temperature": (None, "0")}, timeout=60
            )

        told = post(response_format="verbose_json", language="de").json()
        assert (told["language"], told["duration"], told["task"]) == ("de", 1.0, "transcribe")
        assert told["text"] == " ".join(one["text"] for one in told["segments"]) and "w" in told["text"]
        assert (
            post().json().keys() == {"text"}
            and post(response_format="text").headers["content-type"][:10] == "text/plain"
        )
        first = told["segments"][0]
        srt, vtt = (post(response_format=form, language="de").text.splitlines() for form in ("srt", "vtt"))
        begin, end = (f"00:00:{first[name]:06.3f}" for name in ("start", "end"))
        assert vtt[:4] == ["WEBVTT", "", f"{begin} --> {end}", first["text"]]
        assert srt[:3] == ["1", vtt[2].replace(".", ","), first["text"]]
        for fields, field in (
            ({"file": "none"}, "file"),
            ({"response_format": "docx"}, "response_format"),
            ({"language": "xx"}, "language"),
            ({"prompt": "as before"}, "prompt"),
        ):
            refused = post(**fields)
            assert refused.status_code == 400 and field in refused.json()["error"]["message"]
        listed = httpx.get(f"http://127.0.0.1:{server.port}/v1/models").json()["data"]
        assert [one["id"] for one in listed] == ["m"]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b"{}"),
        ("multipart/form-data; boundary=x", b""),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\na\r\n--x--"),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="a"\r\n--x--'),
        ("multipart/form-data; boundary=x", b"--x\r\n" * 99 + b"--x--"),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nRIFF\r\n--x--'),
    ],
)
def test_damaged_forms_are_refused(kind: str, body: bytes) -> None:
    with pytest.raises(UsageError, match=r"request: |model: must be"):
        wanted_of(kind, body)


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"lang_to_id": 5}, "lang_to_id is an object, got 5"),
        ({"task_to_id": {"transcribe": "x"}}, "transcribe is an integer from 0"),
        ({"suppress_tokens": ["a"]}, "suppress_tokens is a list of tokens"),
        ({"no_timestamps_token_id": -4}, "no_timestamps_token_id is an integer from 1"),
        ({"decoder_start_token_id": 160}, "decoder_start_token_id is an integer from 0 to 159"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, object], rule: str, tmp_path: Path) -> None:
    with pytest.raises(CorruptError, match=rule):
        read_model(network(tmp_path / "x", **settings))
