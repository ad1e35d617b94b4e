"""Sine, cosine and tangent, and the angles that have them; f64."""

from __future__ import annotations

from math import factorial, inf, pi

from aot.codegen.ir.loops import Const, Expr, cast, prim, select
from aot.codegen.llvm.mathlib.float_parts import I64, absolute, bits_of, clamp, number, poly, with_sign

SIN64 = tuple((-1) ** n / factorial(2 * n + 1) for n in range(8, -1, -1))
COS64 = tuple((-1) ** n / factorial(2 * n) for n in range(9, -1, -1))
ATAN64 = (
    -0.08947141589747067, 0.11485805213032935, -0.08606913568860085, 0.06786997987160506, -0.06816999989343307,
    0.07708298249933858, -0.09091999928553715, 0.11111157453595753, -0.1428571543258819, 0.2000000001455082,
    -0.33333333333405696, 1.0,
)  # fmt: skip


def _quadrant(x: Expr) -> tuple[Expr, Expr]:
    """(q, r): x = q pi/2 + r. The parts of pi/2 are short, so that their products with q are exact."""
    q = prim("round_even", prim("exact_mul", x, 2 / pi))
    r = x
    for part in (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21):
        r = prim("exact_fma", q, -part, r)
    # Arguments too large to reduce still give a sine between -1 and 1.
    return cast(q, I64), clamp(r, -0.7854, 0.7854)


def _sin_cos(r: Expr) -> tuple[Expr, Expr]:
    z = prim("exact_mul", r, r)
    return prim("exact_mul", r, poly(z, SIN64)), poly(z, COS64)


def _odd(q: Expr) -> Expr:
    return prim("ne", prim("and", q, 1), 0)


def _negative_half(q: Expr, value: Expr) -> Expr:
    return select(prim("ne", prim("and", q, 2), 0), prim("neg", value), value)


def sin(x: Expr) -> Expr:
    """Sine, by quadrant; the reduction is exact up to about 10^6."""
    q, r = _quadrant(x)
    s, c = _sin_cos(r)
    return _negative_half(q, select(_odd(q), c, s))


def cos(x: Expr) -> Expr:
    """Cosine: the sine one quadrant further."""
    q, r = _quadrant(x)
    s, c = _sin_cos(r)
    return _negative_half(prim("add", q, 1), select(_odd(q), s, c))


def tan(x: Expr) -> Expr:
    """Tangent: s / c of the reduced argument, -c / s in odd quadrants."""
    q, r = _quadrant(x)
    s, c = _sin_cos(r)
    odd = _odd(q)
    return prim("div", select(odd, prim("neg", c), s), select(odd, s, c))


def _atan_positive(a: Expr) -> Expr:
    """atan a = pi/2 - atan 1/a = pi/4 + atan (a-1)/(a+1), so that a polynomial on 0..tan(pi/8) is enough."""
    big = prim("gt", a, 1.0)
    b = select(big, prim("div", 1.0, a), a)
    middle = prim("gt", b, 0.4142135623730951)
    c = select(middle, prim("div", prim("exact_sub", b, 1.0), prim("exact_add", b, 1.0)), b)
    angle = prim("exact_mul", c, poly(prim("exact_mul", c, c), ATAN64))
    angle = select(middle, prim("exact_add", angle, pi / 4), angle)
    return select(big, prim("exact_sub", pi / 2, angle), angle)


def atan(x: Expr) -> Expr:
    """Arc tangent, by reduction to a small argument."""
    return with_sign(_atan_positive(absolute(x)), x)


def atan2(y: Expr, x: Expr) -> Expr:
    """Return the angle of (x, y), signs of zeros and infinities included."""
    a, b = absolute(y), absolute(x)
    both = prim("and", prim("eq", a, inf), prim("eq", b, inf))
    ratio = select(both, number(1.0, x), select(prim("eq", a, 0.0), number(0.0, x), prim("div", a, b)))
    ratio = select(prim("ne", x, x), x, ratio)
    angle = _atan_positive(ratio)
    left = prim("lt", bits_of(x), Const(0, I64))
    return with_sign(select(left, prim("exact_sub", pi, angle), angle), y)


def asin(x: Expr) -> Expr:
    """atan x / sqrt(1 - x^2)"""
    other = prim("sqrt", prim("exact_mul", prim("exact_sub", 1.0, x), prim("exact_add", 1.0, x)))
    return atan(prim("div", x, other))


def acos(x: Expr) -> Expr:
    """2 atan sqrt((1 - x) / (1 + x))"""
    ratio = prim("div", prim("exact_sub", 1.0, x), prim("exact_add", x, 1.0))
    return prim("exact_mul", _atan_positive(prim("sqrt", ratio)), 2.0)
