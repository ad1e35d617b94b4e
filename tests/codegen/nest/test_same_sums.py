"""Sums along memory have the same partial sums on targets with vectors of 128, 256 and 512 bits."""

from __future__ import annotations

import numpy as np
import pytest

import aot
from aot.codegen.llvm.host import parse_target
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from tests.codegen.emulated_tiles import runs
from tests.passes.check import graph_of

LENGTHS = (7, 13, 24, 49, 77, 200, 1000)
LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")


def sums(b: Builder, *rows: OutPort) -> OutPort:
    """Return sums and means of all rows, which need no multiply-add: x86-64-v2 has none."""
    last = b.const(np.array([-1]), DType.I64)
    return b.Concat(*(found for x in rows for found in (b.ReduceSum(x, last), b.ReduceMean(x, last))), axis=0)


@pytest.mark.parametrize("level", LEVELS[1:])
def test_sums_along_memory_have_equal_bytes(level: str) -> None:
    if not runs(parse_target(level)):
        pytest.skip(f"this processor has no {level}")
    graph = graph_of(sums, *((3, length) for length in LENGTHS))
    rng = np.random.default_rng(5)
    rows = [rng.standard_normal((3, length), dtype=np.float32) for length in LENGTHS]
    least, other = (np.asarray(aot.compile_model(graph, target=name)(rows)[0]) for name in (LEVELS[0], level))
    np.testing.assert_allclose(least[:3], rows[0].sum(-1), rtol=1e-5)
    assert least.tobytes() == other.tobytes()
