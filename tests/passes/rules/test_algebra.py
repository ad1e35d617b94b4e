"""Arithmetic that changes nothing disappears; what must not be touched stays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.passes.rewrite import RuleSet
from aot.passes.rules import algebra
from aot.runtime.abi import DType
from tests.passes.check import after

RULES = [RuleSet("algebra", algebra.RULES)]
Make = Callable[[Builder, OutPort], OutPort]

CASES: list[tuple[list[str], Make]] = [
    ([], lambda b, x: b.Add(x, 0.0)),
    ([], lambda b, x: b.Add(b.const(0, DType.F32), x)),
    ([], lambda b, x: b.Multiply(b.Subtract(x, 0.0), np.ones((1, 3)))),
    ([], lambda b, x: b.Power(b.Divide(x, 1.0), 1.0)),
    ([], lambda b, x: b.Negative(b.Negative(x))),
    ([], lambda b, x: b.Convert(x, destination_type=DType.F32)),
    (["Subtract"], lambda b, x: b.Subtract(b.const(0, DType.F32), x)),
    (["Divide"], lambda b, x: b.Divide(b.const(1, DType.F32), x)),
    (["Multiply"], lambda b, x: b.Multiply(x, 0.0)),
    (["Add"], lambda b, x: b.Add(x, np.zeros((4, 1, 3)))),
    (["Multiply"], lambda b, x: b.Power(x, 2.0)),
    (["Divide"], lambda b, x: b.Power(x, -1.0)),
    (["Abs", "Sqrt"], lambda b, x: b.Power(b.Abs(x), 0.5)),
    (["Multiply", "Add", "Sqrt"], lambda b, x: b.Power(b.Add(b.Multiply(x, x), 1e-5), 0.5)),
    (["Power"], lambda b, x: b.Power(x, 0.5)),
    (["Relu"], lambda b, x: b.Relu(b.Relu(x))),
    (["Relu"], lambda b, x: b.Maximum(x, 0.0)),
    (["Maximum"], lambda b, x: b.Maximum(x, 1.0)),
    (["Clamp"], lambda b, x: b.Relu(b.Clamp(x, min=0.0, max=6.0))),
    (["Clamp"], lambda b, x: b.Clamp(b.Relu(x), min=-1.0, max=3.0)),
    (["Clamp"], lambda b, x: b.Clamp(b.Clamp(x, min=-2.0, max=2.0), min=-1.0, max=3.0)),
    (["Clamp", "Clamp"], lambda b, x: b.Clamp(b.Clamp(x, min=-2.0, max=-1.0), min=1.0, max=3.0)),
    (["Clamp"], lambda b, x: b.Minimum(b.Relu(x), 6.0)),
    (["Convert"], lambda b, x: b.ConvertLike(x, b.const([1], DType.F16))),
]


@pytest.mark.parametrize(("expected", "make"), CASES, ids=range(len(CASES)))
def test_rules_leave_the_expected_nodes(expected: list[str], make: Make) -> None:
    assert after(RULES, make, (2, 3)) == expected


def test_run_time_sizes() -> None:
    assert after(RULES, lambda b, x: b.Add(x, np.zeros((1, 3))), ("n=4", 3)) == []
    assert after(RULES, lambda b, x: b.Add(x, np.zeros((4, 3))), ("n=4", 3)) == ["Add"]


def test_integers_keep_their_powers() -> None:
    assert after(RULES, lambda b, x: b.Multiply(b.Add(x, 0), 1), (2, 3), dtype=DType.I32) == []
    assert after(RULES, lambda b, x: b.Power(x, 2), (2, 3), dtype=DType.I32) == ["Power"]
