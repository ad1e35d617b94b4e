"""Parameters of kernels: one for each way in which a constant is packed; every run-time size that statements read."""

from __future__ import annotations

import pytest

from aot.lowering.program.kernel_parameters import separated
from codegen.ir.definition import Definition
from codegen.ir.loops import Reduce, Var, dense
from codegen.ir.schedule import Pack, Schedule, ScheduleError
from codegen.nest.nest import apply

ROW, J, K = Var("i", 4), Var("j", 8), Var("k", 8)
X, W, Y, Z = dense("x0", 4, 8), dense("w0", 8, 8), dense("y0", 4, 8), dense("y1", 4, 8)
PLAIN = Definition(Y, (ROW, J), Reduce("add", (K,), X[ROW, K] * W[K, J]))
TURNED = Definition(Z, (ROW, J), Reduce("add", (K,), X[ROW, K] * W[J, K]))
PACKS = (Pack("w0", (1, 0), 1, 8), Pack("w0", (0, 1), 0, 8))
PARAMS = (X, W, Y, Z)


def test_each_packing_of_a_constant_is_a_parameter() -> None:
    names = {"w0": "weights", "x0": "data"}
    plans = tuple(Schedule(pack=(p,)) for p in PACKS)
    works, schedules, packs = separated((PLAIN, TURNED), plans, frozenset({"w0"}), names)
    assert len(works) == 2 and set(packs) == {"w0", "w1"}
    assert names["w1"] == "weights" and packs["w1"].order == (0, 1)
    assert [s.pack[0].operand for s in schedules] == ["w0", "w1"]


def test_equal_packings_share_a_parameter() -> None:
    names = {"w0": "weights", "x0": "data"}
    plans = (Schedule(pack=PACKS[:1]),) * 2
    _, schedules, packs = separated((PLAIN, PLAIN), plans, frozenset({"w0"}), names)
    assert set(packs) == {"w0"} and "w1" not in names
    assert {s.pack[0].operand for s in schedules} == {"w0"}


def test_a_parameter_has_one_packing() -> None:
    plans = tuple(Schedule(pack=(p,)) for p in PACKS)
    with pytest.raises(ScheduleError, match="packed in one way only"):
        apply("two", (PLAIN, TURNED), plans, PARAMS)
