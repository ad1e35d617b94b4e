"""Functions of a definition's value, stored at each of its points, by every kind of nest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition, Result
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Reduce, Var, cast, dense, prim
from aot.codegen.ir.printer import definition_text, kernel_text
from aot.codegen.ir.schedule import Pack, Schedule, Tail, Tile
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.nest.nest import apply
from aot.codegen.target import Target
from aot.runtime.abi import DType
from tests.codegen.emulated_tiles import runs
from tests.codegen.running import aligned, compiled

ROWS, COLUMNS, TERMS = 7, 76, 24  # vectors of 16, 8 and 4 columns
AVX512 = Target.parse("x86-64-v4")


def work(value: Expr, axes: tuple[Var, ...], where: tuple[tuple[Expr, int], ...] = ()) -> Definition:
    """y[i, j], and two results: levels with a factor for each column, and numbers that lie across."""
    i, j = axes
    q, z = dense("q", ROWS, COLUMNS, dtype=DType.U8), dense("z", COLUMNS, ROWS)
    plain = Definition(dense("y", ROWS, COLUMNS), axes, value, where=where)
    point = Load(plain.point, (Const(0),))
    level = prim("min", prim("max", prim("round_even", point / dense("s", COLUMNS)[j]), 0.0), 255.0)
    results = Result(q, (i, j), cast(level, DType.U8)), Result(z, (j, i), point + 1.0)
    return Definition(plain.out, axes, value, where=where, results=results)


def buffers() -> tuple[Buffer, ...]:
    out = dense("y", ROWS, COLUMNS), dense("q", ROWS, COLUMNS, dtype=DType.U8), dense("z", COLUMNS, ROWS)
    return dense("a", ROWS, TERMS), dense("b", TERMS, COLUMNS), dense("s", COLUMNS), *out


def product() -> Definition:
    i, j, k = Var("i", ROWS), Var("j", COLUMNS), Var("k", TERMS)
    return work(Reduce("add", (k,), dense("a", ROWS, TERMS)[i, k] * dense("b", TERMS, COLUMNS)[k, j]), (i, j))


def plain(limit: int) -> Definition:
    i, j = Var("i", ROWS), Var("j", COLUMNS)
    value = dense("a", ROWS, TERMS)[i, Const(0)] * dense("b", TERMS, COLUMNS)[Const(3), j]
    return work(value, (i, j), ((i, limit),) if limit < ROWS else ())


PANELS = Pack("b", (1, 0), 1, 32)
WIDE = Tile("j", 32, Tail.CUT)
PLANS = {
    "loops": Schedule(),
    "lanes": Schedule(lanes=("j", 16)),
    "register tile": Schedule(order=("j", "i", "k"), tile=(Tile("i", 3), WIDE), lanes=("j", 16), parallel="j"),
    "panels": Schedule(order=("j", "i", "k"), tile=(Tile("i", 3), WIDE), lanes=("j", 16), pack=(PANELS,)),
    "fetched epilogue": Schedule(tile=(Tile("i", 3), WIDE), lanes=("j", 16), prefetch_epilogue=True),
    "rows in vectors": Schedule(tile=(Tile("i", 3), WIDE, Tile("k", 4, Tail.CUT)), lanes=("j", 4), row_vectors="k"),
    "blocks of the sum": Schedule(blocks=(("k", 8),), tile=(WIDE,), lanes=("j", 16)),
    "lanes along the sum": Schedule(lanes=("k", 8), partials=2),
    "fused": Schedule(fuse=(("v", ("i", "j")),), tile=(Tile("v", 32, Tail.CUT),), lanes=("v", 16)),
}


def computed(d: Definition, plan: Schedule) -> tuple[np.ndarray, ...]:
    """Return the inputs' product and all results, computed for a target that packs bytes where this machine is one."""
    r = np.random.default_rng(0)
    a, b = (r.integers(-4, 5, n).astype(np.float32) for n in ((ROWS, TERMS), (TERMS, COLUMNS)))
    s = (2.0 ** r.integers(-2, 2, COLUMNS)).astype(np.float32)
    packed = np.pad(b, ((0, 0), (0, 20))).reshape(TERMS, 3, 32).transpose(1, 0, 2) if plan.pack else b
    y, q, z = np.zeros((ROWS, COLUMNS), np.float32), np.zeros((ROWS, COLUMNS), np.uint8), np.zeros((COLUMNS, ROWS))
    out = [aligned(n) for n in (y, q, z.astype(np.float32))]
    target = AVX512 if runs(AVX512) else Target.parse("x86-64-v2")
    compiled(apply("k", d, plan, buffers()), target)(
        aligned(a), aligned(np.ascontiguousarray(packed)), aligned(s), *out
    )
    return a, b, s, *out


