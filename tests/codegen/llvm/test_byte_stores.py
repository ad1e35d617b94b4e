"""Bytes side by side: vectors packed to bytes hold the numbers that each would hold alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Expr, Var, cast, dense, prim
from aot.codegen.ir.schedule import Schedule, Tail, Tile
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.nest.nest import apply
from aot.codegen.target import Target
from aot.runtime.abi import DType
from tests.codegen.emulated_tiles import runs
from tests.codegen.llvm.test_clamped import clamp, expected, floats, limits
from tests.codegen.running import Array, aligned, compiled

WIDE = Target.parse("x86-64-v4")
runs_wide = pytest.mark.skipif(not runs(WIDE), reason="this machine has no AVX-512")


def levels(x: Expr, t: DType, zero: int) -> Expr:
    low, high = limits(t)
    whole = prim("round_even", x)
    return cast(clamp(whole + float(zero) if zero else whole, low, high), t)


def work(columns: int, t: DType, zero: int, pitch: int = 0) -> tuple[Definition, tuple[Buffer, ...]]:
    """Rows of bytes, which lie `pitch` bytes apart from each other."""
    i, j = Var("i", 3), Var("j", columns)
    x, y = dense("x", 3, columns), dense("y", 3, columns, dtype=t)
    y = replace(y, strides=(columns + pitch, 1))
    return Definition(y, (i, j), levels(x[i, j], t, zero)), (x, y)


def packs(columns: int, t: DType, zero: int) -> str:
    d, params = work(columns, t, zero)
    plan = Schedule(tile=(Tile("j", columns, Tail.CUT),), lanes=("j", 16))
    return emit(apply("k", d, plan, params), target=WIDE).text()


@runs_wide
@pytest.mark.parametrize(("t", "zero"), [(DType.U8, 0), (DType.U8, 121), (DType.I8, 0), (DType.I8, 7), (DType.I8, -9)])
@pytest.mark.parametrize("columns", [16, 32, 48, 64, 127])
def test_packed_bytes_saturate(columns: int, t: DType, zero: int) -> None:
    special = floats(t, "f4")
    x = np.resize(special, (3, columns)).astype(np.float32)
    x[1] = np.roll(np.resize(special, columns), 5)
    d, params = work(columns, t, zero, pitch=3)
    plan = Schedule(tile=(Tile("j", columns, Tail.CUT),), lanes=("j", 16))
    y: Array = aligned(np.zeros(3 * (columns + 3), np.uint8 if t is DType.U8 else np.int8))
    compiled(apply("k", d, plan, params), WIDE)(aligned(x), y)
    low, high = limits(t)
    rounded = np.rint(x.astype(np.float64)) + zero
    rows = y.reshape(3, columns + 3)
    np.testing.assert_array_equal(rows[:, :columns].ravel(), expected(rounded.ravel(), low, high, t))
    assert not rows[:, columns:].any()


@pytest.mark.parametrize(("columns", "words", "stores"), [(16, 0, 1), (32, 1, 1), (48, 1, 2), (64, 2, 1), (80, 2, 2)])
def test_up_to_four_vectors_become_one(columns: int, words: int, stores: int) -> None:
    text = packs(columns, DType.U8, 0)
    assert text.count("call <32 x i16> @llvm.x86.avx512.packssdw.512") == words
    assert text.count("  store ") == stores


def test_stores_that_packing_would_change_are_not_packed() -> None:
    d, params = work(64, DType.I8, -9)
    j = Var("j", 64)
    x, y = dense("x", 64), dense("y", 64, dtype=DType.U8)
    narrow = Definition(y, (j,), cast(clamp(prim("round_even", x[j]), 0, 100), DType.U8))
    cut = Definition(y, (j,), cast(clamp(x[j], 0, 255), DType.U8))
    again = Definition(y, (j,), levels(x[j] + cast(y[j], DType.F32), DType.U8, 0))
    plan = Schedule(tile=(Tile("j", 64, Tail.CUT),), lanes=("j", 16))
    for one, buffers in ((d, params), *((e, (x, y)) for e in (narrow, cut, again))):
        for target in (WIDE, Target.parse("x86-64-v3")):
            assert "pack" not in emit(apply("k", one, plan, buffers), target=target).text()
