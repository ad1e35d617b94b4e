"""Transcendental functions as expressions. A loop nest has `exp(x)`; the emitter replaces it by the polynomial.

f32 exp, log, tanh and erf have forms of their own; the other f32 functions are those of f64, rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import factorial, inf, ldexp, nan, pi

from codegen.ir.loops import Const, Expr, Space, cast, dense, prim, select
from runtime.abi import DType

LOG2_E = 1.4426950408889634
F32, F64, I32, I64 = DType.F32, DType.F64, DType.I32, DType.I64

# Minimax polynomials, highest power first.
EXP32 = (
    0.0013814465706587743,
    0.008368780529855737,
    0.04166839423914079,
    0.1666652010654108,
    0.49999993412361005,
    1.0,
    1.0,
)
LOG32 = (
    0.11798454428828607, -0.12751633259309, 0.10807637772637543, -0.12216260873165125, 0.14299901149345548,
    -0.1667829028895547, 0.19999741060748877, -0.2499983517012872, 0.3333333456793734, -0.5000000037173249,
)  # fmt: skip
ERF32_MOST = 3.92  # erf is 1 in f32 from here on
ERF32 = (  # x p(x^2) / q(x^2)
    2.0501050063821294e-06, 0.00028488281275577547, 0.0037655818852319746, 0.05274861419118827, 0.19040552503123762,
    1.1283791461540502,
), (
    3.809190586328104e-05, 0.00116252873476549, 0.014969144321548151, 0.11410873688706108, 0.5020752440146103, 1.0,
)  # fmt: skip
# erf(x) = x p(x^2) below 1, and 1 - exp(q(x)) above.
ERF64_NEAR = (
    6.422637200488557e-11, -1.160008223610729e-09, 1.4708154772483517e-08, -1.6356255884459633e-07,
    1.6461465878561696e-06, -1.492561865590209e-05, 0.00012055331750613938, -0.0008548326979442969,
    0.0052239776240356, -0.026866170644820418, 0.11283791670951528, -0.3761263890318357, 1.1283791670955123,
)  # fmt: skip
ERF64_FAR = (  # in x - 3.5
    7.930610132534255e-16, -2.0733207653580827e-15, -2.4972155406216625e-14, 1.2033680315275384e-13,
    -2.3454580439891817e-13, 1.563604073036199e-12, -1.0123023853755308e-11, 3.326592082628213e-11,
    -2.1291413779171618e-11, -7.834344380127249e-10, 9.523375473573878e-09, -8.067579178077505e-08,
    5.856264508680395e-07, -3.889577908610978e-06, 2.4386363278272112e-05,
    -0.00014729776123701644, 0.0008736873280782569, -0.00522565822605001, -0.9667530547429669, -7.266099588364825,
    -14.112437402148188,
)  # fmt: skip
# For results that are rounded to 8 bits: 2^r for |r| <= 1/2 within 7.5e-5 of it, erf(x) = x p(x^2) below 3 within 4e-5.
EXP2_SHORT = (0.055171659080990997, 0.24261122129244797, 0.6932609960453908, 0.999928067763014)
ERF_SHORT_MOST = 3.0
ERF_SHORT = (
    4.0741346558922113e-08,
    -1.944794136892706e-06,
    4.106011247775776e-05,
    -0.0005110337639031275,
    0.004235414377960783,
    -0.0251028311671689,
    0.11107930059164488,
    -0.37531485998948116,
    1.128268424791245,
)
EXP64 = tuple(1 / factorial(n) for n in range(13, -1, -1))
SIN64 = tuple((-1) ** n / factorial(2 * n + 1) for n in range(8, -1, -1))
COS64 = tuple((-1) ** n / factorial(2 * n) for n in range(9, -1, -1))
SINH64 = tuple(1 / factorial(2 * n + 1) for n in range(9, -1, -1))
ATAN64 = (
    -0.08947141589747067, 0.11485805213032935, -0.08606913568860085, 0.06786997987160506, -0.06816999989343307,
    0.07708298249933858, -0.09091999928553715, 0.11111157453595753, -0.1428571543258819, 0.2000000001455082,
    -0.33333333333405696, 1.0,
)  # fmt: skip


def number(x: float, like: Expr) -> Const:
    return Const(x, like.dtype)


def poly(x: Expr, coefficients: tuple[float, ...]) -> Expr:
    """Evaluate a polynomial by Horner's rule; never reordered."""
    total: Expr = number(coefficients[0], x)
    for c in coefficients[1:]:
        total = prim("exact_fma", total, x, c)
    return total


