"""Checkpoints: `PREFIX.index`, a sorted table of entries, and `PREFIX.data-00000-of-00001` ..., the tensors' bytes.

    footer -> index block -> data blocks -> key, BundleEntry(type, shape, shard, offset, size, crc32c)

Every offset and length is checked before it is used, and every checksum.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aot.frontends.tf.files.crc32c import crc32c, unmasked
from aot.frontends.tf.files.element_types import element_type
from aot.frontends.tf.files.messages import BundleEntry, BundleHeader, parsed
from aot.frontends.tf.files.tensors import from_bytes, shape_of
from aot.frontends.wire import varint
from aot.ir.types import Array
from aot.runtime.errors import CorruptError, UnsupportedError

_FOOTER, _MAGIC = 48, 0xDB4775248B80FB57
_TRAILER = 5  # after a block: the kind of compression, and a checksum
_MOST_SHARDS = 1 << 14
_MOST_KEY_BYTES = 1 << 26  # bytes of all keys of an index; the largest models have some 10 000 keys of 100 bytes
OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"


class Checkpoint:
    """The tensors of a checkpoint by their keys; bytes are mapped, and read when a tensor is."""

    def __init__(self, prefix: Path) -> None:
        """`prefix`: the path without `.index`. CorruptError for an index that is damaged."""
        self.prefix = prefix
        self.index = prefix.with_name(f"{prefix.name}.index")
        if not self.index.is_file():
            raise CorruptError(f"{self.index.name}: a checkpoint must have an index, got none beside the model")
        self._maps: dict[int, memoryview] = {}
        self._entries: dict[str, Any] = {}
        self.shards = 1
        total = 0
        for key, value in table_entries(self.index.read_bytes(), self.index.name):
            total += len(key)
            if total > _MOST_KEY_BYTES:
                raise CorruptError(f"{self.index.name}: the keys can have at most {_MOST_KEY_BYTES} bytes, got more")
            if not key:
                self._header(value)
            else:
                self._entries[key.decode("utf-8", "surrogateescape")] = value

    def _header(self, data: bytes) -> None:
        header = parsed(BundleHeader, data, self.index.name)
        if header.endianness:
            raise UnsupportedError(f"{self.index.name}: checkpoints of little-endian machines can be read, got another")
        if not 1 <= header.num_shards <= _MOST_SHARDS:
            raise CorruptError(f"{self.index.name}: 1 to {_MOST_SHARDS} shards, got {header.num_shards}")
        self.shards = header.num_shards

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def read(self, key: str) -> Array:
        """Return the tensor of a key. CorruptError if it lies outside of its file, or its checksum differs."""
        entry, what = self._entry(key), f"tensor {key!r}"
        shape = shape_of(entry.shape, what)
        if shape is None or any(d < 0 for d in shape):
            raise CorruptError(f"{self.index.name}: {what}: its shape must be known, got {shape}")
        if entry.slices:
            raise UnsupportedError(f"{self.index.name}: {what}: variables in several parts are not supported")
        data = self._bytes(entry, what)
        if crc32c(data) != unmasked(entry.crc32c):
            raise CorruptError(f"{self.index.name}: {what}: its bytes have not the checksum of the index")
        return from_bytes(data, element_type(entry.dtype), shape, f"{self.index.name}: {what}")

    def text(self, key: str) -> bytes:
        """Return the one string that a tensor of strings holds; b"" if it holds none or several."""
        data = bytes(self._bytes(self._entry(key), f"tensor {key!r}"))
        length, at = varint(data, 0, self.index.name)
        return data[at + 4 :] if len(data) == at + 4 + length else b""

    def _entry(self, key: str) -> Any:
        if key not in self._entries:
            raise CorruptError(f"{self.index.name}: the model reads {key!r} from its checkpoint, which has none")
        return parsed(BundleEntry, self._entries[key], self.index.name)

    def _bytes(self, entry: Any, what: str) -> memoryview:
        shard = self._shard(entry.shard_id, what)
        if entry.offset < 0 or entry.size < 0 or entry.offset + entry.size > len(shard):
            rule = f"lies inside of its file, which has {len(shard)} bytes"
            raise CorruptError(f"{self.index.name}: {what}: {rule}, got offset {entry.offset} and size {entry.size}")
        return shard[entry.offset : entry.offset + entry.size]

    def _shard(self, number: int, what: str) -> memoryview:
        if not 0 <= number < self.shards:
            raise CorruptError(f"{self.index.name}: {what}: its file must be one of {self.shards}, got number {number}")
        if number not in self._maps:
            path = self.prefix.with_name(f"{self.prefix.name}.data-{number:05}-of-{self.shards:05}")
            if not path.is_file():
                raise CorruptError(f"{path.name}: the checkpoint must have a file of this name, got none")
            with path.open("rb") as file:
                empty = not path.stat().st_size
                mapped = b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._maps[number] = memoryview(mapped)
        return self._maps[number]


def table_entries(data: bytes, file: str) -> Iterator[tuple[bytes, bytes]]:
    """Return the keys and values of a sorted table."""
    if len(data) < _FOOTER or struct.unpack("<Q", data[-8:])[0] != _MAGIC:
        raise CorruptError(f"{file}: the index of a checkpoint must end with a certain number, got another")
    footer = data[-_FOOTER:]
    at = 0
    for _ in range(2):  # the block of notes, which is empty
        _, at = varint(footer, at, file)
    offset, at = varint(footer, at, file)
    size, _ = varint(footer, at, file)
    total = 0
    for _, handle in _block(data, offset, size, file):
        start, after = varint(handle, 0, file)
        length, _ = varint(handle, after, file)
        total += length
        if total > len(data):
            raise CorruptError(f"{file}: blocks must lie side by side, got more bytes than the file has")
        yield from _block(data, start, length, file)


def _block(data: bytes, offset: int, size: int, file: str) -> Iterator[tuple[bytes, bytes]]:
    """Return the keys and values of a block. A key begins with bytes of the key before it."""
    end = offset + size
    if end + _TRAILER > len(data) - _FOOTER or size < 4:
        raise CorruptError(f"{file}: a block must lie inside of the file, got offset {offset} and size {size}")
    if data[end]:
        raise UnsupportedError(f"{file}: indices without compression can be read, got kind {data[end]}")
    if crc32c(data[offset : end + 1]) != unmasked(struct.unpack_from("<I", data, end + 1)[0]):
        raise CorruptError(f"{file}: a block at {offset} has not its checksum")
    block = data[offset:end]
    entries = size - 4 - 4 * struct.unpack_from("<I", block, size - 4)[0]
    key, at = b"", 0
    while at < entries:
        shared, at = varint(block, at, file)
        own, at = varint(block, at, file)
        length, at = varint(block, at, file)
        if shared > len(key) or at + own + length > entries:
            raise CorruptError(f"{file}: an entry must lie inside of its block, got {own} and {length} bytes at {at}")
        key = key[:shared] + block[at : at + own]
        at += own
        yield key, block[at : at + length]
        at += length
