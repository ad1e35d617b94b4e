"""e^x, logarithms, powers and the error function."""

from __future__ import annotations

from math import factorial, inf, ldexp, nan

from aot.codegen.ir.loops import Const, Expr, cast, prim, select
from aot.codegen.llvm.mathlib.float_parts import (
    F32,
    I32,
    I64,
    LOG2_E,
    absolute,
    bits_of,
    clamp,
    float_of,
    number,
    poly,
    with_sign,
)

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
EXP64 = tuple(1 / factorial(n) for n in range(13, -1, -1))


def _reduced(x: Expr, biases: int) -> tuple[Expr, Expr]:
    """(t, r): x = n ln 2 + r, |r| <= ln 2 / 2; the low bits of t hold n + `biases` times the exponent's bias."""
    single = x.dtype is F32
    # Adding `magic` leaves the rounded integer in the low bits.
    magic = 12582912.0 + 127 * biases if single else 6755399441055744.0 + 1023 * biases
    high, low = (0.693145751953125, 1.428606765330187e-06) if single else (0.6931471803691238, 1.9082149292705877e-10)
    t = prim("exact_fma", x, LOG2_E, magic)
    n = prim("exact_sub", t, magic)
    r = prim("exact_fma", n, -high, x)
    return bits_of(t), prim("exact_fma", n, -low, r)


def exp(x: Expr) -> Expr:
    """e^x = 2^n p(r). 2^n comes in two factors, so that results overflow and underflow as they should.

    Where the result underflows to zero, one factor is 0: rounding that product would take a hundred times as long.
    """
    single = x.dtype is F32
    low, high = (-104.0, 89.0) if single else (-746.0, 710.0)
    lost, x = prim("lt", x, low), clamp(x, low, high)
    t, r = _reduced(x, 2)
    p = poly(r, EXP32 if single else EXP64)
    shift = 23 if single else 52
    half = prim("shr", t, 1)
    first, second = (float_of(prim("shl", e, shift)) for e in (half, prim("sub", t, half)))
    return prim("exact_mul", prim("exact_mul", p, first), select(lost, 0.0, second))


def exp_normal(x: Expr) -> Expr:
    """e^x where that is a normal number; 0 below, infinite from about 2^127.5 on. For sums: tails are negligible."""
    if x.dtype is not F32:
        return exp(x)
    lost = prim("lt", x, -87.33)
    t, r = _reduced(prim("min", x, 89.0), 1)
    scale = float_of(prim("shl", t, 23))
    return select(lost, 0.0, prim("exact_mul", poly(r, EXP32), scale))


def exp_less_1(x: Expr) -> Expr:
    """e^x - 1 for |x| < 80, without cancellation near 0."""
    single = x.dtype is F32
    t, r = _reduced(x, 1)
    p = prim("exact_mul", poly(r, (EXP32 if single else EXP64)[:-1]), r)
    scale = float_of(prim("shl", t, 23 if single else 52))
    return prim("exact_fma", p, scale, prim("exact_sub", scale, 1.0))


def log(x: Expr) -> Expr:
    """ln x = e ln 2 + ln m, x = 2^e m, 2/3 <= m < 4/3."""
    single = x.dtype is F32
    least, up = (ldexp(1.0, -126), 23) if single else (ldexp(1.0, -1022), 52)
    shift, base, ints = (23, 0x3F2AAAAB, I32) if single else (52, 0x3FE5555555555555, I64)
    small = prim("lt", x, least)
    normal = bits_of(select(small, prim("exact_mul", x, ldexp(1.0, up)), x))
    steps = prim("shr", prim("sub", normal, base), shift)
    m = float_of(prim("sub", normal, prim("shl", steps, shift)))
    e = cast(prim("sub", steps, select(small, Const(up, ints), Const(0, ints))), x.dtype)
    r = prim("exact_sub", m, 1.0)
    high, low = (0.693359375, -2.12194440e-4) if single else (0.6931471803691238, 1.9082149292705877e-10)
    if single:
        low_part = prim("exact_fma", prim("exact_mul", r, r), poly(r, LOG32), prim("exact_mul", e, low))
        result = prim("exact_fma", e, high, prim("exact_add", r, low_part))
    else:
        s = prim("div", r, prim("exact_add", m, 1.0))
        z = prim("exact_mul", s, s)
        series = poly(z, tuple(2 / (2 * n + 1) for n in range(11, 0, -1)))
        low_part = prim("exact_fma", prim("exact_mul", s, z), series, prim("exact_mul", e, low))
        # 2s = r - s r: the rounding error of s counts only where it is multiplied by r.
        low_part = prim("exact_sub", low_part, prim("exact_mul", s, r))
        result = prim("exact_fma", e, high, prim("exact_add", r, low_part))
    result = select(prim("lt", x, inf), result, x)
    outside = select(prim("eq", x, 0.0), number(-inf, x), select(prim("lt", x, 0.0), number(nan, x), x))
    return select(prim("gt", x, 0.0), result, outside)


def log_of_1_plus(u: Expr) -> Expr:
    """ln(1 + u), with the rounding error of 1 + u corrected."""
    w = prim("exact_add", u, 1.0)
    d = prim("exact_sub", w, 1.0)
    safe = select(prim("eq", d, 0.0), number(1.0, u), d)
    result = select(prim("eq", d, 0.0), u, prim("exact_mul", log(w), prim("div", u, safe)))
    return select(prim("lt", u, inf), result, u)


def erf(x: Expr) -> Expr:
    """f32: a quotient of polynomials. f64: an odd polynomial below 1, 1 - exp(polynomial) above."""
    if x.dtype is F32:
        x = clamp(x, -ERF32_MOST, ERF32_MOST)
        z = prim("exact_mul", x, x)
        above, below = (poly(z, c) for c in ERF32)
        return clamp(prim("div", prim("exact_mul", x, above), below), -1.0, 1.0)
    a = prim("min", absolute(x), 6.0)
    small = prim("exact_mul", x, poly(prim("exact_mul", x, x), ERF64_NEAR))
    large = prim("exact_sub", 1.0, exp(poly(prim("exact_sub", a, 3.5), ERF64_FAR)))
    return select(prim("lt", a, 1.0), small, with_sign(large, x))


def power(x: Expr, y: Expr) -> Expr:
    """exp(y ln |x|), with the sign and the special cases of C's pow."""
    a = absolute(x)
    result = exp(prim("exact_mul", y, log(a)))
    whole = prim("eq", prim("trunc", y), y)
    half = prim("exact_mul", y, 0.5)
    odd = prim("and", whole, prim("ne", prim("trunc", half), half))
    result = select(prim("eq", a, 1.0), number(1.0, x), result)
    negative = prim("lt", bits_of(x), Const(0, I64))
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
