"""Attention over numbers of tokens that each call brings: bits of all targets, of few rows and of many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest

from aot.codegen.ir.loops import Var
from aot.codegen.llvm.host import parse_target
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import Graph
from aot.ir.types import Array
from aot.lowering.ir.steps import BranchControl
from aot.opset.control.infrastructure import Parameter, Result
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.codegen.emulated_tiles import runs, tile_registers

FAST = "x86-64-v4-bf16 fast"
TARGETS = ("x86-64-v3", "x86-64-v4", "x86-64-v4-amx", FAST)
HERE = [t for t in TARGETS if runs(parse_target(t.split()[0]))]
LENGTHS = ((1, 1), (1, 33), (3, 100), (31, 31), (32, 32), (33, 33), (47, 64), (48, 31), (50, 32), (100, 1), (129, 77))
HEADS, SHARED, SIZE = 4, 2, 32  # heads of queries, and of the keys and values that two of them read each


@pytest.fixture(autouse=True)
def tiles_everywhere() -> Iterator[None]:
    with tile_registers():
        yield


@cache
def made(name: str) -> Compilation:
    graph = Graph()
    b = Builder(graph)
    rows, tokens = Var("n", 1 << 12), Var("m", 1 << 12)
    shapes = (SHARED, HEADS // SHARED, rows, SIZE), (SHARED, 1, tokens, SIZE), (SHARED, 1, tokens, SIZE)
    q, k, v = (b(Parameter(DType.F32, s), name=f"x{i}") for i, s in enumerate(shapes))
    b(Result(), b.MatMul(b.Softmax(b.MatMul(q, k, transpose_b=True), axis=-1), v), name="y")
    target, *fast = name.split()
    options = CompileOptions(level=None, target=target, precision="bf16", fast_math=bool(fast), verify=True)
    return stages(graph, options)


@cache
def loaded(name: str) -> Callable[[list[Array]], Array]:
    model = in_memory(made(name).built, threads=1)
    return lambda inputs: np.asarray(model(*inputs)[0]).copy()


def inputs(rows: int, tokens: int) -> list[Array]:
    rng = np.random.default_rng(rows + 1000 * tokens)
    shapes = (SHARED, HEADS // SHARED, rows, SIZE), (SHARED, 1, tokens, SIZE), (SHARED, 1, tokens, SIZE)
    return [(rng.standard_normal(s) * factor).astype(np.float32) for s, factor in zip(shapes, (0.2, 1, 1), strict=True)]


def expected(q: Array, k: Array, v: Array) -> Array:
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(2, 3)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True) @ v.astype(np.float64)


@pytest.mark.parametrize("name", HERE)
def test_results_are_numpys_and_equal_on_all_targets(name: str) -> None:
    for rows, tokens in LENGTHS:
        x = inputs(rows, tokens)
        wanted, found = expected(*x), loaded(name)(x)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=0.02 * np.abs(wanted).max(), err_msg=f"{rows} {tokens}")
        if name != FAST:
            assert found.tobytes() == loaded(HERE[0])(x).tobytes()


@pytest.mark.parametrize("name", HERE)
def test_a_row_has_the_same_bits_alone_and_among_others(name: str) -> None:
    q, k, v = inputs(100, 77)
    run = loaded(name)
    whole = run([q, k, v])
    for begin, end in ((0, 1), (7, 50), (40, 87), (40, 88), (2, 100)):
        part = run([np.ascontiguousarray(q[:, :, begin:end]), k, v])
        np.testing.assert_array_equal(part, whole[:, :, begin:end])


@pytest.mark.parametrize("name", HERE)
def test_many_rows_read_words(name: str) -> None:
    """Targets with dots of two terms choose by the number of rows; the others read columns in place."""
    compilation = made(name)
    words = [n for n in compilation.steps.values if n.endswith(".words")]
    choices = [s for s in compilation.steps.steps if isinstance(s.control, BranchControl)]
    assert len(words) == (2 if name in (FAST, "x86-64-v4-amx") else 0)
    assert bool(choices) == bool(words)
    assert ("matrix=" in compilation.groups) == (name == "x86-64-v4-amx")
