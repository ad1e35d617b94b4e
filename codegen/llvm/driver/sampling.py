"""The choice of a token inside of a library, in the arithmetic and order of `aot.runtime.generation.sampling`.

Random numbers are NumPy's: PCG64, seeded by SeedSequence, so that both draw the same tokens.
"""

from __future__ import annotations

from itertools import pairwise, permutations

from aot.codegen.ir.loops import Buffer, Const, Expr, Kernel, cast, prim, select
from aot.codegen.llvm.emit.kernel import emit
from aot.codegen.script.script import Scripted, array, loops, var
from aot.runtime.abi import DType
from aot.runtime.generation import sampling

RANDOM_FACTOR = 0x2360ED051FC65DA4, 0x4385DF649FCCF645  # multiplier of PCG64, the high word first
HASHES, STATES = (0x43B0D7E5, 0x931E8875), (0x8B51F9DD, 0x58F38DED)  # of SeedSequence: first multiplier, its factor
MIX_LEFT, MIX_RIGHT = 0xCA01F9DD, 0x4973F715
ROUNDING = 1.5 * 2.0**52  # added and subtracted, it rounds to the nearest integer, to even ones
INFINITE = float("inf")
LOW = (1 << 32) - 1  # bits of the low half of a word


def sampling_functions(words: int) -> list[str]:
    """Return @seed_random and @choose as LLVM text, for logits of that many words; all arguments are addresses."""
    random, seed = _argument("random", 4, dtype=DType.U64), _argument("seed", 1, dtype=DType.U64)
    token, kinds = (
        _argument("token", 1, dtype=DType.I64),
        {"logits": DType.F32, "weights": DType.F64, "heap": DType.I32},
    )
    ranking = tuple(_argument(name, words, dtype) for name, dtype in kinds.items())
    kinds = {"temperature": DType.F64, "top_k": DType.I64, "top_p": DType.F64}
    rules = tuple(_argument(name, 1, dtype) for name, dtype in kinds.items())
    kernels = (
        Kernel("seed_random", (), (random, seed), seed_random(random, seed)),
        Kernel("choose", (), (token, *ranking, *rules, random), choose(token, ranking, rules, random)),
    )
    emitted = [emit(kernel) for kernel in kernels]
    return [line for f in emitted for line in (*f.globals, *sorted(f.declarations), f.text())]


