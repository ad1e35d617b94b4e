"""Reads ELF64 files, also hostile ones: every offset is checked against the size of the file before it is used."""

from __future__ import annotations

import os
import struct
from typing import Any, BinaryIO, NamedTuple

from aot.runtime.errors import UsageError
from aot.runtime.loading.binary_file import NO_BITS, BinaryFile, Section, is_foreign

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
SYMBOL = struct.Struct("<IBBHQQ")
_LOAD = 1
_MOST_OF_OTHERS = 2 << 30  # bytes of a library of Windows or macOS
_MAX_SECTIONS = 10_000
_COMPILE = "a model is compiled before it is loaded: aot compile MODEL, or aot.compile_model(MODEL)"


class DynamicSymbol(NamedTuple):
    name: str
    defined: bool


def copy_one(source: BinaryIO, target: BinaryIO) -> None:
    """Copy the ELF file at the position of `source` to an empty file; the bytes after it stay unread.

    Of another or a damaged file, a part is copied. UsageError for a stream of text.
    """
    _copy_until(HEADER.size, source, target)
    header: tuple[Any, ...] = _unpacked(HEADER, target, 0, 1)[0]
    if is_foreign(header[0]):  # it is refused by the name of its system, which lies in its manifest
        _copy_until(_MOST_OF_OTHERS, source, target)
        return
    segments_at, sections_at = header[5:7]
    segment_size, segments, section_size, sections = header[9:13]
    if header[0][:4] != b"\x7fELF" or segment_size != _SEGMENT.size or section_size != SECTION.size:
        return
    tables = segments_at + segments * segment_size, sections_at + sections * section_size
    _copy_until(max(tables), source, target)
    rows = _unpacked(SECTION, target, sections_at, sections)
    parts = _unpacked(_SEGMENT, target, segments_at, segments)
    ends = [row[4] + row[5] for row in rows if row[1] != NO_BITS], [row[2] + row[5] for row in parts]
    _copy_until(max((*ends[0], *ends[1]), default=0), source, target)


def _copy_until(end: int, source: BinaryIO, target: BinaryIO) -> None:
    """Copy until `target` has that many bytes, or `source` ends."""
    left = end - target.seek(0, os.SEEK_END)
    while left > 0:
        data: Any = source.read(min(left, 1 << 20))
        if not isinstance(data, bytes):
            raise UsageError(f"import_model: must be a stream of bytes, got one of {type(data).__name__}")
        if not data:
            return
        left -= target.write(data)


def _unpacked(form: struct.Struct, file: BinaryIO, offset: int, count: int) -> list[tuple[int, ...]]:
    """Return the records in a file, as zeros where it is cut short."""
    size = count * form.size
    if offset > file.seek(0, os.SEEK_END):
        return [form.unpack(bytes(form.size))] * count
    file.seek(offset)
    return list(form.iter_unpack(file.read(size).ljust(size, b"\0")))


class ElfFile(BinaryFile):
    """Header and sections of an open file; CorruptError unless it is a whole little-endian ELF64 file."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        super().__init__(stream, name)
        header: tuple[Any, ...] = HEADER.unpack(self._read(0, HEADER.size))
        ident, self.kind, self.machine, version, _, segments_at, sections_at = header[:7]
        segment_size, segments, section_size, count, names = header[9:]
        if ident[:7] != b"\x7fELF\x02\x01\x01" or version != 1:
            raise self._corrupt("another file than little-endian ELF64", "" if ident[:4] == b"\x7fELF" else _COMPILE)
        if section_size != SECTION.size or not 0 < count <= _MAX_SECTIONS or names >= count:
            raise self._corrupt("damaged section headers")
        if segments and segment_size != _SEGMENT.size:
            raise self._corrupt("damaged program headers")
        self._check_segments(segments_at, segments)
        table = self._read(sections_at, count * SECTION.size)
        rows: list[tuple[int, ...]] = list(SECTION.iter_unpack(table))
        at, size = rows[int(names)][4:6]
        strings = self._read(at, size)
        self.sections = tuple(self._section(row, strings) for row in rows)

    def dynamic_symbols(self) -> tuple[DynamicSymbol, ...]:
        """Return the symbols that the file exports and needs."""
        table, strings = self.section(".dynsym"), self.section(".dynstr")
        if len(table) % SYMBOL.size:
            raise self._corrupt("a damaged symbol table")
        rows = list(SYMBOL.iter_unpack(table))[1:]
        return tuple(DynamicSymbol(self._string(strings, row[0]), row[3] != 0) for row in rows)

    def _check_segments(self, segments_at: int, count: int) -> None:
        # the system maps them without a check; a page beyond the end of a file kills the process that touches it
        for kind, _, offset, _, _, size, _, _ in _SEGMENT.iter_unpack(self._read(segments_at, count * _SEGMENT.size)):
            if kind == _LOAD and offset + size > self._size:
                raise self._corrupt("one that is cut short")

    def _section(self, row: tuple[int, ...], strings: bytes) -> Section:
        return Section(self._string(strings, row[0]), row[1], row[4], row[5])

    def _string(self, strings: bytes, offset: int) -> str:
        end = strings.find(b"\0", offset)
        if offset > len(strings) or end < 0:
            raise self._corrupt("a name without an end")
        return strings[offset:end].decode("utf-8", "replace")
