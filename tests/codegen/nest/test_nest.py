"""Nests as they print, what a schedule may not say, and how many units there are."""

from __future__ import annotations

import re
from dataclasses import replace
from textwrap import dedent

import numpy as np
import pytest

from aot.codegen.ir.access import work
from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.loops import (
    Reduce,
    Size,
    Space,
    Var,
    dense,
    prim,
)
from aot.codegen.ir.printer import definition_text, kernel_text, schedule_text
from aot.codegen.ir.schedule import Pack, Schedule, Tail, Tile
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.nest.nest import apply, units
from aot.codegen.nest.packed_arrays import pack_array
from aot.runtime.abi import DType
from tests.codegen.running import aligned, compiled, evaluated


def matmul(m: Size, k: int, n: int) -> Definition:
    i, j, kk = Var("i", m), Var("j", n), Var("k", k)
    a, b, c = dense("a", m, k), dense("b", k, n), dense("c", m, n)
    return Definition(c, (i, j), prim("max", Reduce("add", (kk,), a[i, kk] * b[kk, j]), 0.0))


def params(m: Size, k: int, n: int) -> tuple[object, ...]:
    return dense("a", m, k), dense("b", k, n), dense("c", m, n)


PLAN = Schedule(
    order=("i", "j"),
    tile=(Tile("i", 4), Tile("j", 16, Tail.CUT)),
    lanes=("j", 8),
    pack=(Pack("b", (1, 0), 1, 16),),
    parallel="i",
)


def test_matmul_prints() -> None:
    kernel = apply("matmul", matmul(8, 7, 16), PLAN, params(8, 7, 16))  # type: ignore[arg-type]
    assert kernel_text(kernel) == dedent("""\
        kernel matmul(a: f32[8, 7], b: f32[1, 7, 16], c: f32[8, 16])
          parallel i.o in 2:
            alloc acc: f32[4, 16] @registers
            unrolled i.t in 4:
              vector j.t in 16 by 8:
                acc[i.t, j.t] = 0
            for k in 7:
              unrolled i.t in 4:
                let i = i.o * 4 + i.t
                vector j.t in 16 by 8:
                  let j = j.t
                  acc[i.t, j.t] += a[i, k] * b[j // 16, k, j % 16]
            unrolled i.t in 4:
              let i = i.o * 4 + i.t
              vector j.t in 16 by 8:
                let j = j.t
                c[i, j] = max(acc[i.t, j.t], 0)
        """)


def test_sums_wait_in_the_output_between_blocks() -> None:
    plan = replace(PLAN, blocks=(("j", 32), ("k", 8)), order=("j", "i"), parallel="j", prefetch="b")
    kernel = apply("matmul", matmul(4, 16, 64), plan, params(4, 16, 64))  # type: ignore[arg-type]
    text = re.sub(r"prefetch .*", "prefetch ...", kernel_text(kernel))
    assert text == dedent("""\
        kernel matmul(a: f32[4, 16], b: f32[4, 16, 16], c: f32[4, 64])
          parallel j.o in 2:
            for k.o in 2:
              for j.m in 2:
                alloc acc: f32[4, 16] @registers
                unrolled i.t in 4:
                  let i = i.t
                  vector j.t in 16 by 8:
                    let j = j.o * 32 + j.m * 16 + j.t
                    acc[i.t, j.t] = select(k.o * 8 == 0, 0, c[i, j])
                for k.m in 8:
                  prefetch ...
                  let k = k.o * 8 + k.m
                  unrolled i.t in 4:
                    let i = i.t
                    vector j.t in 16 by 8:
                      let j = j.o * 32 + j.m * 16 + j.t
                      acc[i.t, j.t] += a[i, k] * b[j // 16, k, j % 16]
                if k.o * 8 + 8 < 16:
                  unrolled i.t in 4:
                    let i = i.t
                    vector j.t in 16 by 8:
                      let j = j.o * 32 + j.m * 16 + j.t
                      c[i, j] = acc[i.t, j.t]
                else:
                  unrolled i.t in 4:
                    let i = i.t
                    vector j.t in 16 by 8:
                      let j = j.o * 32 + j.m * 16 + j.t
                      c[i, j] = max(acc[i.t, j.t], 0)
        """)


def test_blocks_around_a_parallel_loop_are_parallel() -> None:
    plan = replace(PLAN, blocks=(("i", 8),), order=("j", "i"), parallel="j", prefetch="b")
    kernel = apply("matmul", matmul(16, 16, 64), plan, params(16, 16, 64))  # type: ignore[arg-type]
    loops = [line for line in kernel_text(kernel).splitlines() if " in " in line and "unrolled" not in line]
    assert loops[:3] == ["  parallel i.o in 2:", "    parallel j.o in 4:", "      for i.m in 2:"]
    assert units(kernel) == 8


