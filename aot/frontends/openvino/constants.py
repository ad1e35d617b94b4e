"""Constants of the `.bin` file: slices of it as arrays and back, packed types unpacked and packed.

u4 i4 nf4 f4e2m1   low nibble first             u1   highest bit first             u2   lowest bits first
u3   8 values in 3 bytes: low two bits of each, first value highest; then the third bits, first value highest
u6   4 values in 3 bytes: low four bits of each, first value highest; then the upper two bits, first value highest
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.ir.inference import MAX_FOLD_ELEMENTS
from aot.ir.op import Op
from aot.ir.types import Array, TensorType, numpy_dtype
from aot.ir.values.deferred import Deferred, Parts
from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError, UnsupportedError
from aot.runtime.regular import check_file

Bytes = NDArray[np.uint8]
PIECE = 1 << 16  # bytes that are unpacked together: they stay in the cache


@dataclass(frozen=True)
class Unpacked(Op):
    """Elements of `dtype` in `shape`, several to a byte."""

    dtype: DType
    shape: tuple[int, ...]

    def reference(self, raw: Bytes) -> Array:
        """Return the elements in NumPy's form."""
        return unpack(self.dtype, raw, prod(self.shape)).reshape(self.shape)

    def rows(self, begin: int, end: int, raw: Array | Deferred) -> tuple[Op, Parts] | None:
        """Return the elements of some rows, where no two rows share bytes."""
        per_block, block = _BLOCKS[self.dtype]
        row, rest = divmod(prod(self.shape[1:]), per_block)
        del raw
        unpacked = Unpacked(self.dtype, (end - begin, *self.shape[1:]))
        return None if rest else (unpacked, ((begin * row * block, end * row * block),))


class Weights:
    """The bytes of the `.bin` file, mapped into memory; all bodies of a network read the same ones."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.exists = path.exists()
        if self.exists:
            check_file(path, "weights")
        empty = not self.exists or path.stat().st_size == 0
        self.data: Bytes = np.zeros(0, np.uint8) if empty else np.asarray(np.memmap(path, np.uint8, mode="r"))

    def constant(
        self, dtype: DType, shape: tuple[int, ...], offset: int, size: int, lowest_first: bool = False
    ) -> Array | Deferred:
        """Return the elements of `dtype` in `size` bytes from `offset`; a view of the file if it is aligned.

        Large constants of packed types are unpacked when they are read. `lowest_first`: the first of eight u1 elements
        is the lowest bit of a byte, not the highest.

        CorruptError if the bytes are beyond the end of the file, or too many or too few.
        """
        if not self.exists:
            raise CorruptError(f"{self.path.name}: the file with the weights is missing")
        if offset < 0 or size < 0 or offset + size > len(self.data):
            rule = f"constants must be inside {self.path.name} of {len(self.data)} bytes"
            raise CorruptError(f"{rule}, got offset {offset} and size {size}")
        count = prod(shape)
        raw = self.data[offset : offset + size]
        if dtype is DType.STRING:
            return strings(raw, count).reshape(shape)
        needed = packed_bytes(dtype, count)
        if needed != size and count:
            raise CorruptError(f"{dtype.value}{list(shape)} takes {needed} bytes, got size {size}")
        if dtype is DType.U1 and lowest_first:
            return _bits(raw[:needed], 1, False)[:count].reshape(shape)
        if dtype in _CODES and count > MAX_FOLD_ELEMENTS:  # inference asks for the values of smaller ones
            bytes_type = TensorType(DType.U8, (needed,))
            return Deferred(Unpacked(dtype, shape), (raw[:needed],), (bytes_type,), TensorType(dtype, shape))
        return unpack(dtype, raw[:needed], count, offset).reshape(shape)


def packed_bytes(dtype: DType, count: int) -> int:
    """Return the number of bytes of `count` elements in the file."""
    per_block, block = _BLOCKS.get(dtype, (1, dtype.bits // 8))
    return -(-count // per_block) * block


def unpack(dtype: DType, raw: Bytes, count: int, offset: int = 0) -> Array:
    """Return `count` elements in NumPy's form. `offset`: distance of `raw` from an aligned address."""
    if dtype is DType.BOOL:
        return raw != 0
    if dtype in _CODES:
        return _CODES[dtype](raw)[:count].view(numpy_dtype(dtype))
    stored_type = numpy_dtype(dtype)
    return raw.view(stored_type) if offset % stored_type.itemsize == 0 else raw.copy().view(stored_type)