@pytest.mark.parametrize("name", PLANS)
def test_sums(name: str) -> None:
    a, b, s, y, q, z = computed(product(), PLANS[name])
    np.testing.assert_array_equal(y, a @ b)
    np.testing.assert_array_equal(q, np.clip(np.rint(y / s), 0, 255).astype(np.uint8))
    np.testing.assert_array_equal(z, y.T + 1)


@pytest.mark.parametrize("limit", [ROWS, 5])
def test_values_without_a_sum(limit: int) -> None:
    """Points beyond a bound store no result."""
    a, b, s, y, q, z = computed(plain(limit), replace(PLANS["register tile"], order=("j", "i")))
    expected = np.where(np.arange(ROWS)[:, None] < limit, a[:, :1] * b[3], 0)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(q, np.clip(np.rint(expected / s), 0, 255).astype(np.uint8))
    np.testing.assert_array_equal(z, np.where(np.arange(ROWS) < limit, y.T + 1, 0))


def test_results_are_printed() -> None:
    text = definition_text(product()).splitlines()
    assert text[1:] == [
        "  and q[i, j] = u8(min(max(round_even(point'[0] / s[j]), 0), 255))",
        "  and z[j, i] = point'[0] + 1",
    ]


def test_bytes_are_packed_beside_floats() -> None:
    """The value stays in registers, and two vectors of levels become one of bytes."""
    i, j, k = Var("i", ROWS), Var("j", 64), Var("k", TERMS)
    plain = Definition(
        dense("y", ROWS, 64), (i, j), Reduce("add", (k,), dense("a", ROWS, TERMS)[i, k] * dense("b", TERMS, 64)[k, j])
    )
    level = prim("min", prim("max", prim("round_even", Load(plain.point, (Const(0),))), 0.0), 255.0)
    q = dense("q", ROWS, 64, dtype=DType.U8)
    d = Definition(plain.out, plain.axes, plain.value, results=(Result(q, (i, j), cast(level, DType.U8)),))
    params = dense("a", ROWS, TERMS), dense("b", TERMS, 64), plain.out, q
    kernel = apply("k", d, Schedule(tile=(Tile("j", 64),), lanes=("j", 16)), params)
    assert "alloc point: f32[64] @registers" in kernel_text(kernel)
    text = emit(kernel, target=AVX512).text()
    assert text.count("call <64 x i8> @llvm.x86.avx512.packuswb.512") == 1
    assert "alloca" not in text


def test_functions_of_a_large_tile_are_called_in_a_loop() -> None:
    """Bits are those of small tiles. Where a result lies across the lanes and is transposed, all are written out."""
    i, j, k = Var("i", ROWS), Var("j", COLUMNS), Var("k", TERMS)
    a, b = dense("a", ROWS, TERMS), dense("b", TERMS, COLUMNS)
    sums = prim("exp", Reduce("add", (k,), a[i, k] * b[k, j]) / 64.0)
    across = work(sums, (i, j))
    beside = replace(across, results=across.results[:1])
    found: list[tuple[np.ndarray, ...]] = []
    for height, looped in ((6, True), (3, False)):
        plan = Schedule(tile=(Tile("i", height, Tail.CUT), WIDE), lanes=("j", 16))
        assert ("for i.t in 6" in kernel_text(apply("k", beside, plan, buffers()))) == looped
        assert "for i.t in" not in kernel_text(apply("k", across, plan, buffers()))
        packed = replace(plan, order=("j", "i", "k"), pack=(PANELS,))
        assert ("for i.t in 6" in kernel_text(apply("k", beside, packed, buffers()))) == looped
        found += [computed(beside, plan), computed(beside, packed)]
    for one, *others in zip(*found, strict=True):
        for other in others:
            np.testing.assert_array_equal(one, other)


def test_results_that_lie_across_the_lanes_are_transposed_in_a_loop_over_vectors() -> None:
    """The lanes after the last whole vector come after it."""
    i, j, k = Var("i", ROWS), Var("j", COLUMNS), Var("k", TERMS)
    a, b, z = dense("a", ROWS, TERMS), dense("b", TERMS, COLUMNS), dense("z", COLUMNS, ROWS)
    d = Definition(z, (i, j), Reduce("add", (k,), a[i, k] * b[k, j]) + 1.0, (j, i))
    plan = Schedule(tile=(Tile("i", 4, Tail.CUT), Tile("j", 48, Tail.CUT)), lanes=("j", 16))
    kernel = apply("k", d, plan, (a, b, z))
    assert kernel_text(kernel).count("for j.v in") == 2  # 48 columns of 4 and of 3 rows, and 28 more: 16 and 12
    r = np.random.default_rng(0)
    x, w = (aligned(r.integers(-4, 5, n).astype(np.float32)) for n in ((ROWS, TERMS), (TERMS, COLUMNS)))
    y = aligned(np.zeros((COLUMNS, ROWS), np.float32))
    compiled(kernel)(x, w, y)
    np.testing.assert_array_equal(y, (x @ w).T + 1)
