"""Speculative decoding: the tokens of the large model alone, whatever the small one proposes."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from aot import compile_model
from aot.cli import app
from aot.runtime import CompiledModel, Drafting, Generator, Sampling, load
from aot.runtime.errors import UsageError
from aot.text.look_up import LookUp, followed
from tests.frontends.gguf.networks import Network
from tests.libraries import library

IDS = [5, 1, 40, 7, 7, 63, 2]
WAYS = [Sampling(), Sampling(0.7, top_k=8, seed=3)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two layers, and another with its first one, which gives the last logits alone."""
    folder = tmp_path_factory.mktemp("drafting")
    large, part = (Network("llama", "Q4_0", layers=n) for n in (2, 1))
    assert large.tensors.items() >= part.tensors.items()
    library(large.write(folder / "large.gguf"), folder / "large.so", last_logits=False)
    library(part.write(folder / "part.gguf"), folder / "part.so")
    return folder


@pytest.fixture(scope="module")
def large(folder: Path) -> CompiledModel:
    return load(folder / "large.so", threads=2)


@pytest.mark.slow
@pytest.mark.parametrize("how", WAYS, ids=str)
@pytest.mark.parametrize("name", ["large", "part"])
@pytest.mark.parametrize("ahead", [1, 4])
def test_its_tokens_are_those_of_the_large_model(
    folder: Path, large: CompiledModel, name: str, how: Sampling, ahead: int
) -> None:
    alone = Generator(large)
    drafting = Drafting(Generator(large), Generator(load(folder / f"{name}.so", threads=1)), ahead)
    for ids, tokens in ((IDS, 25), (IDS[:1], 2), (IDS, 1), (IDS[:3], 9)):
        assert drafting.generate(ids, tokens, how) == alone.generate(ids, tokens, how)
        assert drafting.large.tokens == alone.tokens
    assert 0 <= drafting.accepted <= drafting.proposed
    if how.temperature == 0:
        assert drafting.proposed > 0 and (drafting.accepted == drafting.proposed) == (name == "large")


@pytest.mark.slow
@pytest.mark.parametrize("how", WAYS, ids=str)
def test_the_text_itself_proposes_tokens(large: CompiledModel, how: Sampling) -> None:
    assert followed([1, 2, 3, 9, 1, 2, 3], 2) == [9, 1]
    assert followed([1, 2, 3, 9, 5, 2, 3, 8, 2, 3], 9) == [8, 2, 3]  # the last place, of as many tokens as there are
    assert followed([2, 3], 1) == followed([1, 2, 3], 1) == []
    alone, looking = Generator(large), LookUp(Generator(large))
    for ids, tokens in ((IDS * 3, 40), (IDS[:1], 2)):
        assert looking.generate(ids, tokens, how) == alone.generate(ids, tokens, how)
        assert looking.large.tokens == alone.tokens
    assert how.temperature > 0 or 0 < looking.accepted <= looking.proposed


@pytest.mark.slow
def test_it_ends_where_the_large_model_would(large: CompiledModel) -> None:
    whole = Generator(large).generate(IDS, 12)
    drafting = Drafting(Generator(large), Generator(large))
    assert drafting.generate(IDS, 12, stop=[whole[4]]) == whole[: whole.index(whole[4]) + 1]
    assert drafting.large.tokens == (*IDS, *whole[: whole.index(whole[4])])
    seen: list[int] = []
    drafting = Drafting(Generator(large), Generator(large))
    assert drafting.generate(IDS, 12, on_token=lambda token: seen.append(token) or len(seen) < 3) == whole[:3] == seen
    assert drafting.generate(whole[2:3], 0) == []

    def fail(token: int) -> None:
        if token == whole[2]:
            raise ValueError(token)

    drafting = Drafting(Generator(large), Generator(large))
    with pytest.raises(ValueError, match=str(whole[2])):
        drafting.generate(IDS, 12, on_token=fail)
    assert drafting.large.tokens == (*IDS, *whole[: whole.index(whole[2])])


def test_mismatched_models_are_refused(folder: Path, large: CompiledModel, tmp_path: Path) -> None:
    network, last = Network("llama", "Q4_0"), load(folder / "part.so")
    with pytest.raises(UsageError, match="must give all logits, as by --all-logits, got the last"):
        Drafting(Generator(last), Generator(large))
    with pytest.raises(UsageError, match="must propose 1 token or more, got 0"):
        Drafting(Generator(large), Generator(last), 0)
    kind, shape, raw = network.tensors["token_embd.weight"]
    network.tensors["token_embd.weight"] = (kind, (shape[0] // 2, shape[1]), raw[: len(raw) // 2])
    half = compile_model(network.write(tmp_path / "half.gguf"))
    with pytest.raises(UsageError, match="must have 64 tokens, as the large model has, got 32"):
        Drafting(Generator(large), Generator(half))


@pytest.mark.slow
def test_the_command(folder: Path) -> None:
    given = ["generate", str(folder / "large.so"), "5,1,40", "--ids", "--tokens", "12"]
    drafted = [*given, "--draft", str(folder / "part.so"), "--ahead", "2"]
    alone, found = (CliRunner().invoke(app, args) for args in (given, drafted))
    assert (found.exit_code, found.stdout) == (0, alone.stdout)