def _bits(x: Expr) -> Expr:
    return prim("bits", x, dtype=I32 if x.dtype is F32 else I64)


def _float(x: Expr) -> Expr:
    return prim("bits", x, dtype=F32 if x.dtype is I32 else F64)


def _clamp(x: Expr, low: float, high: float) -> Expr:
    return prim("min", prim("max", x, low), high)


def _abs(x: Expr) -> Expr:
    return prim("abs", x)


def _with_sign(magnitude: Expr, sign: Expr) -> Expr:
    """`magnitude`, which is not negative, with the sign of `sign`."""
    top = Const(-(1 << 31), I32) if sign.dtype is F32 else Const(-(1 << 63), I64)
    return _float(prim("or", _bits(magnitude), prim("and", _bits(sign), top)))


def _reduced(x: Expr, biases: int) -> tuple[Expr, Expr]:
    """(t, r): x = n ln 2 + r, |r| <= ln 2 / 2; the low bits of t hold n + `biases` times the exponent's bias."""
    single = x.dtype is F32
    # Adding `magic` leaves the rounded integer in the low bits.
    magic = 12582912.0 + 127 * biases if single else 6755399441055744.0 + 1023 * biases
    high, low = (0.693145751953125, 1.428606765330187e-06) if single else (0.6931471803691238, 1.9082149292705877e-10)
    t = prim("exact_fma", x, LOG2_E, magic)
    n = prim("exact_sub", t, magic)
    r = prim("exact_fma", n, -high, x)
    return _bits(t), prim("exact_fma", n, -low, r)


def exp(x: Expr) -> Expr:
    """e^x = 2^n p(r). 2^n comes in two factors, so that results overflow and underflow as they should.

    Where the result underflows to zero, one factor is 0: rounding that product would take a hundred times as long.
    """
    single = x.dtype is F32
    low, high = (-104.0, 89.0) if single else (-746.0, 710.0)
    lost, x = prim("lt", x, low), _clamp(x, low, high)
    t, r = _reduced(x, 2)
    p = poly(r, EXP32 if single else EXP64)
    place = 23 if single else 52
    half = prim("shr", t, 1)
    first, second = (_float(prim("shl", e, place)) for e in (half, prim("sub", t, half)))
    return prim("exact_mul", prim("exact_mul", p, first), select(lost, 0.0, second))


def exp_normal(x: Expr) -> Expr:
    """e^x where that is a normal number; 0 below, infinite from about 2^127.5 on. For sums: tails are negligible."""
    if x.dtype is not F32:
        return exp(x)
    lost = prim("lt", x, -87.33)
    t, r = _reduced(prim("min", x, 89.0), 1)
    scale = _float(prim("shl", t, 23))
    return select(lost, 0.0, prim("exact_mul", poly(r, EXP32), scale))


def _expm1(x: Expr) -> Expr:
    """e^x - 1 for |x| < 80, without cancellation near 0."""
    single = x.dtype is F32
    t, r = _reduced(x, 1)
    p = prim("exact_mul", poly(r, (EXP32 if single else EXP64)[:-1]), r)
    scale = _float(prim("shl", t, 23 if single else 52))
    return prim("exact_fma", p, scale, prim("exact_sub", scale, 1.0))


