"""CRC-32C of many bytes, by NumPy: lanes of equal length are summed side by side, then joined.

crc(a + b) = shift(crc(a), len(b)) ^ crc(b)
"""

from __future__ import annotations

from functools import cache

import numpy as np

from aot.ir.types import Array

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, reflected
_LANES = 1 << 14
_MASK_DELTA = 0xA282EAD8


def crc32c(data: bytes | memoryview) -> int:
    """Return the checksum of the bytes."""
    bytes_ = np.frombuffer(data, np.uint8)
    length = bytes_.size // _LANES
    head = bytes_[: length * _LANES]
    crc = 0xFFFFFFFF
    if length:
        sums = _lanes(head.reshape(_LANES, length))
        crc = _shift(np.array([crc], np.uint32), head.size)[0] ^ _joined(sums, length)
    table = _table()
    crc = int(crc)
    for byte in bytes_[length * _LANES :].tolist():
        crc = int(table[(crc ^ byte) & 0xFF]) ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def unmasked(stored: int) -> int:
    """Return the checksum that a file stores masked, so that sums of sums differ."""
    rotated = (stored - _MASK_DELTA) & 0xFFFFFFFF
    return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF


@cache
def _table() -> Array:
    """Return the effect of a byte, for each of its values."""
    values = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = np.where(values & 1, (values >> 1) ^ np.uint32(_POLYNOMIAL), values >> 1).astype(np.uint32)
    return values


@cache
def _pairs() -> Array:
    """Return the effect of two bytes, for each of their values."""
    table, both = _table(), np.arange(1 << 16, dtype=np.uint32)
    once = table[both & 0xFF] ^ (both >> 8)
    return table[once & 0xFF] ^ (once >> 8)


def _lanes(rows: Array) -> Array:
    """Return the sums of rows of bytes, each from 0."""
    crc = np.zeros(len(rows), np.uint32)
    columns = np.ascontiguousarray(rows.T)
    even = len(columns) // 2 * 2
    table = _table()
    for k in range(0, even, 2):
        both = columns[k].astype(np.uint32) | (columns[k + 1].astype(np.uint32) << 8)
        crc = _pairs()[(crc ^ both) & 0xFFFF] ^ (crc >> 16)
    if even < len(columns):
        crc = table[(crc ^ columns[even]) & 0xFF] ^ (crc >> 8)
    return crc


def _joined(sums: Array, length: int) -> int:
    """Return the sum of all lanes, of `length` bytes each; their number is a power of two."""
    while len(sums) > 1:
        sums = _shift(sums[::2], length) ^ sums[1::2]
        length *= 2
    return int(sums[0])


def _shift(sums: Array, count: int) -> Array:
    """Return the sums once `count` bytes of 0 have followed: a linear map of their bits."""
    power = 0
    while count >> power:
        if count >> power & 1:
            sums = _applied(_zeros(power), sums)
        power += 1
    return sums


@cache
def _zeros(power: int) -> Array:
    """Return the effect of 2**power bytes of 0 on each of the 32 bits."""
    if power:
        half = _zeros(power - 1)
        return _applied(half, half)
    bits = np.left_shift(np.uint32(1), np.arange(32, dtype=np.uint32))
    return _table()[bits & 0xFF] ^ (bits >> 8)


def _applied(columns: Array, sums: Array) -> Array:
    out = np.zeros_like(sums)
    for bit in range(32):
        out ^= np.where(sums >> np.uint32(bit) & 1, columns[bit], np.uint32(0))
    return out
