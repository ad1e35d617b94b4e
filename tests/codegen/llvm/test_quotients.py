"""Quotients by constants as a product and a multiply-add: the bits of a division, for every dividend."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from aot.codegen.ir.loops import Expr, prim
from aot.codegen.llvm.emit.arithmetic.quotients import reciprocal
from aot.runtime.abi import DType
from tests.codegen.llvm.test_dtypes import run

STEPS = (6 / 255, 0.0185857788, 0.0333137438, 0.1, 1 / 3, 3.0, 1.9999999, 1.0000001, 1e-9, 7e12, -0.0235294122)
SPECIAL = (0.0, -0.0, np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-40, 1e-30)


def quotients(x: NDArray[np.float32], factors: tuple[float, float]) -> NDArray[np.float32]:
    """The multiply-add is computed with 64 digits, which hold all of it."""
    high, low = (np.float32(factor) for factor in factors)
    with np.errstate(all="ignore"):
        return (x.astype(np.longdouble) * np.longdouble(high) + (x * low).astype(np.longdouble)).astype(np.float32)


def test_every_dividend_of_one_exponent() -> None:
    x = np.arange(1 << 23, 1 << 24, dtype=np.float32)
    step = np.float32(6 / 255)
    factors = reciprocal(float(step))
    assert factors is not None
    np.testing.assert_array_equal(quotients(x, factors), x / step)


def test_random_divisors() -> None:
    rng = np.random.default_rng(0)
    divisors = (2.0 ** rng.uniform(-40, 40, 400) * rng.choice([-1, 1], 400)).astype(np.float32)
    found = [(d, factors) for d in divisors if (factors := reciprocal(float(d))) is not None]
    assert len(found) > 380
    for d, factors in found:
        assert all(factor == np.float32(factor) for factor in factors)
        middle = (d * rng.integers(1 << 24, 1 << 25, 2000) / (1 << 24)).astype(np.float32)
        x = np.concatenate([middle, -np.nextafter(middle, np.float32(np.inf))])
        np.testing.assert_array_equal(quotients(x, factors), x / d, str(d))


@pytest.mark.parametrize("divisor", [0.0, 1.0, -2.0, 0.125, 1e-40, np.inf, 1e30])
def test_divisors_that_are_left(divisor: float) -> None:
    """Powers of two, and those whose factors could be denormal or infinite."""
    assert reciprocal(divisor) is None


@pytest.mark.parametrize("lanes", [1, 8, 16])
@pytest.mark.parametrize("target", ["native", "x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize("step", STEPS)
def test_rounded_quotients(step: float, target: str, lanes: int) -> None:
    step = float(np.float32(step))
    middle = ((np.arange(-300, 300) + 0.5) * step).astype(np.float32)
    x = np.concatenate([np.array(SPECIAL, np.float32), middle, np.nextafter(middle, np.float32(np.inf))])

    def made(e: Expr) -> Expr:
        return prim("round_even", e / step)

    found = run(made, DType.F32, (DType.F32, x), lanes=lanes, target=target)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, np.rint(x / np.float32(step)))
