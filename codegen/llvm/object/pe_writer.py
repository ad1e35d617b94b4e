"""Links an object of LLVM into a library of Windows, a PE32+ file, without a linker.

    headers | .text: code, calls of other libraries | .rdata: tables, constants | .data | .reloc | other sections

Nothing in it depends on time or on the name of the file. Manifest, seal and weights are sections of their own; those of
weights come last and are streamed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import field
from pathlib import Path
from typing import BinaryIO

from aot.codegen.dataclass import dataclass
from aot.codegen.llvm.object.elf_writer import HIDDEN, NOBITS, PROGBITS, SHF_ALLOC, SHF_WRITE, Data, Writer, aligned
from aot.codegen.llvm.object.relocatable import Object, taken_apart
from aot.codegen.machines import Machine
from aot.codegen.platforms import Platform
from aot.runtime.atomic import replacing
from aot.runtime.errors import InternalError, UnsupportedError
from aot.runtime.loading.pe import DIRECTORIES, FILE, OPTIONAL, SECTION, SIGNATURE_AT, machine_number, short_name
from aot.runtime.loading.seal import seal

_BASE = 0x1_8000_0000  # address that the image is linked for; the system chooses another one
_PAGE, _BLOCK = 4096, 512  # alignment in memory and in the file
_MOST_BYTES = (2 << 30) - (1 << 20)  # of an image, which is addressed by offsets of 32 bits
_EXECUTE, _READ, _WRITE = 1 << 29, 1 << 30, 1 << 31
_CODE, _DATA = 0x20, 0x40
_SHF_EXECUTE = 4
_DYNAMIC = 0x0160  # any address, also above 4 GB, and no code on the stack
_LIBRARY = 0x2022  # an image, of large addresses, that is a library
_WINDOWS_8 = (6, 2)
_ABSOLUTE_64, _RELATIVE = 1, (2, 4)  # types of relocations of ELF on x86-64; a call is relative, too
_RELOCATION = struct.Struct("<QQq")
_EXPORT, _IMPORT, _RELOCATIONS, _ADDRESSES = 0, 1, 5, 12  # places in the table of directories
_JUMP = b"\xff\x25"  # jmp [rip + offset]
_NAME = b"model.dll\0"


@dataclass(slots=True, eq=False)
class _Area:
    """A section of the image: bytes one after another, each at its alignment, then zeros that are not in the file.

    `source`: has the bytes instead, for data that are written as they come.
    """

    name: str
    flags: int
    data: bytearray = field(default_factory=bytearray)
    size: int = 0
    at: int = 0  # in memory, from the image's begin
    source: Data | None = None

    @property
    def file_bytes(self) -> int:
        return len(self.data) if self.source is None else self.size

    def add(self, body: bytes, align: int = 16, size: int | None = None) -> int:
        """Append `body`, or `size` zeros that are not in the file; return where it begins in the section."""
        start = aligned(self.size, align)
        if size is None:
            self.data += bytes(start - len(self.data)) + body
        self.size = start + (len(body) if size is None else size)
        return start


class _Image:
    """An image under construction. `places`: area and offset of each symbol of `parts`, by its number."""

    def __init__(self, parts: Object, sections: Sequence[Data], platform: Platform, machine: Machine) -> None:
        self.parts, self.sections, self.platform, self.machine = parts, sections, platform, machine
        self.text = _Area(".text", _CODE | _EXECUTE | _READ)
        self.constants = _Area(".rdata", _DATA | _READ)
        self.data = _Area(".data", _DATA | _READ | _WRITE)
        self.relocations = _Area(".reloc", _DATA | _READ | 1 << 25)  # may be left out of memory
        self.others = [_Area(short_name(data.section), _DATA | _READ, size=data.size, source=data) for data in sections]
        self.moved = self._take_sections()
        self.exports: dict[str, tuple[_Area, int]] = {}
        self.imports: dict[str, list[str]] = {}
        self.jumps: dict[str, int] = {}  # by imported function: place in the code of a jump to it
        self.places = self._place_symbols()
        self.imports_at = self.constants.add(self._import_table(0)[0])
        self.exports_at = self.constants.add(self._export_table(0))
        self.directories = {}
        self._lay_out()

    def _take_sections(self) -> dict[int, tuple[_Area, int]]:
        """Append the object's sections to their areas; those without contents come last."""
        found: dict[int, tuple[_Area, int]] = {}
        kept = [i for i, row in enumerate(self.parts.rows) if row[2] & SHF_ALLOC and row[1] in (PROGBITS, NOBITS)]
        for i in sorted(kept, key=lambda i: self.parts.rows[i][1] == NOBITS):
            row = self.parts.rows[i]
            area = self.text if row[2] & _SHF_EXECUTE else self.data if row[2] & SHF_WRITE else self.constants
            body = bytes(self.parts.data[row[4] : row[4] + row[5]]) if row[1] == PROGBITS else b""
            found[i] = area, area.add(body, max(1, row[8]), None if row[1] == PROGBITS else row[5])
        return found

    def _place_symbols(self) -> list[tuple[_Area, int] | None]:
        own = {n: area for d, area in zip(self.sections, self.others, strict=True) for n in (d.symbol, *d.aliases)}
        library = {name: file for file, names in self.platform.imports.items() for name in names}
        code = self.platform.code_of(self.machine)
        added: dict[str, int] = {}
        found: list[tuple[_Area, int] | None] = []
        for name, (_, info, visibility, section, value, _) in self.parts.symbol_rows():
            if section in self.moved:
                area, start = self.moved[section]
                place = area, start + value
                found.append(place)
                if info >> 4 and visibility != HIDDEN:
                    self.exports[name] = place
            elif name in own:
                found.append((own[name], 0))
            elif name in code or name in library:
                if name not in added:
                    added[name] = self.text.add(code.get(name, _JUMP + bytes(4)))
                if name in library:
                    self.imports.setdefault(library[name], []).append(name)
                    self.jumps[name] = added[name]
                found.append((self.text, added[name]))
            elif name and info >> 4:
                raise InternalError(f"link: {self.platform.name} has the functions that code calls, got {name}")
            else:
                found.append(None)
        return found

    def _lay_out(self) -> None:
        """Give every area its address, and complete what depends on addresses."""
        at = _PAGE
        for area in self.areas:
            if area is self.relocations:
                area.add(self._base_relocations(), 4)
            area.at = at
            at = aligned(at + area.size, _PAGE)
            if at > _MOST_BYTES:
                rule = f"a library of {self.platform.name} has at most {_MOST_BYTES} bytes"
                raise UnsupportedError(f"write: {rule}, got weights of {sum(d.size for d in self.sections)}")
        self.end = at
        base = self.constants.at + self.imports_at
        table, slots = self._import_table(base)
        self._put(self.imports_at, table)
        self._put(self.exports_at, self._export_table(self.constants.at + self.exports_at))
        for name, jump in self.jumps.items():
            offset = slots[name] - (self.text.at + jump + len(_JUMP) + 4)
            struct.pack_into("<i", self.text.data, jump + len(_JUMP), offset)
        self._relocate()
        descriptors = 20 * (len(self.imports) + 1)
        addresses = 8 * sum(len(names) + 1 for names in self.imports.values())
        self.directories = {
            _EXPORT: (self.constants.at + self.exports_at, len(self._export_table(0))),
            _IMPORT: (base, descriptors),
            _RELOCATIONS: (self.relocations.at, self.relocations.size),
            _ADDRESSES: (base + descriptors, addresses),
        }

    @property
    def areas(self) -> list[_Area]:
        """All sections, in order."""
        first = [self.text, self.constants, *([self.data] if self.data.size else []), self.relocations]
        return first + self.others

    def _put(self, at: int, body: bytes) -> None:
        self.constants.data[at : at + len(body)] = body

    def _import_table(self, base: int) -> tuple[bytes, dict[str, int]]:
        """Return descriptors, addresses, the same again, and names; and where the address of each function is.

        `base`: address of the table. The system replaces the first addresses by those of the functions.
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

    def _rows(self) -> Iterable[tuple[_Area, int, int, int, int]]:
        """Yield the relocations: area, offset in it, number of the symbol, type, addend."""
        for row in self.parts.rows:
            if row[1] == 4 and row[7] in self.moved:  # SHT_RELA
                area, start = self.moved[row[7]]
                for offset, info, addend in _RELOCATION.iter_unpack(self.parts.data[row[4] : row[4] + row[5]]):
                    yield area, start + offset, info >> 32, info & 0xFFFFFFFF, addend

    def _relocate(self) -> None:
        for area, at, number, kind, addend in self._rows():
            place = self.places[number]
            if place is None:
                raise InternalError(f"link: a relocation refers to a symbol of the code, got number {number}")
            target = place[0].at + place[1] + addend
            if kind == _ABSOLUTE_64:
                struct.pack_into("<Q", area.data, at, _BASE + target)
            elif kind in _RELATIVE:
                struct.pack_into("<i", area.data, at, target - (area.at + at))
            else:
                raise InternalError(f"link: relocations are of types {_ABSOLUTE_64} and {_RELATIVE}, got {kind}")

    def _base_relocations(self) -> bytes:
        """Return the places of absolute addresses, a block for each page."""
        pages: dict[int, list[int]] = {}
        for area, at, _, kind, _ in self._rows():
            if kind == _ABSOLUTE_64:
                pages.setdefault((area.at + at) // _PAGE, []).append((area.at + at) % _PAGE)
        made = bytearray()
        for page, offsets in sorted(pages.items()):
            entries = [10 << 12 | offset for offset in sorted(offsets)]
            entries += [0] * (len(entries) % 2)
            made += struct.pack(f"<II{len(entries)}H", page * _PAGE, 8 + 2 * len(entries), *entries)
        return bytes(made) or struct.pack("<II", 0, 8)

    def write(self, stream: BinaryIO) -> None:
        """Write the file in order; the contents of `sections` are read once."""
        headers, starts = self._headers()
        out = Writer(stream)
        out.write(headers)
        for area, start in zip(self.areas, starts, strict=True):
            out.pad_to(start)
            for offset, block in ((0, bytes(area.data)),) if area.source is None else area.source.blocks:
                out.pad_to(start + offset)
                out.write(block)
            out.pad_to(start + area.file_bytes)
        out.pad_to(aligned(out.position, _BLOCK))

    def _headers(self) -> tuple[bytes, list[int]]:
        """Return the headers, and where each area begins in the file."""
        areas = self.areas
        size = SIGNATURE_AT + 4 + FILE.size + OPTIONAL.size + DIRECTORIES.size + len(areas) * SECTION.size
        first = position = aligned(size, _BLOCK)
        table, starts, sums = bytearray(), list[int](), dict[int, int]()
        for area in areas:
            raw = aligned(area.file_bytes, _BLOCK)
            name = area.name.encode().ljust(8, b"\0")
            table += SECTION.pack(name, area.size, area.at, raw, position, 0, 0, 0, 0, area.flags)
            starts.append(position)
            position += raw
            sums[area.flags & (_CODE | _DATA)] = sums.get(area.flags & (_CODE | _DATA), 0) + raw
        number = machine_number(self.machine.architecture.elf)
        file = FILE.pack(number, len(areas), 0, 0, 0, OPTIONAL.size + DIRECTORIES.size, _LIBRARY)
        optional = OPTIONAL.pack(
            *(0x20B, 14, 0, sums.get(_CODE, 0), sums.get(_DATA, 0), 0, 0, self.text.at, _BASE, _PAGE, _BLOCK),
            *(*_WINDOWS_8, 0, 0, *_WINDOWS_8, 0, self.end, first, 0, 2, _DYNAMIC),
            *(1 << 20, _PAGE, 1 << 20, _PAGE, 0, 16),
        )
        pairs = [value for place in range(16) for value in self.directories.get(place, (0, 0))]
        head = b"MZ".ljust(SIGNATURE_AT - 4, b"\0") + struct.pack("<I", SIGNATURE_AT) + b"PE\0\0"
        return head + file + optional + DIRECTORIES.pack(*pairs) + bytes(table), starts


def write_library(path: Path, code: bytes, sections: Sequence[Data], platform: Platform, machine: Machine) -> None:
    """Write the library `path` atomically: an object, and `sections` that define symbols which it lacks; seal it.

    UnsupportedError for more bytes than an image can have; InternalError for code that cannot be linked.
    """
    image = _Image(taken_apart(code), sections, platform, machine)
    with replacing(path) as made:
        with made.open("wb") as stream:
            image.write(stream)
        seal(made)
