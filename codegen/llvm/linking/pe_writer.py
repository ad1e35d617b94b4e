"""Links an object of LLVM into a library of Windows, a PE32+ file, without a linker.

    headers | .text: code, calls of other libraries | .rdata: tables, constants | .data | .reloc | other sections

Nothing in it depends on time or on the name of the file. Manifest, seal and weights are sections of their own; sections
of weights come last and are streamed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from aot.codegen.llvm.linking.elf_writer import Data, Writer, aligned
from aot.codegen.llvm.linking.image import Area, Image
from aot.codegen.llvm.linking.relocatable import taken_apart
from aot.codegen.machines import Machine
from aot.codegen.platforms import Platform
from aot.runtime.loading.foreign.pe import (
    DIRECTORIES,
    FILE,
    LIBRARY,
    MACHINES,
    NAMES,
    OPTIONAL,
    PE32_PLUS,
    SECTION,
    SIGNATURE_AT,
)

_BASE = 0x1_8000_0000  # address that the image is linked for; the system chooses another one
_PAGE, _BLOCK = 4096, 512  # alignment in memory and in the file
_EXECUTE, _READ, _WRITE = 1 << 29, 1 << 30, 1 << 31
_CODE, _DATA = 0x20, 0x40
_DYNAMIC = 0x0160  # any address, also above 4 GB, and no code on the stack
_IMAGE = 0x0022  # flags: all symbols are resolved; addresses above 2 GB may be used
_WINDOWS_8 = (6, 2)
_EXPORT, _IMPORT, _RELOCATIONS, _ADDRESSES = 0, 1, 5, 12  # numbers in the table of directories
_NAME = b"model.dll\0"


class PeImage(Image):
    """An image of Windows under construction."""

    def __init__(self, code: bytes, sections: Sequence[Data], platform: Platform, machine: Machine) -> None:
        text = Area(".text", _CODE | _EXECUTE | _READ)
        constants = Area(".rdata", _DATA | _READ)
        data = Area(".data", _DATA | _READ | _WRITE)
        others = [Area(NAMES[d.section], _DATA | _READ, size=d.size, source=d) for d in sections]
        super().__init__(taken_apart(code), (text, constants, data), others, platform, machine)
        self.moves = Area(".reloc", _DATA | _READ | 1 << 25)  # may be left out of memory
        self.imports_at = self.constants.add(self._import_table(0)[0])
        self.exports_at = self.constants.add(self._export_table(0))
        self._lay_out()

    def _lay_out(self) -> None:
        """Give every area its address, and complete what depends on addresses."""
        at = _PAGE
        for area in self.areas:
            if area is self.moves:
                area.add(self._base_relocations(), 4)
            area.at = at
            at = aligned(at + area.size, _PAGE)
        self.end = at
        self.check_size(at)
        base = self.constants.at + self.imports_at
        table, slots = self._import_table(base)
        self._put(self.imports_at, table)
        self._put(self.exports_at, self._export_table(self.constants.at + self.exports_at))
        self.aim_jumps(slots)
        self.relocate(_BASE)
        descriptors = 20 * (len(self.imports) + 1)
        addresses = 8 * sum(len(names) + 1 for names in self.imports.values())
        self.directories = {
            _EXPORT: (self.constants.at + self.exports_at, len(self._export_table(0))),
            _IMPORT: (base, descriptors),
            _RELOCATIONS: (self.moves.at, self.moves.size),
            _ADDRESSES: (base + descriptors, addresses),
        }

    @property
    def areas(self) -> list[Area]:
        """All sections, in order."""
        first = [self.text, self.constants, *([self.data] if self.data.size else []), self.moves]
        return first + self.others

    def _put(self, at: int, body: bytes) -> None:
        self.constants.data[at : at + len(body)] = body

    def _import_table(self, base: int) -> tuple[bytes, dict[str, int]]:
        """Return descriptors, addresses, the same again, and names; and where the address of each function is.

        `base`: address of the table. The system replaces the first addresses by the functions' own.
        """
        count = sum(len(names) + 1 for names in self.imports.values())
        first = 20 * (len(self.imports) + 1)
        texts, at_texts = bytearray(), first + 16 * count
        descriptors, words, slots = bytearray(), bytearray(), dict[str, int]()
        for file, names in self.imports.items():
            lookup = base + first + len(words)
            at_name = base + at_texts + len(texts)
            texts += file.encode() + bytes(2 - len(file) % 2)
            descriptors += struct.pack("<IIIII", lookup + 8 * count, 0, 0, at_name, lookup)
            for name in names:
                slots[name] = base + first + len(words)
                words += struct.pack("<Q", base + at_texts + len(texts))
                texts += bytes(2) + name.encode() + bytes(2 - len(name) % 2)
            words += bytes(8)
        return bytes(descriptors + bytes(20) + words + words + texts), slots

    def _export_table(self, base: int) -> bytes:
        """Return a header, addresses, places of names, numbers, and names. `base`: address of the table."""
        names, count = sorted(self.exports), len(self.exports)
        functions = 40
        at_names, ordinals = functions + 4 * count, functions + 8 * count
        at_text = ordinals + 2 * count
        texts, pointers = bytearray(_NAME), list[int]()
        for name in names:
            pointers.append(base + at_text + len(texts))
            texts += name.encode() + b"\0"
        addresses = [area.at + offset for area, offset in (self.exports[name] for name in names)]
        head = struct.pack("<IIHHIII", 0, 0, 0, 0, base + at_text, 1, count)
        head += struct.pack("<IIII", count, base + functions, base + at_names, base + ordinals)
        return head + struct.pack(f"<{count}I{count}I{count}H", *addresses, *pointers, *range(count)) + bytes(texts)

    def _base_relocations(self) -> bytes:
        """Return the places of absolute addresses, a block for each page."""
        pages: dict[int, list[int]] = {}
        for area, at in self.absolute():
            pages.setdefault((area.at + at) // _PAGE, []).append((area.at + at) % _PAGE)
        body = bytearray()
        for page, offsets in sorted(pages.items()):
            entries = [10 << 12 | offset for offset in sorted(offsets)]
            entries += [0] * (len(entries) % 2)
            body += struct.pack(f"<II{len(entries)}H", page * _PAGE, 8 + 2 * len(entries), *entries)
        return bytes(body) or struct.pack("<II", 0, 8)

    def write(self, stream: BinaryIO) -> None:
        headers, starts = self._headers()
        out = Writer(stream)
        out.write(headers)
        for area, start in zip(self.areas, starts, strict=True):
            area.write(out, start)
        out.pad_to(aligned(out.position, _BLOCK))

    def sign(self, path: Path) -> None:
        """Leave the file as it is: Windows loads it without a signature."""

    def _headers(self) -> tuple[bytes, list[int]]:
        """Return the headers, and where each area begins in the file."""
        areas = self.areas
        size = SIGNATURE_AT + 4 + FILE.size + OPTIONAL.size + DIRECTORIES.size + len(areas) * SECTION.size
        first = offset = aligned(size, _BLOCK)
        table, starts, sums = bytearray(), list[int](), dict[int, int]()
        for area in areas:
            raw = aligned(area.file_bytes, _BLOCK)
            name = area.name.encode().ljust(8, b"\0")
            table += SECTION.pack(name, area.size, area.at, raw, offset, 0, 0, 0, 0, area.flags)
            starts.append(offset)
            offset += raw
            sums[area.flags & (_CODE | _DATA)] = sums.get(area.flags & (_CODE | _DATA), 0) + raw
        number, kind = MACHINES[self.machine.architecture.elf], LIBRARY | _IMAGE
        file = FILE.pack(number, len(areas), 0, 0, 0, OPTIONAL.size + DIRECTORIES.size, kind)
        optional = OPTIONAL.pack(
            *(PE32_PLUS, 14, 0, sums.get(_CODE, 0), sums.get(_DATA, 0), 0, 0, self.text.at, _BASE, _PAGE, _BLOCK),
            *(*_WINDOWS_8, 0, 0, *_WINDOWS_8, 0, self.end, first, 0, 2, _DYNAMIC),
            *(1 << 20, _PAGE, 1 << 20, _PAGE, 0, 16),
        )
        pairs = [value for place in range(16) for value in self.directories.get(place, (0, 0))]
        head = b"MZ".ljust(SIGNATURE_AT - 4, b"\0") + struct.pack("<I", SIGNATURE_AT) + b"PE\0\0"
        return head + file + optional + DIRECTORIES.pack(*pairs) + bytes(table), starts
