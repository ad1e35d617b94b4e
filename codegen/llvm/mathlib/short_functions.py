"""Functions of f32 for results that are rounded to the 8 bits of bf16, or to levels. All targets compute the same bits.

Errors are a tenth of that rounding, 2^-8 of the result, or less. None divides: 16 quotients of f32 take as long as 32
multiply-adds on Intel's cores. Arguments are clamped where a function is nearly constant.
"""

from __future__ import annotations

from aot.codegen.ir.loops import Const, Expr, prim, select
from aot.codegen.llvm.mathlib.float_parts import I32, LOG2_E, bits_of, clamp, float_of, poly

# Minimax polynomials, highest power first.
EXP2 = (0.055171659080990997, 0.24261122129244797, 0.6932609960453908, 0.999928067763014)  # 2^r, |r| <= 1/2: 7.5e-5
EXP2_LEVEL = (  # the same within 2.6e-6
    0.009570102207362652, 0.05591785907745361, 0.240247443318367, 0.6931217908859253, 0.9999992847442627,
)  # fmt: skip
ERF_MOST = 2.65
ERF = (  # erf(x) = x p(x^2) within 1.8e-4 of it; 1 at `ERF_MOST`, exactly
    8.276766493509058e-06, -0.00024306330305989832, 0.0030755496118217707, -0.022481868043541908, 0.10835090279579163,
    -0.37447452545166016, 1.1283679008483887,
)  # fmt: skip
GELU_MOST = 4.0  # a power of two, so that x p(x^2) is 1/2 without rounding there, and Gelu of less is 0
GELU = (  # x (1/2 + x p(x^2)) is Gelu(x) within 2.2e-4
    2.3680424732219763e-08, -1.652617015679425e-06, 4.923706001136452e-05, -0.0008291988051496446, 0.00886552780866623,
    -0.06484663486480713, 0.39817237854003906,
)  # fmt: skip
GELU_TANH = (  # the same, of Gelu by tanh, within 2.5e-4
    2.4729260417188925e-08, -1.714296558930073e-06, 5.063243952463381e-05, -0.0008440630626864731,
    0.008935834281146526, -0.06493226438760757, 0.3980594873428345,
)  # fmt: skip
TANH_MOST = 5.0
TANH = (  # tanh(x) = x p(x^2) / q(x^2) within 9.1e-5 of it
    0.0007133849430829287, 0.10405851900577545, 1.0000905990600586,
), (
    0.01328444853425026, 0.4373726546764374, 1.0,
)  # fmt: skip
SIGMOID_MOST = 87.0  # e^87 is below 2^126
MISH_MOST = 20.0  # n / (n + 2) is 1 for n = e^40
# 1/x is near r, whose bits are these minus the bits of x: 1.41 <= x r <= 1.46, and a polynomial of 1 - x r corrects r.
INVERSE_BITS = 0x7F350500
INVERSE = (0.4877435564994812, 0.9091367721557617)  # within 1.6e-4; exact for 1
INVERSE_LEVEL = (0.3379996120929718, 0.7797602415084839, 0.9721018671989441)  # within 8.4e-7


def _inverse(x: Expr, coefficients: tuple[float, ...] = INVERSE) -> Expr:
    """Return 1/x for 1 <= x <= 2^126."""
    r = float_of(prim("sub", Const(INVERSE_BITS, I32), bits_of(x)))
    rest = prim("exact_fma", prim("neg", x), r, 1.0)
    return prim("exact_mul", r, poly(rest, coefficients))


def _power_of_two(x: Expr, factor: float, coefficients: tuple[float, ...] = EXP2) -> tuple[Expr, Expr]:
    """(p, s): 2^(factor x) = p s, s a power of two, infinite for 2^128; callers keep x from lower and larger ones."""
    magic = 12582912.0 + 127  # leaves the rounded exponent, biased, in the low bits
    t = prim("exact_fma", x, factor, magic)
    r = prim("exact_fma", x, factor, prim("exact_sub", magic, t))
    return poly(r, coefficients), float_of(prim("shl", bits_of(t), 23))


def exp_short(x: Expr) -> Expr:
    """`exp_normal` within 1e-4 of the result."""
    low = prim("lt", x, -87.33)
    p, scale = _power_of_two(prim("min", x, 89.0), LOG2_E)
    return select(low, 0.0, prim("exact_mul", p, scale))


def erf_short(x: Expr) -> Expr:
    """`erf` within 2e-4 of the result."""
    x = clamp(x, -ERF_MOST, ERF_MOST)
    return prim("exact_mul", x, poly(prim("exact_mul", x, x), ERF))


def tanh_short(x: Expr) -> Expr:
    """`tanh` within 2.5e-4 of the result."""
    x = clamp(x, -TANH_MOST, TANH_MOST)
    above, below = (poly(prim("exact_mul", x, x), c) for c in TANH)
    return prim("exact_mul", prim("exact_mul", x, above), _inverse(below))


def sigmoid_short(x: Expr) -> Expr:
    """1 / (1 + e^-x) within 2.5e-4 of the result; 1.6e-38 at least, and exactly 1 where e^-x vanishes beside it."""
    p, scale = _power_of_two(clamp(x, -SIGMOID_MOST, SIGMOID_MOST), -LOG2_E)
    return _inverse(prim("exact_fma", p, scale, 1.0))


def sigmoid_level(x: Expr) -> Expr:
    """1 / (1 + e^-x) within 5e-6 of the result, a 700th of a level where 256 are rounded to; 1.6e-38 at least."""
    p, scale = _power_of_two(clamp(x, -SIGMOID_MOST, SIGMOID_MOST), -LOG2_E, EXP2_LEVEL)
    return _inverse(prim("exact_fma", p, scale, 1.0), INVERSE_LEVEL)


def mish_short(x: Expr) -> Expr:
    """x tanh(ln(1 + e^x)) within 4e-4 of the result; about 3e-38 x far below zero."""
    p, scale = _power_of_two(clamp(x, -SIGMOID_MOST, MISH_MOST), LOG2_E)
    e = prim("exact_mul", p, scale)
    n = prim("exact_mul", e, prim("exact_add", e, 2.0))
    return prim("exact_mul", x, prim("exact_mul", n, _inverse(prim("exact_add", n, 2.0))))


def gelu_short(x: Expr) -> Expr:
    """x (1 + erf(x / sqrt(2))) / 2 within 2.5e-4; 0 below -4, x above 4."""
    return _gelu(x, GELU)


def gelu_tanh_short(x: Expr) -> Expr:
    """x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 within 2.6e-4; 0 below -4, x above 4."""
    return _gelu(x, GELU_TANH)


def _gelu(x: Expr, coefficients: tuple[float, ...]) -> Expr:
    near = clamp(x, -GELU_MOST, GELU_MOST)
    share = prim("exact_fma", near, poly(prim("exact_mul", near, near), coefficients), 0.5)
    return prim("exact_mul", x, share)