def log(x: Expr) -> Expr:
    """ln x = e ln 2 + ln m, x = 2^e m, 2/3 <= m < 4/3."""
    single = x.dtype is F32
    least, up = (ldexp(1.0, -126), 23) if single else (ldexp(1.0, -1022), 52)
    place, base, ints = (23, 0x3F2AAAAB, I32) if single else (52, 0x3FE5555555555555, I64)
    small = prim("lt", x, least)
    normal = _bits(select(small, prim("exact_mul", x, ldexp(1.0, up)), x))
    steps = prim("shr", prim("sub", normal, base), place)
    m = _float(prim("sub", normal, prim("shl", steps, place)))
    e = cast(prim("sub", steps, select(small, Const(up, ints), Const(0, ints))), x.dtype)
    r = prim("exact_sub", m, 1.0)
    high, low = (0.693359375, -2.12194440e-4) if single else (0.6931471803691238, 1.9082149292705877e-10)
    if single:
        rest = prim("exact_fma", prim("exact_mul", r, r), poly(r, LOG32), prim("exact_mul", e, low))
        result = prim("exact_fma", e, high, prim("exact_add", r, rest))
    else:
        s = prim("div", r, prim("exact_add", m, 1.0))
        z = prim("exact_mul", s, s)
        series = poly(z, tuple(2 / (2 * n + 1) for n in range(11, 0, -1)))
        rest = prim("exact_fma", prim("exact_mul", s, z), series, prim("exact_mul", e, low))
        # 2s = r - s r: the rounding error of s counts only where it is multiplied by r.
        rest = prim("exact_sub", rest, prim("exact_mul", s, r))
        result = prim("exact_fma", e, high, prim("exact_add", r, rest))
    result = select(prim("lt", x, inf), result, x)
    outside = select(prim("eq", x, 0.0), number(-inf, x), select(prim("lt", x, 0.0), number(nan, x), x))
    return select(prim("gt", x, 0.0), result, outside)


def _log1p(u: Expr) -> Expr:
    """ln(1 + u), with the rounding error of 1 + u corrected."""
    w = prim("exact_add", u, 1.0)
    d = prim("exact_sub", w, 1.0)
    safe = select(prim("eq", d, 0.0), number(1.0, u), d)
    result = select(prim("eq", d, 0.0), u, prim("exact_mul", log(w), prim("div", u, safe)))
    return select(prim("lt", u, inf), result, u)


def tanh(x: Expr) -> Expr:
    """(e^2|x| - 1) / (e^2|x| + 1), the sign put back."""
    a = prim("min", _abs(x), 10.0 if x.dtype is F32 else 20.0)
    e = _expm1(prim("exact_add", a, a))
    return _with_sign(prim("div", e, prim("exact_add", e, 2.0)), x)


def erf(x: Expr) -> Expr:
    """f32: a quotient of polynomials. f64: an odd polynomial below 1, 1 - exp(polynomial) above."""
    if x.dtype is F32:
        x = _clamp(x, -ERF32_MOST, ERF32_MOST)
        z = prim("exact_mul", x, x)
        above, below = (poly(z, c) for c in ERF32)
        return _clamp(prim("div", prim("exact_mul", x, above), below), -1.0, 1.0)
    a = prim("min", _abs(x), 6.0)
    small = prim("exact_mul", x, poly(prim("exact_mul", x, x), ERF64_NEAR))
    large = prim("exact_sub", 1.0, exp(poly(prim("exact_sub", a, 3.5), ERF64_FAR)))
    return select(prim("lt", a, 1.0), small, _with_sign(large, x))


def exp_short(x: Expr) -> Expr:
    """`exp_normal` of f32 within 1e-4 of the result."""
    magic = 12582912.0 + 127
    low = prim("lt", x, -87.33)
    x = prim("min", x, 89.0)
    t = prim("exact_fma", x, LOG2_E, magic)
    r = prim("exact_fma", x, LOG2_E, prim("exact_sub", magic, t))
    return select(low, 0.0, prim("exact_mul", poly(r, EXP2_SHORT), _float(prim("shl", _bits(t), 23))))


