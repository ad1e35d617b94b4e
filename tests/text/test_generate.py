"""`aot generate`, from a file to tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from aot import compile_model
from cli import app
from runtime import Generator, Sampling, load
from tests.frontends.gguf.networks import Network

IDS = "5,1,40"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    compile_model(Network("qwen2", "Q8_0").write(folder / "x.gguf")).export_model(folder / "m.so")
    return folder / "m.so"


def output(*args: object) -> str:
    return CliRunner().invoke(app, ["generate", *map(str, args)]).output


@pytest.mark.parametrize(
    ("options", "sampling"),
    [((), Sampling()), (("--temperature", 1, "--top-k", 9, "--top-p", 0.9, "--seed", 5), Sampling(1.0, 9, 0.9, 5))],
)
def test_it_writes_the_tokens_of_the_generator(library: Path, options: tuple[object, ...], sampling: Sampling) -> None:
    wanted = Generator(load(library)).generate([5, 1, 40], 6, sampling)
    assert output(library, IDS, "--ids", "--tokens", 6, *options) == ",".join(map(str, wanted)) + "\n"
    assert output(library, IDS, "--ids", "--tokens", 6, *options, "--stop", wanted[0]) == f"{wanted[0]}\n"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ((IDS,), "give --tokenizer tokenizer.json or --tokenizer m.gguf, or --ids and numbers"),
        (("5;1", "--ids"), "--ids: numbers of tokens, as in 5,1,40, got '5;1'"),
        ((IDS, "--ids", "--top-p", 2), "top_p: must be above 0 and at most 1, got 2"),
    ],
)
def test_wrong_use_is_named(library: Path, args: tuple[object, ...], text: str) -> None:
    assert text in " ".join(output(library, *args).split())
