"""The loop over a stateful language model: tokens, chunks, threads, truncation, and what ends it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aot.runtime import CompiledModel, Generator, Sampling, load
from aot.runtime.errors import UsageError
from tests import libraries
from tests.frontends.gguf.networks import WORDS, Network

IDS = [5, 1, 40, 7, 7, 63, 2]
NETWORKS = [
    Network("llama", "Q4_0", layers=2),
    Network("llama", "F32", kept=1),
    Network("qwen2", "F16", head=80),
    Network("qwen3", "Q4_K"),
    Network("gemma3", "Q8_0", window=16),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    return libraries.library(NETWORKS[0].write(folder / "m.gguf"), folder / "m.so")


@pytest.fixture(scope="module")
def model(library: Path) -> CompiledModel:
    return load(library, threads=1)


def test_greedy_tokens_are_those_of_the_whole_sequence(model: CompiledModel) -> None:
    found = Generator(model).generate(IDS, 6)
    assert NETWORKS[0].logits([*IDS, *found])[len(IDS) - 1 : -1].argmax(-1).tolist() == found


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.8, top_k=20, top_p=0.9, seed=3)])
def test_tokens_are_equal_for_any_number_of_threads(library: Path, sampling: Sampling) -> None:
    found = [Generator(load(library, threads=n)).generate(IDS, 24, sampling) for n in (1, 2, 3, 4)]
    assert all(tokens == found[0] for tokens in found)


@pytest.mark.parametrize("network", NETWORKS, ids=[f"{n.architecture}-{n.kind}" for n in NETWORKS])
def test_chunks_and_threads_give_the_bits_of_single_tokens(network: Network, tmp_path: Path) -> None:
    libraries.library(network.write(tmp_path / "m.gguf"), tmp_path / "m.so")
    ids = np.random.default_rng(0).integers(0, WORDS, 150).tolist()
    generator = Generator(load(tmp_path / "m.so", threads=1))
    wanted = [generator.feed([n]).tobytes() for n in ids]
    for threads, sizes in ((1, (2, 7, 64)), (3, (1, 50, 150))):
        model = load(tmp_path / "m.so", threads=threads)
        for size in sizes:
            generator = Generator(model)
            for at in range(0, len(ids), size):
                part = ids[at : at + size]
                assert generator.feed(part).tobytes() == wanted[at + len(part) - 1]


def test_rows_of_a_batch_have_the_bits_of_one_row(model: CompiledModel) -> None:
    ids = np.random.default_rng(1).integers(0, WORDS, (5, 40))
    alone = [Generator(model).feed(row.tolist()).tobytes() for row in ids]
    request, past = model.create_infer_request(), 0
    for count in (1, 32, 7):
        feed = {
            "input_ids": ids[:, past : past + count],
            "attention_mask": np.ones((len(ids), past + count), np.int64),
            "position_ids": np.tile(np.arange(past, past + count), (len(ids), 1)),
            "beam_idx": np.arange(len(ids), dtype=np.int32),
        }
        found = request.infer({t.name: feed[t.name] for t in model.inputs})
        past += count
    assert [row[-1].tobytes() for row in found[0]] == alone


def test_a_truncated_sequence_goes_on_as_if_the_rest_had_never_been(model: CompiledModel) -> None:
    generator = Generator(model)
    wanted = generator.feed(IDS)
    generator.feed([9, 9, 9])
    generator.truncate(4)
    assert generator.tokens == tuple(IDS[:4])
    assert generator.feed(IDS[4:]).tobytes() == wanted.tobytes()
    generator.truncate(0)
    assert generator.feed(IDS).tobytes() == wanted.tobytes()
    generator.reset()
    assert generator.tokens == ()


def test_it_ends_at_stop_tokens_and_where_the_callback_says(model: CompiledModel) -> None:
    whole = Generator(model).generate(IDS, 12)
    end = whole.index(whole[4]) + 1
    assert Generator(model).generate(IDS, 12, stop=[whole[4]]) == whole[:end]
    seen: list[int] = []

    def on_token(token: int) -> bool:
        seen.append(token)
        return len(seen) < 3

    assert Generator(model).generate(IDS, 12, on_token=on_token) == seen == whole[:3]
    assert Generator(model).generate(IDS, 0) == []


@pytest.mark.parametrize("count", [-1, 8])
def test_it_keeps_no_more_tokens_than_there_are(model: CompiledModel, count: int) -> None:
    generator = Generator(model)
    generator.feed(IDS)
    with pytest.raises(UsageError, match=f"truncate: must be 0 to 7 tokens, got {count}"):
        generator.truncate(count)


def test_models_of_another_kind_and_no_tokens_are_refused(model: CompiledModel, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="feed: needs one token or more, got none"):
        Generator(model).feed([])
    for token in (-1, WORDS):
        with pytest.raises(UsageError, match=f"feed: tokens must be 0 to {WORDS - 1}, got {token}"):
            Generator(model).feed([1, token])
    with pytest.raises(UsageError, match="chunk: must be 0 or more tokens, got -1"):
        Generator(model).feed([1], chunk=-1)
    with pytest.raises(UsageError, match=r"a language model must have input_ids, .* got image"):
        Generator(load(libraries.library("examples/digits/model.xml", tmp_path / "digits.so")))
    assert np.isfinite(Generator(model).feed([1])).all()


def test_a_fork_goes_on_by_itself(model: CompiledModel) -> None:
    generator = Generator(model)
    generator.feed(IDS)
    fork = generator.fork()
    wanted = [generator.feed([n]).tobytes() for n in (3, 9)]
    assert fork.tokens == tuple(IDS)
    fork.feed([8, 8])
    fork.truncate(len(IDS))
    assert [fork.feed([n]).tobytes() for n in (3, 9)] == wanted
    assert Generator(model).fork().tokens == ()


def test_saved_generators_are_restored(model: CompiledModel) -> None:
    generator = Generator(model)
    generator.feed(IDS)
    saved, wanted = generator.save(), generator.feed([3]).tobytes()
    other = Generator(model)
    other.feed([1, 2])
    other.restore(saved)
    assert other.tokens == tuple(IDS)
    assert other.feed([3]).tobytes() == wanted


@pytest.mark.parametrize("cut", [slice(0, 0), slice(0, 200), slice(30, None)])
def test_other_bytes_are_not_restored(model: CompiledModel, cut: slice) -> None:
    generator = Generator(model)
    generator.feed(IDS)
    with pytest.raises(UsageError, match="restore: needs what save"):
        generator.restore(generator.save()[cut])
    assert generator.tokens == tuple(IDS)
