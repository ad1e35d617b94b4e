"""Numbers, zero points and scales of a quantised tensor, taken out of the mapped file when they are read.

n s + o  =  (n - z) |s|     z = -o / s; where s is negative, n is seen from the other end: t - n
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from math import prod

import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.frontends.gguf.blocks import Blocks, Floats, Format, Numbers, Raw
from aot.frontends.gguf.container import Stored
from aot.ir.op import Op
from aot.ir.types import Array, TensorType, numpy_dtype
from aot.ir.values.deferred import NIBBLE, Deferred, Parts, release
from aot.runtime.abi import DType

SMALLEST = np.float32(2.0**-100)  # scales below it leave nothing of numbers of 8 bits in a sum of f32
EACH_BYTE = np.uint64(0x0101010101010101)
PIECE = 1 << 17  # numbers that are made together: they stay in the cache


class Part(StrEnum):
    """Part of blocks, whose elements are (number - zero point) * scale."""

    NUMBERS = "numbers"
    ZEROS = "zeros"
    SCALES = "scales"


@dataclass(frozen=True)
class PartOfBlocks(Op):
    """A part of the blocks of a file, in `shape`: dimensions of the tensor, blocks of a row, numbers of a block, or 1.

    `least`: the number that -1 less a number takes the place of 0 in, of formats with signs (`with_positive_scales`).
    """

    format: Format
    part: Part
    shape: tuple[int, ...]
    dtype: DType
    least: int

    def reference(self, raw: Raw, order: NDArray[np.int64] | None = None) -> Array:
        """Return the part of rows of bytes. `order`: those of the rows that are taken."""
        stored = np.uint8 if self.dtype is DType.U4 else numpy_dtype(self.dtype)
        each = max(PIECE // self.format.elements // max(raw.shape[-1] // self.format.bytes, 1), 1)
        found = np.empty(self.shape, stored)
        for piece in (slice(n, n + each) for n in range(0, len(found), each)):
            rows = raw[piece] if order is None else raw[order[piece]]
            with np.errstate(all="ignore"):  # scales of a damaged file may be infinite
                blocks = with_positive_scales(_split(self.format, rows), self.least)
                made = _part(blocks, self.part).reshape(-1, *self.shape[1:])
            if len(made) == len(found):  # few rows
                found = made
            else:
                found[piece] = made
        return found.view(numpy_dtype(self.dtype))

    def rows(self, begin: int, end: int, *inputs: Array | Deferred) -> tuple[Op, Parts]:
        """Return the same part of some rows."""
        made = replace(self, shape=(end - begin, *self.shape[1:]))
        return made, ((begin, end),) if len(inputs) == 1 else (None, (begin, end))


@dataclass(frozen=True, slots=True)
class Quantised:
    """A quantised tensor as deferred numbers, zero points and scales; its elements are `(numbers - zeros) * scales`."""

    numbers: Deferred
    zeros: Deferred
    scales: Deferred

    @property
    def has_zeros(self) -> bool:
        """True if a zero point is not 0."""
        count, each = self.numbers.shape[0], max(PIECE // prod(self.numbers.shape[1:]), 1)
        found = any(self.zeros.rows(n, min(n + each, count)).any() for n in range(0, count, each))
        release(self.zeros)
        return found


def quantised(stored: Stored, order: Array | None = None) -> Quantised:
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

    return Quantised(part(Part.NUMBERS, number, size), part(Part.ZEROS, DType.F32, 1), part(Part.SCALES, DType.F32, 1))


def _part(blocks: Blocks, part: Part) -> Numbers | Floats:
    if part is Part.NUMBERS:
        return blocks.numbers
    return blocks.scales if part is Part.SCALES else -blocks.offsets / blocks.scales


def with_positive_scales(b: Blocks, least: int) -> Blocks:
    """Return the same elements with scales that are normal and positive.

    n s + o = (most - n) (-s) + (o + most s); and a block whose scale is no normal number is 1 or 0 times its offset.
    `most` is the greatest number; of those with signs `least`: -1 if -128 is among them, else 0.
    """
    scales, offsets = b.scales, b.offsets
    negative = scales < 0
    top = least if b.signed else (1 << b.bits) - 1
    if negative.any():
        offsets = np.where(negative, offsets + top * scales, offsets).astype(np.float32)
        scales = np.abs(scales)
    tiny = ~(scales >= SMALLEST)
    if tiny.any():
        alone = np.where(np.abs(offsets) >= SMALLEST, np.abs(offsets), 1).astype(np.float32)
        scales = np.where(tiny, alone, scales)

    def unpack() -> Numbers:
        numbers = b.numbers
        if negative.any():
            words = numbers.reshape(-1, numbers.shape[-1]).view(np.uint64)  # eight numbers of a part at a time
            turned = np.where(negative.reshape(-1), EACH_BYTE * np.uint64(255 if b.signed else top), np.uint64(0))
            for k in range(words.shape[1]):
                words[:, k] ^= turned  # top - n without a sign, -1 - n with one
            if b.signed and not least:
                numbers[negative[..., 0]] += np.int8(1)
        if tiny.any():
            numbers[tiny[..., 0]] = 0
        return numbers

    return Blocks(unpack, scales, offsets, b.bits)


def _least(stored: Stored) -> int:
    """Return -1 if a number with a sign is -128, which has no opposite of 8 bits, else 0."""
    signed = _split(stored.format, stored.raw[: stored.format.bytes]).signed
    return -1 if signed and any(b.numbers.min() == -128 for b in _pieces(stored)) else 0


def _pieces(stored: Stored) -> Iterator[Blocks]:
    """Yield the blocks of a tensor, some at a time."""
    raw, each = stored.raw.reshape(-1, stored.format.bytes), max(PIECE // stored.format.elements, 1)
    return (_split(stored.format, raw[n : n + each]) for n in range(0, len(raw), each))


def _split(form: Format, raw: Raw) -> Blocks:
    assert form.split is not None
    return form.split(raw.reshape(-1, form.bytes))
