"""Quotients by constants as a product and a multiply-add, with the bits that a division gives.

    x / d  =  fma(x, high, x * low)        high + low: 1 / d, rounded to 48 bits

Let x and d be from 1 to 2. The sum before rounding differs from x / d by less than 2^-46. It rounds to another float
only if the midpoint of two floats lies between the sum and x / d. With x and d scaled to integers of 24 bits, a
quotient that near to a midpoint satisfies x * 2^s = m * d + e with an integer m and abs(e) <= 8. Each d has a few such
x, and each of them is tried (Brisebarre, Muller, Raina: "Accelerating correctly rounded floating-point division when
the divisor is known in advance", 2004).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from math import frexp, ldexp

DIGITS = 24  # bits of the significand of an f32
MAX_EXPONENT = 60  # bound of abs(log2(divisor)): no factor is denormal
MAX_DISTANCE = 8  # from the middle of two floats, in units of 1 / (2^s d)


@lru_cache(maxsize=1 << 10)
def reciprocal(divisor: float) -> tuple[float, float] | None:
    """Return the f32 factors `high` and `low` for a divisor, rounded to f32; None if some quotient would differ.

    Both have the same sign, so that infinities stay. Quotients below 2^-60 may differ by rounding. None for powers of
    two, too: LLVM multiplies by theirs.
    """
    if not 2.0**-MAX_EXPONENT < abs(divisor) < 2.0**MAX_EXPONENT:
        return None
    mantissa, exponent = frexp(abs(divisor))
    scaled_divisor = round(ldexp(mantissa, DIGITS))
    if scaled_divisor in (1 << DIGITS - 1, 1 << DIGITS):
        return None
    exact = Fraction(1 << DIGITS, scaled_divisor)
    high = exact // _unit(exact) * _unit(exact)
    low = _nearest(exact - high)
    dividends = [(x, _nearest(x * exact)) for x in _near_middles(scaled_divisor)]
    for factor in (low, low - _unit(low), low + _unit(low)):
        if all(_nearest(x * high + _nearest(x * factor)) == quotient for x, quotient in dividends):
            scale = ldexp(-1.0 if divisor < 0 else 1.0, -exponent)
            return float(high) * scale, float(factor) * scale
    return None


def _near_middles(divisor: int) -> Iterator[int]:
    """Yield the dividends of `DIGITS` bits with quotients next to the middle of two floats."""
    power = (divisor & -divisor).bit_length() - 1
    distances = [e for e in range(-MAX_DISTANCE, MAX_DISTANCE + 1) if e and e % (1 << power) == 0]
    for bits in (DIGITS, DIGITS + 1):
        modulus = 1 << bits - power
        inverse = pow(divisor >> power, -1, modulus) if distances else 0
        for distance in distances:
            for m in range(-(distance >> power) * inverse % modulus, 1 << DIGITS + 1, modulus):
                x = m * divisor + distance >> bits
                if x.bit_length() == DIGITS:
                    yield x


def _nearest(x: Fraction) -> Fraction:
    """Round to the nearest f32 of any exponent, the even one of two."""
    unit = _unit(x)
    return round(x / unit) * unit


def _unit(x: Fraction) -> Fraction:
    """Return the distance of the floats around a positive number."""
    power = x.numerator.bit_length() - x.denominator.bit_length()
    power -= Fraction(2) ** power > x
    return Fraction(2) ** (power - DIGITS + 1)
