"""The container of GGUF: metadata, and tensors by name. Every count and offset is checked before it is used.

"GGUF", version, counts | metadata: key, type, value | tensors: name, sizes, type, offset | padding | data
"""

from __future__ import annotations

import struct
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.frontends.gguf.blocks import FORMATS, Format
from aot.runtime.errors import CorruptError, UnsupportedError
from aot.runtime.regular import check_file

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_ENTRIES = 1 << 20  # metadata entries, and tensors: known models have less than 2000
MAX_ELEMENTS = 1 << 22  # elements of an array of metadata: vocabularies have up to 2^18
MAX_DEPTH = 4  # arrays inside of arrays
MAX_DIMS = 4
MAX_NAME = 1 << 16  # bytes of a name of a key or a tensor
STRING, ARRAY, BOOL = 8, 9, 7
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
LENGTH = struct.Struct("<Q")  # length of a string in bytes, before it
Raw = NDArray[np.uint8]
Metadata = dict[str, object]


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor as it lies in the file: `shape` has the outermost dimension first."""

    name: str
    shape: tuple[int, ...]
    format: Format
    raw: Raw


class Record(NamedTuple):
    """A tensor as the header has it: `shape` has the outermost dimension first, `kind` is ggml's number of a type."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int


@dataclass(frozen=True, slots=True)
class Header:
    """Metadata, and what is said of tensors; formats of these may be unknown."""

    file: str
    metadata: Metadata
    records: list[Record]


@dataclass(frozen=True, slots=True)
class Container:
    """Metadata and tensors of a file."""

    file: str
    metadata: Metadata
    tensors: dict[str, Stored]


class _Cursor:
    """Reads numbers and strings one after another; CorruptError past the end."""

    def __init__(self, data: Raw, file: str) -> None:
        self.data, self.file, self.at = data, file, 0
        self._bytes = data.data

    def corrupt(self, rule: str, value: object) -> CorruptError:
        return CorruptError(f"{self.file}: GGUF: {rule}, got {value}")

    def bytes(self, count: int) -> Raw:
        return self.data[self._begin(count) : self.at]

    def _begin(self, count: int) -> int:
        """Go on by `count` bytes, and return where they begin."""
        begin = self.at
        if count > len(self._bytes) - begin:
            rule = f"{count} bytes at offset {begin} must lie in the file"
            raise self.corrupt(rule, f"a file of {len(self._bytes)} bytes")
        self.at = begin + count
        return begin

    def number(self, code: str) -> int | float:
        form = f"<{code}"
        return struct.unpack_from(form, self._bytes, self._begin(struct.calcsize(form)))[0]

    def count(self, most: int, name: str, code: str = "Q") -> int:
        result = int(self.number(code))
        if result > most:
            raise self.corrupt(f"at most {most} {name}", result)
        return result

    def text(self, most: int) -> str:
        count = self.count(most, "bytes of a string")
        return str(self._bytes[self._begin(count) : self.at], "utf-8", "replace")

    def value(self, kind: int, depth: int = 0) -> object:
        if kind == STRING:
            return self.text(len(self.data))
        if kind == ARRAY:
            return self._array(depth)
        if kind not in NUMBERS:
            raise self.corrupt("a type of metadata is 0 to 12", kind)
        number = self.number(NUMBERS[kind])
        return bool(number) if kind == BOOL else number

    def _array(self, depth: int) -> object:
        if depth >= MAX_DEPTH:
            raise self.corrupt(f"arrays of at most {MAX_DEPTH} levels", "more")
        kind, count = int(self.number("I")), self.count(MAX_ELEMENTS, "elements of an array")
        if kind in NUMBERS:
            code = NUMBERS[kind]
            return np.frombuffer(self.bytes(count * struct.calcsize(f"<{code}")).tobytes(), f"<{code}").tolist()
        if count > len(self.data) - self.at:
            raise self.corrupt("an array lies in the file", f"{count} elements")
        if kind == STRING:
            return self._texts(count)
        return [self.value(kind, depth + 1) for _ in range(count)]

    def _texts(self, count: int) -> list[str]:
        """Read texts one after another: vocabularies have several 100 000."""
        data, at, end, size, texts = self._bytes, self.at, len(self._bytes), LENGTH.unpack_from, list[str]()
        for _ in range(count):
            begin = at + LENGTH.size
            at = begin + size(data, at)[0] if begin <= end else end + 1
            if at > end:
                raise self.corrupt("the texts of an array lie in the file", f"a file of {end} bytes")
            texts.append(str(data[begin:at], "utf-8", "replace"))
        self.at = at
        return texts


def read_header(path: Path) -> Header:
    """Read metadata and what is said of tensors; errors as for `read_container`, but any format of tensors."""
    cursor = _cursor(path)
    return Header(path.name, *_header(cursor))


def read_container(path: Path) -> Container:
    """Read a file and map its data; CorruptError if it is damaged, UnsupportedError for unknown versions."""
    cursor = _cursor(path)
    metadata, records = _header(cursor)
    align = metadata.get("general.alignment", 32)
    if not isinstance(align, int) or not 0 < align <= 1 << 20 or align & (align - 1):
        raise cursor.corrupt("the alignment is a power of two", align)
    begin = -(-cursor.at // align) * align
    tensors: dict[str, Stored] = {}
    for record in records:
        if record.name in tensors:
            raise cursor.corrupt("names of tensors differ", repr(record.name))
        tensors[record.name] = _stored(cursor, record, begin + record.offset)
    return Container(path.name, metadata, tensors)


def _cursor(path: Path) -> _Cursor:
    """Return a cursor after the magic bytes of a file."""
    check_file(path, "model")
    data: Raw = np.memmap(path, np.uint8, "r")
    cursor = _Cursor(data, path.name)
    if cursor.bytes(4).tobytes() != MAGIC:
        raise cursor.corrupt("a file begins with GGUF", repr(data[:4].tobytes()))
    return cursor


def _header(cursor: _Cursor) -> tuple[Metadata, list[Record]]:
    version = int(cursor.number("I"))
    if version not in VERSIONS:
        raise UnsupportedError(f"{cursor.file}: GGUF: versions 2 and 3, lowest byte first, can be read, got {version}")
    count, entries = cursor.count(MAX_ENTRIES, "tensors"), cursor.count(MAX_ENTRIES, "entries of metadata")
    metadata: Metadata = {}
    for _ in range(entries):
        key = cursor.text(MAX_NAME)
        metadata[key] = cursor.value(int(cursor.number("I")))
    return metadata, [_record(cursor) for _ in range(count)]


def _record(cursor: _Cursor) -> Record:
    name = cursor.text(MAX_NAME)
    rank = cursor.count(MAX_DIMS, f"dimensions of {name!r}", "I")
    shape = tuple(int(cursor.number("Q")) for _ in range(rank))[::-1]
    return Record(name, shape, int(cursor.number("I")), int(cursor.number("Q")))


def _stored(cursor: _Cursor, record: Record, begin: int) -> Stored:
    name, shape, kind, _ = record
    form = FORMATS.get(kind)
    if form is None:
        names = ", ".join(f.name for f in FORMATS.values())
        raise UnsupportedError(f"{cursor.file}: tensor {name!r}: types {names} can be read, got type {kind}")
    if not shape or shape[-1] % form.elements:
        raise cursor.corrupt(f"rows of {name!r} hold whole blocks of {form.elements}", list(shape))
    cursor.at = min(begin, len(cursor.data))
    raw = cursor.bytes(prod(shape) // form.elements * form.bytes)
    return Stored(name, shape, form, raw)