def _argument(name: str, size: int, dtype: DType) -> Buffer:
    """Return a buffer that need not lie at a multiple of more than the size of its elements."""
    return Buffer(name, (size,), (1,), align=dtype.bits // 8, dtype=dtype)


# ---- random numbers: state and increment are two words each, the high one first


def _multipliers(first: int, factor: int, count: int) -> list[tuple[int, int]]:
    """Return the multipliers of the hashes of SeedSequence: each hash takes the last one and the next one."""
    powers = [first * pow(factor, k, 1 << 32) & LOW for k in range(count + 1)]
    return list(pairwise(powers))


def _hashed(value: Expr, before: int, after: int) -> Expr:
    product = prim("mul", prim("xor", value, before), after)
    return prim("xor", product, prim("shr", product, 16))


def _word(low: Expr, high: Expr) -> Expr:
    return prim("or", cast(low, DType.U64), prim("shl", cast(high, DType.U64), 32))


@loops
def seed_random(random: Scripted, seed: Scripted) -> None:
    """Set the generator as NumPy's PCG64(seed) does."""
    pool = array(4, dtype=DType.U32)
    hashes = _multipliers(*HASHES, 16)
    for k in (0, 1, 2, 3):
        pool[k] = _hashed(cast(prim("shr", seed[0], 32 * k), DType.U32), *hashes[k])
    for (k, to), hash_ in zip(permutations(range(4), 2), hashes[4:], strict=True):
        mixed = var(pool[to] * MIX_LEFT - _hashed(pool[k], *hash_) * MIX_RIGHT, DType.U32)
        pool[to] = mixed ^ (mixed >> 16)
    halves = [_hashed(pool[k % 4], *hash_) for k, hash_ in enumerate(_multipliers(*STATES, 8))]
    words: Scripted = [_word(a, b) for a, b in zip(halves[::2], halves[1::2], strict=True)]
    random[2] = (words[2] << 1) | (words[3] >> 63)
    random[3] = (words[3] << 1) | 1
    random[0] = random[2] + words[0] + cast(random[3] + words[1] < words[1], DType.U64)
    random[1] = random[3] + words[1]
    _step(random)


def _product(a: Expr, b: int) -> tuple[Expr, Expr]:
    """Return the words of a * b."""
    halves = [prim("shr", a, 32), prim("and", a, LOW)]
    (p, q), (r, s) = ([prim("mul", half, b >> 32), prim("mul", half, b & LOW)] for half in halves)
    middle = (prim("shr", s, 32), prim("and", q, LOW), prim("and", r, LOW))
    carried = prim("shr", prim("add", prim("add", *middle[:2]), middle[2]), 32)
    high = prim("add", prim("add", p, prim("shr", q, 32)), prim("add", prim("shr", r, 32), carried))
    return high, prim("mul", a, b)


@loops
def _step(random: Scripted) -> None:
    """Multiply the state by PCG64's factor and add the increment."""
    high, low = _product(random[1], RANDOM_FACTOR[1])
    crossed = random[0] * RANDOM_FACTOR[1] + random[1] * RANDOM_FACTOR[0]
    first = var(high + crossed + random[2], DType.U64)
    second = var(low, DType.U64)
    random[1] = second + random[3]
    random[0] = first + cast(random[1] < second, DType.U64)


@loops
def _draw(random: Scripted) -> Scripted:
    """Return the next random number, from 0 to below 1."""
    _step(random)
    mixed = var(random[0] ^ random[1], DType.U64)
    turn = random[0] >> 58
    turned = (mixed >> turn) | (mixed << (64 - turn))
    return cast(turned >> 11, DType.F64) * 2.0**-53


# ---- the token


def _exponential(x: Expr) -> Expr:
    """Return exp(x) for x of 0 or less, as `sampling.exponentials` computes it."""
    held = select(prim("ge", x, sampling.LEAST_EXPONENT), x, sampling.LEAST_EXPONENT)
    twos = _exactly("sub", _exactly("add", _exactly("mul", held, sampling.LOG2_E), ROUNDING), ROUNDING)
    less = _exactly("sub", held, _exactly("mul", twos, sampling.LN2_HIGH))
    rest = _exactly("sub", less, _exactly("mul", twos, sampling.LN2_LOW))
    series: Expr = Const(sampling.EXP_TERMS[0], DType.F64)
    for term in sampling.EXP_TERMS[1:]:
        series = _exactly("add", _exactly("mul", series, rest), term)
    power = prim("shl", prim("add", cast(twos, DType.I64), 1023), 52)
    value = _exactly("mul", series, prim("bits", power, dtype=DType.F64))
    return select(prim("ge", x, sampling.LEAST_EXPONENT), value, 0.0)


def _exactly(fn: str, a: Expr, b: Expr | float) -> Expr:
    return prim(f"exact_{fn}", a, b)


def _ranks_before(logits: Buffer, a: Expr, b: Expr) -> Expr:
    """True if token a is more probable than token b, or as probable and has a lower number."""
    one, other = (logits[cast(token, DType.I64)] for token in (a, b))
    return prim("or", prim("gt", one, other), prim("and", prim("eq", one, other), prim("lt", a, b)))


@loops
def _sift(logits: Scripted, heap: Scripted, start: Scripted, size: Scripted) -> None:
    """Make a heap of the first `size` tokens, if those below `start` are heaps."""
    own = var(heap[start], DType.I32)
    at = var(start, DType.I64)
    going = var(1, DType.I64)
    while going == 1 and 2 * at + 1 < size:
        child = var(2 * at + 1, DType.I64)
        if child + 1 < size and _ranks_before(logits, heap[child + 1], heap[child]):
            child += 1
        if _ranks_before(logits, heap[child], own):
            heap[at] = heap[child]
            at = child
        else:
            going = 0
    heap[at] = own


@loops
def choose(token: Scripted, ranking: Scripted, rules: Scripted, random: Scripted) -> None:
    """Write the next token; -1 if a logit is NaN. `ranking`: logits, their weights, and a heap of tokens."""
    logits, weights, heap = ranking
    (words,) = logits.shape
    most = var(-INFINITE, DType.F32)
    valid = var(1, DType.I64)
    token[0] = 0
    for i in range(words):
        if logits[i] > most:
            most = logits[i]
            token[0] = i
        if not logits[i] <= most:
            valid = 0
    if valid == 0:
        token[0] = -1
    if valid == 1 and rules[0][0] > 0.0 and most > -INFINITE and most < INFINITE:
        whole = var(0.0, DType.F64)
        for i in range(words):
            weights[i] = _exponential((cast(logits[i], DType.F64) - cast(most, DType.F64)) / rules[0][0])
            whole = _exactly("add", whole, weights[i])
            heap[i] = cast(i, DType.I32)
        for i in range(words // 2):
            _sift(logits, heap, words // 2 - 1 - i, words)
        share = var(_draw(random), DType.F64)
        _cut(token, ranking, rules, whole, share)


@loops
def _cut(token: Scripted, ranking: Scripted, rules: Scripted, whole: Scripted, share: Scripted) -> None:
    """Take the most probable `top_k` tokens; of these, those that sum up to `top_p`; then those up to the one drawn."""
    _, top_k, top_p = rules
    (words,) = ranking[0].shape
    counts, total = array(2, dtype=DType.I64), array(1, dtype=DType.F64)
    counts[0] = words
    counts[1] = 0
    total[0] = whole
    if top_k[0] > 0 and top_k[0] < words:
        counts[0] = top_k[0]
        _take(token, ranking, counts, total, INFINITE, False)
    if top_p[0] < 1.0:
        _take(token, ranking, counts, total, _exactly("mul", top_p[0], total[0]), True)
    _take(token, ranking, counts, total, _exactly("mul", share, total[0]), False)


@loops
def _take(
    token: Scripted, ranking: Scripted, counts: Scripted, total: Scripted, least: Scripted, reached: bool
) -> None:
    """Take the most probable tokens until their weights exceed the sum `least`, or equal it if it may be `reached`.

    `token` is then the last one, and `total` their sum. `counts`: the tokens to take at most, which become those taken,
    and the tokens that were taken off the heap: these lie after it.
    """
    logits, weights, heap = ranking
    (words,) = logits.shape
    limit = var(least, DType.F64)
    total[0] = 0.0
    index = var(0, DType.I64)
    while index < counts[0]:
        last = words - 1 - index
        if index >= counts[1]:
            top = var(heap[0], DType.I32)
            heap[0] = heap[last]
            heap[last] = top
            _sift(logits, heap, 0, last)
            counts[1] += 1
        token[0] = cast(heap[last], DType.I64)
        total[0] = _exactly("add", total[0], weights[token[0]])
        index += 1
        if not total[0] < limit if reached else total[0] > limit:
            counts[0] = index
