"""Windows on a shared axis of a group: what a strip of rows reads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition, Group, RowRange
from aot.codegen.ir.loops import Buffer, Const, Reduce, Space, Var, dense
from aot.codegen.ir.printer import definition_text
from aot.codegen.ir.schedule import Schedule, ScheduleError, Tail, Tile
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.nest.nest import apply, units
from aot.runtime.abi import DType
from tests.codegen.running import aligned, compiled


def windowed(n: int) -> tuple[Group, Buffer, Buffer]:
    """Sums of three of 9 elements, every second one; beside them lie -1 and -2."""
    x, y, i, k = dense("x", 9), dense("y", n), Var("i", n), Var("k", 3)
    v, row, above, below = Var("v", 9), Var("row", 9), Var("above", 0, low=-1), Var("below", 11, low=9)
    t = dense("t", v, space=Space.ARENA)
    whole = RowRange(v, i, 2, 1, 3)
    edges = (above, Const(-1.0, DType.F32), (-1, 0)), (below, Const(-2.0, DType.F32), (9, 11))
    parts = ((row, x[row] * 2.0, (0, 9)), *edges)
    group = Group(
        "strips",
        (i,),
        (t,),
        (
            *(Group("rows", (a,), (), (Definition(t, (a,), value),)) for a, value, _ in parts),
            Definition(y, (i,), Reduce("add", (k,), t[i * 2 + k - 1])),
        ),
        (whole, *(replace(whole, axis=a, within=limits) for a, _, limits in parts)),
    )
    return group, x, y


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_windows_on_a_shared_axis(size: int) -> None:
    """Tiles recompute the rows that they share; rows outside of the limits are not written."""
    group, x, y = windowed(5)
    rows = Schedule(members=(Schedule(),))
    plan = Schedule(tile=(Tile("i", size, Tail.SHORT),), parallel="i", members=(rows, rows, rows, Schedule()))
    kernel = apply("k", group, plan, (x, y))
    assert units(kernel) == -(-5 // size)
    data, out, call = aligned(np.arange(1, 10).astype("f4")), aligned(np.zeros(5, "f4")), compiled(kernel)
    call(data, out, begin=units(kernel) // 2)
    call(data, out, end=units(kernel) // 2)
    padded = np.concatenate([[-1], 2 * data, [-2]])
    np.testing.assert_array_equal(out, [padded[2 * i : 2 * i + 3].sum() for i in range(5)])
    assert emit(kernel).scratch_bytes == 64 * -(-4 * (2 * size + 1) // 64)


def test_a_window_needs_tiles_of_known_size_and_prints_its_limits() -> None:
    group, x, y = windowed(5)
    lines = definition_text(group).splitlines()
    assert lines[0] == "group strips over i in 5 with t: f32[v] @arena"
    assert lines[1:4] == [
        "  rows v = i * 2 - 1 +: 3",
        "  rows row = i * 2 - 1 +: 3 within 0..9",
        "  rows above = i * 2 - 1 +: 3 within -1..0",
    ]
    n = Var("n")
    i = Var("i", n)
    loose = replace(group, axes=(i,), row_ranges=(replace(group.row_ranges[0], of=i),), members=group.members[-1:])
    plan = Schedule(tile=(Tile("i", 4, Tail.SHORT),), members=(Schedule(),))
    with pytest.raises(ScheduleError, match="row range 'v': the tile of 'i' has no known size"):
        apply("k", loose, plan, (x, y), (n,))
