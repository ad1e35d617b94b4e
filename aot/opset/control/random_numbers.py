"""Random numbers by the algorithms that the specification names; equal seeds give equal numbers in every run."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, Const, Expr, Space, cast, dense, prim
from aot.codegen.script.script import MAX_LANES, Scripted, array, lanes, loops, parallel, var
from aot.ir.op import Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import attr, op
from aot.ir.types import Array, TensorType, numpy_dtype
from aot.opset.base.row_major import unravel, volume
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

U32, U64, I64, F32 = DType.U32, DType.U64, DType.I64, DType.F32
_MANTISSA_BITS = {DType.F16: 10, DType.BF16: 7, DType.F32: 23, DType.F64: 52}  # mantissa bits without the leading one


class Alignment(StrEnum):
    TENSORFLOW = "tensorflow"  # Philox 4x32, 10 rounds
    PYTORCH = "pytorch"  # Mersenne twister 19937


@op("opset8")
class RandomUniform(LoopOp):
    """Uniform numbers in low..high, high excluded; inputs: shape, low, high."""

    output_type: DType = attr()
    global_seed: int = 0
    op_seed: int = 0
    alignment: Alignment = Alignment.TENSORFLOW

    def infer(self, shape: Operand, low: Operand, high: Operand) -> TensorType:
        if low.dtype is not self.output_type or high.dtype is not self.output_type:
            element_type = self.output_type.value
            raise ShapeError(f"RandomUniform: low and high must be {element_type}, got {low.type} and {high.type}")
        return TensorType(self.output_type, shape.dims("RandomUniform: shape"))

    def fold(self, *operands: Operand | None) -> tuple[Array, ...] | None:
        return None  # code takes less space than the constant would

    @property
    def words(self) -> int:
        """Number of 32-bit words that one number takes."""
        return 2 if self.output_type is DType.F64 else 1

    def nest(self, outs: tuple[Buffer, ...], shape: Input, low: Input, high: Input) -> tuple[Work, ...]:
        limits = tuple(x(*[0] * x.rank) for x in (low, high))
        dims = outs[0].shape
        if self.alignment is Alignment.PYTORCH:
            return (_mersenne_uniform(outs[0], dims, limits, self, self.global_seed & 0xFFFFFFFF),)
        return (_philox_uniform(outs[0], dims, limits, self, self.global_seed, self.op_seed),)

    def scaled(self, words: tuple[Expr, ...], limits: tuple[Expr, Expr]) -> Expr:
        """Return the number that random words represent."""
        low, high = limits
        dtype = self.output_type
        if not dtype.is_float:
            span = cast(high, I64) - cast(low, I64)
            return cast(cast(words[0], I64) % span + cast(low, I64), dtype)
        bits = _MANTISSA_BITS[dtype] + (self.alignment is Alignment.PYTORCH)
        top = cast(prim("and", words[0], (1 << (bits - 32)) - 1), U64) if self.words == 2 else words[0]
        if self.words == 1:
            unit = cast(prim("and", top, (1 << bits) - 1), F32) * 2.0**-bits
        else:
            whole = prim("or", prim("shl", top, 32), cast(words[1], U64))
            unit = cast(whole, DType.F64) * 2.0**-bits
        return unit * (high - low) + low

    def reference(self, shape: Array, low: Array, high: Array) -> Array:
        dims = tuple(int(n) for n in shape)
        count = int(np.prod(dims)) * self.words
        if self.alignment is Alignment.PYTORCH:
            generator = np.random.MT19937()
            generator._legacy_seeding(self.global_seed & 0xFFFFFFFF)
            words = np.asarray(generator.random_raw(count)).astype(np.uint64)
        else:
            words = philox_words(count, self.global_seed, self.op_seed)
        return self._numbers(words, low.reshape(-1)[0], high.reshape(-1)[0]).reshape(dims)

    def _numbers(self, words: Array, low: np.generic, high: np.generic) -> Array:
        dtype = numpy_dtype(self.output_type)
        if not self.output_type.is_float:
            return (words.astype(np.int64) % (int(high) - int(low)) + int(low)).astype(dtype)
        bits = _MANTISSA_BITS[self.output_type] + (self.alignment is Alignment.PYTORCH)
        if self.words == 2:
            words = words[0::2] << np.uint64(32) | words[1::2]
        wide = np.float64 if self.words == 2 else np.float32
        unit = (words & np.uint64((1 << bits) - 1)).astype(wide) * wide(2.0**-bits)
        return (unit * (wide(high) - wide(low)) + wide(low)).astype(dtype)


# ---- Philox: Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011

WORD_MASK = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


def _philox(block: Expr, key: int, counter: int) -> tuple[Expr, ...]:
    """Return the four words of block number `block`, computed in u64 because products need 64 bits."""
    number = cast(block, U64)
    n0, n1 = prim("and", number, WORD_MASK), prim("shr", number, 32)
    c0, c1 = (Const((counter >> s) & WORD_MASK, U64) for s in (0, 32))
    for turn in range(10):
        k0, k1 = (((key >> s) + turn * w) & WORD_MASK for s, w in zip((0, 32), _WEYL, strict=True))
        wide = (n0 * _MULTIPLIERS[0], c0 * _MULTIPLIERS[1])
        high, low = [prim("shr", w, 32) for w in wide], [prim("and", w, WORD_MASK) for w in wide]
        n0, n1 = prim("xor", prim("xor", high[1], n1), k0), low[1]
        c0, c1 = prim("xor", prim("xor", high[0], c1), k1), low[0]
    return tuple(cast(word, U32) for word in (n0, n1, c0, c1))


@loops
def _philox_uniform(out: Scripted, dims: Scripted, limits: Scripted, op: RandomUniform, key: int, counter: int) -> None:
    """Fill `out`; blocks of four words are adjacent in vectors."""
    each = 4 // op.words
    count = volume(dims)
    size = MAX_LANES * each
    for part in parallel((count + (size - 1)) // size):
        words = array(4, MAX_LANES, dtype=U32)
        for v in lanes(MAX_LANES):
            for k, word in enumerate(_philox(part * MAX_LANES + v, key, counter)):
                words[k, v] = word
        if (part + 1) * size <= count:
            for v in lanes(size):
                out[unravel(part * size + v, dims)] = op.scaled(_words_of(words, v, op.words), limits)
        else:
            for v in range(count - part * size):
                out[unravel(part * size + v, dims)] = op.scaled(_words_of(words, v, op.words), limits)


def _words_of(words: Scripted, number: Scripted, each: int) -> tuple[Expr, ...]:
    """Return the words of number `number` in a batch of blocks."""
    first = number * each % 4
    return tuple(words[first + w, number * each // 4] for w in range(each))


def philox_words(count: int, key: int, counter: int, first: int = 0) -> Array:
    """Return words of the blocks from number `first` on, at most 2^64 - 1."""
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    blocks = np.arange(-(-count // 4), dtype=np.uint64) + np.uint64(first)
    n0, n1 = blocks & low, blocks >> shift
    c0, c1 = (np.full_like(n0, (counter >> s) & 0xFFFFFFFF) for s in (0, 32))
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        a, b = n0 * np.uint64(_MULTIPLIERS[0]), c0 * np.uint64(_MULTIPLIERS[1])
        n0, n1, c0, c1 = (b >> shift) ^ n1 ^ np.uint64(k0), b & low, (a >> shift) ^ c1 ^ np.uint64(k1), a & low
        k0, k1 = (k0 + _WEYL[0]) & 0xFFFFFFFF, (k1 + _WEYL[1]) & 0xFFFFFFFF
    return np.stack([n0, n1, c0, c1], -1).reshape(-1)[:count]


# ---- Mersenne twister: Matsumoto, Nishimura, 1998

_SIZE, _MIDDLE = 624, 397


@loops
def _seed_by_number(state: Scripted, seed: int) -> None:
    state[0] = Const(seed, U32)
    for i in range(1, _SIZE):
        last = state[i - 1]
        state[i] = (last ^ (last >> 30)) * 1812433253 + cast(i, U32)


@loops
def _twist(state: Scripted) -> None:
    for i in range(_SIZE):
        y = (state[i] & 0x80000000) | (state[(i + 1) % _SIZE] & 0x7FFFFFFF)
        odd = Const(0x9908B0DF, U32) if (y & 1) == 1 else Const(0, U32)
        state[i] = state[(i + _MIDDLE) % _SIZE] ^ (y >> 1) ^ odd


@loops
def _next_word(state: Scripted, place: Scripted) -> Scripted:
    if place[0] == _SIZE:
        _twist(state)
        place[0] = 0
    y = var(state[place[0]], U32)
    place[0] += 1
    y = y ^ (y >> 11)
    y = y ^ ((y << 7) & 0x9D2C5680)
    y = y ^ ((y << 15) & 0xEFC60000)
    return y ^ (y >> 18)


@loops
def _mersenne_uniform(out: Scripted, dims: Scripted, limits: Scripted, op: RandomUniform, seed: int) -> None:
    state = array(_SIZE, dtype=U32)
    place = array(1, dtype=I64)
    place[0] = _SIZE
    _seed_by_number(state, seed)
    for number in range(volume(dims)):
        first = _next_word(state, place)
        second = _next_word(state, place) if op.words == 2 else first
        out[unravel(number, dims)] = op.scaled((first, second), limits)


# ---- samples from a list of probabilities


@op("opset13")
class Multinomial(LoopOp):
    """Class indices sampled from each row of probabilities, `samples` (the second input) of them.

    The generator is a Mersenne twister seeded with (global_seed, op_seed), as in OpenVINO's CPU plugin.
    """

    elements = Elements.FLOAT

    convert_type: DType = attr()
    with_replacement: bool = False
    log_probs: bool = False
    global_seed: int = 0
    op_seed: int = 0

    def infer(self, probabilities: Operand, samples: Operand) -> TensorType:
        if probabilities.rank != 2:
            raise ShapeError(f"Multinomial: probabilities must have 2 dimensions, got {probabilities.type}")
        count = samples.dims("Multinomial: number of samples")[0]
        classes = probabilities.shape[1]
        if not self.with_replacement and isinstance(count, int) and isinstance(classes, int) and count > classes:
            raise ShapeError(f"Multinomial: without replacement there are {classes} classes, got {count} samples")
        return TensorType(self.convert_type, (probabilities.shape[0], count))

    def fold(self, *operands: Operand | None) -> tuple[Array, ...] | None:
        return None

    def nest(self, outs: tuple[Buffer, ...], probabilities: Input, samples: Input) -> tuple[Work, ...]:
        (out,) = outs
        uniform = dense("uniform", *out.shape, space=Space.ARENA)
        steps = dense("steps", *probabilities.shape, space=Space.ARENA)
        seeds = (self.global_seed & 0xFFFFFFFF, self.op_seed & 0xFFFFFFFF)
        return (
            _mersenne_units(uniform, out.shape, seeds),
            _draw(out, probabilities.buffer, uniform, steps, self.log_probs, self.with_replacement),
        )

    def reference(self, probabilities: Array, samples: Array) -> Array:
        count = int(samples.reshape(-1)[0])
        generator = np.random.MT19937()
        state = generator.state
        seeds = (self.global_seed & 0xFFFFFFFF, self.op_seed & 0xFFFFFFFF)
        state["state"] = {"key": np.array(_sequence(seeds), np.uint32), "pos": _SIZE}
        generator.state = state
        raw = np.asarray(generator.random_raw(len(probabilities) * count))
        units = (raw.astype(np.float32) / np.float32(0xFFFFFFFF)).reshape(-1, count)
        rows = probabilities.astype(np.float32)
        draws = [self._draws(np.exp(r) if self.log_probs else r, u) for r, u in zip(rows, units, strict=True)]
        return np.array(draws).reshape(units.shape).astype(numpy_dtype(self.convert_type))

    def _draws(self, row: Array, units: Array) -> list[int]:
        steps = np.cumsum(row)
        steps = steps / steps[-1]
        classes: list[int] = []
        for u in units:
            chosen = min(int(np.sum(steps < u)), len(row) - 1)
            classes.append(chosen)
            if not self.with_replacement:
                steps[chosen:] -= steps[chosen] - (steps[chosen - 1] if chosen else 0)
                with np.errstate(invalid="ignore"):  # all weight may be gone after the last class
                    steps = steps / steps[-1]
        return classes


@loops
def _seed_by_sequence(state: Scripted, seeds: tuple[int, int]) -> None:
    """Write std::seed_seq of two numbers (C++ standard, [rand.util.seedseq]) into `state`."""
    for k in range(_SIZE):
        state[k] = Const(0x8B8B8B8B, U32)
    for k in range(_SIZE):
        y = state[k] ^ state[(k + 306) % _SIZE] ^ state[(k + _SIZE - 1) % _SIZE]
        more = (y ^ (y >> 27)) * 1664525
        first = Const((1 + seeds[0]) & 0xFFFFFFFF, U32) if k == 1 else cast(k, U32)
        second = Const((2 + seeds[1]) & 0xFFFFFFFF, U32) if k == 2 else first
        last = var(more + (Const(2, U32) if k == 0 else second), U32)
        state[(k + 306) % _SIZE] += more
        state[(k + 317) % _SIZE] += last
        state[k] = last
    for k in range(_SIZE):
        y = state[k] + state[(k + 306) % _SIZE] + state[(k + _SIZE - 1) % _SIZE]
        more = (y ^ (y >> 27)) * 1566083941
        last = var(more - cast(k, U32), U32)
        state[(k + 306) % _SIZE] = state[(k + 306) % _SIZE] ^ more
        state[(k + 317) % _SIZE] = state[(k + 317) % _SIZE] ^ last
        state[k] = last


@loops
def _mersenne_units(uniform: Scripted, dims: Scripted, seeds: tuple[int, int]) -> None:
    state = array(_SIZE, dtype=U32)
    place = array(1, dtype=I64)
    place[0] = _SIZE
    _seed_by_sequence(state, seeds)
    for number in range(volume(dims)):
        uniform[unravel(number, dims)] = cast(_next_word(state, place), F32) / float(0xFFFFFFFF)


@loops
def _draw(out: Scripted, probabilities: Scripted, uniform: Scripted, steps: Scripted, logs: bool, again: bool) -> None:
    classes = probabilities.shape[1]
    for row in parallel(out.shape[0]):
        total = var(0.0, F32)
        for c in range(classes):
            p = cast(probabilities[row, c], F32)
            total += prim("exp", p) if logs else p
            steps[row, c] = total
        for c in range(classes):
            steps[row, c] = steps[row, c] / total
        for s in range(out.shape[1]):
            chosen = var(0, I64)
            while chosen < classes - 1 and steps[row, chosen] < uniform[row, s]:
                chosen += 1
            out[row, s] = chosen
            if not again:
                _remove(steps, row, chosen, classes)


@loops
def _remove(steps: Scripted, row: Scripted, chosen: Scripted, classes: Scripted) -> None:
    weight = var(steps[row, chosen], F32)
    if chosen > 0:
        weight -= steps[row, chosen - 1]
    for c in range(classes):
        if c >= chosen:
            steps[row, c] = steps[row, c] - weight
    last = var(steps[row, classes - 1], F32)
    for c in range(classes):
        steps[row, c] = steps[row, c] / last


@dataclass(frozen=True)
class _Mixing:
    """One mixing step of std::seed_seq, over `words`."""

    words: list[int]

    def mix(self, k: int, before: int, factor: int, add: int, xor: bool) -> None:
        w, n = self.words, len(self.words)
        middle, later = (k + 306) % n, (k + 317) % n
        first = ((before ^ (before >> 27)) * factor) & 0xFFFFFFFF
        second = (first + add) & 0xFFFFFFFF
        w[middle] = w[middle] ^ first if xor else (w[middle] + first) & 0xFFFFFFFF
        w[later] = w[later] ^ second if xor else (w[later] + second) & 0xFFFFFFFF
        w[k] = second


def _sequence(seeds: tuple[int, int]) -> list[int]:
    mixing = _Mixing([0x8B8B8B8B] * _SIZE)
    w = mixing.words
    for k in range(_SIZE):
        add = 2 if k == 0 else k + (seeds[k - 1] if k <= 2 else 0)
        mixing.mix(k, w[k] ^ w[(k + 306) % _SIZE] ^ w[k - 1], 1664525, add, False)
    for k in range(_SIZE):
        mixing.mix(k, (w[k] + w[(k + 306) % _SIZE] + w[k - 1]) & 0xFFFFFFFF, 1566083941, -k, True)
    return w
