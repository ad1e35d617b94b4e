"""Formats of tensors in GGUF: blocks of a row share scales. `numbers * scales + offsets`, and their meaning as f32.

    Q4_0: 32 numbers of 4 bits    d (n - 8)              Q4_K: 8 times 32 numbers of 4 bits    d s n - e m
    Q8_0: 32 numbers of 8 bits    d n                    Q6_K: 16 times 16 numbers of 6 bits   d s (n - 32)

Source: ggml's `block_*` structures, which llama.cpp defines in ggml-common.h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array, numpy_dtype
from aot.runtime.abi import DType

Raw = NDArray[np.uint8]
Floats = NDArray[np.float32]
Numbers = NDArray[np.uint8] | NDArray[np.int8]
SIGNED_BITS = 8  # bits from which on numbers have signs
LOW_HALVES = np.uint64(0x0F0F0F0F0F0F0F0F)  # mask of the low half of each of eight bytes
# Numbers that 4 bits stand for; those of MXFP4 twice
IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8)
MXFP4 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.int8)


@dataclass(frozen=True, slots=True)
class Blocks:
    """A matrix of blocks: `numbers` [blocks, parts, elements]; `scales` and `offsets` [blocks, parts, 1] in f32.

    `unpack` takes the numbers out of the bytes of the blocks, which takes longer than all else. `zero`: the zero point
    of all blocks; None if each has an offset of its own, in `minima`. `halves`: bytes of two numbers, in runs of
    `apart`, whose low halves come before their high ones.
    """

    unpack: Callable[[], Numbers]
    scales: Floats
    bits: int  # of a number
    zero: int | None = None
    minima: Floats | None = None
    halves: Raw | None = None
    apart: int = 0

    @property
    def signed(self) -> bool:
        return self.bits == SIGNED_BITS

    @property
    def numbers(self) -> Numbers:
        return self.unpack().reshape(*self.scales.shape[:2], -1)

    @property
    def offsets(self) -> Floats:
        """Return the elements with number 0."""
        if self.minima is not None:
            return self.minima
        assert self.zero is not None
        return -self.zero * self.scales

    @property
    def floats(self) -> Floats:
        """Return the elements [blocks, parts, elements]."""
        return self.numbers * self.scales + self.offsets


@dataclass(frozen=True, slots=True)
class Format:
    """A type of tensors: `elements` of a row take `bytes`, and are floats of type `plain`, or read by `split`.

    `wide`: scales are not of f16.
    """

    name: str
    elements: int
    bytes: int
    split: Callable[[Raw], Blocks] | None = None
    plain: DType | None = None
    wide: bool = False

    def floats(self, raw: Raw) -> Floats:
        """Return all elements in one dimension."""
        if self.plain is not None:
            return plain_floats(raw, self.plain).astype(np.float32, copy=False)
        assert self.split is not None
        return self.split(raw.reshape(-1, self.bytes)).floats.reshape(-1)


def plain_floats(raw: Raw, dtype: DType) -> Array:
    """Return all elements in one dimension, in their own type."""
    return np.ascontiguousarray(raw).view(numpy_dtype(dtype))


def _halves(raw: Raw) -> Floats:
    """Floats of 16 bits in the last dimension."""
    return raw.view("<f2").astype(np.float32)


def _nibbles(raw: Raw) -> Raw:
    """Low halves of all bytes of the last dimension, then the high ones; a multiple of eight bytes."""
    count, halves = raw.shape[1] // 8, np.empty((len(raw), raw.shape[1] // 4), np.uint64)
    for k in range(count):  # eight bytes at a time, since loops over the few bytes of a block take longer
        words = raw[:, 8 * k : 8 * k + 8].view(np.uint64)[:, 0].copy()
        np.bitwise_and(words, LOW_HALVES, out=halves[:, k])
        np.bitwise_and(words >> np.uint64(4), LOW_HALVES, out=halves[:, count + k])
    return halves.view(np.uint8)


def _fifth(raw: Raw) -> Raw:
    """Unpack the fifth bit of each of 32 numbers, into place 4."""
    return (np.unpackbits(np.ascontiguousarray(raw), axis=-1, bitorder="little") << 4).astype(np.uint8)


def _one(unpack: Callable[[], Numbers], scale: Floats, bits: int, zero: int) -> Blocks:
    """Return blocks of one part."""
    return Blocks(unpack, scale[:, :, None], bits, zero)


def _q4_0(b: Raw) -> Blocks:
    return replace(_one(lambda: _nibbles(b[:, 2:]), _halves(b[:, :2]), 4, zero=8), halves=b[:, 2:], apart=16)


def _q4_1(b: Raw) -> Blocks:
    d, least = _halves(b[:, :2]), _halves(b[:, 2:4])
    return Blocks(lambda: _nibbles(b[:, 4:]), d[:, :, None], 4, None, least[:, :, None], b[:, 4:], apart=16)


def _q5_0(b: Raw) -> Blocks:
    return _one(lambda: _nibbles(b[:, 6:]) | _fifth(b[:, 2:6]), _halves(b[:, :2]), 5, zero=16)


def _q5_1(b: Raw) -> Blocks:
    d, least = _halves(b[:, :2]), _halves(b[:, 2:4])
    return Blocks(lambda: _nibbles(b[:, 8:]) | _fifth(b[:, 4:8]), d[:, :, None], 5, minima=least[:, :, None])


def _q8_0(b: Raw) -> Blocks:
    return _one(lambda: np.ascontiguousarray(b[:, 2:]).view(np.int8), _halves(b[:, :2]), 8, zero=0)


def _six(b: Raw) -> tuple[Floats, Floats]:
    """Scales and minima of 6 bits of the 8 parts of a block, from 12 bytes."""
    low, mid, high = b[:, 0:4], b[:, 4:8], b[:, 8:12]
    scales = np.concatenate([low & 63, (high & 15) | (low >> 6) << 4], -1)
    minima = np.concatenate([mid & 63, (high >> 4) | (mid >> 6) << 4], -1)
    return scales.astype(np.float32), minima.astype(np.float32)


def _k(b: Raw, unpack: Callable[[], Numbers], bits: int) -> Blocks:
    """Blocks of 8 parts with scales and minima; two floats and 12 bytes come first."""
    d, least = _halves(b[:, :2]), _halves(b[:, 2:4])
    scales, minima = _six(b[:, 4:16])
    return Blocks(unpack, (d * scales)[..., None], bits, minima=(-least * minima)[..., None])


def _q4_k(b: Raw) -> Blocks:
    return replace(_k(b, lambda: _pairs(b[:, 16:]), 4), halves=b[:, 16:], apart=32)


def _q5_k(b: Raw) -> Blocks:
    def unpack() -> Raw:
        high = (b[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & np.uint8(1)) << np.uint8(4)
        return _pairs(b[:, 48:]).reshape(high.shape) | high

    return _k(b, unpack, 5)


def _q6_k(b: Raw) -> Blocks:
    def unpack() -> Raw:
        four = _pairs(b[:, :128], 64).reshape(-1, 2, 4, 32)
        return four | _parts(b[:, 128:192], 4, 32).reshape(four.shape) << np.uint8(4)

    scales = np.ascontiguousarray(b[:, 192:208]).view(np.int8) * _halves(b[:, 208:210])
    return Blocks(unpack, scales[..., None], 6, zero=32)


def _pairs(raw: Raw, elements: int = 32) -> Raw:
    """Return the low halves of each `elements` bytes, and then their high ones."""
    bytes_ = raw.reshape(len(raw), -1, 1, elements)
    return np.concatenate([bytes_ & np.uint8(15), bytes_ >> np.uint8(4)], 2)


def _parts(raw: Raw, shifts: int, elements: int) -> Raw:
    """Numbers of 8 / `shifts` bits: of each `elements` bytes first the lowest ones of all."""
    bit_offsets = np.arange(0, 8, 8 // shifts, dtype=np.uint8)[:, None]
    return (raw.reshape(len(raw), -1, 1, elements) >> bit_offsets & np.uint8((1 << 8 // shifts) - 1)).astype(np.uint8)


def _q2_k(b: Raw) -> Blocks:
    d, least = _halves(b[:, 80:82]), _halves(b[:, 82:84])
    scales, minima = (d * (b[:, :16] & 15))[..., None], (-least * (b[:, :16] >> 4))[..., None]
    return Blocks(lambda: _parts(b[:, 16:80], 4, 32), scales, 2, minima=minima)


def _q3_k(b: Raw) -> Blocks:
    def unpack() -> Raw:
        low, high = (a.reshape(len(b), -1) for a in (_parts(b[:, 32:96], 4, 32), _parts(b[:, :32], 8, 32)))
        return low | high << np.uint8(2)

    six = _parts(b[:, 96:104], 2, 8).reshape(-1, 16) | _parts(b[:, 104:108], 4, 4).reshape(-1, 16) << 4
    scales = ((six.astype(np.float32) - 32) * _halves(b[:, 108:110]))[..., None]
    return Blocks(unpack, scales, 3, zero=4)


def _iq4_nl(b: Raw) -> Blocks:
    return _one(lambda: IQ4[_nibbles(b[:, 2:])], _halves(b[:, :2]), 8, zero=0)


def _iq4_xs(b: Raw) -> Blocks:
    high = np.ascontiguousarray(b[:, 2:4]).view("<u2") >> np.arange(0, 16, 2, dtype=np.uint16) & np.uint16(3)
    low = np.stack([b[:, 4:8] & 15, b[:, 4:8] >> 4], -1).reshape(-1, 8)
    scales = (((low | high << 4).astype(np.float32) - 32) * _halves(b[:, :2]))[..., None]
    return Blocks(lambda: IQ4[_parts(b[:, 8:], 2, 16)], scales, 8, zero=0)


def _mxfp4(b: Raw) -> Blocks:
    d = np.ldexp(np.float32(1), b[:, :1].astype(np.int32) - 128)
    return _one(lambda: MXFP4[_nibbles(b[:, 1:])], d, 8, zero=0)


def _tq1_0(b: Raw) -> Blocks:
    """Five numbers of three values a byte, as a fraction of 3^5; the last four bytes have four."""

    def numbers(raw: Raw, count: int) -> Raw:
        powers = (3 ** np.arange(count)).astype(np.uint8)[:, None]
        return ((raw[:, None, :] * powers).astype(np.uint16) * 3 >> 8).astype(np.uint8).reshape(len(raw), -1)

    def unpack() -> Raw:
        return np.concatenate([numbers(b[:, :32], 5), numbers(b[:, 32:48], 5), numbers(b[:, 48:52], 4)], -1)

    return _one(unpack, _halves(b[:, 52:54]), 2, zero=1)


def _tq2_0(b: Raw) -> Blocks:
    return _one(lambda: _parts(b[:, :64], 4, 32), _halves(b[:, 64:66]), 2, zero=1)


FORMATS = {
    0: Format("F32", 1, 4, plain=DType.F32),
    1: Format("F16", 1, 2, plain=DType.F16),
    2: Format("Q4_0", 32, 18, _q4_0),
    3: Format("Q4_1", 32, 20, _q4_1),
    6: Format("Q5_0", 32, 22, _q5_0),
    7: Format("Q5_1", 32, 24, _q5_1),
    8: Format("Q8_0", 32, 34, _q8_0),
    10: Format("Q2_K", 256, 84, _q2_k),
    11: Format("Q3_K", 256, 110, _q3_k),
    12: Format("Q4_K", 256, 144, _q4_k),
    13: Format("Q5_K", 256, 176, _q5_k),
    14: Format("Q6_K", 256, 210, _q6_k),
    20: Format("IQ4_NL", 32, 18, _iq4_nl),
    23: Format("IQ4_XS", 256, 136, _iq4_xs),
    30: Format("BF16", 1, 2, plain=DType.BF16),
    34: Format("TQ1_0", 256, 54, _tq1_0),
    35: Format("TQ2_0", 256, 66, _tq2_0),
    39: Format("MXFP4", 32, 17, _mxfp4, wide=True),
}
