"""Columns of products of data in words of two terms: which are copied, and that results keep their bits."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen import costs
from aot.codegen.llvm.host import parse_target
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.options import CompileOptions
from aot.runtime.machine import missing_features
from tests.passes.check import Make, graph_of, values

PAIRS = "x86-64-v4-bf16"
LACKS = missing_features(parse_target(PAIRS).isa_features)
NEEDS_PAIRS = pytest.mark.skipif(bool(LACKS), reason=f"this machine lacks {LACKS}")
Shapes = tuple[tuple[int, ...], ...]  # of queries, keys and values: heads, tokens, elements
PLAIN: Shapes = ((2, 64, 32), (2, 64, 32), (2, 64, 48))
ODD: Shapes = ((3, 50, 32), (3, 65, 32), (3, 65, 17))  # terms and columns that fill no word and no vector
GROUPED: Shapes = ((1, 700, 16), (1, 1024, 16), (1, 1024, 16))  # scores exceed L2; rows of words 4 KiB apart


def attention(b: Builder, q: OutPort, k: OutPort, v: OutPort) -> OutPort:
    return b.MatMul(b.Softmax(b.MatMul(q, k, transpose_b=True), axis=-1), v)


def two_readers(b: Builder, q: OutPort, k: OutPort, v: OutPort) -> OutPort:
    """Two products read the same keys."""
    scores = [b.MatMul(b.Multiply(q, factor), k, transpose_b=True) for factor in (0.5, 2.0)]
    return b.MatMul(b.Softmax(b.Subtract(*scores), axis=-1), v)


def made(make: Make, shapes: Shapes, target: str = PAIRS) -> Compilation:
    options = CompileOptions(level=None, target=target, precision="bf16", fast_math=True, verify=True)
    return stages(graph_of(make, *shapes), options)


def words(made: Compilation) -> int:
    return sum(name.endswith(".words") for name in made.steps.values)


@NEEDS_PAIRS
@pytest.mark.parametrize(("make", "shapes"), [(two_readers, PLAIN), (attention, ODD), (attention, GROUPED)])
def test_results_are_those_of_columns_in_rows(make: Make, shapes: Shapes, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = values(*shapes)
    copied = made(make, shapes)
    assert words(copied) == 2
    found = np.asarray(in_memory(copied.built, threads=2)(*inputs)[0]).copy()
    monkeypatch.setattr(costs.COSTS, "min_word_rows", 1 << 30)
    plain = made(make, shapes)
    assert words(plain) == 0
    assert found.tobytes() == np.asarray(in_memory(plain.built, threads=1)(*inputs)[0]).tobytes()


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4", "x86-64-v4-amx"])
def test_other_targets_have_no_words(target: str) -> None:
    assert words(made(attention, PLAIN, target)) == 0


def test_few_rows_read_columns_where_they_lie() -> None:
    assert words(made(attention, ((2, 8, 32), (2, 64, 32), (2, 64, 48)))) == 0


def test_columns_that_one_head_shares_with_others_are_copied_once() -> None:
    """Four heads of queries multiply the same keys and values: their rows count together."""
    assert words(made(attention, ((4, 16, 32), (1, 64, 32), (1, 64, 48)))) == 2
