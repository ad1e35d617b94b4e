"""Scalar primitives, and the reductions made of them."""

from __future__ import annotations

# Meaning of the primitives. Integers wrap; unsigned types compare and divide unsigned.
#   add sub mul neg abs min max sign            numbers; min and max of floats propagate NaN
#   larger(a, b)                                floats: b where b > a, else a; one instruction, which may lose NaN
#   div                                         floats: a / b;  integers: truncates towards zero (x / 0 = 0)
#   floordiv mod                                rounds towards minus infinity; the remainder has the divisor's sign
#   rem                                         remainder of `div`, with the dividend's sign
#   pow atan2                                   floats; pow of integers by repeated products
#   sqrt exp log sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf
#   floor ceil trunc round_even round_away      floats
#   eq ne lt le gt ge                           -> boolean
#   and or xor not shl shr                      booleans and integers (shr is arithmetic for signed types); shifts by
#                                               less than 0 or by all bits or more leave 0, or all sign bits
#   select(c, a, b)                             a where c, else b
#   cast(x)                                     to Prim.dtype: floats to integers truncate and saturate, NaN gives 0
#   bits(x)                                     the same bits as another type of equal size
#   exp_normal(x)                               e^x, 0 where that is no normal number, infinite from about 2^127.5 on
#   exp_short erf_short tanh_short              f32 `exp_normal`, `erf` and `tanh` within 2^-11 of the result
#   sigmoid_short mish_short                    f32 1 / (1 + e^-x) and x tanh(ln(1 + e^x)) so
#   gelu_short gelu_tanh_short                  f32 Gelu in both forms within 2^-11
#   sigmoid_level(x)                            f32 1 / (1 + e^-x) within 2^-17 of the result
#   fma(a, b, c)                                a * b + c
#   within(i, n, v[, other])                    v where 0 <= i < n, else `other` (0); v is not read outside
#   dot(a, b, n)                                n products of a word, summed: of u8 with i8, of i16, or of bf16 as f32
#   centred(x)                                  i32 of a u8, less 128
#   block_dot(a, b, h)                          a row-major 2 by 2 block: 2 rows of 8 bytes by half h of 4 columns of 8
#   row_words(a, n)                             i32 of each lane: the `n` bytes that begin at the element that is loaded
#   low_halves(a, b) high_halves(a, b)          lanes of a, then lanes of b: half of both vectors
#   even(a) odd(a)                              f32 of the bf16 element that is loaded, of the one after it in memory
#   word(a)                                     i32 of the 32 bits that begin at the element that is loaded
#   lookup(a, q)                                byte q, a u8, of the table of 256 whose first element is loaded
#   exact_add exact_sub exact_mul exact_fma     never contracted or reordered: for range reduction
#   fixed_product(x, m, right)                  i32: (x m + 2^30) >> 31, over 2^right and rounded away from zero
SHORT_FUNCTIONS = frozenset(
    "exp_short erf_short tanh_short sigmoid_short sigmoid_level mish_short gelu_short gelu_tanh_short".split()
)
FUNCTIONS = SHORT_FUNCTIONS | frozenset(  # those that are written out as polynomials, of floats
    "pow atan2 exp exp_normal log sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf".split()
)
PRIMS = FUNCTIONS | frozenset(
    "add sub mul neg abs min max larger sign div floordiv mod rem sqrt floor ceil trunc round_even round_away "
    "eq ne lt le gt ge and or xor not shl shr select cast bits fma within dot even odd word lookup "
    "centred block_dot row_words low_halves high_halves "
    "exact_add exact_sub exact_mul exact_fma fixed_product".split()
)
COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
CHAINS = "chains"
IDENTITY = {
    "add": 0.0, CHAINS: 0.0, "mul": 1.0, "max": float("-inf"), "larger": float("-inf"), "min": float("inf"), "and": 1,
    "or": 0,
}  # fmt: skip
