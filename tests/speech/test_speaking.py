"""Small networks of VITS: audio without noise is that of transformers, and `aot speak` writes it."""

from __future__ import annotations

import io
import json
import wave
from pathlib import Path

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

from aot import compile_model
from aot.cli import app
from aot.frontends import read_model
from aot.frontends.language.config import Values
from aot.runtime import load
from aot.runtime.errors import CorruptError, UnsupportedError
from aot.speech.speaking import speech, voice_in, voice_of
from tests.archives import arrays_of
from tests.frontends.huggingface.folders import Array, write
from tests.inferred import results_of
from tests.serve.conftest import listening
from tests.speech.voices import weights

CLOSE = 1e-5  # of the largest sample
FOUND = arrays_of(Path(__file__).with_name("vits.npz"))
FACTS = json.loads(str(FOUND["facts"]))
VOCAB = {"_": 0, "<unk>": 1, **{c: n for n, c in enumerate("abcdefghijklmnopqrstuvwxyz '", 2)}}
SETTINGS: dict[str, object] = {"add_blank": True, "normalize": True, "phonemize": False, "unk_token": "<unk>"}


def network(folder: Path, name: str, **changes: object) -> Path:
    """Write a network; `changes`: of config.json."""
    write(folder, FACTS[name]["config"] | changes, weights(FACTS[name]["shapes"]))
    (folder / "vocab.json").write_text(json.dumps(VOCAB))
    (folder / "tokenizer_config.json").write_text(json.dumps(SETTINGS))
    return folder


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("voices")
    compile_model(network(folder / "x", "one"), output=folder / "m.so")
    return folder / "m.so"


def check(got: Array, name: str) -> None:
    np.testing.assert_allclose(got, FOUND[name], rtol=0, atol=CLOSE * np.abs(FOUND[name]).max())


def test_audio_is_that_of_transformers(library: Path) -> None:
    model = load(library, threads=1)
    voice, ids = voice_of(model.manifest), FOUND["ids"][0].tolist()
    check(speech(model, ids, voice, varied=False), "one")
    varied = speech(model, ids, voice)
    assert (varied == speech(model, ids, voice)).all() and len(varied) != len(FOUND["one"])
    assert len(speech(model, ids, voice, speed=0.25, varied=False)) > 2 * len(FOUND["one"])


def test_one_of_several_speakers_speaks(tmp_path: Path) -> None:
    graph = read_model(network(tmp_path / "x", "several"))
    scales, speaker = np.array([0, 1, 0], np.float32), np.array([2])
    check(results_of(graph, [FOUND["ids"], scales, speaker])[0][0], "several")


@pytest.mark.parametrize(
    ("settings", "text", "ids"),
    [
        ({}, "Ab, a!", [0, 2, 0, 3, 0, 28, 0, 2, 0]),
        ({"add_blank": False}, "Ab, a!", [2, 3, 28, 2]),
        ({"add_blank": False, "normalize": False}, "Ab!", [1, 3, 1]),
        ({"add_blank": False, "phonemize": True}, "ab!", [2, 3, 1]),
    ],
)
def test_characters_become_tokens(settings: dict[str, object], text: str, ids: list[int]) -> None:
    assert voice_in(Values("x", {"vocab": VOCAB, **SETTINGS, **settings})).ids(text) == ids


def test_a_text_is_spoken(library: Path, tmp_path: Path) -> None:
    def run(text: str, *more: str) -> int:
        given = ["speak", str(library), text, "-o", str(tmp_path / "a.wav"), *more]
        return CliRunner().invoke(app, given).exit_code

    assert run("Hello") == 0
    first = (tmp_path / "a.wav").read_bytes()
    with wave.open(str(tmp_path / "a.wav")) as file:
        assert file.getparams()[:3] == (1, 2, 16000) and file.getnframes() > 8
    assert run("hello") == 0 and (tmp_path / "a.wav").read_bytes() == first
    assert run("hello", "--even") == 0 and (tmp_path / "a.wav").read_bytes() != first
    assert run("!?") == run("hello", "--speaker", "1") == 2


def test_the_server_speaks(library: Path) -> None:
    with listening(library, grpc_port=None) as server:

        def post(**fields: object) -> httpx.Response:
            url = f"http://127.0.0.1:{server.port}/v1/audio/speech"
            return httpx.post(url, json={"model": "m", "input": "hello", "voice": "alloy", **fields}, timeout=60)

        answer, raw = post(), post(response_format="pcm", speed=0.5)
        assert (answer.headers["content-type"], raw.headers["content-type"]) == ("audio/wav", "audio/pcm")
        with wave.open(io.BytesIO(answer.content)) as file:
            assert file.getframerate() == 16000 and 2 * file.getnframes() < len(raw.content)
        assert post().content == answer.content
        for fields, field in (
            ({"input": ""}, "input"),
            ({"response_format": "mp3"}, "response_format"),
            ({"voice": 1}, "voice"),
            ({"speed": 9}, "speed"),
            ({"instructions": "Whisper."}, "instructions"),
        ):
            told = post(**fields)
            assert (told.status_code, told.json()["error"]["param"]) == (400, field)
        assert post(voice="1").status_code == 400


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"hidden_act": "gelu"}, UnsupportedError, "hidden_act relu"),
        ({"upsample_kernel_sizes": [8, 3]}, CorruptError, "greater by even numbers"),
        ({"resblock_dilation_sizes": [[1, 3]]}, CorruptError, "2 lists"),
        ({"upsample_rates": "x"}, CorruptError, "list of sizes"),
        ({"flow_size": 12}, CorruptError, "tensor 'text_encoder.project.weight'"),
        ({"num_hidden_layers": 0}, CorruptError, "num_hidden_layers"),
        ({"duration_predictor_num_flows": 1}, UnsupportedError, "all tensors belong to the network"),
        ({"sampling_rate": 1 << 40}, CorruptError, "sampling_rate"),
    ],
)
def test_folders_that_cannot_be_read(
    tmp_path: Path, changes: dict[str, object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        read_model(network(tmp_path / "x", "one", **changes))
