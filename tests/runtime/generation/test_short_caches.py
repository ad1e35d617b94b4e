"""Keys and values in bf16: memory, and equal bits for any split of a prompt, number of threads and row of a batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aot import CompileOptions, compile_model, stages
from aot.runtime import Batch, CompiledModel, Generator, Sampling, load
from aot.runtime.abi import DType
from aot.runtime.generation.interface import step_inputs
from tests import libraries
from tests.frontends.gguf.networks import WORDS, Network

pytestmark = pytest.mark.slow  # its networks are compiled for seconds
NETWORK = Network("llama", "F32")
IDS = np.random.default_rng(4).integers(0, WORDS, 150).tolist()


@pytest.fixture(scope="module", params=[False, True], ids=["exact", "fast"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("caches")
    file = NETWORK.write(folder / "m.gguf")
    made = compile_model(file, precision="bf16", fast_math=request.param, row_lengths=True)
    made.export_model(folder / "m.so")
    return folder / "m.so"


@pytest.fixture(scope="module")
def model(library: Path) -> CompiledModel:
    return load(library, threads=1)


def test_a_token_takes_half_the_memory(model: CompiledModel) -> None:
    assert {info.tensor.dtype for info in model.manifest.variables} == {DType.BF16}
    request = model.create_infer_request()
    request.infer(step_inputs(IDS[:20], 0, {t.name for t in model.inputs}))
    elements = 2 * NETWORK.kept * NETWORK.head * 20  # keys and values
    assert sum(v.state.nbytes for v in request.query_state()) == 2 * elements


def test_chunks_threads_and_rows_have_the_bits_of_single_tokens(library: Path, model: CompiledModel) -> None:
    generator = Generator(model)
    wanted = [generator.feed([n]).tobytes() for n in IDS]
    for threads, size in ((1, 7), (2, 64), (3, 150)):
        generator = Generator(load(library, threads=threads))
        for at in range(0, len(IDS), size):
            part = IDS[at : at + size]
            assert generator.feed(part).tobytes() == wanted[at + len(part) - 1]
    batch = Batch(model)
    for end in (3, 149):
        alone = Generator(model)
        alone.feed(IDS[:end])
        batch.add(alone)
    assert [row.tobytes() for row in batch.step([IDS[3], IDS[149]])] == [wanted[3], wanted[149]]


def test_most_tokens_are_those_of_f32(library: Path, tmp_path: Path) -> None:
    """The greatest logit after each of 150 tokens; weights are random, so that some are close to the next one."""
    plain = Generator(load(libraries.library(NETWORK.write(tmp_path / "m.gguf"), tmp_path / "m.so")))
    short = Generator(load(library, threads=1))
    same = [int(plain.feed([n]).argmax() == short.feed([n]).argmax()) for n in IDS]
    assert sum(same) >= 0.9 * len(same)


def test_a_sequence_is_kept_elsewhere_and_truncated(model: CompiledModel) -> None:
    generator = Generator(model)
    generator.feed(IDS[:40])
    other = Generator(model)
    other.restore(generator.save())
    other.truncate(30)
    assert other.feed(IDS[30:50]).tobytes() == generator.feed(IDS[40:50]).tobytes()


def test_the_loop_inside_of_the_library_gives_the_same_tokens(library: Path) -> None:
    found = [Generator(load(library, threads=n)).generate(IDS[:9], 20, Sampling()) for n in (1, 2)]
    assert found[0] == found[1]
    assert len(found[0]) == 20


def test_tile_registers_sum_blocks_of_few_rows(tmp_path: Path) -> None:
    """Rows whose number is read at run time may fill no tile, so that tiles of a block cannot overlap."""
    file = NETWORK.write(tmp_path / "m.gguf")
    made = stages(file, CompileOptions(target="x86-64-v4-amx", precision="bf16", row_lengths=True, last_logits=False))
    assert "matrix=i" in made.text("groups")
    assert made.program.kernels
