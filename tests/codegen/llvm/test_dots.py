"""Sums of products of bytes and of i16: how weights lie, how nests look, what kernels compute."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loads as loads_of
from aot.codegen.ir.loops import Load, Reduce, Var, cast, dense
from aot.codegen.ir.printer import kernel_text, schedule_text
from aot.codegen.ir.schedule import Pack, Schedule, Tail, Tile
from aot.codegen.nest.nest import apply
from aot.codegen.nest.pack import pack, pack_buffer
from aot.codegen.nest.packed_arrays import pack_array
from aot.codegen.schedules.choose import choose
from aot.runtime.abi import DType
from tests.codegen.interpreter import Interpreter, cells, filled
from tests.codegen.llvm.dot_products import BYTES, PLAN, V3, Kind, all_kinds, check, numbers, product
from tests.codegen.running import aligned, compiled, runs_dots

# ---- packing


@pytest.mark.parametrize(
    ("shape", "plan"),
    [
        ((8, 16), Pack("w", (1, 0), 1, 16, 1)),
        ((9, 16), Pack("w", (1, 0), 1, 16, 1)),  # a four that is not full
        ((3, 37), Pack("w", (1, 0), 1, 16, 1)),  # and a block
        ((3, 5, 20), Pack("w", (2, 0, 1), 2, 16, 1)),
        ((3, 5, 20), Pack("w", (2, 0, 1), 2, 16, 2)),  # two dimensions in fours
        ((3, 5, 20), Pack("w", (0, 2, 1), 2, 8, 1)),
        ((20, 3, 5), Pack("w", (0, 2, 1), 0, 8, 2)),
    ],
)
def test_packed_weights_are_found_where_the_packed_definition_reads(shape: tuple[int, ...], plan: Pack) -> None:
    w = numbers(*shape, dtype=np.int8)
    source, out = dense("w", *shape, dtype=DType.I8), dense("y", *shape, dtype=DType.I8)
    axes = tuple(Var(f"i{d}", n) for d, n in enumerate(shape))
    packed = pack_array(w, plan)
    assert packed.shape == pack_buffer(source, plan).shape
    assert packed.shape[-2:] == (plan.width, 4)
    assert np.count_nonzero(packed) == np.count_nonzero(w), "what is added is zero"
    run = Interpreter(w=cells(packed))
    run.work((pack(Definition(out, axes, Load(source, axes)), plan),))
    np.testing.assert_array_equal(filled(run.memory["y"], shape, DType.I8), w)


def test_four_terms_of_a_column_lie_side_by_side() -> None:
    w = np.arange(6 * 3, dtype=np.int8).reshape(6, 3)
    packed = pack_array(w, Pack("w", (1, 0), 1, 2, 1))
    assert packed.shape == (2, 2, 2, 4)
    assert packed[0, 0].tolist() == [w[:4, 0].tolist(), w[:4, 1].tolist()]
    assert packed[1, 1].tolist() == [[w[4, 2], w[5, 2], 0, 0], [0, 0, 0, 0]]


# ---- nests


def test_product_prints() -> None:
    work, params = product(4, 11, 16)
    assert schedule_text(PLAN).endswith("pack[w.1:16(1,0) words of 1] dots=k")
    x, w, _, y = params
    assert kernel_text(apply("product", work, PLAN, (x, w, y))) == dedent("""\
        kernel product(x: u8[4, 11], w: i8[1, 3, 16, 4], y: i32[4, 16])
          for i.o in 2:
            alloc acc: i32[2, 16] @registers
            unrolled i.t in 2:
              vector j.t in 16 by 8:
                acc[i.t, j.t] = 0
            for k.o in 2:
              let k = k.o * 4
              unrolled i.t in 2:
                let i = i.o * 2 + i.t
                vector j.t in 16 by 8:
                  let j = j.t
                  acc[i.t, j.t] += dot(x[i, k], w[j // 16, k // 4, j % 16, k % 4], 4)
            let k = 8
            unrolled i.t in 2:
              let i = i.o * 2 + i.t
              vector j.t in 16 by 8:
                let j = j.t
                acc[i.t, j.t] += dot(x[i, k], w[j // 16, k // 4, j % 16, k % 4], 3)
            unrolled i.t in 2:
              let i = i.o * 2 + i.t
              vector j.t in 16 by 8:
                let j = j.t
                y[i, j] = acc[i.t, j.t]
        """)


@pytest.mark.parametrize("terms", [1, 3, 4, 6, 11])
def test_nests_mean_the_same(terms: int) -> None:
    """The interpreter runs the nests, so that the test needs no particular processor."""
    plan = replace(
        PLAN,
        tile=(Tile("i", 2), Tile("j", 4, Tail.CUT), Tile("k", 8, Tail.CUT)),
        lanes=("j", 4),
        pack=(Pack("w", (1, 0), 1, 4, 1),),
    )
    work, params = product(3, terms, 6)
    x, w = numbers(3, terms, dtype=np.uint8), numbers(terms, 6, dtype=np.int8)
    run = Interpreter(x=cells(x), w=cells(pack_array(w, plan.pack[0])))
    run.run(apply("k", work, plan, params).body)
    np.testing.assert_array_equal(filled(run.memory["y"], (3, 6), DType.I32), x.astype(np.int32) @ w)


# ---- kernels


@all_kinds
@pytest.mark.parametrize(("terms", "depth"), [(n, (4, 16)[n % 2]) for n in (*range(1, 10), 16, 27, 64)] + [(27, 4)])
def test_sums_of_any_length(terms: int, depth: int, kind: Kind) -> None:
    plan = replace(PLAN, tile=(*PLAN.tile[:2], Tile("k", depth, Tail.CUT)))
    check(5, terms, 24, plan, start=terms % 3 == 1, kind=kind)


@all_kinds
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 33])  # around whole vectors
def test_any_number_of_columns(columns: int, kind: Kind) -> None:
    check(3, 7, columns, PLAN, kind=kind)


@all_kinds
@pytest.mark.parametrize(("rows", "lanes"), [(1, 1), (15, 1), (2, 2), (15, 4), (1, 8), (2, 16), (15, 16)])
def test_vectors_of_any_length(rows: int, lanes: int, kind: Kind) -> None:
    check(rows, 18, 39, replace(PLAN, tile=(Tile("i", 4), *PLAN.tile[1:]), lanes=("j", lanes)), kind=kind)


@runs_dots
def test_sums_of_the_largest_numbers_do_not_saturate() -> None:
    work, params = product(1, 64, 16)
    y = aligned(np.zeros((1, 16), np.int32))
    x, w = np.full((1, 64), 255, np.uint8), np.full((64, 16), -128, np.int8)
    call = compiled(apply("k", work, PLAN, params))
    call(aligned(x), aligned(pack_array(w, PLAN.pack[0])), aligned(np.zeros(16, np.int32)), y)
    assert y.tolist() == [[-64 * 255 * 128] * 16]


@runs_dots
@pytest.mark.parametrize(("c", "taps"), [(1, 3), (3, 3), (5, 2), (8, 1)])
def test_windows_whose_innermost_sums_are_one(c: int, taps: int) -> None:
    """y[h, j] = add[t, c](x[h + t, c] * w[t, c, j]): taps and channels of the data lie side by side."""
    h, j, t, k = Var("h", 9), Var("j", 20), Var("t", taps), Var("c", c)
    x, w = dense("x", 8 + taps, c, dtype=DType.U8), dense("w", taps, c, 20, dtype=DType.I8)
    y = dense("y", 9, 20, dtype=DType.I32)
    total = Reduce("add", (t, k), cast(x[h + t, k], DType.I32) * cast(w[t, k, j], DType.I32))
    plan = replace(
        PLAN,
        order=("h", "j", "q"),
        fuse=(("q", ("t", "c")),),
        pack=(Pack("w", (2, 0, 1), 2, 16, 2),),
        tile=(Tile("h", 4), Tile("j", 16, Tail.CUT), Tile("q", 16, Tail.CUT)),
        dots="q",
    )
    data, weights = numbers(8 + taps, c, dtype=np.uint8), numbers(taps, c, 20, dtype=np.int8)
    found = aligned(np.zeros((9, 20), np.int32))
    compiled(apply("k", Definition(y, (h, j), total), plan, (x, w, y)))(
        aligned(data), aligned(pack_array(weights, plan.pack[0])), found
    )
    windows = np.stack([data[n : n + taps].ravel() for n in range(9)]).astype(np.int32)
    np.testing.assert_array_equal(found, windows @ weights.reshape(-1, 20))


def window(taps: int, stride: int, channels: int, lanes: int) -> tuple[Definition, Schedule]:
    """y[h, v, c] = add[k, t](x[h + k, stride v + t, c] * w[c, k, t]) over four rows of five columns."""
    h, v, c, k, t = Var("h", 4), Var("v", 5), Var("c", channels), Var("k", taps), Var("t", 3)
    x = dense("x", 3 + taps, 4 * stride + 3, channels, dtype=DType.U8)
    w, y = dense("w", channels, taps, 3, dtype=DType.I8), dense("y", 4, 5, channels, dtype=DType.I32)
    total = Reduce("add", (k, t), cast(x[h + k, v * stride + t, c], DType.I32) * cast(w[c, k, t], DType.I32))
    plan = Schedule(
        order=("h", "v", "c", "k", "t"),
        tile=(Tile("v", 3), Tile("c", lanes, Tail.CUT), Tile("k", 4, Tail.CUT)),
        unroll=("t",),
        lanes=("c", lanes),
        pack=(Pack("w", (0, 2, 1), 0, lanes, 1),),
        dots="k",
    )
    return Definition(y, (h, v, c), total), plan


def windowed(x: np.ndarray, w: np.ndarray, stride: int) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int32), w.shape[1:], (0, 1))[:, ::stride]
    return np.einsum("hvckt,ckt->hvc", windows, w.astype(np.int32))


@pytest.mark.parametrize("taps", [1, 3, 4, 5])
def test_windows_over_channels_mean_the_same(taps: int) -> None:
    work, plan = window(taps, 2, 6, 4)
    params = (*(x.buffer for x in loads_of(work.value)), work.out)
    x, w = numbers(3 + taps, 11, 6, dtype=np.uint8), numbers(6, taps, 3, dtype=np.int8)
    run = Interpreter(x=cells(x), w=cells(pack_array(w, plan.pack[0])))
    run.run(apply("k", work, plan, params).body)
    np.testing.assert_array_equal(filled(run.memory["y"], (4, 5, 6), DType.I32), windowed(x, w, 2))


@runs_dots
@pytest.mark.parametrize("lanes", [1, 4, 8, 16])
@pytest.mark.parametrize(("taps", "stride"), [(1, 1), (2, 2), (3, 1), (4, 2), (5, 1), (8, 1)])
def test_windows_over_channels(taps: int, stride: int, lanes: int) -> None:
    """Words of data are made of rows, and shared by the columns of a tile."""
    work, plan = window(taps, stride, 21, lanes)
    params = (*(x.buffer for x in loads_of(work.value)), work.out)
    x, w = numbers(3 + taps, 4 * stride + 3, 21, dtype=np.uint8), numbers(21, taps, 3, dtype=np.int8)
    found = aligned(np.zeros((4, 5, 21), np.int32))
    compiled(apply("k", work, plan, params))(aligned(x), aligned(pack_array(w, plan.pack[0])), found)
    np.testing.assert_array_equal(found, windowed(x, w, stride))


@all_kinds
@pytest.mark.parametrize(
    ("rows", "terms", "columns"), [(1, 64, 64), (3, 27, 16), (50, 147, 40), (7, 9, 17), (33, 8, 4)]
)
def test_chosen_schedules(rows: int, terms: int, columns: int, kind: Kind) -> None:
    work, _ = product(rows, terms, columns, kind=kind)
    target = kind.target if kind is BYTES else replace(kind.target, features=V3.features)
    plan = choose(work, target, frozenset({"w"}))
    assert plan.dots == "k"
    check(rows, terms, columns, plan, kind=kind)


@runs_dots
@pytest.mark.parametrize("terms", [0, 1, 3, 4, 7, 11, 12])
def test_sums_of_dynamic_length(terms: int) -> None:
    """Dots of two terms and of one sum the terms behind the last whole word."""
    n = Var("n", 13)
    i, j, k = Var("i", 4), Var("j", 16), Var("k", n)
    x, w, y = dense("x", 4, 24, dtype=DType.U8), dense("w", 12, 16, dtype=DType.I8), dense("y", 4, 16, dtype=DType.I32)
    work = Definition(y, (i, j), Reduce("add", (k,), cast(x[i, k], DType.I32) * cast(w[k, j], DType.I32)))
    data, weights = numbers(4, 24, dtype=np.uint8), numbers(12, 16, dtype=np.int8)
    out = aligned(np.zeros((4, 16), np.int32))
    kernel = compiled(apply("k", work, PLAN, (x, w, y), (n,)))
    kernel(aligned(data), aligned(pack_array(weights, PLAN.pack[0])), out, terms)
    np.testing.assert_array_equal(out, data[:, :terms].astype(np.int32) @ weights[:terms].astype(np.int32))
