"""Sums of products of bytes: schedules and sums that are refused."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Expr, Reduce, Var, cast, dense
from aot.codegen.ir.schedule import Pack, ScheduleError, Tail, Tile
from aot.codegen.nest.nest import apply
from aot.runtime.abi import DType
from tests.codegen.llvm.dot_products import PLAN, product


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pack": (Pack("w", (1, 0), 1, 16, 2),)}, "y: pack of 'w' has 1 dimensions in its blocks, got 2"),
        ({"pack": (Pack("w", (1, 0), 1, 16, -1),)}, "y: pack of 'w' has 1 dimensions in its blocks, got -1"),
        ({"pack": (Pack("w", (0, 1), 1, 16, 1),)}, "y: pack of 'w' has 0 dimensions in its blocks, got 1"),
        ({"pack": (Pack("w", (1, 0), 1, 16),)}, "y: dots are sums of u8"),  # not in fours
        ({"pack": ()}, "y: dots are sums of u8"),
        ({"lanes": None}, "y: dots are sums of u8"),
        ({"dots": "j"}, "y: dots are sums of u8"),
        ({"dots": "q"}, "y: dots are sums of u8"),
    ],
)
def test_illegal_schedules(change: dict[str, Any], message: str) -> None:
    work, params = product(4, 11, 16)
    with pytest.raises(ScheduleError, match=re.escape(message)):
        apply("k", work, replace(PLAN, **change), params)


@pytest.mark.parametrize(
    "change",
    [
        {"tile": (*PLAN.tile[:2], Tile("k", 6, Tail.CUT))},  # 6 + 5
        {"tile": (*PLAN.tile[:2], Tile("k", 8, Tail.BALANCE))},
        {"blocks": (("k", 6),)},
        {"tile": PLAN.tile[:2]},  # one by one
        {"lanes": ("k", 8)},
        {"lanes": ("i", 2)},
        {"tile": (Tile("i", 2), Tile("j", 12, Tail.CUT), PLAN.tile[2])},  # the second begins within a panel
        {"tile": (Tile("i", 2), Tile("j", 16, Tail.BALANCE), PLAN.tile[2])},
    ],
    ids=[
        "tile of six",
        "balanced tile",
        "block of six",
        "no tile",
        "lanes on the sum",
        "lanes on rows",
        "vectors across panels",
        "balanced panels",
    ],
)
def test_fours_and_panels_are_not_cut(change: dict[str, Any]) -> None:
    work, params = product(4, 11, 40)
    with pytest.raises(ScheduleError, match="dots"):
        apply("k", work, replace(PLAN, **change), params)


def test_vectors_longer_than_the_instruction() -> None:
    """Refused: there is no such function to call."""
    plan = replace(
        PLAN,
        lanes=("j", 32),
        tile=(PLAN.tile[0], Tile("j", 32, Tail.CUT), PLAN.tile[2]),
        pack=(Pack("w", (1, 0), 1, 32, 1),),
    )
    work, params = product(4, 11, 64)
    with pytest.raises(ScheduleError, match="y: dots are sums of u8"):
        apply("k", work, plan, params)


@pytest.mark.parametrize("case", ["types", "order", "steps", "maximum"])
def test_illegal_sums(case: str) -> None:
    i, j, k = Var("i", 4), Var("j", 16), Var("k", 12)
    x, w = dense("x", 4, 24, dtype=DType.I8 if case == "types" else DType.U8), dense("w", 12, 16, dtype=DType.I8)
    body: Expr = cast(x[i, k * 2 if case == "steps" else k], DType.I32) * cast(w[k, j], DType.I32)
    total = Reduce("max" if case == "maximum" else "add", (k,), body)
    if case == "order":  # the data's rows are what is summed
        x = dense("x", 12, 4, dtype=DType.U8)
        total = Reduce("add", (k,), cast(x[k, i], DType.I32) * cast(w[k, j], DType.I32))
    work = Definition(dense("y", 4, 16, dtype=DType.I32), (i, j), total)
    with pytest.raises(ScheduleError, match="y: dots are sums of u8"):
        apply("k", work, PLAN, (x, w, work.out))