@pytest.mark.parametrize("part", [(0, 8), (0, 3), (3, 6), (7, 8), (5, 5)])
def test_units_of_nested_parallel_loops(part: tuple[int, int]) -> None:
    plan = replace(PLAN, blocks=(("i", 8),), order=("j", "i"), parallel="j", pack=())
    kernel = apply("matmul", matmul(16, 16, 64), plan, params(16, 16, 64))  # type: ignore[arg-type]
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((16, 16), (16, 64)))
    c = aligned(np.full((16, 64), -1, np.float32))
    compiled(kernel)(aligned(a), aligned(b), c, begin=part[0], end=part[1])
    expected = np.full((16, 64), -1, np.float32)
    for unit in range(*part):
        rows, columns = slice(unit // 4 * 8, unit // 4 * 8 + 8), slice(unit % 4 * 16, unit % 4 * 16 + 16)
        expected[rows, columns] = np.maximum(a @ b, 0)[rows, columns]
    np.testing.assert_array_equal(c, expected)


def test_definition_and_schedule_print() -> None:
    assert (
        definition_text(matmul(8, 7, 16)) == "c[i, j] = max(add[k in 7](a[i, k] * b[k, j]), 0)    for i in 8, j in 16"
    )
    assert schedule_text(PLAN) == "order[i j] tile[i:4 j:16/cut] lanes[j:8] pack[b.1:16(1,0)] parallel=i"


def test_group_axes_fuse() -> None:
    a, b, j = Var("a", 3), Var("b", 4), Var("j", 10)
    x, t, y = dense("x", 3, 4, 10), dense("t", a, b, 10, space=Space.STACK), dense("y", 3, 4, 10)
    top = dense("top", a, b, space=Space.STACK)
    group = Group(
        "rows",
        (a, b),
        (t, top),
        (
            Definition(top, (a, b), Reduce("max", (j,), x[a, b, j])),
            Definition(t, (a, b, j), x[a, b, j] - top[a, b]),
            Definition(y, (a, b, j), t[a, b, j] * 2.0),
        ),
    )
    lanes = Schedule(lanes=("j", 4))
    kernel = apply("k", group, Schedule(fuse=(("p", ("a", "b")),), parallel="p", members=(lanes,) * 3), (x, y))
    assert units(kernel) == 12
    data = np.random.default_rng(0).integers(-9, 9, (3, 4, 10)).astype("f4")
    out, call = aligned(np.zeros_like(data)), compiled(kernel)
    call(aligned(data), out, begin=5)
    call(aligned(data), out, end=5)
    np.testing.assert_array_equal(out, 2 * (data - data.max(2, keepdims=True)))


def test_the_last_block_of_a_group_is_as_long_as_what_is_left() -> None:
    """Rows in blocks of 4 and temporaries as wide as they are, all of which only run time knows."""
    m, n = Var("m"), Var("n")
    i, j, k = Var("i", m), Var("j", n), Var("k", n)
    x, y = dense("x", m, n), dense("y", m, n)
    s, t = (dense(name, i, n, space=Space.ARENA) for name in "st")
    group = Group(
        "chain",
        (i,),
        (s, t),
        (
            Definition(s, (i, j), x[i, j] * 2.0),
            Definition(t, (i, j), s[i, j] + 1.0),
            Definition(y, (i, j), Reduce("add", (k,), s[i, k]) + t[i, j]),
        ),
    )
    lanes = Schedule(lanes=("j", 4))
    plan = Schedule(tile=(Tile("i", 4, Tail.SHORT),), parallel="i", members=(lanes,) * 3)
    kernel = apply("k", group, plan, (x, y), (m, n))
    call = compiled(kernel)
    for rows, columns in ((0, 3), (1, 1), (3, 0), (4, 5), (6, 33), (9, 2)):
        assert evaluated(units(kernel), kernel, [rows, columns]) == -(-rows // 4)
        data = np.random.default_rng(rows).integers(-9, 9, (rows, columns)).astype("f4")
        out = aligned(np.zeros_like(data))
        call(aligned(data), out, rows, columns)
        np.testing.assert_array_equal(out, 2 * data.sum(1, keepdims=True) + 2 * data + 1)
    assert evaluated(emit(kernel).scratch_bytes, kernel, [9, 20]) == 2 * 4 * 20 * 4


def test_the_last_tile_of_a_group_shares_loops_that_need_not_know_its_length() -> None:
    """7 rows in tiles of 3: doubled and added up by loops over the rows, multiplied by tiles of 3 rows and of 1."""
    i, j, k = Var("i", 7), Var("j", 8), Var("k", 5)
    x, w, y = dense("x", 7, 5), dense("w", 5, 8), dense("y", 7, 8)
    s, t = dense("s", i, 5, space=Space.STACK), dense("t", i, 8, space=Space.STACK)
    doubled = Definition(s, (i, k), x[i, k] * 2.0)
    products = Definition(t, (i, j), Reduce("add", (k,), s[i, k] * w[k, j]))
    group = Group("rows", (i,), (s, t), (doubled, products, Definition(y, (i, j), t[i, j] + 1.0)))
    lanes = Schedule(lanes=("j", 8))
    tiles = replace(lanes, tile=(Tile("i", 3), Tile("j", 8, Tail.CUT)))
    plan = Schedule(tile=(Tile("i", 3, Tail.REST),), parallel="i", members=(Schedule(), tiles, lanes))
    kernel = apply("k", group, plan, (x, w, y))
    assert units(kernel) == 3
    text = kernel_text(kernel)
    assert [text.count(line) for line in ("s[i, k] = ", "acc[i.t, j.t] += ", "acc[j.t] += ", "y[i, j] = ")] == [1] * 4
    rng = np.random.default_rng(0)
    data, weights, out = rng.integers(-9, 9, (7, 5)), rng.integers(-9, 9, (5, 8)), aligned(np.zeros((7, 8), "f4"))
    compiled(kernel)(aligned(data.astype("f4")), aligned(weights.astype("f4")), out)
    np.testing.assert_array_equal(out, 2 * data @ weights + 1)


def test_works_are_numbered_through() -> None:
    """Clear a border, then fill: the serial one is one unit."""
    i, j = Var("i", 5), Var("j", 7)
    x, y = dense("x", 5), dense("y", 7)
    works = (
        Definition(x, (i,), prim("cast", i, dtype=DType.F32)),
        Definition(y, (j,), prim("cast", j * 2, dtype=DType.F32)),
    )
    kernel = apply("k", works, (Schedule(), Schedule(tile=(Tile("j", 2),), parallel="j")), (x, y))
    assert units(kernel) == 1 + 4
    call = compiled(kernel)
    for cut in range(6):
        a, b = aligned(np.full(5, -1, "f4")), aligned(np.full(7, -1, "f4"))
        call(a, b, end=cut)
        call(a, b, begin=cut)
        assert (a.tolist(), b.tolist()) == (list(range(5)), list(range(0, 14, 2)))


def test_run_time_rows_are_numbered_through() -> None:
    m = Var("m")
    kernel = apply("k", matmul(m, 7, 16), PLAN, params(m, 7, 16), (m,))  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    b = rng.integers(-3, 4, (7, 16)).astype("f4")
    call = compiled(kernel)
    for rows in (1, 3, 4, 5, 11, 40):
        total = evaluated(units(kernel), kernel, [rows])
        assert total == -(-rows // 4)
        a, c = rng.integers(-3, 4, (rows, 7)).astype("f4"), aligned(np.zeros((rows, 16), "f4"))
        for unit in reversed(range(total)):
            call(aligned(a), aligned(pack_array(b, PLAN.pack[0])), c, rows, begin=unit, end=unit + 1)
        np.testing.assert_array_equal(c, np.maximum(a @ b, 0))


def test_work_counts_a_sum_at_each_point_and_the_rest_once() -> None:
    assert work(matmul(8, 7, 16)) == 2 * 8 * 7 * 16 + 8 * 16


def test_no_parallel_loop_is_one_unit() -> None:
    assert units(apply("k", matmul(8, 7, 16), Schedule(), params(8, 7, 16))) == 1  # type: ignore[arg-type]


def test_one_tile_keeps_its_parallel_loop() -> None:
    assert units(apply("k", matmul(3, 7, 16), PLAN, params(3, 7, 16))) == 1  # type: ignore[arg-type]
    assert "parallel i.o in 1:" in kernel_text(apply("k", matmul(3, 7, 16), PLAN, params(3, 7, 16)))  # type: ignore[arg-type]


def test_pack_array_permutes_and_pads() -> None:
    w = np.arange(5 * 2 * 3, dtype=np.int8).reshape(5, 2, 3)
    packed = pack_array(w, Pack("w", (2, 0, 1), 0, 4))
    assert packed.shape == (3, 2, 2, 4)
    assert packed[2, 1, 1].tolist() == [w[4, 1, 2], 0, 0, 0]
    assert packed[1, 0, 0].tolist() == w[:4, 0, 1].tolist()
