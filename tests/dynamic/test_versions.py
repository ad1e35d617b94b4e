"""Versions for certain sizes beside the general one: one library, chosen by the sizes of each call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime
from aot.codegen.ir.program import Program
from aot.codegen.llvm.build import Built
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.ir.types import Array
from aot.options import CompileOptions
from aot.options.texts import specialise_of
from aot.runtime.abi import DType
from aot.runtime.describe import manifest_text
from aot.runtime.errors import UsageError
from aot.runtime.loading.library import read_manifest
from aot.runtime.model import CompiledModel
from tests.dynamic.networks import N, check, compiled, conv_net, mlp, parameter, result

DIMS = (("n", 1, 64),)


def noise(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def specialised(graph: Graph, *texts: str, **options: object) -> Compilation:
    asked: dict[str, Any] = {"dims": DIMS, "level": None, "specialise": specialise_of(texts)}
    return stages(graph, CompileOptions(**(asked | options)))


def ran(model: CompiledModel, *inputs: Array) -> list[int]:
    """Return the indices of the calls that an inference runs."""
    request = model.create_infer_request()
    request.enable_profiling()
    request.infer(list(inputs))
    return [i for i, call in enumerate(request.get_profiling_info()) if call.seconds]


@pytest.mark.parametrize(("made", "shape"), [(mlp, (20,)), (conv_net, (3, 17, 30))])
def test_every_version_computes_the_model(made: Callable[[], Graph], shape: tuple[int, ...]) -> None:
    asked = specialised(made(), "n=1,8")
    one, two = in_memory(asked.built, 1), in_memory(asked.built, 2)
    oracle = made()
    for n in (1, 2, 8, 64):
        x = noise(n, *shape)
        check(one, oracle, [x])
        assert all(np.array_equal(one(x)[i], two(x)[i]) for i in range(len(one.outputs)))


def test_sizes_choose_the_version() -> None:
    asked = specialised(mlp(), "n=1,8")
    model, versions = in_memory(asked.built, 1), asked.program.versions
    assert [v.sizes for v in versions] == [(("n", 1),), (("n", 8),)]
    assert versions[0].first == 0
    for n, first, end in ((1, 0, versions[0].end), (8, versions[1].first, versions[1].end), (2, versions[1].end, None)):
        found = ran(model, noise(n, 20))
        assert found == list(range(first, len(asked.program.calls) if end is None else end))


def test_dims_are_combined() -> None:
    asked = specialised(conv_net(), "n=1,2", "h=16")
    assert [v.sizes for v in asked.program.versions] == [
        (("n", 1), ("h", 16)),
        (("n", 2), ("h", 16)),
    ]


def arena(model: CompiledModel, x: Array) -> int:
    request = model.create_infer_request()
    request.infer(x)
    return request._space.arena.nbytes


def test_memory_is_that_of_the_version() -> None:
    model = in_memory(specialised(conv_net(), "n=1").built, 1)
    x = noise(1, 3, 40, 40)
    fixed = compiled(conv_net(), shapes=(("x", (1, 3, "?", "?")),))
    assert arena(fixed, x) <= arena(model, x) <= arena(fixed, x) + 4096
    assert arena(model, noise(2, 3, 40, 40)) > 1.5 * arena(model, x)


def bytes_of(program: Program) -> int:
    return program.constant_bytes


def test_equal_weights_are_stored_once() -> None:
    alone = stages(mlp(), CompileOptions(level=None)).program
    several = specialised(mlp(), "n=16,32").program
    assert bytes_of(several) < 2 * bytes_of(alone)
    data = [b"".join(piece.tobytes() for piece in block.pieces()) for block in several.constants]
    assert len(set(data)) == len(data)


def test_one_file_holds_versions_and_levels(tmp_path: Path) -> None:
    asked = specialised(mlp(), "n=1", target="x86-64-v2,v3")
    asked.built.write_shared(tmp_path / "m.so")
    model = runtime.load(tmp_path / "m.so")
    for n in (1, 3):
        check(model, mlp(), [noise(n, 20)])
    text = manifest_text(read_manifest(tmp_path / "m.so"), tmp_path / "m.so")
    assert "version  n=1: " in text
    assert "version  all other sizes: " in text
    assert "level    x86-64-v3" in text


def test_equal_models_give_equal_bytes() -> None:
    one, two = (specialised(mlp(), "n=1,8").built for _ in range(2))
    assert isinstance(one, Built)
    assert isinstance(two, Built)
    assert (one.code, one.manifest) == (two.code, two.manifest)


def counted() -> Graph:
    """y = the places of what is not zero in x; a size that only data says, in every version by a name of its own."""
    graph = Graph("counted")
    build = Builder(graph)
    result(graph, build.NonZero(parameter(graph, "x", N, 4), output_type=DType.I64))
    return graph


def test_sizes_from_data_in_every_version() -> None:
    model = in_memory(specialised(counted(), "n=2").built, 1)
    for n in (1, 2, 3):
        x = noise(n, 4)
        x[:, 1] = 0
        np.testing.assert_array_equal(model(x)[0], np.array(np.nonzero(x)))
    assert model.outputs[0].late


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        (["bach=1"], {}, "no dimension that varies is called 'bach', there are n"),
        (["n=0"], {}, "--specialise n: the dimension is 1 to 64, got 0"),
        (["n=65"], {}, "--specialise n: the dimension is 1 to 64, got 65"),
        (["n=8,1,8"], {}, "--specialise n: each size must be given once, got 8 twice"),
        (["n=1", "n=8"], {}, "--specialise n: all sizes must be in one option"),
        (["n=4"], {"dims": (("n", 4, 4),)}, "n: a dimension that varies, got one that is always 4"),
        (["x.d1=20"], {}, "--specialise x.d1: a dimension that varies, got one that is always 20"),
        ([f"n={','.join(map(str, range(1, 34)))}"], {}, "at most 32 versions, one for each combination, got 33"),
    ],
)
def test_invalid_versions_are_refused(texts: list[str], options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as error:
        _ = specialised(mlp(), *texts, **options).program
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["n", "n=", "=1", "n=1,,2", "n=1..8", "n=-1"])
def test_malformed_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="specialise: must be NAME=SIZE,SIZE"):
        specialise_of([text])
