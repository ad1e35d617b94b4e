"""Special functions of numbers in f64: the logarithm of gamma, its derivative, incomplete gamma, Bessel functions."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from aot.frontends.conversion.node_context import NodeContext
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.runtime.abi import DType

# Lanczos's coefficients for g = 7, n = 9: ln gamma to 15 digits.
LANCZOS = (
    0.99999999999980993,
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)
# Coefficients B(2k) / 2k, by Bernoulli numbers, of the asymptotic series of the derivative of ln gamma
BERNOULLI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
SHIFTED = 8  # recurrence steps before the asymptotic series, whose error is below 1e-15 then
TERMS = 512  # summands of the incomplete gamma function's series, which is exact for x up to a + 300
BESSEL_ANGLES = 4000  # sample points of the trapezoidal rule, whose error falls exponentially
BESSEL_SPLIT = 8.0  # |x| up to which the polynomial is in x; above, it is in 1 / x
BESSEL_DEGREE = 29


def log_gamma(node: NodeContext, x: OutPort) -> OutPort:
    """Return ln |gamma(x)| by Lanczos; below 1/2 by gamma(x) gamma(1 - x) = pi / sin(pi x)."""
    build = node.build
    is_small = build.Less(x, 0.5)
    z = build.Subtract(build.Select(is_small, build.Subtract(node.like(1, x), x), x), 1.0)
    total = build.Add(build.Multiply(z, 0.0), LANCZOS[0])
    for k, c in enumerate(LANCZOS[1:], 1):
        total = build.Add(total, build.Divide(node.like(c, x), build.Add(z, float(k))))
    t = build.Add(z, 7.5)
    port = build.Subtract(build.Multiply(build.Add(z, 0.5), build.Log(t)), t)
    port = build.Add(build.Add(port, build.Log(total)), 0.5 * math.log(2 * math.pi))
    sine = build.Abs(build.Sin(build.Multiply(build.FloorMod(x, node.like(1, x)), math.pi)))
    reflected = build.Subtract(build.Subtract(node.like(math.log(math.pi), x), build.Log(sine)), port)
    return build.Select(is_small, reflected, port)


def digamma(node: NodeContext, x: OutPort) -> OutPort:
    """Return the derivative of ln gamma. Below 1/2 it is the derivative at 1 - x, less pi / tan(pi x)."""
    build, one = node.build, node.like(1, x)
    small = build.Less(x, 0.5)
    z = build.Select(small, build.Subtract(one, x), x)
    steps = [build.Divide(one, build.Add(z, float(k))) for k in range(SHIFTED)]
    high = build.Add(z, float(SHIFTED))
    inverse = build.Divide(one, build.Multiply(high, high))
    series = build.Multiply(inverse, BERNOULLI[-1])
    for c in reversed(BERNOULLI[:-1]):
        series = build.Multiply(inverse, build.Add(series, c))
    port = build.Subtract(build.Subtract(build.Log(high), build.Divide(node.like(0.5, x), high)), series)
    for step in steps:
        port = build.Subtract(port, step)
    angle = build.Multiply(build.FloorMod(x, one), math.pi)
    cotangent = build.Multiply(build.Divide(build.Cos(angle), build.Sin(angle)), math.pi)
    pole = build.LogicalAnd(build.LessEqual(x, 0.0), build.Equal(x, build.Floor(x)))
    port = build.Select(small, build.Subtract(port, cotangent), port)
    return build.Select(pole, node.like(math.nan, x), port)


def incomplete_gamma(node: NodeContext, a: OutPort, x: OutPort) -> OutPort:
    """Return the regularised lower function P(a, x): the sum of x^(a + n) e^-x / gamma(a + n + 1)."""
    build = node.build
    rank = max(a.type.rank, x.type.rank)
    last = node.list([rank])
    powers = build.Add(_last_axis(node, a, rank), build.const(np.arange(TERMS, dtype=np.float64), DType.F64))
    wide = _last_axis(node, x, rank)
    logs = build.Subtract(build.Multiply(powers, build.Log(wide)), wide)
    total = build.ReduceSum(build.Exp(build.Subtract(logs, log_gamma(node, build.Add(powers, 1.0)))), last)
    is_saturated = build.Greater(x, build.Add(build.Add(a, 300.0), build.Multiply(build.Sqrt(build.Abs(a)), 8.0)))
    port = build.Select(is_saturated, node.like(1, x), build.Minimum(total, 1.0))
    port = build.Select(build.Equal(x, 0.0), node.like(0, x), port)
    is_undefined = build.LogicalOr(build.LessEqual(a, 0.0), build.Less(x, 0.0))
    return build.Select(is_undefined, node.like(math.nan, x), port)


def _last_axis(node: NodeContext, x: OutPort, rank: int) -> OutPort:
    """Return `x` with leading axes up to `rank` and one more axis at the end."""
    before = node.build.Unsqueeze(x, node.list(range(rank - x.type.rank))) if x.type.rank < rank else x
    return node.build.Unsqueeze(before, node.list([rank]))


def scaled_bessel_i(node: NodeContext, x: OutPort, order: int) -> OutPort:
    """Return I0(x) e^-|x| or I1(x) e^-|x|, by Chebyshev polynomials up to 8 and above."""
    build, size = node.build, node.build.Abs(x)
    low, high = _bessel_polynomials(order)
    below = _polynomial(node, build.Subtract(build.Multiply(size, 2 / BESSEL_SPLIT), 1.0), low)
    at_least_split = build.Maximum(size, BESSEL_SPLIT)
    z = build.Subtract(build.Divide(node.like(2 * BESSEL_SPLIT, x), at_least_split), 1.0)
    above = build.Divide(_polynomial(node, z, high), build.Sqrt(at_least_split))
    port = build.Select(build.LessEqual(size, BESSEL_SPLIT), below, above)
    return build.Multiply(build.Sign(x), port) if order else port


def _polynomial(node: NodeContext, t: OutPort, coefficients: Array) -> OutPort:
    """Return a sum of Chebyshev polynomials of `t`, by Clenshaw."""
    build = node.build
    first, second = node.like(0, t), node.like(0, t)
    double = build.Multiply(t, 2.0)
    for c in coefficients[:0:-1].tolist():
        first, second = build.Add(build.Subtract(build.Multiply(double, first), second), c), first
    return build.Add(build.Subtract(build.Multiply(t, first), second), float(coefficients[0]))


@lru_cache(maxsize=2)
def _bessel_polynomials(order: int) -> tuple[Array, Array]:
    """Return coefficients of I(x) e^-x for x = 4 (t + 1), and of sqrt(x) I(x) e^-x for x = 16 / (t + 1)."""
    angles = (np.arange(BESSEL_ANGLES) + 0.5) * (math.pi / BESSEL_ANGLES)

    nodes: Array = np.polynomial.chebyshev.chebpts1(BESSEL_DEGREE + 1)
    coefficients: list[Array] = []
    for is_above in (False, True):
        x = 2 * BESSEL_SPLIT / (nodes + 1) if is_above else (nodes + 1) * BESSEL_SPLIT / 2
        values: Array = np.mean(np.exp(x[:, None] * (np.cos(angles) - 1)) * np.cos(order * angles), axis=1)
        values = values * np.sqrt(x) if is_above else values
        coefficients.append(np.polynomial.chebyshev.chebfit(nodes, values, BESSEL_DEGREE))
    return coefficients[0], coefficients[1]