def pack(dtype: DType, values: Array, lowest_first: bool = False) -> Bytes:
    """Return an array's bytes in the file, without a copy if its memory has the same layout; the inverse of `unpack`.

    `lowest_first`: as for `Weights.constant`.
    """
    if dtype is DType.STRING:
        return _packed_strings(values)
    flat = np.ascontiguousarray(values).reshape(-1)
    if dtype not in _BLOCKS:
        return flat.view(np.uint8)
    per_block, _ = _BLOCKS[dtype]
    width = dtype.bits
    codes = flat.view(np.uint8) if flat.dtype.itemsize == 1 else flat.astype(np.uint8)
    codes = codes & np.uint8((1 << width) - 1)
    codes = np.concatenate([codes, np.zeros(-len(codes) % per_block, np.uint8)])
    if dtype in (DType.U3, DType.U6):
        low = 2 if dtype is DType.U3 else 4
        lows = _joined(codes & np.uint8((1 << low) - 1), low, True).reshape(-1, 2)
        return np.concatenate([lows, _joined(codes >> np.uint8(low), width - low, True).reshape(-1, 1)], 1).reshape(-1)
    return _joined(codes, width, dtype is DType.U1 and not lowest_first)


def _packed_strings(values: Array) -> Bytes:
    """Pack strings, the inverse of `strings`."""
    encoded = [str(text).encode("utf-8", "surrogateescape") for text in values.reshape(-1)]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    if ends[-1] > np.iinfo(np.int32).max:
        raise UnsupportedError(f"string constant: there can be at most 2^31 - 1 bytes of text, got {ends[-1]}")
    head = np.array([len(encoded), *ends], "<i4")
    return np.concatenate([head.view(np.uint8), np.frombuffer(b"".join(encoded), np.uint8)])


def strings(raw: Bytes, count: int) -> Array:
    """Unpack i32 count, i32 begin of the first, i32 end of each, UTF-8 bytes; offsets are from the first of these."""
    head = raw[: len(raw) // 4 * 4].copy().view("<i4")
    if not count:
        return np.empty(0, object)
    if len(head) < count + 2 or head[0] != count:
        raise CorruptError(
            f"string constant: there must be a header for {count} strings, got one for {head[0] if len(head) else 0}"
        )
    ends = [int(e) for e in head[1 : count + 2]]
    text = raw[4 * (count + 2) :].tobytes()
    if ends[0] != 0 or any(a > b for a, b in pairwise(ends)) or ends[-1] > len(text):
        raise CorruptError(f"string constant: offsets must rise from 0 to at most {len(text)}, got {ends[:8]}")
    texts = np.empty(count, object)
    # Vocabularies contain pieces of characters; surrogateescape keeps their bytes.
    texts[:] = [text[a:b].decode("utf-8", "surrogateescape") for a, b in pairwise(ends)]
    return texts


def _bits(raw: Bytes, width: int, highest_first: bool) -> Bytes:
    """Split bytes into fields of `width` bits, in the order of the bytes."""
    shifts = np.arange(0, 8, width, dtype=np.uint8)
    if highest_first:
        shifts = shifts[::-1]
    fields = np.empty((len(raw), len(shifts)), np.uint8)
    for k, shift in enumerate(shifts):  # a pass for each place: passes along rows of two are ten times as slow
        np.right_shift(raw, shift, out=fields[:, k])
    fields &= np.uint8((1 << width) - 1)
    return fields.reshape(-1)


def _joined(codes: Bytes, width: int, highest_first: bool) -> Bytes:
    """Join fields of `width` bits to bytes; the inverse of `_bits`."""
    shifts = np.arange(0, 8, width, dtype=np.uint8)
    if highest_first:
        shifts = shifts[::-1]
    return np.bitwise_or.reduce(codes.reshape(-1, 8 // width) << shifts, axis=1).astype(np.uint8)


def _split(raw: Bytes, low: int, high: int) -> Bytes:
    """Split each block into two bytes with the low fields and one with the high fields."""
    blocks = raw.reshape(-1, 3)
    lows = _bits(np.ascontiguousarray(blocks[:, :2]).reshape(-1), low, True)
    return lows | (_bits(np.ascontiguousarray(blocks[:, 2]), high, True) << np.uint8(low))


def _nibbles(raw: Bytes) -> Bytes:
    """Split bytes into two numbers each, the low bits first."""
    numbers = np.empty(len(raw), "<u2")
    for piece in (slice(n, n + PIECE) for n in range(0, len(raw), PIECE)):
        wide = numbers[piece]
        wide[:] = raw[piece]
        wide |= wide << np.uint16(4)
        wide &= np.uint16(0x0F0F)
    return numbers.view(np.uint8)


_CODES: dict[DType, Callable[[Bytes], Bytes]] = {
    DType.U1: lambda raw: _bits(raw, 1, True),
    DType.U2: lambda raw: _bits(raw, 2, False),
    DType.U3: lambda raw: _split(raw, 2, 1),
    DType.U4: _nibbles,
    DType.U6: lambda raw: _split(raw, 4, 2),
    DType.I4: _nibbles,
    DType.NF4: _nibbles,
    DType.F4E2M1: _nibbles,
}
# elements in a block, bytes of a block
_BLOCKS = {
    DType.U1: (8, 1),
    DType.U2: (4, 1),
    DType.U3: (8, 3),
    DType.U4: (2, 1),
    DType.U6: (4, 3),
    DType.I4: (2, 1),
    DType.NF4: (2, 1),
    DType.F4E2M1: (2, 1),
}
