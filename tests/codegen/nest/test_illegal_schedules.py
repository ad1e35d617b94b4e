"""Schedules that a definition or a group refuses, and what the errors say."""

from __future__ import annotations

import re

import pytest

from aot.codegen.ir.definition import Definition, Group
from aot.codegen.ir.loops import (
    Expr,
    Reduce,
    Space,
    Var,
    dense,
)
from aot.codegen.ir.schedule import Pack, Schedule, ScheduleError, Tail, Tile
from aot.codegen.nest.nest import apply
from tests.codegen.nest.test_nest import matmul, params

OVERLAP = "tiles that overlap are those of tile registers, or of enough rows, each of which is summed at once"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": ("i", "x")}, "c: order names no axis: 'x' (axes: i, j, k)"),
        ({"tile": (Tile("x", 2),)}, "c: tile names no axis: 'x' (axes: i, j, k)"),
        ({"unroll": ("q",)}, "c: unroll names no axis: 'q' (axes: i, j, k)"),
        ({"lanes": ("q", 8)}, "c: lanes names no axis: 'q' (axes: i, j, k)"),
        ({"row_vectors": "q"}, "c: row_vectors names no axis: 'q' (axes: i, j, k)"),
        ({"f16_sums": "k"}, "c: f16_sums are static axes of sums of products of f16, got 'k'"),
        ({"scaled_steps": "i"}, "c: scaled_steps names an axis of a sum of floats, without tile and blocks, got 'i'"),
        ({"scaled_steps": "k", "tile": (Tile("k", 2),)}, "c: scaled_steps names an axis of a sum of floats"),
        ({"scaled_steps": "k", "blocks": (("k", 4),)}, "c: scaled_steps names an axis of a sum of floats"),
        ({"lanes": ("j", 6)}, "c: lanes are a power of two, got 6"),
        ({"parallel": "k"}, "c: parallel names no axis: 'k' (axes: i, j)"),
        ({"fuse": (("p", ("i", "x")),)}, "c: fuse names no axis: 'x' (axes: i, j, k)"),
        ({"fuse": (("p", ("i", "k")),)}, "c: fuse mixes output and reduction axes, got i, k"),
        ({"pack": (Pack("w", (0,), 1, 8),)}, "c: pack names no operand: 'w' (operands: a, b)"),
        ({"pack": (Pack("b", (0, 2), 1, 8),)}, "c: pack of 'b' orders 2 dimensions with 1, got (0, 2)"),
        ({"prefetch": "a"}, "c: prefetch names an operand that is packed or lies in lanes, got 'a'"),
        ({"prefetch_within": 2}, "c: prefetch_within counts units, and prefetch names what, got 2"),
        ({"blocks": (("x", 4),)}, "c: blocks names no axis: 'x' (axes: i, j, k)"),
        ({"blocks": (("j", 0),)}, "c: block sizes are positive, got 0"),
        ({"blocks": (("k", 2),), "lanes": ("k", 8)}, "c: blocks of a sum need lanes along the output, got 'k'"),
        ({"pitch": (("e", 16),)}, "c: pitch belong to a group, got 1"),
        ({"members": (Schedule(),)}, "c: members belong to a group, got 1"),
        ({"tile": (Tile("i", 3, Tail.SHORT),)}, "c: tiles with a short one belong to a group, got 'i'"),
        ({"tile": (Tile("k", 3, Tail.LAP),)}, f"c: {OVERLAP}, got 'k'"),
        ({"tile": (Tile("j", 3, Tail.LAP),), "lanes": ("j", 2)}, f"c: {OVERLAP}, got 'j'"),
        ({"tile": (Tile("i", 3, Tail.LAP),), "blocks": (("k", 4),)}, f"c: {OVERLAP}, got 'i'"),
        ({"order": ("j", "i"), "parallel": "i"}, "k: the parallel loop must be outermost, got 'i' inside another loop"),
    ],
)
def test_illegal_schedules(change: dict[str, object], message: str) -> None:
    with pytest.raises(ScheduleError, match=re.escape(message)):
        apply("k", matmul(8, 7, 16), Schedule(**change), params(8, 7, 16))  # type: ignore[arg-type]


def test_tiles_that_overwrite_an_operand_do_not_overlap() -> None:
    i, j, k = Var("i", 41), Var("j", 16), Var("k", 64)
    a, b, c = dense("a", 41, 64), dense("b", 64, 16), dense("c", 41, 16)
    sums = Definition(c, (i, j), Reduce("add", (k,), a[i, k] * b[k, j]) + c[i, j])
    plan = Schedule(tile=(Tile("i", 32, Tail.LAP),), matrix="i")
    with pytest.raises(ScheduleError, match="c: tiles that overwrite an operand have no points in common, got 'i'"):
        apply("k", sums, plan, (a, b, c))


def test_illegal_groups() -> None:
    i, j = Var("i", 4), Var("j", 5)
    x, t, y = dense("x", 4, 5), dense("t", i, 5, space=Space.STACK), dense("y", 4, 5)
    group = Group("rows", (i,), (t,), (Definition(t, (i, j), x[i, j]), Definition(y, (i, j), t[i, j])))
    two = (Schedule(), Schedule())
    for plan, message in (
        (Schedule(members=(Schedule(),)), "rows: members: 2 definitions, 1 schedules"),
        (Schedule(members=two, pitch=(("q", 1),)), "rows: pitch names no temp: 'q' (temps: t)"),
        (Schedule(members=two, lanes=("i", 4)), "rows: lanes belong to a member, got 'i' of the group"),
        (
            Schedule(members=(Schedule(parallel="j"), Schedule())),
            "t: parallel is for the outermost loops, got 'j' in a member",
        ),
    ):
        with pytest.raises(ScheduleError, match=re.escape(message)):
            apply("k", group, plan, (x, y))


def test_two_reductions_are_refused() -> None:
    i, k = Var("i", 4), Var("k", 3)
    x, y = dense("x", 4, 3), dense("y", 4)
    value: Expr = Reduce("add", (k,), x[i, k]) + Reduce("max", (k,), x[i, k])
    with pytest.raises(ScheduleError, match="y: at most one reduction, got 2"):
        apply("k", Definition(y, (i,), value), Schedule(), (x, y))
