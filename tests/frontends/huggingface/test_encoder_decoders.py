"""Encoders with a decoder of transformers as folders: tokens and logits are those that PyTorch has in f64."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from typer.testing import CliRunner

from aot import compile_model
from aot.cli import app
from aot.frontends import read_model
from aot.ir.interpret import interpret
from aot.runtime import Sampling, load
from aot.runtime.errors import AotError, CorruptError, UnsupportedError, UsageError
from aot.text.beam_search import BeamSearch
from aot.text.encoder_decoder_loop import EncoderDecoderLoop, source_inputs, start_of
from tests.archives import arrays_of
from tests.frontends.huggingface.folders import Array, weight, write
from tests.serve.conftest import listening

FOLDERS = Path(__file__).with_name("encoder_decoders")
EVERY, CUT = 8, 40
REFUSED = (  # what is said of requests to a server
    "messages: must be one message of the user, as the model has no chat template, got user, user",
    "tools: must be left out, as the model has no chat template",
    "source: tokens must be 0 to 95, got [96]",
    "start: must be a list of tokens",
    "grammar: the tokenizer must have a token that ends an answer, got none",
)
BEAMS = (2, (78,)), (3, (2, 7, 31)), (5, (2, 7, 31)), (5, (78,))  # as `encoder_decoders/make.py` has them
CLOSE = 1e-5  # of the largest logit
NAMES = sorted(path.stem for path in FOLDERS.glob("*.npz"))


def network(name: str, tmp_path: Path) -> tuple[Path, dict[str, Array]]:
    """Return the folder of a network, and the arrays that PyTorch gives."""
    found = arrays_of(FOLDERS / f"{name}.npz")
    facts = json.loads(str(found["facts"]))
    tensors = {key: weight(key, shape, 1.0) for key, shape in facts["shapes"].items()}
    folder = write(tmp_path / name, facts["config"], tensors)
    (folder / "generation_config.json").write_text(json.dumps(facts["generation"]))
    return folder, found


def check(got: Array, wanted: Array) -> None:
    np.testing.assert_allclose(got, wanted, rtol=0, atol=CLOSE * np.abs(wanted).max())


@pytest.mark.parametrize("name", NAMES)
def test_logits_are_those_of_pytorch(name: str, tmp_path: Path) -> None:
    """The first call has the source and some tokens, the second one the others."""
    folder, found = network(name, tmp_path)
    graph, state = read_model(folder), dict[str, Array]()
    source = source_inputs(found["source"].tolist())
    ids, mask = source.values()
    rows, forced = np.zeros(1, np.int32), found["forced"][None]
    first = interpret(graph, [ids, mask, forced[:, :CUT], rows], state=state)[0]
    other = interpret(graph, [ids[:, :0], mask, forced[:, CUT:], rows], state=state)[0]
    check(np.concatenate([first[0], other[0]])[::EVERY], found["logits"])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Array]]:
    folder, found = network("bart", tmp_path_factory.mktemp("bart"))
    path = folder.with_name("m.so")
    compile_model(folder).export_model(path)
    return path, found


def test_tokens_of_a_library_are_those_of_pytorch(library: tuple[Path, dict[str, Array]]) -> None:
    path, found = library
    model = load(path, threads=1)
    assert all(variable.cache is not None for variable in model.manifest.variables)
    source, forced = source_inputs(found["source"].tolist()), found["forced"].tolist()
    assert EncoderDecoderLoop(model, source).generate(start_of(model.manifest), 64) == found["tokens"].tolist()
    loop = EncoderDecoderLoop(model, source)
    logits = np.stack([loop.feed([token]) for token in forced])
    check(logits[::EVERY], found["logits"])
    assert EncoderDecoderLoop(model, source).feed(forced[: CUT + 1]).tobytes() == logits[CUT].tobytes()
    with pytest.raises(UsageError, match="lengths of the 3 parts must not be negative"):
        loop.feed([5] * 129)  # of 192 positions, 64 are taken
    with pytest.raises(UsageError, match="source: tokens must be 0 to 95, got"):
        EncoderDecoderLoop(model, source_inputs([1 << 40]))
    ids, tokens = (",".join(map(str, found[name].tolist())) for name in ("source", "tokens"))
    given = ["generate", str(path), ids, "--ids"]
    assert CliRunner().invoke(app, given).stdout == tokens + "\n"
    given += ["--start", "2,0"]
    assert CliRunner().invoke(app, given).stdout == tokens + "\n"
    for n, (beams, ends) in enumerate(BEAMS):
        options = ["--beams", str(beams), "--tokens", "24", *(part for end in ends for part in ("--stop", str(end)))]
        best = CliRunner().invoke(app, [*given, *options]).stdout
        assert best == ",".join(map(str, found[f"beams {n}"].tolist())) + "\n"
    with pytest.raises(UsageError, match="--beams: chooses by probabilities alone"):
        BeamSearch(model, source, 2).generate([2], 1, Sampling(0.5))
    refused = CliRunner().invoke(app, [*given, "--draft", str(path)])
    assert refused.exit_code == 2 and "--draft: the model must continue a text" in refused.output


def test_a_server_answers_with_tokens_of_pytorch(library: tuple[Path, dict[str, Array]]) -> None:
    path, found = library
    words = {f"w{n}": n for n in range(96)}
    inner = Tokenizer(models.WordLevel(words, unk_token="w0"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.save(str(path.with_name("tokenizer.json")))
    source, tokens = found["source"].tolist(), found["tokens"].tolist()
    prompt, answer = (" ".join(f"w{n}" for n in ids) for ids in (source, tokens[:20]))
    with listening(path, grpc_port=None) as server:
        url = f"http://127.0.0.1:{server.port}/v1"

        def post(route: str, **body: object) -> Any:
            given = {"model": "m", "temperature": 0, **body}
            return httpx.post(f"{url}/{route}", json=given, timeout=60)

        whole = post("completions", prompt=prompt, max_tokens=20).json()
        assert (whole["choices"][0]["text"], whole["usage"]["prompt_tokens"]) == (answer, len(source))
        assert post("completions", prompt=source, max_tokens=20, start=[2]).json()["choices"] == whole["choices"]
        assert post("completions", prompt=source, max_tokens=20, start=[5, 6]).json()["choices"] != whole["choices"]
        streamed = post("completions", prompt=prompt, max_tokens=20, stream=True).text.split("\n\n")[:-2]
        events = [json.loads(line.removeprefix("data: ")) for line in streamed]
        assert "".join(event["choices"][0]["text"] for event in events) == answer
        asked = {"role": "user", "content": prompt}
        chat = post("chat/completions", messages=[asked], max_tokens=20, n=2).json()["choices"]
        assert [choice["message"]["content"] for choice in chat] == [answer] * 2
        assert post("responses", input=prompt, max_output_tokens=20).json()["output"][0]["content"][0]["text"] == answer
        schema = {"type": "json_schema", "json_schema": {"schema": {"const": 1}}}
        refused = [
            post("chat/completions", messages=[asked, asked]),
            post("chat/completions", messages=[asked], tools=[{"type": "function", "function": {"name": "f"}}]),
            post("completions", prompt=[96]),
            post("completions", prompt=prompt, start=[]),
            post("completions", prompt=prompt, response_format=schema),
        ]
    for response, text in zip(refused, REFUSED, strict=True):
        assert response.status_code == 400 and text in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("name", "changes", "wanted"),
    [
        ("t5", {"architectures": ["T5EncoderModel"]}, "encoders with a decoder that gives logits of words can be read"),
        ("t5", {"num_layers": -1}, "num_layers is an integer from 1"),
        ("t5", {"num_layers": 3}, r"must have a tensor 'encoder.block.2.layer.0.layer_norm.weight', got"),
        ("t5", {"num_decoder_layers": 1}, r"all tensors belong to the network, got \d+ others: 'decoder.block.1"),
        ("t5", {"feed_forward_proj": "gated-sin"}, "functions .* can be read, got sin"),
        ("t5", {"relative_attention_num_buckets": 3}, "relative_attention_num_buckets is an integer from 4"),
        ("bart", {"encoder_attention_heads": 5}, "d_model is a multiple of 5 heads, got 32"),
        (
            "bart",
            {"max_position_embeddings": 100},
            r"tensor 'model.encoder.embed_positions.weight' must be \[102, 32\]",
        ),
        ("bart", {"decoder_start_token_id": 96}, "decoder_start_token_id is an integer from 0 to 95, got 96"),
        ("m2m_100", {"pad_token_id": 1 << 31}, "pad_token_id is an integer from 0 to 1048576, got 2147483648"),
        ("marian", {"d_model": 1 << 20, "max_position_embeddings": 1 << 20}, "of a table of at most 134217728 numbers"),
        ("marian", {"share_encoder_decoder_embeddings": False}, "one table of words for encoder and decoder"),
    ],
)
def test_other_and_damaged_folders_are_refused(
    name: str, changes: dict[str, object], wanted: str, tmp_path: Path
) -> None:
    folder, _ = network(name, tmp_path)
    (folder / "generation_config.json").unlink()
    config = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(AotError, match=wanted) as caught:
        read_model(folder)
    assert isinstance(caught.value, CorruptError | UnsupportedError)
