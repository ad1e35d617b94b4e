"""Chains over a dynamic number of terms, and tiles of rows that overlap: bits, and what is not read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Reduce, Size, Var, dense
from aot.codegen.ir.numbers.bf16_chains import MAX_BLOCK_TERMS
from aot.codegen.ir.primitives import CHAINS
from aot.codegen.ir.schedule import Schedule, ScheduleError, Tail, Tile
from aot.codegen.llvm.host import parse_target
from aot.codegen.nest.nest import apply
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from aot.runtime.abi import DType
from tests.codegen.emulated_tiles import tile_registers
from tests.codegen.ir.numbers.test_bf16_chains import BF16, chain_sum, numbers, on_targets
from tests.codegen.running import Array, aligned, compiled

MOST = 128  # terms of a row in memory
LENGTHS = (1, 2, 31, 32, 33, 63, 64, 100)


@pytest.fixture(autouse=True)
def tiles_everywhere() -> Iterator[None]:
    with tile_registers():
        yield


def in_words(w: Array) -> Array:
    """Words [pairs, columns + 32, 2] of a matrix whose terms fill blocks; nothing lies behind the columns."""
    pairs = w.reshape(-1, 2, w.shape[1]).swapaxes(1, 2)
    return np.concatenate([pairs, np.full((len(pairs), 32, 2), np.nan, w.dtype)], 1)


@on_targets
@pytest.mark.parametrize("words", [False, True], ids=["rows", "words"])
@pytest.mark.parametrize(("rows", "columns"), [(40, 24), (3, 64), (33, 100)])
def test_blocks_of_a_dynamic_sum(target: Target, words: bool, rows: int, columns: int) -> None:
    """The last block ends where the sum does: what lies behind is no number."""
    n = Var("n", MOST + 1)
    i, j, k = Var("i", rows), Var("j", columns), Var("k", n)
    x, y = Buffer("x", (rows, n), (MOST, 1), dtype=DType.BF16), dense("y", rows, columns)
    w = Buffer("w", (MOST // 2, columns, 2), (2 * (columns + 32), 2, 1), dtype=DType.BF16)
    w = w if words else Buffer("w", (n, columns), (columns, 1), dtype=DType.BF16)
    right = w[k // 2, j, k % 2] if words else w[k, j]
    work = Definition(y, (i, j), Reduce(CHAINS, (k,), x[i, k] * right))
    plan = choose(work, target, frozenset())
    assert (plan.matrix is not None) == (target.abilities.tiles and words)
    run = compiled(apply("k", work, plan, (x, w, y), (n,)), target)
    for length in LENGTHS:
        whole = -(-length // MAX_BLOCK_TERMS) * MAX_BLOCK_TERMS
        left, columns_of = np.full((rows, MOST), np.nan, BF16), np.zeros((MOST, columns), BF16)
        left[:, :length], columns_of[:length] = numbers(rows, length), numbers(length, columns)
        expected = chain_sum(np.where(np.arange(whole) < length, left[:, :whole], BF16(0)), columns_of[:whole])
        columns_of[length if not words else whole :] = np.nan
        out = aligned(np.zeros((rows, columns), np.float32))
        run(aligned(left), aligned(in_words(columns_of) if words else columns_of), out, length)
        np.testing.assert_array_equal(out, expected)


def rows_of(n: Size) -> tuple[Definition, tuple[Buffer, ...]]:
    i, j, k = Var("i", n), Var("j", 16), Var("k", 5)
    x, w, y = dense("x", n, 5), dense("w", 5, 16), dense("y", n, 16)
    return Definition(y, (i, j), Reduce("add", (k,), x[i, k] * w[k, j])), (x, w, y)


def test_tiles_of_enough_rows_overlap() -> None:
    n = Var("n", 100, low=14)
    work, params = rows_of(n)
    plan = choose(work, parse_target("native"), frozenset())
    assert plan.size("i").tail is Tail.LAP
    run = compiled(apply("k", work, plan, params, (n,)))
    for rows in (14, 15, 27, 28, 29, 99):
        left, right = (np.random.default_rng(rows).integers(-9, 9, s).astype(np.float32) for s in ((rows, 5), (5, 16)))
        out = aligned(np.zeros((rows, 16), np.float32))
        run(aligned(left), aligned(right), out, rows)
        np.testing.assert_array_equal(out, left @ right)


@pytest.mark.parametrize(("n", "blocks"), [(Var("n", 100, low=5), ()), (Var("n", 100, low=6), (("k", 4),))])
def test_tiles_that_would_begin_before_the_rows_are_refused(n: Var, blocks: tuple[tuple[str, int], ...]) -> None:
    work, params = rows_of(n)
    plan = Schedule(tile=(Tile("i", 6, Tail.LAP),), blocks=blocks)
    with pytest.raises(ScheduleError, match="tiles that overlap"):
        apply("k", work, plan, params, (n,))
