"""Numbers, zero points and scales of a quantised tensor, taken out of the mapped file when they are read.

n s + o  =  (n - z) |s|     z = -o / s; where s is negative, n is seen from the other end: t - n
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from functools import cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.frontends.gguf.blocks import LOW_HALVES, Blocks, Floats, Format, Numbers, Raw
from aot.frontends.gguf.container import Stored
from aot.ir.op import Op
from aot.ir.types import Array, TensorType, numpy_dtype
from aot.ir.values.deferred import NIBBLE, Deferred, Parts, in_bytes, release, rows_of
from aot.runtime.abi import DType

SMALLEST = np.float32(2.0**-100)  # scales below it leave nothing of numbers of 8 bits in a sum of f32
EACH_BYTE = np.uint64(0x0101010101010101)
PIECE = 1 << 17  # numbers that are made together: they stay in the cache


class Part(StrEnum):
    """Part of blocks with elements (number - zero point) * scale."""

    NUMBERS = "numbers"
    HALVES = "halves"  # the numbers of 4 bits, two in a byte
    ZEROS = "zeros"
    SCALES = "scales"


@dataclass(frozen=True)
class PartOfBlocks(Op):
    """A part of the blocks of a file, in `shape`: dimensions of the tensor, blocks of a row, numbers of a block, or 1.

    `least`: the number that -1 less a number takes the place of 0 in, of formats with signs (`Positive`).
    """

    format: Format
    part: Part
    shape: tuple[int, ...]
    dtype: DType
    least: int

    def reference(self, raw: Raw, order: NDArray[np.int64] | None = None) -> Array:
        """Return the part of rows of bytes. `order`: the indices of the rows that are taken."""
        stored = np.dtype(np.uint8) if self.dtype is DType.U4 else numpy_dtype(self.dtype)
        raw = raw.view(np.ndarray)  # of a mapping, each view would take longer
        taken = PIECE if self.part in (Part.NUMBERS, Part.HALVES) else PIECE << 3  # one for many numbers
        each = max(taken // self.format.elements // max(raw.shape[-1] // self.format.bytes, 1), 1)
        found = np.empty(self.shape, stored)
        for piece in (slice(n, n + each) for n in range(0, len(found), each)):
            rows = raw[piece] if order is None else raw[order[piece]]
            with np.errstate(all="ignore"):  # scales of a damaged file may be infinite
                reshape = Positive(_split(self.format, rows), self.least).part(self.part).reshape(-1, *self.shape[1:])
            if len(reshape) == len(found):  # few rows
                found = reshape.astype(stored, copy=False)
            else:
                found[piece] = reshape
        return found.view(numpy_dtype(self.dtype))

    def rows(self, begin: int, end: int, *inputs: Array | Deferred) -> tuple[Op, Parts]:
        """Return the same part of some rows."""
        part = replace(self, shape=(end - begin, *self.shape[1:]))
        return part, ((begin, end),) if len(inputs) == 1 else (None, (begin, end))

    def is_normal(self, *_inputs: Array | Deferred) -> bool:
        """True for scales."""
        return self.part is Part.SCALES

    @property
    def in_bytes(self) -> Op | None:
        """Return the operation that makes the same zero points in I8; None if a block may have others."""
        whole = self.part is Part.ZEROS and _first(self.format).zero is not None
        return replace(self, dtype=DType.I8) if whole else None

    def in_halves(self, count: int) -> tuple[Op, tuple[int, int]] | None:
        """Return the operation that makes rows of `count` numbers two in a byte, and the dimensions of a row."""
        apart = _first(self.format).apart
        if self.part is not Part.NUMBERS or not apart:
            return None
        runs = count // (2 * apart), apart
        return replace(self, part=Part.HALVES, shape=(self.shape[0], *runs), dtype=DType.U8), runs

    @property
    def is_moderate(self) -> bool:
        """True for scales of f16, or of parts of these."""
        return self.part is Part.SCALES and not self.format.wide

    @property
    def number_limits(self) -> tuple[int, int]:
        """The least and the greatest number, or zero point of I8, that the format has."""
        first = _first(self.format)
        limits = (-128, 127) if first.signed else (0, (1 << first.bits) - 1)
        if self.part is Part.NUMBERS or first.zero is None:
            return limits
        zeros = (0, first.zero, (self.least if first.signed else limits[1]) - first.zero)
        return min(zeros), max(zeros)


@dataclass(frozen=True, slots=True)
class Quantized:
    """A quantised tensor as deferred numbers, zero points and scales; its elements are `(numbers - zeros) * scales`."""

    numbers: Deferred
    zeros: Deferred
    scales: Deferred

    @property
    def has_zeros(self) -> bool:
        """True if a zero point is not 0."""
        count, each = self.numbers.shape[0], max(PIECE // prod(self.numbers.shape[1:]), 1)
        zeros = in_bytes(self.zeros)
        result = any(rows_of(zeros, n, min(n + each, count)).any() for n in range(0, count, each))
        release(self.zeros)
        return result


def quantized(stored: Stored, order: Array | None = None) -> Quantized:
    """Return the parts of a tensor, with its dimensions, blocks of a row, and numbers of a block or 1.

    `order`: of the rows.
    """
    lines, first = stored.raw.reshape(stored.shape[0], -1), _split(stored.format, stored.raw[: stored.format.bytes])
    size = stored.format.elements // first.scales.shape[1]
    least = _least(stored)
    inputs = (lines,) if order is None else (lines, order.astype(np.int64))
    types = tuple(TensorType(t, x.shape) for t, x in zip((DType.U8, DType.I64), inputs, strict=False))
    number = DType.I8 if first.signed else DType.U4 if first.bits <= NIBBLE else DType.U8

    def part(part: Part, dtype: DType, last: int) -> Deferred:
        shape = (*stored.shape[:-1], stored.shape[-1] // size, last)
        return Deferred(PartOfBlocks(stored.format, part, shape, dtype, least), inputs, types, TensorType(dtype, shape))

    return Quantized(part(Part.NUMBERS, number, size), part(Part.ZEROS, DType.F32, 1), part(Part.SCALES, DType.F32, 1))


class Positive:
    """The elements of blocks with scales that are normal and positive.

    n s + o = (most - n) (-s) + (o + most s); and a block whose scale is no normal number is 1 or 0 times its offset.
    `most` is the greatest number; of those with signs `least`: -1 if -128 is among them, else 0. With one zero point
    for all blocks, o = -z s, those of negative scales are most - z, and a scale that is not a number stays.
    """

    def __init__(self, blocks: Blocks, least: int) -> None:
        self.blocks, self.least = blocks, least
        self.most = least if blocks.signed else (1 << blocks.bits) - 1
        self.negative = _marks(blocks.scales < 0)
        self.sizes = blocks.scales if self.negative is None else np.abs(blocks.scales)
        self.tiny = _marks(~(self.sizes >= SMALLEST) if blocks.zero is None else self.sizes < SMALLEST)

    def part(self, part: Part) -> Numbers | Floats:
        """Return a part of the blocks."""
        match part:
            case Part.NUMBERS:
                return self._numbers()
            case Part.HALVES:
                return self._halves()
            case Part.SCALES:
                return self._scales()
            case Part.ZEROS:
                return self._zeros()

    def _zeros(self) -> Numbers | Floats:
        zero = self.blocks.zero
        if zero is None:
            return -self._offsets() / self._scales()
        zeros = np.full(self.sizes.shape, zero, np.int8)
        if self.negative is not None:
            zeros += self.negative * np.int8(self.most - 2 * zero)
        if self.tiny is not None:
            zeros[self.tiny] = 0
        return zeros

    def _offsets(self) -> Floats:
        """Return the elements with number 0."""
        b = self.blocks
        if self.negative is None:
            return b.offsets
        return np.where(self.negative, b.offsets + self.most * b.scales, b.offsets).astype(np.float32, copy=False)

    def _scales(self) -> Floats:
        if self.tiny is None:
            return self.sizes
        if self.blocks.zero is not None:
            return np.where(self.tiny, np.float32(1), self.sizes)
        alone = np.abs(self._offsets())
        return np.where(self.tiny, np.where(alone >= SMALLEST, alone, np.float32(1)), self.sizes)

    def _halves(self) -> Numbers:
        raw, each = self.blocks.halves, self.blocks.apart // 8
        assert raw is not None
        turned = None if self.negative is None else self._in_halves(self.negative)
        kept = None if self.tiny is None else ~self._in_halves(self.tiny)
        words = np.empty((len(raw), raw.shape[1] // 8), np.uint64)
        for k in range(words.shape[1]):  # eight bytes of a run at a time
            given = raw[:, 8 * k : 8 * k + 8].view(np.uint64)[:, 0]
            if turned is None:
                words[:, k] = given
            else:
                np.bitwise_xor(given, turned[:, k // each], out=words[:, k])
            if kept is not None:
                words[:, k] &= kept[:, k // each]
        return words.view(np.uint8)

    def _in_halves(self, marks: NDArray[np.bool_]) -> NDArray[np.uint64]:
        """Return words with ones for the numbers of marked parts, for each run."""
        parts = marks.reshape(len(marks), -1)
        if parts.shape[1] == 1:
            return parts * ~np.uint64(0)
        return parts[:, ::2] * LOW_HALVES | parts[:, 1::2] * ~LOW_HALVES

    def _numbers(self) -> Numbers:
        numbers = self.blocks.numbers
        if self.negative is not None:
            words = numbers.reshape(-1, numbers.shape[-1]).view(np.uint64)  # eight numbers of a part at a time
            ones = EACH_BYTE * np.uint64(255 if self.blocks.signed else self.most)
            turned = np.where(self.negative.reshape(-1), ones, np.uint64(0))
            for k in range(words.shape[1]):
                words[:, k] ^= turned  # most - n without a sign, -1 - n with one
            if self.blocks.signed and not self.least:
                numbers[self.negative[..., 0]] += np.int8(1)
        if self.tiny is not None:
            numbers[self.tiny[..., 0]] = 0
        return numbers


def _marks(found: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    return found if found.any() else None


@cache
def _first(form: Format) -> Blocks:
    """Return a block of zeros."""
    return _split(form, np.zeros(form.bytes, np.uint8))


def _least(stored: Stored) -> int:
    """Return -1 if a number with a sign is -128, which has no opposite of 8 bits, beside a negative scale; else 0."""
    signed = _split(stored.format, stored.raw[: stored.format.bytes]).signed
    turned = (b for b in _pieces(stored) if (b.scales < 0).any()) if signed else ()
    return -1 if any(b.numbers.min() == -128 for b in turned) else 0


def _pieces(stored: Stored) -> Iterator[Blocks]:
    """Yield the blocks of a tensor, some at a time."""
    raw, each = stored.raw.reshape(-1, stored.format.bytes), max(PIECE // stored.format.elements, 1)
    return (_split(stored.format, raw[n : n + each]) for n in range(0, len(raw), each))


def _split(form: Format, raw: Raw) -> Blocks:
    assert form.split is not None
    return form.split(raw.reshape(-1, form.bytes))
