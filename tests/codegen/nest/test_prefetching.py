"""Prefetches: panels of packed weights, operands in rows, operands of the epilogue."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from aot.codegen.costs import COSTS
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import (
    Alloc,
    For,
    Let,
    LoopKind,
    Prefetch,
    Reduce,
    Stmt,
    Var,
    cast,
    dense,
)
from aot.codegen.ir.printer import kernel_text
from aot.codegen.ir.schedule import Pack, Schedule, Tail, Tile
from aot.codegen.nest.nest import apply
from aot.codegen.nest.packed_arrays import pack_array
from aot.runtime.abi import DType
from tests.codegen.nest.test_nest import PLAN, matmul, params
from tests.codegen.running import aligned, compiled, number


@pytest.mark.parametrize(("m", "k"), [(21, 64), (3, 5), (130, 7)])
def test_a_panel_is_fetched_while_the_one_before_is_used(m: int, k: int) -> None:
    plan = replace(PLAN, order=("j", "i"), parallel="j", prefetch="b")
    kernel = apply("matmul", matmul(m, k, 48), plan, params(m, k, 48))  # type: ignore[arg-type]
    panel, width = k * 16, 16
    fetched: dict[int, set[int]] = {0: set(), 1: set(), 2: set()}
    for panels, block, at in addresses(kernel.body, {}):
        assert block == panels + 1
        fetched[panels].add(at // width)
    for lines in fetched.values():
        assert set(range(panel // width)) <= lines, "every line is fetched"
        assert len(lines) <= panel // width + m, "and little more"


@pytest.mark.parametrize(("m", "k"), [(21, 256), (4, 26), (9, 130)])
def test_panels_of_words_are_fetched_between_parts_of_a_sum(m: int, k: int) -> None:
    i, j, kk = Var("i", m), Var("j", 48), Var("k", k)
    x, w, y = dense("x", m, k, dtype=DType.I16), dense("w", k, 48, dtype=DType.I16), dense("y", m, 48, dtype=DType.I32)
    product = cast(x[i, kk], DType.I32) * cast(w[kk, j], DType.I32)
    plan = Schedule(
        order=("j", "i", "k"),
        tile=(Tile("i", 6), Tile("j", 16, Tail.CUT), Tile("k", 2, Tail.CUT)),
        lanes=("j", 8),
        pack=(Pack("w", (1, 0), 1, 16, words=1),),
        prefetch="w",
        prefetch_level=2,
        dots="k",
        parallel="j",
    )
    kernel = apply("k", Definition(y, (i, j), Reduce("add", (kk,), product)), plan, (x, w, y))
    fetched: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for panel, block, at in addresses(kernel.body, {}):
        assert block == panel + 1
        fetched[panel].append(at // 32)
    parts = -(-k // (2 * COSTS.fetch_words)) * -(-m // 6)
    for lines in fetched.values():
        assert set(range(k * 16 // 32)) <= set(lines), "every line is fetched"
        assert len(lines) <= k * 16 // 32 + m + parts, "and little more"
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-99, 99, shape).astype(np.int16) for shape in ((m, k), (k, 48)))
    c = aligned(np.zeros((m, 48), np.int32))
    compiled(kernel)(aligned(a), aligned(pack_array(b, plan.pack[0])), c, begin=0, end=3)
    np.testing.assert_array_equal(c, a.astype(np.int32) @ b)


def test_rest_of_a_panel_is_prefetched_by_calls_of_enough_units() -> None:
    plan = replace(PLAN, tile=(Tile("i", 4), Tile("j", 32, Tail.CUT)), order=("j", "i"), parallel="j", prefetch="b")
    plan = replace(plan, pack=(Pack("b", (1, 0), 1, 32),), prefetch_within=3)
    kernel = apply("matmul", matmul(2, 7, 128), plan, params(2, 7, 128))  # type: ignore[arg-type]
    assert [x.strip() for x in kernel_text(kernel).splitlines() if "prefetch" in x] == [
        f"prefetch b[j.o * 32 // 32, k, {line}] + {COSTS.stream_distance_bytes // 4} in calls of 3 or more"
        for line in (0, 16)
    ]
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((2, 7), (7, 128)))
    for begin, end in ((0, 4), (1, 2)):
        c = aligned(np.zeros((2, 128), np.float32))
        compiled(kernel)(aligned(a), aligned(pack_array(b, plan.pack[0])), c, begin=begin, end=end)
        np.testing.assert_array_equal(c[:, begin * 32 : end * 32], np.maximum(a @ b, 0)[:, begin * 32 : end * 32])


@pytest.mark.parametrize("m", [1, 3, 21])
def test_it_is_fetched_as_a_whole_whatever_run_time_says_about_the_rows(m: int) -> None:
    rows, k = Var("m"), 64
    plan = replace(PLAN, order=("j", "i"), parallel="j", prefetch="b")
    kernel = apply("matmul", matmul(rows, k, 48), plan, params(rows, k, 48), (rows,))  # type: ignore[arg-type]
    lines = {(panels, at // 16) for panels, _, at in addresses(kernel.body, {rows: m})}
    assert {(panels, line) for panels in range(3) for line in range(k)} <= lines


def test_the_panel_after_a_block_is_its_first_at_the_next_piece_of_the_sum() -> None:
    plan = replace(PLAN, blocks=(("j", 32), ("k", 8)), order=("j", "i"), parallel="j", prefetch="b")
    text = kernel_text(apply("matmul", matmul(4, 16, 64), plan, params(4, 16, 64)))  # type: ignore[arg-type]
    fetched = re.search(r"prefetch b\[(.*)\]", text)
    panel = "(j.o * 32 + j.m * 16) // 16 + 1"
    last = f"{panel} == (j.o * 32 + 32) // 16"
    assert fetched is not None
    assert fetched[1].startswith(f"select({last}, j.o * 32 // 16, {panel}), select({last}, k.o * 8 + 8, k.o * 8), ")


def test_an_operand_that_is_not_packed_is_fetched_tiles_ahead_within_its_rows() -> None:
    n = Var("n")
    i, j, k = Var("i", 3), Var("j", n), Var("k", 64)
    a, b, c = dense("a", 3, 64), dense("b", 64, n), dense("c", 3, n)
    work = Definition(c, (i, j), Reduce("add", (k,), a[i, k] * b[k, j]))
    tiles = (Tile("i", 3), Tile("j", 32, Tail.CUT))
    plan = Schedule(tile=tiles, lanes=("j", 16), prefetch="b", prefetch_level=2)
    text = kernel_text(apply("k", work, plan, (a, b, c), (n,)))
    at = "min(j.o * 32 + 64, n - 32)"
    assert [x.strip() for x in text.splitlines() if "prefetch" in x] == [
        f"prefetch b[k, {at}] into L2",
        f"prefetch b[k, {at} + 16] into L2",
    ]


def test_operands_of_an_epilogue_are_prefetched_during_the_sum() -> None:
    i, j, kk = Var("i", 8), Var("j", 32), Var("k", 64)
    a, b, c, d = dense("a", 8, 64), dense("b", 64, 32), dense("c", 8, 32), dense("d", 8, 32)
    work = Definition(c, (i, j), Reduce("add", (kk,), a[i, kk] * b[kk, j]) + d[i, j])
    tiles = (Tile("i", 4), Tile("j", 32, Tail.CUT), Tile("k", 16, Tail.CUT))
    text = kernel_text(apply("k", work, Schedule(tile=tiles, lanes=("j", 16), prefetch_epilogue=True), (a, b, c, d)))
    line = "min(k.o * 16 // 16 * 2{}, 7)"
    assert [x.strip() for x in text.splitlines() if "prefetch" in x] == [
        f"prefetch {buffer}[i.o * 4 + {at} // 2, {at} % 2 * 16]"
        for buffer in "dc"
        for at in (line.format(""), line.format(" + 1"))
    ]


def addresses(stmts: tuple[Stmt, ...], env: dict[Var, int]) -> Iterator[tuple[int, int, int]]:
    """(panel in use, panel fetched, element in it) of every prefetch."""
    for s in stmts:
        match s:
            case Prefetch(_, (block, *_, at)):
                panel = next(n for v, n in env.items() if v.name.startswith("j."))
                yield panel, number(block, env), number(at, env)
            case For(var, body, LoopKind.SERIAL | LoopKind.PARALLEL):
                assert var.extent is not None
                for n in range(var.extent if isinstance(var.extent, int) else number(var.extent, env)):
                    yield from addresses(body, {**env, var: n})
            case Alloc(_, body):
                yield from addresses(body, env)
            case Let(var, value, body):
                yield from addresses(body, {**env, var: number(value, env)})
            case _:
                pass
