"""Groups of bytes with scales in tile registers: the bits of VNNI, which products they are, and who sums few rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Reduce, Size, Var, cast, dense
from aot.codegen.ir.printer import kernel_text
from aot.codegen.ir.schedule import Schedule, ScheduleError
from aot.codegen.nest.nest import apply
from aot.codegen.schedules.choose import choose
from aot.codegen.target import Target
from aot.compilation.driver import in_memory
from aot.runtime.abi import DType
from tests.codegen.emulated_tiles import runs, tile_registers
from tests.lowering.numbers.test_group_sums import KINDS, ROUNDED, Weights, data, expected, made_of
from tests.lowering.quantized import CLOSE

AMX, VNNI = "x86-64-v4-amx", "x86-64-v4-bf16"
TILES = Target.parse(AMX)
runs_tiles = pytest.mark.skipif(
    not (runs(TILES) and runs(Target.parse(VNNI))), reason="this machine lacks instructions around tile registers"
)
OF_OUTPUTS = {"u8 with a scale for each output": Weights(DType.U8, 8, 384, 384, "whole")}
FOUND = {name: KINDS[name] for name in ("u4 in 64", "Q4_1", "Q8_0")} | OF_OUTPUTS


@pytest.fixture(autouse=True)
def tiles_everywhere() -> Iterator[None]:
    with tile_registers():
        yield


@runs_tiles
@pytest.mark.parametrize("kind", FOUND)
def test_tiles_have_the_bits_of_vectors(kind: str) -> None:
    """Rows in whole tiles of 32, in tiles for the rest, and in vectors behind them."""
    w = FOUND[kind]
    made = [made_of(w, options=replace(ROUNDED, target=target)) for target in (AMX, VNNI)]
    assert [m.groups.count("matrix=") for m in made] == [1, 0]
    assert [m.groups.count("scaled_steps=") for m in made] == [1, 1]
    tiles, vectors = (in_memory(m.built, threads=1) for m in made)
    for rows in (1, 3, 5, 32, 63):
        y, wanted = tiles(data(rows, w.length))[0], expected(data(rows, w.length), w)
        np.testing.assert_array_equal(y.view(np.uint32), vectors(data(rows, w.length))[0].view(np.uint32))
        assert (np.abs(y - wanted).max(1) <= CLOSE * np.abs(wanted).max(1)).all()


@runs_tiles
def test_data_without_numbers_stay_in_their_row() -> None:
    w = KINDS["u4 in 64"]
    x = data(20, w.length)
    x[3, 4], x[17, 70] = np.inf, np.nan
    y = in_memory(made_of(w, options=replace(ROUNDED, target=AMX)).built, threads=1)(x)[0]
    assert not np.isfinite(y[[3, 17]]).any()
    assert np.isfinite(np.delete(y, [3, 17], 0)).all()


def test_short_groups_stay_in_vectors() -> None:
    groups = made_of(KINDS["Q6_K"], options=replace(ROUNDED, target=AMX)).groups
    assert ("matrix=" in groups, "scaled_steps=" in groups) == (False, True)


def product(rows: Size, columns: int = 40) -> tuple[Definition, tuple[Buffer, ...]]:
    """y[i, j] = add[g, e](f32(x[i, g, e] w[j, g, e]) s[i, g] t[j, g])."""
    i, j, g, e = Var("i", rows), Var("j", columns), Var("g", 3), Var("e", 64)
    x, w = dense("x", rows, 192, dtype=DType.I8), dense("w", columns, 3, 64, dtype=DType.U8)
    s, t, y = dense("s", rows, 3), dense("t", columns, 3), dense("y", rows, columns)
    whole = cast(x[i, g * 64 + e], DType.I32) * cast(w[j, g, e], DType.I32)
    return Definition(y, (i, j), Reduce("add", (g, e), cast(whole, DType.F32) * s[i, g] * t[j, g])), (x, w, s, t, y)


def nest(rows: Size, sizes: tuple[Var, ...] = ()) -> list[str]:
    work, params = product(rows)
    text = kernel_text(apply("k", work, choose(work, TILES, frozenset("wt")), params, sizes))
    return [line.strip() for line in text.splitlines()]


def test_each_step_is_summed_in_tiles_and_scaled_by_vectors() -> None:
    lines = nest(32)
    assert "tile 3 += tile 5 * tile 7 of i8u8" in lines
    assert "kept0[j.t] = t[j // 16, g, j % 16]" in lines
    assert "c[i.r, j.t] += f32(part[i.r, j.t]) * s[i, g] * kept0[j.t]" in lines
    assert not any("dot(" in line for line in lines)


def test_vectors_sum_fewer_than_four_rows() -> None:
    n = Var("n", 1 << 20)
    lines = nest(n, (n,))
    heights = [line.split(" ")[1] for line in lines if line.startswith("tiles ")]
    assert heights == ["16x64", "16x64", "8x64", "4x64"] * 2 + ["released"]
    assert any("dot(x[i, " in line for line in lines)
    assert not any("tile 0" in line for line in nest(3))


def test_scales_need_sums_of_integers() -> None:
    work, params = product(32)
    plan = choose(work, TILES, frozenset("wt"))
    with pytest.raises(ScheduleError, match="scaled_steps names an axis of a sum of floats"):
        apply("k", work, replace(plan, dots=None), params)
    with pytest.raises(ScheduleError, match="rows and columns"):
        apply("k", work, Schedule(matrix="i", lanes=("j", 16)), params)
