"""Reads PE32+ files, libraries of Windows, also hostile ones; imported for such a file only.

DOS header | "PE", headers, table of sections | sections | certificates, if somebody has signed the file
"""

from __future__ import annotations

import struct
from typing import BinaryIO

from aot.runtime.abi import LEVELS_SECTION, MANIFEST_SECTION, SEAL_SECTION, WEIGHTS_SECTION
from aot.runtime.loading.binary_file import SHARED_OBJECT, BinaryFile, Section

SIGNATURE_AT = 0x40  # of "PE", where we write it
FILE = struct.Struct("<HHIIIHH")
OPTIONAL = struct.Struct("<HBBIIIIIQIIHHHHHHIIIIHHQQQQII")
DIRECTORIES = struct.Struct("<32I")
SECTION = struct.Struct("<8sIIIIIIHHI")
_CHECKSUM_AT, _CERTIFICATES = 64, 4  # in the optional header; place in the table of directories
_MACHINES = {62: 0x8664, 183: 0xAA64}  # by those of ELF
_LIBRARY, _PE32_PLUS, _NO_FILE_BYTES = 0x2000, 0x20B, 0x80
_MAX_SECTIONS = 96
_NAMES = {  # of 8 bytes at most
    MANIFEST_SECTION: ".aotinfo",
    LEVELS_SECTION: ".aotlvls",
    SEAL_SECTION: ".aotseal",
    WEIGHTS_SECTION: ".aotdata",
}


def short_name(section: str) -> str:
    """Return the name that a section of a library has in a PE file."""
    return _NAMES[section]


def machine_number(elf: int) -> int:
    """Return the number of a machine in a PE file, of that in ELF."""
    return _MACHINES[elf]


class PeFile(BinaryFile):
    """Headers and sections of an open file; CorruptError unless it is a whole library of Windows.

    What a signature of Windows changes is not part of the digest: a checksum, and the certificates behind all sections.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        super().__init__(stream, name)
        (at,) = struct.unpack("<I", self._read(0x3C, 4))
        if self._read(at, 4) != b"PE\0\0":
            raise self._corrupt("a program for another system than Windows")
        machine, count, _, _, _, size, flags = FILE.unpack(self._read(at + 4, FILE.size))
        at += 4 + FILE.size
        optional = OPTIONAL.unpack(self._read(at, OPTIONAL.size))
        if optional[0] != _PE32_PLUS or size != OPTIONAL.size + DIRECTORIES.size or not flags & _LIBRARY:
            raise self._corrupt("a program that is no library of 64 bits")
        if not 0 < count <= _MAX_SECTIONS:
            raise self._corrupt("a damaged table of sections")
        self.kind = SHARED_OBJECT
        self.machine = next((elf for elf, number in _MACHINES.items() if number == machine), 0)
        rows = list(SECTION.iter_unpack(self._read(at + size, count * SECTION.size)))
        self.sections = tuple(self._section(row) for row in rows)
        end = max((s.offset + s.size for s in self.sections), default=0)
        blocks = max((row[4] + row[3] for row in rows), default=0)
        if max(end, blocks) > self._size:
            raise self._corrupt("one that is cut short")
        directory = at + OPTIONAL.size + 8 * _CERTIFICATES
        self._changing = ((at + _CHECKSUM_AT, at + _CHECKSUM_AT + 4), (directory, directory + 8), (blocks, self._size))

    def _section(self, row: tuple[bytes, int, int, int, int, int, int, int, int, int]) -> Section:
        name, size, _, raw, offset, *_ = row
        text = name.rstrip(b"\0").decode("ascii", "replace")
        full = next((long for long, short in _NAMES.items() if short == text), text)
        if full in _NAMES and size > raw:
            raise self._corrupt(f"a section {text} that is cut short")
        return Section(full, 1, offset, min(size, raw))
