"""Bytes looked up in tables of 256: all targets find the same, whatever the length of a vector."""

from __future__ import annotations

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Expr, Load, Space, Var, cast, dense, prim
from aot.codegen.ir.schedule import Schedule, Tail, Tile
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.nest.nest import apply
from aot.codegen.target import Target
from aot.runtime.abi import DType
from tests.codegen.emulated_tiles import runs
from tests.codegen.llvm.test_byte_stores import levels
from tests.codegen.running import Array, aligned, compiled

COLUMNS = 256 + 61  # vectors of all lengths
NUMPY = {DType.U8: np.uint8, DType.I8: np.int8}
VBMI = "x86-64-v4-amx"
TARGETS = [t for t in ("x86-64-v2", "x86-64-v3", "x86-64-v4", VBMI) if runs(Target.parse(t))]
PERMUTED = {
    "x86-64-v2": "load i8",
    "x86-64-v3": "avx2.pshuf.b",
    "x86-64-v4": "vpermi2var.d.512",
    VBMI: "vpermi2var.qi",
}


def table(dtype: DType) -> tuple[Load, Array]:
    data = np.random.default_rng(0).permutation(256).astype(np.uint8).view(NUMPY[dtype])
    return dense("t", 256, space=Space.TABLE, dtype=dtype, values=tuple(data.tolist()))[0], data


def unsigned(q: Expr) -> Expr:
    return q if q.dtype is DType.U8 else prim("bits", q, dtype=DType.U8)


def plan(lanes: int) -> Schedule:
    return Schedule(tile=(Tile("j", 4 * lanes, Tail.CUT),), lanes=("j", lanes) if lanes > 1 else None)


def looked_up(stored: DType, given: DType) -> tuple[Definition, tuple[Buffer, ...]]:
    j, x, y = Var("j", COLUMNS), dense("x", COLUMNS, dtype=given), dense("y", COLUMNS, dtype=stored)
    return Definition(y, (j,), prim("lookup", table(stored)[0], unsigned(x[j]))), (x, y)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("given", [DType.U8, DType.I8])
@pytest.mark.parametrize("stored", [DType.U8, DType.I8])
def test_every_byte(stored: DType, given: DType, name: str) -> None:
    target = Target.parse(name)
    x = np.resize(np.arange(256, dtype=np.uint8), COLUMNS)
    expected = table(stored)[1][x]
    for lanes in (1, 4, 16, target.lanes(DType.U8)):
        d, params = looked_up(stored, given)
        y: Array = aligned(np.zeros(COLUMNS, NUMPY[stored]))
        compiled(apply("k", d, plan(lanes), params), target)(aligned(x), y)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize(
    ("level", "zero"), [(DType.U8, 0), (DType.U8, 121), (DType.I8, 0), (DType.I8, 7), (DType.I8, -9)]
)
def test_levels_that_are_looked_up_and_stored(level: DType, zero: int, name: str) -> None:
    target, j = Target.parse(name), Var("j", COLUMNS)
    x, y = dense("x", COLUMNS), dense("y", COLUMNS, dtype=DType.U8)
    first, data = table(DType.U8)
    d = Definition(y, (j,), prim("lookup", first, unsigned(levels(x[j], level, zero))))
    given = np.random.default_rng(0).uniform(-300, 300, COLUMNS).astype(np.float32)
    given[:3] = np.inf, -np.inf, 1e30
    info = np.iinfo(NUMPY[level])
    byte = np.clip(np.rint(given) + zero, info.min, info.max).astype(NUMPY[level])
    found: Array = aligned(np.zeros(COLUMNS, np.uint8))
    compiled(apply("k", d, plan(target.lanes(DType.F32)), (x, y)), target)(aligned(given), found)
    np.testing.assert_array_equal(found, data[byte.view(np.uint8)])


@pytest.mark.parametrize("name", TARGETS)
def test_numbers_that_are_computed_with(name: str) -> None:
    target, j = Target.parse(name), Var("j", COLUMNS)
    x, b, y = dense("x", COLUMNS, dtype=DType.U8), dense("b", COLUMNS), dense("y", COLUMNS)
    first, data = table(DType.I8)
    d = Definition(y, (j,), cast(prim("lookup", first, x[j]), DType.F32) * 2 + b[j])
    given, added = np.resize(np.arange(256, dtype=np.uint8), COLUMNS), np.arange(COLUMNS, dtype=np.float32)
    found: Array = aligned(np.zeros(COLUMNS, np.float32))
    compiled(apply("k", d, plan(target.lanes(DType.F32)), (x, b, y)), target)(aligned(given), aligned(added), found)
    np.testing.assert_array_equal(found, data.astype(np.float32)[given] * 2 + added)


@pytest.mark.parametrize("name", PERMUTED)
def test_instructions(name: str) -> None:
    d, params = looked_up(DType.U8, DType.U8)
    target = Target.parse(name)
    text = emit(apply("k", d, plan(target.lanes(DType.U8)), params), target=target).text()
    assert PERMUTED[name] in text
