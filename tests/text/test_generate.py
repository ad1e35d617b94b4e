"""`aot generate`, from a file to tokens."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aot import compile_model
from aot.cli import app
from aot.runtime import Generator, Sampling, load
from aot.text.speed import Speed
from tests.frontends.gguf.networks import Network

IDS = "5,1,40"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    compile_model(Network("qwen2", "Q8_0").write(folder / "x.gguf")).export_model(folder / "m.so")
    return folder / "m.so"


def output(*args: object) -> str:
    found = CliRunner().invoke(app, ["generate", *map(str, args)])
    return found.output if found.exit_code else found.stdout


@pytest.mark.parametrize(
    ("options", "sampling"),
    [((), Sampling()), (("--temperature", 1, "--top-k", 9, "--top-p", 0.9, "--seed", 5), Sampling(1.0, 9, 0.9, 5))],
)
def test_it_writes_the_tokens_of_the_generator(library: Path, options: tuple[object, ...], sampling: Sampling) -> None:
    wanted = Generator(load(library)).generate([5, 1, 40], 6, sampling)
    assert output(library, IDS, "--ids", "--tokens", 6, *options) == ",".join(map(str, wanted)) + "\n"
    assert output(library, IDS, "--ids", "--tokens", 6, *options, "--stop", wanted[0]) == f"{wanted[0]}\n"


def test_times_are_told_at_the_end(library: Path) -> None:
    found = CliRunner().invoke(app, ["generate", str(library), IDS, "--ids", "--tokens", "6"])
    assert re.fullmatch(r"6 tokens, the first one after [\d.e+]+ ms, then [\d.e+]+ tokens/s\n", found.stderr)
    found = CliRunner().invoke(app, ["generate", str(library), IDS, "--ids", "--tokens", "6", "--quiet"])
    assert (found.exit_code, found.stderr) == (0, "")


def test_json_has_the_tokens_of_the_text_and_a_line_for_each_part(library: Path) -> None:
    wanted = Generator(load(library)).generate([5, 1, 40], 6)
    assert json.loads(output(library, IDS, "--ids", "--tokens", 6, "--json"))["ids"] == wanted
    *parts, last = map(json.loads, output(library, IDS, "--ids", "--tokens", 6, "--json", "--stream").splitlines())
    assert "".join(one["part"] for one in parts) == ",".join(map(str, wanted))
    assert (last["version"], last["ids"], last["count"]) == (1, wanted, 6) and last["tokens_per_second"] > 0


def test_speed_is_that_of_the_clock() -> None:
    times, taken = iter([1.0, 1.5, 1.75, 2.0]), list[int]()
    speed = Speed(taken.append, lambda: next(times))
    assert str(speed) == "no tokens"
    speed.add(7)
    assert str(speed) == "1 token, the first one after 500 ms: 2 tokens/s"
    speed.add(8)
    speed.add(9)
    assert str(speed) == "3 tokens, the first one after 500 ms, then 4 tokens/s"
    assert taken == [7, 8, 9]


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ((IDS,), "give --tokenizer tokenizer.json or --tokenizer m.gguf, or --ids and numbers"),
        (("5;1", "--ids"), "--ids: must be numbers of tokens, as in 5,1,40, got '5;1'"),
        ((IDS, "--ids", "--top-p", 2), "top_p: must be above 0 and at most 1, got 2"),
    ],
)
def test_wrong_use_is_named(library: Path, args: tuple[object, ...], text: str) -> None:
    assert text in " ".join(output(library, *args).split())
