"""Numbers, zero points and scales of a quantised tensor; numbers are taken out of the mapped file when they are read.

n s + o  =  (n - z) |s|     z = -o / s; where s is negative, n is seen from the other end: t - n
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.frontends.gguf.blocks import Blocks, Floats, Format, Raw
from aot.frontends.gguf.container import Stored
from aot.ir.op import Op
from aot.ir.types import Array, TensorType
from aot.ir.values.deferred import Deferred, Parts
from aot.runtime.abi import DType
from aot.runtime.arrays.mapped import release

SMALLEST = np.float32(2.0**-100)  # scales below it leave nothing of numbers of 8 bits in a sum of f32
PIECE = 1 << 17  # numbers that are made together: they stay in the cache


@dataclass(frozen=True)
class Numbers(Op):
    """Numbers of the blocks of a file, in `shape`: dimensions of the tensor, blocks of a row, numbers of a block.

    `least`: the number that -1 less a number takes the place of 0 in, of formats with signs (`with_positive_scales`).
    """

    format: Format
    shape: tuple[int, ...]
    signed: bool
    least: int

    def reference(self, raw: Raw, order: NDArray[np.int64] | None = None) -> Array:
        """Return the numbers of rows of bytes. `order`: those of the rows that are taken."""
        found = np.empty(self.shape, np.int8 if self.signed else np.uint8)
        each = max(PIECE // prod(self.shape[1:]), 1)
        for piece in (slice(n, n + each) for n in range(0, len(found), each)):
            rows = raw[piece] if order is None else raw[order[piece]]
            blocks = with_positive_scales(_split(self.format, rows), self.least)
            found[piece] = blocks.numbers.reshape(-1, *self.shape[1:])
        return found

    def rows(self, begin: int, end: int, *inputs: Array | Deferred) -> tuple[Op, Parts]:
        """Return the numbers of some rows."""
        made = replace(self, shape=(end - begin, *self.shape[1:]))
        return made, ((begin, end),) if len(inputs) == 1 else (None, (begin, end))


def numbers_of(stored: Stored, lines: Raw, order: Array | None) -> Deferred:
    """Return the numbers of a tensor. `lines`: its bytes, in rows; `order`: of the rows."""
    first = _first(stored)
    signed = first.dtype == np.int8
    shape = (*stored.shape[:-1], stored.shape[-1] // first.shape[-1], first.shape[-1])
    inputs = (lines,) if order is None else (lines, order.astype(np.int64))
    types = tuple(TensorType(t, x.shape) for t, x in zip((DType.U8, DType.I64), inputs, strict=False))
    made = Numbers(stored.format, shape, signed, _least(stored))
    return Deferred(made, inputs, types, TensorType(DType.I8 if signed else DType.U8, shape))


def zeros_and_scales(stored: Stored) -> tuple[Floats, Floats]:
    """Return the zero points and the positive scales of a tensor, with its dimensions, blocks of a row, and 1."""
    pairs = list[tuple[Floats, Floats]]()
    with np.errstate(all="ignore"):  # scales of a damaged file may be infinite
        least = _least(stored)
        for blocks in _pieces(stored):
            made = with_positive_scales(blocks, least)
            pairs.append((-made.offsets / made.scales, made.scales))
    release(stored.raw)
    zeros, scales = (np.concatenate(parts).reshape(*stored.shape[:-1], -1, 1) for parts in zip(*pairs, strict=True))
    return zeros, scales


def with_positive_scales(b: Blocks, least: int) -> Blocks:
    """Return the same elements with scales that are normal and positive.

    n s + o = (most - n) (-s) + (o + most s); and a block whose scale is no normal number is 1 or 0 times its offset.
    `most` is the greatest number; of those with signs `least`: -1 if -128 is among them, else 0.
    """
    scales, offsets, numbers = b.scales, b.offsets, b.numbers
    negative = scales < 0
    if negative.any():
        signed = numbers.dtype == np.int8
        top = least if signed else (1 << b.bits) - 1
        turned = np.where(negative, np.uint8(255 if signed else top), np.uint8(0)).view(numbers.dtype)
        numbers = numbers ^ turned  # top - n without a sign, -1 - n with one
        numbers = numbers - turned if signed and not least else numbers
        offsets = np.where(negative, offsets + top * scales, offsets).astype(np.float32)
        scales = np.abs(scales)
    tiny = ~(scales >= SMALLEST)
    if tiny.any():
        alone = np.where(np.abs(offsets) >= SMALLEST, np.abs(offsets), 1).astype(np.float32)
        numbers = np.where(tiny, 0, numbers).astype(numbers.dtype)
        scales = np.where(tiny, alone, scales)
    return replace(b, numbers=numbers, scales=scales, offsets=offsets)


def _least(stored: Stored) -> int:
    """Return -1 if a number with a sign is -128, which has no opposite of 8 bits, else 0."""
    signed = _first(stored).dtype == np.int8
    return -1 if signed and any(b.numbers.min() == -128 for b in _pieces(stored)) else 0


def _first(stored: Stored) -> Array:
    """Return the numbers of the first block."""
    return _split(stored.format, stored.raw[: stored.format.bytes]).numbers


def _pieces(stored: Stored) -> Iterator[Blocks]:
    """Yield the blocks of a tensor, some at a time."""
    raw, each = stored.raw.reshape(-1, stored.format.bytes), max(PIECE // stored.format.elements, 1)
    return (_split(stored.format, raw[n : n + each]) for n in range(0, len(raw), each))


def _split(form: Format, raw: Raw) -> Blocks:
    assert form.split is not None
    return form.split(raw.reshape(-1, form.bytes))
