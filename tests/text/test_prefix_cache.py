"""Beginnings that were computed before: the bits of sequences without them, the bound of memory, and which go first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aot import compile_model
from aot.runtime import CompiledModel, Generator, load
from aot.runtime.errors import UsageError
from aot.text.prefix_cache import BLOCK, PrefixCache
from tests.frontends.gguf.networks import WORDS, Network

IDS = np.random.default_rng(2).integers(0, WORDS, 3 * BLOCK + 5).tolist()
NETWORK = Network("gemma3", "Q8_0", window=16)  # its windows are shorter than a block


@pytest.fixture(scope="module", params=["f32", "bf16"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CompiledModel:
    folder = tmp_path_factory.mktemp("prefixes")
    compile_model(NETWORK.write(folder / "m.gguf"), precision=request.param).export_model(folder / "m.so")
    return load(folder / "m.so", threads=1)


def begun(prefix_cache: PrefixCache, model: CompiledModel, ids: list[int]) -> int:
    """Return how many tokens are known; the rest has the bits that it has without them, and so has what follows."""
    generator, alone = Generator(model), Generator(model)
    count = prefix_cache.begin(generator, ids)
    assert generator.tokens == tuple(ids[:count])
    assert generator.feed(ids[count:]).tobytes() == alone.feed(ids).tobytes()
    assert generator.feed([7]).tobytes() == alone.feed([7]).tobytes()
    generator.truncate(len(ids))
    prefix_cache.keep(generator)
    return count


@pytest.mark.slow
def test_equal_beginnings_are_computed_once(model: CompiledModel) -> None:
    prefix_cache = PrefixCache(model, 1 << 24)
    assert begun(prefix_cache, model, IDS) == 0
    assert begun(prefix_cache, model, IDS) == 3 * BLOCK
    assert begun(prefix_cache, model, IDS[: 2 * BLOCK]) == BLOCK  # a token is left to feed
    assert begun(prefix_cache, model, IDS[: 2 * BLOCK + 1]) == 2 * BLOCK
    other = [*IDS[: BLOCK + 3], (IDS[BLOCK + 3] + 1) % WORDS, *IDS[BLOCK + 4 :]]
    assert begun(prefix_cache, model, other) == BLOCK
    assert begun(prefix_cache, model, other) == 3 * BLOCK
    assert begun(prefix_cache, model, IDS[1:]) == 0


def test_a_folder_keeps_them_for_another_process(model: CompiledModel, tmp_path: Path) -> None:
    """Files that are damaged count as none; those of the last sequence stay where there is no room."""
    assert begun(PrefixCache(model, 1 << 24, tmp_path), model, IDS[: 2 * BLOCK + 1]) == 0
    first = set(tmp_path.iterdir())
    assert begun(PrefixCache(model, 1 << 24, tmp_path), model, IDS) == 2 * BLOCK
    [last] = set(tmp_path.iterdir()) - first
    size = last.stat().st_size
    assert begun(PrefixCache(model, 1 << 24, tmp_path), model, IDS) == 3 * BLOCK
    last.write_bytes(last.read_bytes()[:-1] + b"?")
    assert begun(PrefixCache(model, 1 << 24, tmp_path), model, IDS) == 2 * BLOCK
    assert begun(PrefixCache(model, 4 * size // 8, tmp_path), model, IDS[::-1]) == 0
    assert len(list(tmp_path.iterdir())) <= 4
    with pytest.raises(UsageError, match="--cache: must be a folder, got"):
        PrefixCache(model, 1 << 24, last)


def test_blocks_that_were_not_used_go_first(model: CompiledModel) -> None:
    prefix_cache = PrefixCache(model, 1 << 24)
    begun(prefix_cache, model, IDS)
    block = prefix_cache.nbytes // 3
    prefix_cache = PrefixCache(model, 4 * block)
    begun(prefix_cache, model, IDS)
    assert begun(prefix_cache, model, IDS[::-1]) == 0
    assert prefix_cache.nbytes == 4 * block
    assert begun(prefix_cache, model, IDS) == BLOCK  # ends go before beginnings
    assert begun(prefix_cache, model, IDS[::-1]) == BLOCK
    small = PrefixCache(model, block // 2)
    begun(small, model, IDS)
    assert (small.nbytes, begun(small, model, IDS)) == (0, 0)
