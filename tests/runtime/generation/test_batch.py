"""Rows with lengths of their own: each has the logits of its sequence alone, to the bit, whoever comes and goes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aot import compile_model
from aot.frontends.language.decoder import Decoder
from aot.runtime import Batch, CompiledModel, Generator, load
from aot.runtime.errors import UsageError
from tests.frontends.gguf.networks import WORDS, Network
from tests.libraries import library

NETWORKS = [
    Network("llama", "Q4_0"),
    Network("qwen3", "F32", kept=1),
    Network("gemma3", "Q8_0", window=16),
]


@pytest.fixture(scope="module", params=NETWORKS, ids=lambda n: n.architecture)
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CompiledModel:
    folder = tmp_path_factory.mktemp("batch")
    path = request.param.write(folder / "m.gguf")
    context = {"max_context": 700} if request.param.architecture == "qwen3" else {}
    return load(library(path, folder / "m.so", row_lengths=True, **context), threads=2)


def fed(model: CompiledModel, count: int) -> Generator:
    generator = Generator(model)
    generator.feed(np.random.default_rng(count).integers(0, WORDS, count).tolist())
    return generator


def test_rows_that_come_and_go_have_the_bits_of_their_sequences(model: CompiledModel) -> None:
    """Rows longer than the first room, 192 tokens, and shorter ones in the place of longer ones."""
    rng, batch, alone = np.random.default_rng(0), Batch(model), list[Generator]()
    for change in (40, 3, None, 188, None, None, None, None, None, 0, 1, 300, None, -1, 2, None):
        if change is None:
            ids = rng.integers(0, WORDS, len(alone)).tolist()
            found = batch.step(ids)
            for row, (token, generator) in enumerate(zip(ids, alone, strict=True)):
                assert found[row].tobytes() == generator.feed([token]).tobytes()
        elif abs(change) < len(alone):
            row = change % len(alone)
            batch.remove(row)
            last = alone.pop()
            if row < len(alone):
                alone[row] = last
        else:
            alone.append(fed(model, abs(change)))
            batch.add(alone[-1])
        assert batch.lengths == tuple(len(g.tokens) for g in alone)


def test_a_batch_that_was_empty_begins_anew(model: CompiledModel) -> None:
    batch, generator = Batch(model), fed(model, 20)
    for count in (200, 5):
        batch.add(fed(model, count))
        batch.step([1])
        batch.remove(0)
    batch.add(generator)
    assert batch.step([3])[0].tobytes() == generator.feed([3]).tobytes()


def test_all_rows_alike_are_as_without_the_option(tmp_path: Path) -> None:
    path = Network("llama", "Q4_0").write(tmp_path / "m.gguf")
    plain = load(library(path, tmp_path / "m.so"), threads=1)
    own = load(library(path, tmp_path / "own.so", row_lengths=True), threads=1)
    one, other, past = plain.create_infer_request(), own.create_infer_request(), 0
    for rows, count in ((2, 5), (2, 1), (3, 1), (2, 4)):
        feed = {
            "input_ids": np.random.default_rng(past).integers(0, WORDS, (rows, count)),
            "attention_mask": np.ones((rows, past + count), np.int64),
            "position_ids": np.tile(np.arange(past, past + count), (rows, 1)),
            "beam_idx": np.array([1, 0, 1][:rows] if past else range(rows), np.int32),
        }
        feed["attention_mask"][0, :2] = 0  # padded in front
        assert one.infer(feed)[0].tobytes() == other.infer(feed)[0].tobytes()
        past += count


@pytest.mark.parametrize("model", NETWORKS[:1], indirect=True, ids=lambda n: n.architecture)
def test_invalid_batches_are_refused(model: CompiledModel, tmp_path: Path) -> None:
    plain = library(Network("llama", "Q4_0").write(tmp_path / "m.gguf"), tmp_path / "m.so")
    for path in (plain, library("examples/digits/model.xml", tmp_path / "digits.so")):
        with pytest.raises(UsageError, match="must be compiled with --row-lengths"):
            Batch(load(path))
    with pytest.raises(UsageError, match="--row-lengths: the model must be a language model with attention_mask"):
        compile_model("examples/digits/model.xml", row_lengths=True)
    batch = Batch(model)
    with pytest.raises(UsageError, match="must have one token or more, got none"):
        batch.add(Generator(model))
    with pytest.raises(UsageError, match="rows must be 0 to -1, got 0"):
        batch.remove(0)
    batch.add(fed(model, 2))
    for ids in ([], [1, 2]):
        with pytest.raises(UsageError, match=f"a token for each of 1 rows, one or more, got {len(ids)}"):
            batch.step(ids)


def test_windows_that_count_from_the_longest_row_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exporters of IR write such windows. They are right where the context is too short for a window to end."""
    monkeypatch.setattr(Decoder, "_places_of", lambda self, rows, columns: rows)
    path = Network("gemma3", "F32", window=16).write(tmp_path / "m.gguf")
    with pytest.raises(UsageError, match="masks must not depend on the longest row of a batch"):
        compile_model(path, row_lengths=True)
    assert compile_model(path, row_lengths=True, max_context=16)
    with pytest.raises(UsageError, match="masks must not depend on the longest row of a batch"):
        compile_model(path, row_lengths=True, max_context=17)
