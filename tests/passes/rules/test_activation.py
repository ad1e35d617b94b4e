"""Activation functions written out are found in any order of their factors."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.passes.rewrite import RuleSet
from aot.passes.rules import activation, algebra, norm
from aot.runtime.abi import DType
from tests.cases import LOOSE
from tests.passes.check import after

RULES = [RuleSet("rules", (*algebra.RULES, *activation.RULES, *norm.RULES))]
HALF = math.sqrt(0.5)


def cubic(b: Builder, x: OutPort, cube: OutPort) -> OutPort:
    inner = b.Multiply(b.Add(x, b.Multiply(cube, 0.044715)), math.sqrt(2 / math.pi))
    return b.Multiply(b.Multiply(x, 0.5), b.Add(b.Tanh(inner), 1.0))


WRITTEN_OUT: list[tuple[str, Callable[[Builder, OutPort], OutPort]]] = [
    ("Gelu", lambda b, x: b.Multiply(b.Multiply(x, b.Add(b.Erf(b.Divide(x, math.sqrt(2))), 1.0)), 0.5)),
    ("Gelu", lambda b, x: b.Multiply(b.Multiply(x, 0.5), b.Add(b.const(1, DType.F32), b.Erf(b.Multiply(x, HALF))))),
    ("Gelu", lambda b, x: b.Multiply(x, b.Multiply(b.Add(b.Erf(b.Multiply(x, HALF)), 1.0), 0.5))),
    ("Gelu", lambda b, x: b.Multiply(x, b.Add(b.Multiply(b.Erf(b.Multiply(x, HALF)), 0.5), 0.5))),
    ("Gelu", lambda b, x: cubic(b, x, b.Power(x, 3.0))),
    ("Gelu", lambda b, x: cubic(b, x, b.Multiply(x, b.Multiply(x, x)))),
    ("Swish", lambda b, x: b.Multiply(x, b.Sigmoid(x))),
    ("Swish", lambda b, x: b.Multiply(b.Sigmoid(b.Multiply(x, 1.702)), x)),
    ("Swish", lambda b, x: b.Divide(x, b.Add(b.Exp(b.Negative(x)), 1.0))),
    ("Sigmoid", lambda b, x: b.Divide(b.const(1, DType.F32), b.Add(b.Exp(b.Negative(x)), 1.0))),
    ("HSigmoid", lambda b, x: b.Divide(b.Clamp(b.Add(x, 3.0), min=0.0, max=6.0), 6.0)),
    ("HSigmoid", lambda b, x: b.HardSigmoid(x, 1 / 6, 0.5)),
    ("Gelu", lambda b, x: b.Multiply(b.Multiply(x, 0.5), b.Erfc(b.Multiply(b.Negative(x), 0.70710678)))),
    ("Gelu", lambda b, x: b.Multiply(b.Erfc(b.Multiply(x, -0.70710678)), b.Multiply(x, 0.5))),
    ("HSwish", lambda b, x: b.Multiply(x, b.Multiply(b.Clamp(b.Add(x, 3.0), min=0.0, max=6.0), 1 / 6))),
    ("HSwish", lambda b, x: b.Divide(b.Multiply(x, b.Minimum(b.Relu(b.Add(x, 3.0)), 6.0)), 6.0)),
    ("HSwish", lambda b, x: b.Multiply(b.HSigmoid(x), x)),
    ("Mish", lambda b, x: b.Multiply(x, b.Tanh(b.SoftPlus(x)))),
    ("Mish", lambda b, x: b.Multiply(x, b.Tanh(b.Log(b.Add(b.Exp(x), 1.0))))),
    ("SoftPlus", lambda b, x: b.Log(b.Add(b.Exp(x), 1.0))),
    ("Clamp", lambda b, x: b.Minimum(b.Maximum(x, 0.0), 6.0)),
]


@pytest.mark.parametrize(("expected", "make"), WRITTEN_OUT, ids=lambda v: v if isinstance(v, str) else "")
def test_becomes_one_operation(expected: str, make: Callable[[Builder, OutPort], OutPort]) -> None:
    assert after(RULES, make, (2, 5), tolerance=LOOSE) == [expected]
    assert after(RULES, make, ("n=4", 3), tolerance=LOOSE) == [expected]


def test_other_numbers_are_left_alone() -> None:
    def nearly_gelu(b: Builder, x: OutPort) -> OutPort:
        return b.Multiply(b.Multiply(x, b.Add(b.Erf(b.Multiply(x, 0.7)), 1.0)), 0.5)

    def turned_gelu(b: Builder, x: OutPort) -> OutPort:
        return b.Multiply(b.Multiply(x, 0.5), b.Erfc(b.Multiply(x, 0.70710678)))

    for make in (nearly_gelu, turned_gelu):
        assert "Gelu" not in after(RULES, make, (2, 5))


def test_gate_of_another_tensor_is_no_swish() -> None:
    assert after(RULES, lambda b, x, y: b.Multiply(x, b.Sigmoid(y)), (2, 5), (2, 5)) == ["Sigmoid", "Multiply"]


def layer_norm(b: Builder, x: OutPort, square: Callable[[OutPort, OutPort], OutPort]) -> OutPort:
    axes = b.const([-1], DType.I64)
    gap = b.Subtract(x, b.ReduceMean(x, axes, keep_dims=True))
    variance = b.ReduceMean(square(gap, x), axes, keep_dims=True)
    normal = b.Divide(gap, b.Sqrt(b.Add(variance, 1e-5)))
    return b.Add(b.Multiply(normal, b.const([1, 2, 3, 4, 5], DType.F32)), b.const([5, 4, 3, 2, 1], DType.F32))


@pytest.mark.parametrize("power", [False, True])
def test_layer_norm(power: bool) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return layer_norm(b, x, lambda gap, _: b.Power(gap, 2.0) if power else b.Multiply(gap, gap))

    assert after(RULES, make, (3, 5), tolerance=LOOSE) == ["MVN", "Multiply", "Add"]


def test_variance_of_something_else_is_no_norm() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return layer_norm(b, x, lambda _, y: b.Multiply(y, y))

    assert "MVN" not in after(RULES, make, (3, 5), tolerance=LOOSE)


@pytest.mark.parametrize(
    ("groups", "axis", "last", "found"),
    [(3, 2, 4, True), (1, -1, 4, True), (6, 2, 4, True), (3, 1, 4, False), (3, 2, 2, False)],
)
def test_norms_of_groups_of_channels(groups: int, axis: int, last: int, found: bool) -> None:
    """Not over the groups, and not where the result has another shape than the data."""

    def make(b: Builder, x: OutPort) -> OutPort:
        rows = b.Reshape(x, b.const([2, groups, -1], DType.I64), special_zero=False)
        norm = b.MVN(rows, b.const([axis], DType.I64), eps=1e-5)
        return b.Reshape(norm, b.const([2, 6, -1, last], DType.I64), special_zero=False)

    assert ("GroupNormalization" in after(RULES, make, (2, 6, 3, 4), tolerance=LOOSE)) == found