def erf_short(x: Expr) -> Expr:
    """`erf` of f32 within 5e-5; exactly 1 or -1 from 3 on."""
    x = _clamp(x, -ERF_SHORT_MOST, ERF_SHORT_MOST)
    return _clamp(prim("exact_mul", x, poly(prim("exact_mul", x, x), ERF_SHORT)), -1.0, 1.0)


# ---- f64 only


def _quadrant(x: Expr) -> tuple[Expr, Expr]:
    """(q, r): x = q pi/2 + r. The parts of pi/2 are short, so that their products with q are exact."""
    q = prim("round_even", prim("exact_mul", x, 2 / pi))
    r = x
    for part in (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21):
        r = prim("exact_fma", q, -part, r)
    # Arguments too large to reduce still give a sine between -1 and 1.
    return cast(q, I64), _clamp(r, -0.7854, 0.7854)


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
    return _with_sign(_atan_positive(_abs(x)), x)


def atan2(y: Expr, x: Expr) -> Expr:
    """The angle of (x, y), signs of zeros and infinities included."""
    a, b = _abs(y), _abs(x)
    both = prim("and", prim("eq", a, inf), prim("eq", b, inf))
    ratio = select(both, number(1.0, x), select(prim("eq", a, 0.0), number(0.0, x), prim("div", a, b)))
    ratio = select(prim("ne", x, x), x, ratio)
    angle = _atan_positive(ratio)
    left = prim("lt", _bits(x), Const(0, I64))
    return _with_sign(select(left, prim("exact_sub", pi, angle), angle), y)


def asin(x: Expr) -> Expr:
    """atan x / sqrt(1 - x^2)"""
    other = prim("sqrt", prim("exact_mul", prim("exact_sub", 1.0, x), prim("exact_add", 1.0, x)))
    return atan(prim("div", x, other))


def acos(x: Expr) -> Expr:
    """2 atan sqrt((1 - x) / (1 + x))"""
    ratio = prim("div", prim("exact_sub", 1.0, x), prim("exact_add", x, 1.0))
    return prim("exact_mul", _atan_positive(prim("sqrt", ratio)), 2.0)


def sinh(x: Expr) -> Expr:
    """Odd series below 1, exponentials above: e^|x|/2 in two halves, so that only the result overflows."""
    a = _abs(x)
    small = prim("exact_mul", a, poly(prim("exact_mul", a, a), SINH64))
    h = exp(prim("exact_mul", a, 0.5))
    half = prim("exact_mul", h, 0.5)
    large = prim("exact_sub", prim("exact_mul", half, h), prim("div", prim("div", 0.5, h), h))
    return _with_sign(select(prim("lt", a, 1.0), small, large), x)


def cosh(x: Expr) -> Expr:
    """(e^|x| + e^-|x|) / 2"""
    h = exp(prim("exact_mul", _abs(x), 0.5))
    half = prim("exact_mul", h, 0.5)
    return prim("exact_add", prim("exact_mul", half, h), prim("div", prim("div", 0.5, h), h))


def asinh(x: Expr) -> Expr:
    """ln(|x| + sqrt(x^2 + 1)), the sign put back."""
    a = _abs(x)
    square = prim("exact_mul", a, a)
    root = prim("exact_add", prim("sqrt", prim("exact_add", square, 1.0)), 1.0)
    small = _log1p(prim("exact_add", a, prim("div", square, root)))
    large = prim("exact_add", log(a), 0.6931471805599453)
    return _with_sign(select(prim("lt", a, 1e9), small, large), x)


def acosh(x: Expr) -> Expr:
    """ln(x + sqrt(x^2 - 1))"""
    t = prim("exact_sub", x, 1.0)
    root = prim("sqrt", prim("exact_fma", t, t, prim("exact_add", t, t)))
    large = prim("exact_add", log(x), 0.6931471805599453)
    inside = select(prim("lt", x, 1e9), _log1p(prim("exact_add", t, root)), large)
    return select(prim("lt", x, 1.0), number(nan, x), inside)


