"""Reads Mach-O files of 64 bits, libraries of macOS, also hostile ones; imported for such a file only.

header, load commands | segments with sections | tables, signature
"""

from __future__ import annotations

import struct
from typing import BinaryIO

from aot.runtime.abi import LEVELS_SECTION, MANIFEST_SECTION, SEAL_SECTION, WEIGHTS_SECTION
from aot.runtime.loading.binary_file import PROGRAM_BITS, SHARED_OBJECT, BinaryFile, Section

HEADER = struct.Struct("<8I")
SEGMENT = struct.Struct("<2I16s4Q4I")
SECTION = struct.Struct("<16s16s2Q8I")
CPUS = {62: 0x01000007, 183: 0x0100000C}  # numbers of machines, by those in ELF
MAGIC, LIBRARY = 0xFEEDFACF, 6  # of 64 bits, little-endian; kind of file
LOAD_SEGMENT, SIGNATURE = 0x19, 0x1D  # load commands
_MAX_COMMANDS = 256
_MAX_COMMAND_BYTES = 1 << 16  # bytes of all commands; a section takes 80
NAMES = {  # names of sections, 16 bytes at most
    MANIFEST_SECTION: "__aotinfo",
    LEVELS_SECTION: "__aotlevels",
    SEAL_SECTION: "__aotseal",
    WEIGHTS_SECTION: "__aotdata",
}
_SECTIONS = {name: section for section, name in NAMES.items()}
_ELF_MACHINES = {number: elf for elf, number in CPUS.items()}


class MachFile(BinaryFile):
    """Load commands and sections of an open file; CorruptError unless it is a whole library of macOS.

    The signature of the file, and its place and size, are not part of the digest: signing anew changes them.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        super().__init__(stream, name)
        magic, cpu, _, kind, count, size, _, _ = HEADER.unpack(self._read(0, HEADER.size))
        if magic != MAGIC or kind != LIBRARY:
            raise self._corrupt("a program that is no library of 64 bits")
        if count > _MAX_COMMANDS or size > _MAX_COMMAND_BYTES:
            raise self._corrupt(f"{count} load commands of {size} bytes, more than a library has")
        self.kind = SHARED_OBJECT
        self.machine = _ELF_MACHINES.get(cpu, 0)
        commands = self._read(HEADER.size, size)
        sections: list[Section] = []
        changing: list[tuple[int, int]] = []
        at = 0
        for _ in range(count):
            if at + 8 > size:
                raise self._corrupt("damaged load commands")
            command, length = struct.unpack_from("<2I", commands, at)
            if length < 8 or at + length > size:
                raise self._corrupt("damaged load commands")
            if command == LOAD_SEGMENT and length >= SEGMENT.size:
                sections += self._segment(commands[at : at + length], HEADER.size + at, changing)
            if command == SIGNATURE and length >= 16:
                offset = struct.unpack_from("<I", commands, at + 8)[0]
                changing += [(HEADER.size + at + 8, HEADER.size + at + 16), (offset, self._size)]
            at += length
        self.sections, self._changing = tuple(sections), tuple(changing)

    def _segment(self, command: bytes, at: int, changing: list[tuple[int, int]]) -> list[Section]:
        _, _, name, _, _, offset, size, _, _, count, _ = SEGMENT.unpack_from(command)
        if offset + size > self._size:
            raise self._corrupt("one that is cut short")
        if name.rstrip(b"\0") == b"__LINKEDIT":
            changing += [(at + 32, at + 40), (at + 48, at + 56)]
        rows = command[SEGMENT.size :]
        if count * SECTION.size != len(rows):
            raise self._corrupt("damaged load commands")
        return [_section(name, size, offset) for name, _, _, size, offset, *_ in SECTION.iter_unpack(rows)]


def _section(name: bytes, size: int, offset: int) -> Section:
    text = name.rstrip(b"\0").decode("ascii", "replace")
    return Section(_SECTIONS.get(text, text), PROGRAM_BITS, offset, size)
