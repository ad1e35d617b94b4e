"""Halos of a result are written by the units that write the rows next to them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.expressions import loads
from aot.codegen.ir.loops import Const, Expr, Kernel, Var, dense
from aot.codegen.ir.printer import kernel_text
from aot.codegen.ir.schedule import Schedule, Tail, Tile
from aot.codegen.nest.nest import apply, units
from aot.runtime.abi import DType
from tests.codegen.running import aligned, compiled

SIDE, WIDE, AROUND = 6, 8, 16
COLUMN = Schedule(order=("r", "e"))
ZERO = Const(0.0, DType.F32)


def framed(schedule: Schedule, left: Schedule = COLUMN, fill: Expr = ZERO) -> Kernel:
    """y[h, w, c] = x[h, w, c] + 1 of a picture of 6 x 6 x 16 in the middle of one of 8 x 8 x 16; around it the fill."""
    x, whole = dense("x", SIDE, SIDE, AROUND), dense("y", WIDE, WIDE, AROUND)
    y = replace(whole, shape=x.shape, start=(Const(-1), Const(-1), Const(0)))
    h, w, c = Var("h", SIDE), Var("w", SIDE), Var("c", AROUND)
    r, e, s = Var("r", SIDE), Var("e", AROUND), Var("s", WIDE)
    row = Schedule(order=("s", "e"))
    works = [
        (Definition(y, (s, e), fill, (Const(-1), s - 1, e)), row),
        (Definition(y, (s, e), fill, (Const(SIDE), s - 1, e)), row),
        (Definition(y, (r, e), fill, (r, Const(-1), e)), left),
        (Definition(y, (r, e), fill, (r, Const(SIDE), e)), left),
        (Definition(y, (h, w, c), x[h, w, c] + 1.0), schedule),
    ]
    definitions, schedules = zip(*works, strict=True)
    return apply("framed", definitions, schedules, (x, y, *(load.buffer for load in loads(fill))))


ROWS = Schedule(order=("h", "w", "c"), parallel="h")
SHARED = {
    "rows": ROWS,
    "pairs of rows": replace(ROWS, tile=(Tile("h", 2),)),
    "more rows than fit": replace(ROWS, tile=(Tile("h", 4, Tail.CUT),)),
    "points": Schedule(fuse=(("p", ("h", "w")),), order=("p", "c"), tile=(Tile("p", 5, Tail.CUT),), parallel="p"),
    "channels": Schedule(order=("c", "h", "w"), parallel="c"),
    "blocks": replace(ROWS, blocks=(("h", 3), ("c", 8))),
}


@pytest.mark.parametrize("name", SHARED)
def test_every_edge_is_written_once_whoever_shares(name: str) -> None:
    kernel = framed(SHARED[name])
    count = units(kernel)
    assert isinstance(count, int)
    x = aligned(np.arange(SIDE * SIDE * AROUND, dtype=np.float32).reshape(SIDE, SIDE, AROUND))
    y = aligned(np.full((WIDE, WIDE, AROUND), -1, np.float32))
    run, times = compiled(kernel), np.zeros(y.shape, int)
    expected = np.pad(x + 1, ((1, 1), (1, 1), (0, 0)))
    for unit in range(count):
        before = np.full_like(y, -1)
        y[...] = before
        run(x, y, begin=unit, end=unit + 1)
        written = y != before
        assert np.array_equal(y[written], expected[written])
        times += written
    assert (times == 1).all()


def test_a_row_brings_its_own_edges() -> None:
    run = compiled(framed(ROWS))
    x = aligned(np.ones((SIDE, SIDE, AROUND), np.float32))
    y = aligned(np.full((WIDE, WIDE, AROUND), -1, np.float32))
    run(x, y, begin=2, end=3)
    assert set(np.argwhere(y != -1)[:, 0]) == {3}
    assert (y[3, [0, -1]] == 0).all()


def test_edges_are_no_units_of_their_own() -> None:
    assert units(framed(ROWS)) == SIDE
    assert units(framed(SHARED["blocks"])) == 2 * (1 + 2 * 3), "of blocks that others share they are one"
    text = kernel_text(framed(ROWS))
    assert text.startswith("kernel framed(x: f32[6, 6, 16], y: f32[-1 +: 6, -1 +: 6, 16])")
    assert "once" not in text


def test_an_edge_that_is_shared_by_itself_stays_so() -> None:
    kernel = framed(ROWS, left=replace(COLUMN, parallel="r"))
    assert units(kernel) == 3 * SIDE


def test_edges_may_hold_what_run_time_tells() -> None:
    """One element of another buffer, and what is computed from it, as zero points are: still no units of their own."""
    kernel = framed(ROWS, fill=dense("z", 1)[0] + 0.5)
    assert units(kernel) == SIDE
    x = aligned(np.ones((SIDE, SIDE, AROUND), np.float32))
    y, z = aligned(np.full((WIDE, WIDE, AROUND), -1, np.float32)), aligned(np.array([7], np.float32))
    compiled(kernel)(x, y, z, begin=0, end=SIDE)
    assert np.array_equal(y, np.pad(x + 1, ((1, 1), (1, 1), (0, 0)), constant_values=7.5))


@pytest.mark.parametrize("low", [0, 1])
def test_edges_are_written_if_there_are_no_rows(low: int) -> None:
    """If the number of rows may be 0, the edges above and below do not wait for a row."""
    n = Var("n", None, low)
    y = replace(dense("y", n + 2, AROUND), shape=(n, AROUND), start=(Const(-1), Const(0)))
    i, e, c = Var("i", n), Var("e", AROUND), Var("c", AROUND)
    works = (
        Definition(y, (e,), Const(0.0, DType.F32), (Const(-1), e)),
        Definition(y, (i, c), Const(0.0, DType.F32) + 1.0, (i, c)),
    )
    kernel = apply("f", works, (Schedule(), Schedule(order=("i", "c"), parallel="i")), (y,), (n,))
    out = aligned(np.full((2, AROUND), -1, np.float32))
    run, text = compiled(kernel), kernel_text(kernel)
    assert ("once" in text) == (low == 0)
    if low == 0:
        run(out, 0, begin=0, end=1)
        assert (out[0] == 0).all()
        assert (out[1] == -1).all()
