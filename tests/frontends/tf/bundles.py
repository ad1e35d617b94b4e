"""Writes indices of checkpoints, right ones and those whose entries lie, with right checksums."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from aot.frontends.tf.files.crc32c import crc32c

MAGIC = 0xDB4775248B80FB57


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def block(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Entries without shared beginnings of keys, and one restart."""
    body = b"".join(b"\0" + varint(len(k)) + varint(len(v)) + k + v for k, v in pairs)
    return body + struct.pack("<II", 0, 1)


def ended(data: bytes) -> bytes:
    return data + b"\0" + struct.pack("<I", masked(data + b"\0"))


def index(pairs: list[tuple[bytes, bytes]]) -> bytes:
    """The index of a checkpoint with these keys and values, in one block."""
    data = block(pairs)
    notes = block([])
    table = block([(pairs[-1][0] if pairs else b"", varint(0) + varint(len(data)))])
    first, second = ended(data), ended(notes)
    at = len(first) + len(second)
    handles = varint(len(first)) + varint(len(notes)) + varint(at) + varint(len(table))
    return first + second + ended(table) + handles.ljust(40, b"\0") + struct.pack("<Q", MAGIC)
