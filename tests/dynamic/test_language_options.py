"""--max-context and --last-logits, on a small decoder: the same logits, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from aot import compile_model
from aot.codegen.ir.loops import Var
from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.ir.types import Array
from aot.passes.front.last_logits import LastLogits
from aot.passes.middle.control.append_variables import append_variables
from aot.passes.middle.control.limit_context import MAX_CONTEXT, LimitContext
from aot.runtime import CompiledModel, Generator, load
from aot.runtime.abi import DType
from aot.runtime.arrays import pages
from aot.runtime.errors import UsageError
from tests.dynamic.networks import parameter, result
from tests.dynamic.test_append import WIDTH, attention, beams, new
from tests.frontends.gguf.networks import WORDS, Network

CONTEXT = 250


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[CompiledModel, CompiledModel]:
    """The same network without options, and with both."""
    folder = tmp_path_factory.mktemp("language")
    path = Network("llama", "Q8_0", layers=1).write(folder / "m.gguf")
    compile_model(path, last_logits=False).export_model(folder / "plain.so")
    compile_model(path, max_context=CONTEXT).export_model(folder / "m.so")
    return load(folder / "plain.so", threads=1), load(folder / "m.so", threads=2)


@pytest.mark.slow
def test_small_pages_become_large_ones_at_half_of_the_context(
    models: tuple[CompiledModel, CompiledModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    joined: list[int] = []
    original = pages.join_pages
    monkeypatch.setattr(pages, "LARGE_BYTES", 1)
    monkeypatch.setattr(pages, "join_pages", lambda m: (joined.append(len(m)), original(m)))
    plain, limited = map(Generator, models)
    for count in (100, 60, 1, 1):
        ids = np.random.default_rng(count).integers(0, WORDS, count).tolist()
        assert plain.feed(ids).tobytes() == limited.feed(ids).tobytes()
        assert len(joined) == (2 if len(limited.tokens) - count > 160 else 0)  # both have room for 320 tokens


def feeds(rows: int, count: int, seed: int) -> dict[str, Array]:
    return {
        "input_ids": np.random.default_rng(seed).integers(0, WORDS, (rows, count)),
        "attention_mask": np.ones((rows, count), np.int64),
        "position_ids": np.tile(np.arange(count), (rows, 1)),
        "beam_idx": np.arange(rows, dtype=np.int32),
    }


@pytest.mark.slow
def test_a_sequence_fills_its_context_with_the_same_bits(models: tuple[CompiledModel, CompiledModel]) -> None:
    plain, limited = map(Generator, models)
    rng = np.random.default_rng(0)
    for count in (3, 1, 150, 1, 95):
        ids = rng.integers(0, WORDS, count).tolist()
        assert plain.feed(ids).tobytes() == limited.feed(ids).tobytes()
    assert len(limited.tokens) == CONTEXT
    with pytest.raises(UsageError, match=rf"at most {CONTEXT} \(--max-context\), got .* = {CONTEXT + 1}"):
        limited.feed([1])
    for generator in (plain, limited):
        generator.truncate(100)
    assert plain.feed([7]).tobytes() == limited.feed([7]).tobytes()
    limited.restore(plain.save())
    assert plain.feed([9, 9]).tobytes() == limited.feed([9, 9]).tobytes()
    limited.reset()
    limited.feed([1] * CONTEXT)


@pytest.mark.slow
def test_a_prompt_beyond_the_context_leaves_the_sequence_as_it_was(
    models: tuple[CompiledModel, CompiledModel],
) -> None:
    plain, limited = map(Generator, models)
    with pytest.raises(UsageError, match="max-context"):
        limited.feed([1] * (CONTEXT + 1))
    assert plain.feed([5, 1]).tobytes() == limited.feed([5, 1]).tobytes()
    with pytest.raises(UsageError, match="max-context"):
        limited.feed([1] * CONTEXT)
    assert plain.feed([3]).tobytes() == limited.feed([3]).tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 20])
def test_only_the_last_logits_are_given(models: tuple[CompiledModel, CompiledModel], count: int) -> None:
    plain, last = (m.create_infer_request() for m in models)
    feed = feeds(3, count, count)
    every = plain.infer({t.name: feed[t.name] for t in models[0].inputs})[0]
    found = last.infer({t.name: feed[t.name] for t in models[1].inputs})[0]
    assert models[1].outputs[0].shape[1:] == (1, WORDS)
    assert found.tobytes() == np.ascontiguousarray(every[:, -1:]).tobytes()


def test_rows_of_beams_fill_the_context() -> None:
    graph, wanted = attention(), attention()
    plain, limited = compile_model(wanted), compile_model(graph, max_context=200)
    one, other = plain.create_infer_request(), limited.create_infer_request()
    for x, rows in ((new(2, 150), beams(0, 1)), (new(3, 2, 1), beams(1, 0, 1)), (new(4, 48, 2), beams(0, 1, 2, 0))):
        np.testing.assert_array_equal(one.infer([x, rows])[0], other.infer([x, rows])[0])


def stateless() -> Graph:
    graph = Graph("stateless")
    b, x = Builder(graph), parameter(graph, "x", Var("n", None, 1), WIDTH)
    result(graph, b.MatMul(x, b.const(np.ones((WIDTH, 3)), DType.F32)))
    return graph


def test_other_networks_are_refused() -> None:
    for refused in (LimitContext(16), LastLogits()):
        with pytest.raises(UsageError, match="must be a language model"):
            refused(stateless())
    with pytest.raises(UsageError, match=r"--last-logits: .* got outputs Result"):
        LastLogits()(attention())  # its result is a sum
    for context in (0, -1, MAX_CONTEXT + 1):
        with pytest.raises(UsageError, match=f"--max-context: must be 1 to {MAX_CONTEXT} tokens, got {context}"):
            LimitContext(context)(attention())
    graph = attention()
    assert append_variables(graph)
    assert LimitContext(16)(graph)
