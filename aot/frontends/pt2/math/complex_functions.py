"""Functions of complex numbers, by functions of their parts.

The inverse trigonometric functions are Kahan's: by square roots of 1 - z and 1 + z, whose parts never cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from aot.frontends.pt2.math.arithmetic import hypotenuse
from aot.frontends.pt2.math.complex_numbers import (
    Operand,
    added,
    angle,
    conj,
    kinds,
    on_real,
    paired_up,
    parts_of,
    polar,
    quotient,
    scaled,
    times,
)
from aot.frontends.pt2.registry import AtenNode, Complex, Number, aten_complex
from aot.frontends.tf.math.complex_numbers import product
from aot.ir.graph import OutPort

SATURATION = 20.0  # from here on tanh is 1, in f32 and in f64
TRUTH = (
    "logical_and logical_or logical_xor logical_not any any.dim any.dims all all.dim all.dims count_nonzero "
    "count_nonzero.dim_IntList nonzero nonzero_numpy argwhere nonzero_static"
)
NORMS = (
    "linalg_vector_norm norm.Scalar norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype linalg_norm linalg_norm.ord_str "
    "linalg_matrix_norm linalg_matrix_norm.str_ord frobenius_norm.dim"
)
SPREADS = (
    "var var.dim var.correction std std.dim std.correction "
    "var_mean var_mean.dim var_mean.correction std_mean std_mean.dim std_mean.correction"
)


def _times_i(node: AtenNode, z: Complex) -> Complex:
    return Complex(node.build.Negative(z.imag), z.real)


def _over_i(node: AtenNode, z: Complex) -> Complex:
    return Complex(z.imag, node.build.Negative(z.real))


def _size(node: AtenNode, z: Complex) -> OutPort:
    return hypotenuse(node, z.real, z.imag)


# ---- exponential function, logarithm, powers


@aten_complex("exp.default")
def exp(node: AtenNode, z: Complex) -> Complex:
    """e^(a + bi) = e^a (cos b + i sin b)"""
    return polar(node, node.build.Exp(z.real), z.imag)


@aten_complex("exp2.default", "special_exp2.default")
def exp2(node: AtenNode, z: Complex) -> Complex:
    return exp(node, scaled(node, z, math.log(2)))


@aten_complex("expm1.default", "special_expm1.default")
def expm1(node: AtenNode, z: Complex) -> Complex:
    return _plus(node, exp(node, z), -1)


@aten_complex("log.default")
def log(node: AtenNode, z: Complex) -> Complex:
    return Complex(node.build.Log(_size(node, z)), angle(node, z))


@aten_complex("log2.default", "log10.default")
def log_of_base(node: AtenNode, z: Complex) -> Complex:
    return scaled(node, log(node, z), 1 / math.log(2 if node.kind.startswith("log2") else 10))


@aten_complex("log1p.default", "special_log1p.default")
def log1p(node: AtenNode, z: Complex) -> Complex:
    return log(node, _plus(node, z, 1))


def _plus(node: AtenNode, z: Complex, number: float) -> Complex:
    return Complex(node.build.Add(z.real, node.like(number, z.real)), z.imag)


@aten_complex("logaddexp.default")
def logaddexp(node: AtenNode, x: Operand, other: Operand) -> Complex:
    """log(e^x + e^y) as x + log(1 + e^(y - x)), where x has the larger real part; its imaginary part is not reduced."""
    build, (a, b) = node.build, paired_up(node, x, other)
    first = build.GreaterEqual(a.real, b.real)
    large, small = (Complex(*(build.Select(first, *pair) for pair in p)) for p in (_zip(a, b), _zip(b, a)))
    gap = Complex(build.Subtract(small.real, large.real), build.Subtract(small.imag, large.imag))
    return added(node, large, log1p(node, exp(node, gap)))


def _zip(a: Complex, b: Complex) -> list[tuple[OutPort, OutPort]]:
    return list(zip(a.ports, b.ports, strict=True))


@aten_complex("ldexp.Tensor")
def ldexp(node: AtenNode, x: Operand, other: Complex | OutPort) -> Complex:
    if isinstance(other, Complex):
        return times(node, x, exp2(node, other))
    power = node.same(other, parts_of(node, x).real)
    return times(node, x, node.build.Power(node.like(2, power), power))


@aten_complex("sqrt.default")
def sqrt(node: AtenNode, z: Complex) -> Complex:
    return _root(node, z, node.build.Less(z.imag, node.like(0, z.imag)))


def _root(node: AtenNode, z: Complex, below: OutPort) -> Complex:
    """Return the root with a real part that is not negative: the sum |a| + |z| never cancels.

    `below`: true where the imaginary part is negative, or a zero that counts as negative.
    """
    build, zero = node.build, node.like(0, z.real)
    root = build.Sqrt(build.Multiply(build.Add(build.Abs(z.real), _size(node, z)), node.like(0.5, z.real)))
    divisor = build.Select(build.Equal(root, zero), node.like(1, root), build.Multiply(root, node.like(2, root)))
    other, left = build.Divide(build.Abs(z.imag), divisor), build.Less(z.real, zero)
    imag = build.Select(left, root, other)
    return Complex(build.Select(left, other, root), build.Select(below, build.Negative(imag), imag))


@aten_complex("rsqrt.default")
def rsqrt(node: AtenNode, z: Complex) -> Complex:
    return quotient(node, 1, sqrt(node, z))


@aten_complex("pow.Tensor_Scalar", "pow.Scalar", "pow.Tensor_Tensor")
def power(node: AtenNode, x: Operand, exponent: Operand) -> Complex:
    """x^y = e^(y log x); squares are products. 0^0 is 1, 0 to another power 0."""
    if isinstance(x, Complex) and exponent == 2:
        return product(node, x, x)
    if isinstance(x, Complex) and exponent == 0.5:
        return sqrt(node, x)
    build, (z, y) = node.build, paired_up(node, x, exponent)
    raised = exp(node, product(node, y, log(node, z)))
    zero, one = node.like(0, z.real), node.like(1, z.real)
    gone = build.LogicalAnd(build.Equal(z.real, zero), build.Equal(z.imag, zero))
    none = build.LogicalAnd(build.Equal(y.real, zero), build.Equal(y.imag, zero))
    real = build.Select(gone, build.Select(none, one, zero), raised.real)
    return Complex(real, build.Select(gone, zero, raised.imag))


@aten_complex("sigmoid.default")
def sigmoid(node: AtenNode, z: Complex) -> Complex:
    build = node.build
    return quotient(node, 1, _plus(node, exp(node, Complex(build.Negative(z.real), build.Negative(z.imag))), 1))


@aten_complex("silu.default")
def silu(node: AtenNode, z: Complex) -> Complex:
    return product(node, z, sigmoid(node, z))


@aten_complex("sgn.default")
def sgn(node: AtenNode, z: Complex) -> Complex:
    size = _size(node, z)
    return quotient(node, z, node.build.Select(node.build.Equal(size, node.like(0, size)), node.like(1, size), size))


# ---- trigonometric and hyperbolic functions


@aten_complex("sinh.default")
def sinh(node: AtenNode, z: Complex) -> Complex:
    build = node.build
    real = build.Multiply(build.Sinh(z.real), build.Cos(z.imag))
    return Complex(real, build.Multiply(build.Cosh(z.real), build.Sin(z.imag)))


@aten_complex("cosh.default")
def cosh(node: AtenNode, z: Complex) -> Complex:
    build = node.build
    real = build.Multiply(build.Cosh(z.real), build.Cos(z.imag))
    return Complex(real, build.Multiply(build.Sinh(z.real), build.Sin(z.imag)))


@aten_complex("tanh.default")
def tanh(node: AtenNode, z: Complex) -> Complex:
    """(sinh 2a + i sin 2b) / (cosh 2a + cos 2b), in a range where nothing overflows."""
    build, two = node.build, node.like(2, z.real)
    a = build.Multiply(build.Clamp(z.real, min=-SATURATION, max=SATURATION), two)
    b = build.Multiply(z.imag, two)
    divisor = build.Add(build.Cosh(a), build.Cos(b))
    return Complex(build.Divide(build.Sinh(a), divisor), build.Divide(build.Sin(b), divisor))


@aten_complex("asin.default")
def asin(node: AtenNode, z: Complex) -> Complex:
    build, (less, more) = node.build, _roots(node, z)
    real = node.tf("Atan2", z.real, product(node, less, more).real)
    return Complex(real, build.Asinh(product(node, conj(node, less), more).imag))


@aten_complex("acos.default")
def acos(node: AtenNode, z: Complex) -> Complex:
    build, (less, more) = node.build, _roots(node, z)
    real = build.Multiply(node.tf("Atan2", less.real, more.real), node.like(2, z.real))
    return Complex(real, build.Asinh(product(node, conj(node, more), less).imag))


def _roots(node: AtenNode, z: Complex) -> tuple[Complex, Complex]:
    """Return the roots of 1 - z and 1 + z. The imaginary part of 1 - z counts as negative where that of z is 0."""
    build = node.build
    opposite = Complex(build.Subtract(node.like(1, z.real), z.real), build.Negative(z.imag))
    below = build.Less(z.imag, node.like(0, z.imag))
    return _root(node, opposite, build.LogicalNot(below)), _root(node, _plus(node, z, 1), below)


@aten_complex("acosh.default")
def acosh(node: AtenNode, z: Complex) -> Complex:
    build = node.build
    less, more = sqrt(node, _plus(node, z, -1)), sqrt(node, _plus(node, z, 1))
    imag = build.Multiply(node.tf("Atan2", less.imag, more.real), node.like(2, z.real))
    return Complex(build.Asinh(product(node, conj(node, less), more).real), imag)


@aten_complex("atanh.default")
def atanh(node: AtenNode, z: Complex) -> Complex:
    """log((1 + z) / (1 - z)) / 2"""
    build, x, y = node.build, z.real, z.imag
    one, square = node.like(1, x), build.Multiply(y, y)
    gap = build.Subtract(one, x)
    part = build.Divide(build.Multiply(x, node.like(4, x)), build.Add(build.Multiply(gap, gap), square))
    real = build.Multiply(node.tf("Log1p", part), node.like(0.25, x))
    across = build.Subtract(build.Multiply(gap, build.Add(one, x)), square)
    turned = node.tf("Atan2", build.Multiply(y, node.like(2, x)), across)
    return Complex(real, build.Multiply(turned, node.like(0.5, x)))


def _of_rotated(function: Callable[[AtenNode, Complex], Complex]) -> Callable[[AtenNode, Complex], Complex]:
    """f(iz) / i: sin from sinh, tan from tanh, asinh from asin, atan from atanh."""

    def turned(node: AtenNode, z: Complex) -> Complex:
        return _over_i(node, function(node, _times_i(node, z)))

    return turned


for name, partner in {"sin": sinh, "tan": tanh, "asinh": asin, "atan": atanh}.items():
    aten_complex(f"{name}.default")(_of_rotated(partner))


@aten_complex("cos.default")
def cos(node: AtenNode, z: Complex) -> Complex:
    return cosh(node, _times_i(node, z))


# ---- tests, norms, statistics


def _is_not_zero(node: AtenNode, z: Complex) -> OutPort:
    build, zero = node.build, node.like(0, z.real)
    return build.LogicalOr(build.NotEqual(z.real, zero), build.NotEqual(z.imag, zero))


@aten_complex(*kinds(TRUTH))
def of_truth(node: AtenNode, *arguments: Any, **named: Any) -> Any:
    """Operations that ask of a number whether it is 0."""
    return on_real(node, [_is_not_zero(node, x) if isinstance(x, Complex) else x for x in node.inputs])


@aten_complex("isnan.default", "isinf.default", "isfinite.default")
def tested(node: AtenNode, z: Complex) -> OutPort:
    (a,), (b,) = (on_real(node, [part]) for part in z.ports)
    return (node.build.LogicalAnd if node.kind.startswith("isfinite") else node.build.LogicalOr)(a, b)


@aten_complex("isreal.default")
def isreal(node: AtenNode, z: Complex) -> OutPort:
    return node.build.Equal(z.imag, node.like(0, z.imag))


@aten_complex("isclose.default")
def isclose(
    node: AtenNode, x: Operand, other: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> OutPort:
    """|x - y| <= atol + rtol |y|, or equal, as infinite numbers are."""
    build, (a, b) = node.build, paired_up(node, x, other)
    size = node.like(rtol, a.real)
    gap = _size(node, Complex(build.Subtract(a.real, b.real), build.Subtract(a.imag, b.imag)))
    limit = build.Add(build.Multiply(_size(node, b), size), node.like(atol, a.real))
    near = build.LogicalAnd(build.LessEqual(gap, limit), build.IsFinite(gap))
    same = build.LogicalAnd(build.Equal(a.real, b.real), build.Equal(a.imag, b.imag))
    port = build.LogicalOr(near, same)
    if not equal_nan:
        return port
    nans = [build.LogicalOr(build.IsNaN(z.real), build.IsNaN(z.imag)) for z in (a, b)]
    return build.LogicalOr(port, build.LogicalAnd(*nans))


@aten_complex(*kinds(NORMS))
def norm(node: AtenNode, z: Complex, *rest: Any, **named: Any) -> Any:
    return on_real(node, [_size(node, z)])


@aten_complex("dist.default")
def dist(node: AtenNode, x: Operand, other: Operand, p: Number = 2) -> Any:
    a, b = paired_up(node, x, other)
    gap = _size(node, Complex(node.build.Subtract(a.real, b.real), node.build.Subtract(a.imag, b.imag)))
    return on_real(node, [gap, node.like(0, gap)])


@aten_complex(*kinds(SPREADS))
def spread(node: AtenNode, z: Complex, *rest: Any, **named: Any) -> tuple[OutPort | Complex, ...]:
    """Variances are the sums of those of the parts; means are complex."""
    build = node.build
    (a, *means), (b, *imags) = (on_real(node, [part]) for part in z.ports)
    if node.kind.startswith("var"):
        port = build.Add(a, b)
    else:
        port = build.Sqrt(build.Add(build.Multiply(a, a), build.Multiply(b, b)))
    return (port, *(Complex(p, q) for p, q in zip(means, imags, strict=True)))


@aten_complex("softmax.int", "log_softmax.int")
def softmax(node: AtenNode, z: Complex, *rest: Any, **named: Any) -> Any:
    """Softmax of the real part: PyTorch has it for real results only."""
    return on_real(node, [z.real])
