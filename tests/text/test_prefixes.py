"""Beginnings that were computed before: the bits of sequences without them, the bound of memory, and which go first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aot import compile_model
from aot.runtime import CompiledModel, Generator, load
from aot.runtime.errors import UsageError
from aot.text.prefixes import BLOCK, Prefixes
from tests.frontends.gguf.networks import WORDS, Network

IDS = np.random.default_rng(2).integers(0, WORDS, 3 * BLOCK + 5).tolist()
NETWORK = Network("gemma3", "Q8_0", window=16, layers=2)  # its windows are shorter than a block


@pytest.fixture(scope="module", params=["f32", "bf16"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CompiledModel:
    folder = tmp_path_factory.mktemp("prefixes")
    compile_model(NETWORK.write(folder / "m.gguf"), precision=request.param).export_model(folder / "m.so")
    return load(folder / "m.so", threads=1)


def begun(prefixes: Prefixes, model: CompiledModel, ids: list[int]) -> int:
    """Return how many tokens are known; the rest has the bits that it has without them, and so has what follows."""
    generator, alone = Generator(model), Generator(model)
    count = prefixes.begin(generator, ids)
    assert generator.tokens == tuple(ids[:count])
    assert generator.feed(ids[count:]).tobytes() == alone.feed(ids).tobytes()
    assert generator.feed([7]).tobytes() == alone.feed([7]).tobytes()
    generator.truncate(len(ids))
    prefixes.keep(generator)
    return count


def test_equal_beginnings_are_computed_once(model: CompiledModel) -> None:
    prefixes = Prefixes(model, 1 << 24)
    assert begun(prefixes, model, IDS) == 0
    assert begun(prefixes, model, IDS) == 3 * BLOCK
    assert begun(prefixes, model, IDS[: 2 * BLOCK]) == BLOCK  # a token is left to feed
    assert begun(prefixes, model, IDS[: 2 * BLOCK + 1]) == 2 * BLOCK
    other = [*IDS[: BLOCK + 3], (IDS[BLOCK + 3] + 1) % WORDS, *IDS[BLOCK + 4 :]]
    assert begun(prefixes, model, other) == BLOCK
    assert begun(prefixes, model, other) == 3 * BLOCK
    assert begun(prefixes, model, IDS[1:]) == 0


def test_a_folder_keeps_them_for_another_process(model: CompiledModel, tmp_path: Path) -> None:
    """Files that are damaged count as none; those of the last sequence stay where there is no room."""
    assert begun(Prefixes(model, 1 << 24, tmp_path), model, IDS) == 0
    assert begun(Prefixes(model, 1 << 24, tmp_path), model, IDS) == 3 * BLOCK
    files = sorted(tmp_path.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    size = files[0].stat().st_size
    files[2].write_bytes(files[2].read_bytes()[:-1] + b"?")
    assert begun(Prefixes(model, 1 << 24, tmp_path), model, IDS) == 2 * BLOCK
    assert begun(Prefixes(model, 4 * size // 8, tmp_path), model, IDS[::-1]) == 0
    assert len(list(tmp_path.iterdir())) <= 4
    with pytest.raises(UsageError, match="--cache: must be a folder, got"):
        Prefixes(model, 1 << 24, files[0])


def test_blocks_that_were_not_used_go_first(model: CompiledModel) -> None:
    prefixes = Prefixes(model, 1 << 24)
    begun(prefixes, model, IDS)
    block = prefixes.nbytes // 3
    prefixes = Prefixes(model, 4 * block)
    begun(prefixes, model, IDS)
    assert begun(prefixes, model, IDS[::-1]) == 0
    assert prefixes.nbytes == 4 * block
    assert begun(prefixes, model, IDS) == BLOCK  # ends go before beginnings
    assert begun(prefixes, model, IDS[::-1]) == BLOCK
    small = Prefixes(model, block // 2)
    begun(small, model, IDS)
    assert (small.nbytes, begun(small, model, IDS)) == (0, 0)
