"""Exponentials without denormal numbers: in softmax, however it is written, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.options import CompileOptions
from tests.lowering.check import Make, compiled, ints
from tests.lowering.fusion import test_group_rows as forms
from tests.lowering.fusion.test_group_rows import log_softmax, softmax, written_softmax
from tests.passes.check import graph_of

SHAPE = (3, 4, 37)


def of_other_rows(b: Builder, x: OutPort) -> OutPort:
    """The maximum is another one's: all exponentials may be small."""
    powers = b.Exp(b.Subtract(x, b.ReduceMax(b.Multiply(x, x), ints(b, -1), keep_dims=True)))
    return b.Divide(powers, b.ReduceSum(powers, ints(b, -1), keep_dims=True))


def without_maximum(b: Builder, x: OutPort) -> OutPort:
    powers = b.Exp(b.Subtract(x, b.ReduceMin(x, ints(b, -1), keep_dims=True)))
    return b.Divide(powers, b.ReduceSum(powers, ints(b, -1), keep_dims=True))


def without_sum(b: Builder, x: OutPort) -> OutPort:
    return b.Exp(b.Subtract(x, b.ReduceMax(x, ints(b, -1), keep_dims=True)))


def results(b: Builder, x: OutPort) -> tuple[OutPort, OutPort]:
    """The exponentials are a result themselves."""
    powers = without_sum(b, x)
    return powers, b.Divide(powers, b.ReduceSum(powers, ints(b, -1), keep_dims=True))


@pytest.mark.parametrize(
    "make",
    [softmax, log_softmax, written_softmax, forms.softmax_without_kept_dimensions, forms.masked_softmax],
)
def test_softmax_has_no_tails(make: Make) -> None:
    loops = compiled(make, SHAPE).loops()
    assert "exp_normal(" in loops and " exp(" not in loops


@pytest.mark.parametrize(
    ("make", "may"), [(softmax, True), (written_softmax, True), (log_softmax, False), (results, False)]
)
def test_only_what_a_softmax_subtracts_may_lose_nan(make: Make, may: bool) -> None:
    """A logarithm adds it once more; exponentials that are results themselves show it."""
    loops = compiled(make, SHAPE).loops()
    assert ("larger=" in loops, "max=" in loops) == (may, not may)


@pytest.mark.parametrize("make", [of_other_rows, without_maximum, without_sum, results])
def test_others_have(make: Make) -> None:
    loops = compiled(make, SHAPE).loops()
    assert "exp_normal(" not in loops and " exp(" in loops


@pytest.mark.parametrize("make", [softmax, log_softmax, written_softmax])
def test_far_apart_and_without_numbers(make: Make) -> None:
    made = stages(graph_of(make, SHAPE), CompileOptions(level=None))
    x = np.zeros(SHAPE, np.float32)
    x[0, 0] = np.linspace(-200, 200, 37)
    x[0, 1, 5:] = -np.inf
    x[0, 2] = -np.inf
    x[0, 3, 7] = np.nan
    x[1, 0, 3] = np.inf
    with np.errstate(invalid="ignore", divide="ignore"):
        powers = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
        want = powers / powers.sum(-1, keepdims=True)
        want = np.log(want) if make is log_softmax else want
    near_one = 1e-7 if make is log_softmax else 2e-38  # a sum near 1 has that much rounding; shares have none
    np.testing.assert_allclose(in_memory(made.built)(x)[0], want, rtol=1e-6, atol=near_one)