def atanh(x: Expr) -> Expr:
    """ln((1 + |x|) / (1 - |x|)) / 2, the sign put back."""
    a = _abs(x)
    value = prim("exact_mul", _log1p(prim("div", prim("exact_add", a, a), prim("exact_sub", 1.0, a))), 0.5)
    return _with_sign(select(prim("gt", a, 1.0), number(nan, x), value), x)


def power(x: Expr, y: Expr) -> Expr:
    """exp(y ln |x|), with the sign and the special cases of C's pow."""
    a = _abs(x)
    result = exp(prim("exact_mul", y, log(a)))
    whole = prim("eq", prim("trunc", y), y)
    half = prim("exact_mul", y, 0.5)
    odd = prim("and", whole, prim("ne", prim("trunc", half), half))
    result = select(prim("eq", a, 1.0), number(1.0, x), result)
    negative = prim("lt", _bits(x), Const(0, I64))
    below = prim("and", prim("lt", x, 0.0), prim("gt", x, -inf))
    result = select(prim("and", below, prim("not", whole)), number(nan, x), result)
    result = select(prim("and", negative, odd), prim("neg", result), result)
    return select(prim("or", prim("eq", y, 0.0), prim("eq", x, 1.0)), number(1.0, x), result)


def integer_power(x: Expr, y: Expr) -> Expr:
    """Power by repeated squaring; for a negative exponent the truncated quotient: 0, 1 or -1."""
    one, zero = Const(1, x.dtype), Const(0, x.dtype)
    result: Expr = one
    square = x
    for bit in range(x.dtype.bits - x.dtype.is_signed):
        set_ = prim("ne", prim("and", prim("shr", y, bit), one), zero)
        result = select(set_, prim("mul", result, square), result)
        square = prim("mul", square, square)
    if not x.dtype.is_signed:
        return result
    odd = prim("ne", prim("and", y, one), zero)
    minus = select(prim("eq", x, Const(-1, x.dtype)), select(odd, x, one), zero)
    return select(prim("lt", y, zero), select(prim("eq", x, one), one, minus), result)


def _rounded(f: Callable[..., Expr]) -> Callable[..., Expr]:
    """Return the f32 function that rounds the result of the f64 one."""
    return lambda *args: cast(f(*(cast(a, F64) for a in args)), F32)


_BOTH: dict[str, Callable[..., Expr]] = {"exp": exp, "exp_normal": exp_normal, "log": log, "tanh": tanh, "erf": erf}
_DOUBLE: dict[str, Callable[..., Expr]] = {
    "sin": sin,
    "cos": cos,
    "tan": tan,
    "asin": asin,
    "acos": acos,
    "atan": atan,
    "sinh": sinh,
    "cosh": cosh,
    "asinh": asinh,
    "acosh": acosh,
    "atanh": atanh,
    "atan2": atan2,
    "pow": power,
}
_INTEGERS = (DType.I8, DType.I16, DType.I32, DType.I64, DType.U8, DType.U16, DType.U32, DType.U64)

MATHLIB: dict[tuple[str, DType], Callable[..., Expr]] = {
    **{(fn, t): f for fn, f in _BOTH.items() for t in (F32, F64)},
    **{(fn, F64): f for fn, f in _DOUBLE.items()},
    **{(fn, F32): _rounded(f) for fn, f in _DOUBLE.items()},
    ("exp_short", F32): exp_short,
    ("erf_short", F32): erf_short,
    **{("pow", t): integer_power for t in _INTEGERS},
}


@cache
def template(fn: str, dtype: DType) -> tuple[tuple[Expr, ...], Expr]:
    """Return the parameters of a function and its expression over them."""
    count = 2 if fn in ("pow", "atan2") else 1
    params = tuple(dense(f"{fn}.{i}", 1, space=Space.REGISTERS, dtype=dtype)[0] for i in range(count))
    return params, MATHLIB[fn, dtype](*params)
