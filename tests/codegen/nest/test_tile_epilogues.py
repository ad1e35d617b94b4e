"""Epilogues of tile registers between the steps of the next tile's sum, and blocks of rows that stay in L2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from aot.codegen.costs import COSTS
from aot.codegen.ir.printer import kernel_text
from aot.codegen.nest.nest import apply
from aot.codegen.nest.packed_arrays import pack_array
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from aot.runtime.abi import DType
from tests.codegen.emulated_tiles import runs, tile_registers
from tests.codegen.ir.numbers.test_bf16_chains import chain_sum, numbers, product
from tests.codegen.running import aligned, compiled

W = frozenset({"w"})
TILES = replace(Target.parse("x86-64-v4-amx"), keeps_sum_order=True)
SMALL = replace(TILES, l2=16 << 10)  # half of it holds 32 rows of 128 terms
pytestmark = pytest.mark.skipif(not runs(TILES), reason="this machine lacks AVX-512")


@pytest.fixture(autouse=True)
def tiles_everywhere() -> Iterator[None]:
    with tile_registers():
        yield


def text(rows: int, terms: int, columns: int) -> list[str]:
    work, params = product(rows, terms, columns, DType.BF16)
    return kernel_text(apply("k", work, choose(work, TILES, W), params)).splitlines()


def test_rows_run_between_the_steps_of_the_next_tile() -> None:
    lines = text(128, 256, 64)
    dots = max(n for n, line in enumerate(lines) if "+= tile" in line)
    stored = next(n for n, line in enumerate(lines) if "by 32 = tile" in line)
    assert [line.strip() for line in lines[dots + 1 : dots + 3]] == ["if 0 < j.o:", "for i.r in 4:"]
    rows = [n for n, line in enumerate(lines) if "y[i, j] =" in line]
    assert len(rows) == 2 and dots < rows[0] < stored < rows[1], "those of the last tile run behind the loop"


@pytest.mark.parametrize(("steps", "columns"), [(COSTS.min_overlapped_steps - 1, 64), (8, 32)])
def test_few_steps_and_single_tiles_keep_their_epilogue(steps: int, columns: int) -> None:
    lines = text(128, 32 * steps, columns)
    assert sum("y[i, j] =" in line for line in lines) == 1
    assert not any("if 0 <" in line for line in lines)


@pytest.mark.parametrize("target", [TILES, SMALL], ids=["whole", "blocks"])
@pytest.mark.parametrize(("rows", "terms", "columns"), [(128, 128, 64), (70, 160, 72), (200, 1056, 33), (49, 256, 40)])
def test_bits_stay_those_of_chains(target: Target, rows: int, terms: int, columns: int) -> None:
    """5 and 33 steps share 32 rows badly; 70, 200 and 49 rows end in tiles that lap over those before."""
    work, params = product(rows, terms, columns, DType.BF16)
    plan = choose(work, target, W)
    x, w, bias = numbers(rows, terms), numbers(terms, columns), np.arange(columns, dtype=np.float32)
    y = aligned(np.zeros((rows, columns), ml_dtypes.bfloat16))
    packed = pack_array(w.view(np.uint16), plan.pack[0])
    compiled(apply("k", work, plan, params), target)(aligned(x), aligned(packed), aligned(bias), y)
    expected = np.maximum(chain_sum(x, w) + bias, 0).astype(y.dtype)
    np.testing.assert_array_equal(y.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize(
    ("rows", "columns", "blocks"), [(128, 64, (("i", 32),)), (200, 64, (("i", 32),)), (32, 64, ()), (128, 32, ())]
)
def test_rows_that_leave_l2_are_cut_into_blocks(rows: int, columns: int, blocks: tuple[tuple[str, int], ...]) -> None:
    """Panels of all columns that stay in L2 are read for each tile of rows instead: 32 columns take 8 KiB."""
    work, _ = product(rows, 128, columns, DType.BF16)
    plan = choose(work, SMALL, W)
    assert plan.blocks == blocks
    assert (plan.order[0] == "i") == (columns == 32)
