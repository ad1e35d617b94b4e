"""Terms of sums that lie in a halo and are passed over."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Expr, Reduce, Var, dense, prim
from aot.codegen.ir.printer import kernel_text, schedule_text
from aot.codegen.ir.schedule import Schedule, ScheduleError, Tail, Tile
from aot.codegen.nest.nest import apply
from aot.codegen.nest.sums.padding_terms import padding_terms
from aot.codegen.schedules.products.padding_share import padding_share
from tests.codegen.running import Array, aligned, compiled

SIDE, FAR, CHANNELS = 6, 4, 16
ROW = SIDE + 2 * FAR
H, W, C = Var("h", SIDE), Var("w", SIDE), Var("c", CHANNELS)
KH, KW, K = Var("kh", 3), Var("kw", 3), Var("k", 5)
PLAN = Schedule(
    order=("h", "w", "c", "kh", "kw", "k"), tile=(Tile("w", 2), Tile("c", 16, Tail.CUT)), lanes=("c", 4), parallel="h"
)


def picture(halo: float | None) -> Buffer:
    """[SIDE, SIDE, 5] with FAR points around."""
    strides = (ROW * 5, 5, 1)
    return Buffer("x", (SIDE, SIDE, 5), strides, origin=FAR * (strides[0] + strides[1]), halo=halo)


def window(x: Buffer, fn: str = "add") -> Definition:
    at: Expr = x[H + KH * FAR - FAR, W + KW * FAR - FAR, K]
    body = at * dense("w", 3, 3, 5, CHANNELS)[KH, KW, K, C] if fn == "add" else at
    return Definition(dense("y", SIDE, SIDE, CHANNELS), (H, W, C), Reduce(fn, (KH, KW, K), body))


def run(plan: Schedule) -> Array:
    """The sums over a picture of ones, with weights of ones; what lies around it is 100, so that reading it shows."""
    x = np.full((ROW, ROW, 5), 100, np.float32)
    x[FAR:-FAR, FAR:-FAR] = 1
    definition = window(picture(0.0))
    kernel = apply("g", definition, plan, (picture(0.0), dense("w", 3, 3, 5, CHANNELS), definition.out))
    out = aligned(np.zeros((SIDE, SIDE, CHANNELS), np.float32))
    compiled(kernel)(aligned(x), aligned(np.ones((3, 3, 5, CHANNELS), np.float32)), out)
    return out


def test_terms_outside_are_passed_over() -> None:
    inside = [sum(0 <= i + k * FAR - FAR < SIDE for k in range(3)) for i in range(SIDE)]
    expected = 5 * np.multiply.outer(inside, inside)[..., None] * np.ones(CHANNELS)
    plan = replace(PLAN, skip_padding=("kh", "kw"))
    assert "skip_padding[kh kw]" in schedule_text(plan)
    np.testing.assert_array_equal(run(plan), expected)


def test_a_tile_is_asked_as_a_whole() -> None:
    out = run(replace(PLAN, tile=(Tile("w", 6), Tile("c", 16, Tail.CUT)), skip_padding=("kh", "kw")))
    assert out[0, 0].tolist() == [5 * 2 * (100 + 1 + 1)] * CHANNELS  # two rows inside, a column outside


def test_flat_rows_are_asked_by_their_outer_part() -> None:
    plan = replace(PLAN, fuse=(("p", ("h", "w")),), order=("p", "c", "kh", "kw", "k"), parallel="p")
    plan = replace(plan, tile=(Tile("p", 2), Tile("c", 16, Tail.CUT)), skip_padding=("kh", "kw"))
    definition = window(picture(0.0))
    params = (picture(0.0), dense("w", 3, 3, 5, CHANNELS), definition.out)
    text = kernel_text(apply("g", definition, plan, params))
    assert text.count("if ") == 2  # of kh alone: a tile may go on in the next row


def test_padding_terms_have_the_share_outside() -> None:
    found = padding_terms(window(picture(0.0)))
    assert [b.axis for b in found] == [KH, KW]
    assert padding_share(found[0]) == pytest.approx(8 / 18)


KEPT = [(None, "add", 0), (1.0, "add", 0), (0.0, "max", 0), (-inf, "max", 2)]


@pytest.mark.parametrize(("halo", "fn", "count"), KEPT)
def test_terms_that_count_are_kept(halo: float | None, fn: str, count: int) -> None:
    assert len(padding_terms(window(picture(halo), fn))) == count


def test_a_tiled_axis_is_not_passed_over() -> None:
    with pytest.raises(ScheduleError, match="skip_padding names reduction axes without a tile, got 'k'"):
        run(replace(PLAN, tile=(*PLAN.tile, Tile("k", 5)), skip_padding=("k",)))


def asking(other: float | None = None, turned: bool = False) -> Definition:
    """A window of one channel after another over 5 rows, which asks where they end."""
    h, w, k, c = Var("h", 5), Var("w", 4), Var("k", 3), Var("c", 8)
    row = h * 2 - k - 1 if turned else h * 2 + k - 3
    more = [] if other is None else [other]
    x = prim("within", row, 5, dense("x", 5, 4, 8)[row, w, c], *more)
    return Definition(dense("y", 5, 4, 8), (h, w, c), Reduce("add", (k,), x * dense("w", 3, 8)[k, c]))


ROWS = Schedule(order=("h", "w", "c", "k"), tile=(Tile("w", 4),), unroll=("k",), lanes=("c", 8), skip_padding=("k",))
FLAT = Schedule(
    fuse=(("p", ("h", "w")),), order=("p", "c", "k"), tile=(Tile("p", 7),), lanes=("c", 8), skip_padding=("k",)
)


@pytest.mark.parametrize(
    ("plan", "turned", "asks"),
    [
        (ROWS, False, 0),
        (replace(ROWS, skip_padding=()), False, 1),
        (FLAT, False, 1),
        (ROWS, True, 1),
    ],
)
def test_a_tile_that_lies_inside_asks_no_longer(plan: Schedule, turned: bool, asks: int) -> None:
    """But where its points lie in several rows, or the window goes upwards."""
    d = asking(turned=turned)
    kernel = apply("g", d, plan, (dense("x", 5, 4, 8), dense("w", 3, 8), d.out))
    assert ("within" in kernel_text(kernel)) == asks
    x = np.random.default_rng(0).integers(-9, 9, (5, 4, 8)).astype("f4")
    weights, out = np.arange(24, dtype="f4").reshape(3, 8), aligned(np.zeros((5, 4, 8), "f4"))
    compiled(kernel)(aligned(x), aligned(weights), out)
    rows = [[2 * h - k - 1 if turned else 2 * h + k - 3 for k in range(3)] for h in range(5)]
    expected = [sum(x[r] * weights[k] for k, r in enumerate(row) if 0 <= r < 5) for row in rows]
    np.testing.assert_array_equal(out, [np.broadcast_to(row, (4, 8)) for row in expected])


def test_conditions_count_if_the_padding_has_their_value() -> None:
    assert [b.extent for b in padding_terms(asking(0.0))] == [5]
    assert not padding_terms(asking(1.0))
