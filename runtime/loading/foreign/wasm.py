"""Reads WebAssembly modules of compiled models, also hostile ones; imported for such a file only.

"\\0asm", version | sections | data: program, manifest, weights unless they are external | seal
"""

from __future__ import annotations

from typing import BinaryIO

from aot.runtime.abi import MANIFEST_SECTION, SEAL_SECTION, WEIGHTS_SECTION
from aot.runtime.loading.binary_file import PROGRAM_BITS, SHARED_OBJECT, BinaryFile, Section

MAGIC = b"\0asm\x01\0\0\0"
CUSTOM, CODE, DATA = 0, 10, 11  # kinds of sections
MACHINE = 0x4157  # "WA": WebAssembly has no number among those of ELF
_MAX_SECTIONS = 64
_SEGMENTS = ("program", MANIFEST_SECTION, WEIGHTS_SECTION)  # segments of data, in order


class WasmFile(BinaryFile):
    """Sections of an open file, and segments of its data; CorruptError unless it is a module of a compiled model."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        super().__init__(stream, name)
        if self._read(0, len(MAGIC)) != MAGIC:
            raise self._corrupt("a module of another version of WebAssembly")
        self.kind, self.machine = SHARED_OBJECT, MACHINE
        at, sections = len(MAGIC), list[Section]()
        for _ in range(_MAX_SECTIONS):
            if at == self._size:
                break
            kind = self._read(at, 1)[0]
            size, at = self._number(at + 1)
            if at + size > self._size:
                raise self._corrupt("one that is cut short")
            if kind == DATA:
                sections += self._segments(at)
            elif kind == CUSTOM:
                length, begin = self._number(at)
                title = self._read(begin, min(length, size)).decode("ascii", "replace")
                sections.append(Section(title, PROGRAM_BITS, begin + length, at + size - begin - length))
            at += size
        if at != self._size or not {MANIFEST_SECTION, SEAL_SECTION} <= {section.name for section in sections}:
            raise self._corrupt("a module of something else")
        self.sections = tuple(sections)

    def _segments(self, at: int) -> list[Section]:
        count, at = self._number(at)
        if count not in (len(_SEGMENTS) - 1, len(_SEGMENTS)):
            raise self._corrupt(f"{count} segments of data")
        segments: list[Section] = []
        for name in _SEGMENTS[:count]:
            if self._read(at, 1) == b"\0":  # with an address, i32.const
                _, at = self._number(at + 2)
            size, at = self._number(at + 1)
            segments.append(Section(name, PROGRAM_BITS, at, size))
            at += size
        return segments

    def _number(self, at: int) -> tuple[int, int]:
        """Return a number of 32 bits, and where the bytes after it begin."""
        value = 0
        for k, byte in enumerate(self._read(at, min(5, self._size - at))):
            value |= (byte & 0x7F) << 7 * k
            if not byte & 0x80:
                return value, at + k + 1
        raise self._corrupt("a damaged number")
