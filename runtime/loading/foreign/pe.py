"""Reads PE32+ files, libraries of Windows, also hostile ones; imported for such a file only.

DOS header | "PE", headers, table of sections | sections | certificates, if somebody has signed the file
"""

from __future__ import annotations

import struct
from typing import BinaryIO

from aot.runtime.abi import LEVELS_SECTION, MANIFEST_SECTION, SEAL_SECTION, WEIGHTS_SECTION
from aot.runtime.loading.binary_file import PROGRAM_BITS, SHARED_OBJECT, BinaryFile, Section

SIGNATURE_AT = 0x40  # offset of "PE" in our files
FILE = struct.Struct("<HHIIIHH")
OPTIONAL = struct.Struct("<HBBIIIIIQIIHHHHHHIIIIHHQQQQII")
DIRECTORIES = struct.Struct("<32I")
SECTION = struct.Struct("<8sIIIIIIHHI")
_CHECKSUM_AT, _CERTIFICATES = 64, 4  # in the optional header; place in the table of directories
MACHINES = {62: 0x8664, 183: 0xAA64}  # numbers of machines, by those in ELF
LIBRARY, PE32_PLUS = 0x2000, 0x20B  # a flag of the file; kind of the optional header
_MAX_SECTIONS = 96
NAMES = {  # names of sections, 8 bytes at most
    MANIFEST_SECTION: ".aotinfo",
    LEVELS_SECTION: ".aotlvls",
    SEAL_SECTION: ".aotseal",
    WEIGHTS_SECTION: ".aotdata",
}
_SECTIONS = {name: section for section, name in NAMES.items()}
_ELF_MACHINES = {number: elf for elf, number in MACHINES.items()}


class PeFile(BinaryFile):
    """Headers and sections of an open file; CorruptError unless it is a whole library of Windows.

    What a signature of Windows changes is not part of the digest: a checksum, the place of the certificates, and, if
    there are any, all that is after the sections.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        super().__init__(stream, name)
        (at,) = struct.unpack("<I", self._read(0x3C, 4))
        if self._read(at, 4) != b"PE\0\0":
            raise self._corrupt("a program for another system than Windows")
        machine, count, _, _, _, size, flags = FILE.unpack(self._read(at + 4, FILE.size))
        at += 4 + FILE.size
        optional = OPTIONAL.unpack(self._read(at, OPTIONAL.size))
        if optional[0] != PE32_PLUS or size != OPTIONAL.size + DIRECTORIES.size or not flags & LIBRARY:
            raise self._corrupt("a program that is no library of 64 bits")
        if not 0 < count <= _MAX_SECTIONS:
            raise self._corrupt("a damaged table of sections")
        self.kind = SHARED_OBJECT
        self.machine = _ELF_MACHINES.get(machine, 0)
        rows = list(SECTION.iter_unpack(self._read(at + size, count * SECTION.size)))
        self.sections = tuple(self._section(row) for row in rows)
        end = max((s.offset + s.size for s in self.sections), default=0)
        blocks = max((row[4] + row[3] for row in rows), default=0)
        if max(end, blocks) > self._size:
            raise self._corrupt("one that is cut short")
        directory = at + OPTIONAL.size + 8 * _CERTIFICATES
        (certificates,) = struct.unpack("<I", self._read(directory, 4))
        signature = (blocks, self._size) if certificates else (directory + 8, directory + 8)
        self._changing = ((at + _CHECKSUM_AT, at + _CHECKSUM_AT + 4), (directory, directory + 8), signature)

    def _section(self, row: tuple[bytes, int, int, int, int, int, int, int, int, int]) -> Section:
        name, size, _, raw, offset, *_ = row
        text = name.rstrip(b"\0").decode("ascii", "replace")
        if text in _SECTIONS and size > raw:
            raise self._corrupt(f"a section {text} that is cut short")
        return Section(_SECTIONS.get(text, text), PROGRAM_BITS, offset, min(size, raw))
