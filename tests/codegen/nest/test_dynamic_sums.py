"""Sums along a dynamic axis in lanes: their order does not depend on how many terms there are."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Reduce, Var, dense
from aot.codegen.ir.schedule import Schedule
from aot.codegen.llvm.host import parse_target
from aot.codegen.nest.nest import apply
from aot.runtime.abi import DType
from tests.codegen.running import aligned, compiled

LENGTHS = (1, 5, 15, 16, 17, 63, 64, 65, 100, 129, 200)
MOST = 256


@pytest.mark.parametrize("target", ["native", "x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize("parts", [1, 2], ids=["flat", "nested"])
@pytest.mark.parametrize("squared", [False, True], ids=["terms", "products"])
def test_zeros_behind_a_sum_keep_its_bits(target: str, parts: int, squared: bool) -> None:
    n = Var("n")
    p, k, i = Var("p", parts), Var("k", n), Var("i", 1)
    x, y = Buffer("x", (parts, n), (MOST, 1)), dense("y", 1)
    term = x[p, k]
    work = Definition(y, (i,), Reduce("add", (p, k), term * term if squared else term))
    machine = parse_target(target)
    plan = Schedule(lanes=("k", machine.sum_lanes(DType.F32)), partials=4)
    call = compiled(apply("sums", work, plan, (x, y), sizes=(n,)), machine)
    data = np.random.default_rng(0).standard_normal((parts, MOST)).astype(np.float32)
    for length in LENGTHS:
        some = data.copy()
        some[:, length:] = 0
        found = set[bytes]()
        for count in (*(m for m in LENGTHS if m >= length), MOST):
            out = aligned(np.zeros(1, np.float32))
            call(aligned(some), out, count)
            found.add(out.tobytes())
        assert len(found) == 1
        expected = (some.astype(np.float64) ** (1 + squared)).sum()
        np.testing.assert_allclose(np.frombuffer(found.pop(), np.float32), expected, rtol=1e-5, atol=1e-5)


def test_nothing_past_the_end_is_read() -> None:
    n = Var("n")
    k, i = Var("k", n), Var("i", 1)
    x, y = Buffer("x", (n,), (1,)), dense("y", 1)
    work = Definition(y, (i,), Reduce("max", (k,), x[k]))
    call = compiled(apply("most", work, Schedule(lanes=("k", 8), partials=4), (x, y), sizes=(n,)))
    data = np.full(MOST, np.nan, np.float32)
    for length in LENGTHS:
        data[:length] = -np.arange(1, length + 1)
        out = aligned(np.zeros(1, np.float32))
        call(aligned(data), out, length)
        assert out[0] == -1
