"""Sums of a million terms and more: their error is that of a block; short sums keep their bits."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Expr, Load, Reduce, Var, dense
from aot.codegen.ir.schedule import Schedule
from aot.codegen.llvm.host import parse_target
from aot.codegen.nest.nest import apply
from aot.codegen.nest.sums import lane_sums, reduction
from aot.codegen.nest.sums.long_sums import CHAIN
from aot.runtime.abi import DType
from tests.codegen.running import aligned, compiled

TERMS = 1_200_000
ROUNDING = 1e-5  # relative; one chain of f32 errs by 1e-3 and more
OUTER = {"lanes": (), "nested": (40,), "deeply nested": (3, 400), "many": (400_000,)}


def summed(name: str, outer: tuple[int, ...], varying: bool, *, squared: bool = False, columns: int = 0) -> np.ndarray:
    """The sum of `TERMS` times 0.1, or its square; along memory, or of rows of `columns` numbers."""
    last = TERMS // int(np.prod(outer, dtype=np.int64))
    extents = (*outer, last)
    size = Var("n")
    whole = tuple(Var(f"r{a}", size if varying and a == len(outer) else n) for a, n in enumerate(extents))
    c = Var("c", columns or 1)
    shape = (*(a.extent for a in whole), columns or 1)
    strides = [1]
    for n in reversed(shape[1:]):
        strides.insert(0, strides[0] * (n if isinstance(n, int) else last))
    x, y = Buffer("x", shape, tuple(strides)), dense("y", columns or 1)
    term: Expr = Load(x, (*whole, c))
    work = Definition(y, (c,), Reduce("add", whole, term * term if squared else term))
    lanes = parse_target("native").sum_lanes(DType.F32)
    plan = Schedule(lanes=("c", columns)) if columns else Schedule(lanes=(whole[-1].name, lanes), partials=4)
    call = compiled(apply(name, work, plan, (x, y), sizes=(size,) if varying else ()))
    data = np.full((TERMS, columns or 1), 0.1, np.float32)
    out = aligned(np.zeros(columns or 1, np.float32))
    call(aligned(data), out, *((last,) if varying else ()))
    return out


@pytest.mark.parametrize("varying", [False, True], ids=["known", "varying"])
@pytest.mark.parametrize("squared", [False, True], ids=["terms", "squares"])
@pytest.mark.parametrize("outer", OUTER)
def test_the_error_of_a_long_sum_is_small(outer: str, squared: bool, varying: bool) -> None:
    right = TERMS * float(np.float32(0.1)) ** (1 + squared)
    found = summed(f"sum_{outer[0]}{squared:d}{varying:d}", OUTER[outer], varying, squared=squared)
    np.testing.assert_allclose(found, right, rtol=ROUNDING)


@pytest.mark.parametrize("varying", [False, True], ids=["known", "varying"])
@pytest.mark.parametrize("outer", [(), (300,)], ids=["flat", "nested"])
def test_the_error_of_long_columns_is_small(outer: tuple[int, ...], varying: bool) -> None:
    found = summed(f"columns{len(outer)}{varying:d}", outer, varying, columns=8)
    np.testing.assert_allclose(found, TERMS * float(np.float32(0.1)), rtol=ROUNDING)


@pytest.mark.parametrize("columns", [1, 8], ids=["lanes", "columns"])
def test_short_sums_of_a_number_that_varies_keep_their_bits(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    n, c = Var("n"), Var("c", columns)
    k = Var("k", n)
    x, y = Buffer("x", (n, columns), (columns, 1)), dense("y", columns)
    work = Definition(y, (c,), Reduce("add", (k,), x[k, c]))
    plan = Schedule(lanes=("c", columns)) if columns > 1 else Schedule(lanes=("k", 8), partials=4)
    long = compiled(apply("long", work, plan, (x, y), sizes=(n,)))
    for module in (lane_sums, reduction):
        monkeypatch.setattr(module, "is_long", lambda *_: False)
    plain = compiled(apply("plain", work, plan, (x, y), sizes=(n,)))
    most = (CHAIN if columns > 1 else CHAIN * 32) - 1
    data = aligned(np.random.default_rng(0).standard_normal((most, columns)).astype(np.float32))
    for length in (0, 1, 100, most // 2, most):
        found = [aligned(np.zeros(columns, np.float32)) for _ in range(2)]
        for call, out in zip((long, plain), found, strict=True):
            call(data, out, length)
        assert found[0].tobytes() == found[1].tobytes()
