"""Libraries that no linker makes: the sections of an object of LLVM in one image, its symbols, its relocations.

object of LLVM, sections of data -> Image: areas, places of symbols, imports, exports
                                    | pe_writer: PeImage, macho_writer: MachImage
                                    addresses -> relocated code -> file
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import BinaryIO

from aot.codegen.dataclass import dataclass
from aot.codegen.llvm.linking.elf_writer import (
    HIDDEN,
    NOBITS,
    PROGBITS,
    RELA,
    RELOCATION,
    SHF_ALLOC,
    SHF_WRITE,
    Data,
    Writer,
    aligned,
)
from aot.codegen.llvm.linking.relocatable import Object
from aot.codegen.llvm.linking.relocations import RELOCATIONS
from aot.codegen.machines import Machine
from aot.codegen.platforms import Platform
from aot.runtime.errors import InternalError, UnsupportedError

_SHF_EXECUTE = 4
_JUMP_ALIGN = 16
_MOST_BYTES = (2 << 30) - (1 << 20)  # most bytes of an image: offsets in code and tables have 32 bits


@dataclass(slots=True, eq=False)
class Area:
    """A section of an image: bytes one after another, each at its alignment, then zeros that are not in the file.

    `source`: has the bytes instead, for data that are written as they come.
    """

    name: str
    flags: int = 0
    data: bytearray = field(default_factory=bytearray)
    size: int = 0
    at: int = 0  # in memory, from the image's begin
    source: Data | None = None

    @property
    def file_bytes(self) -> int:
        """Return the number of bytes in the file, without the zeros after them."""
        return len(self.data) if self.source is None else self.size

    def write(self, out: Writer, start: int) -> None:
        """Write the bytes in the file from position `start` on; those of `source` are read once."""
        blocks = [(0, bytes(self.data))] if self.source is None else self.source.blocks
        out.blocks(start, blocks, self.file_bytes)

    def add(self, body: bytes, align: int = _JUMP_ALIGN, size: int | None = None) -> int:
        """Append `body`, or `size` zeros that are not in the file; return where it begins in the section."""
        start = aligned(self.size, align)
        if size is None:
            self.data += bytes(start - len(self.data)) + body
        self.size = start + (len(body) if size is None else size)
        return start


class Image(ABC):
    """An image under construction, which a subclass lays out and writes in the format of a system.

    `places`: area and offset of each symbol of `parts`, by its number. `others` are areas for data that define symbols
    which `parts` lacks; the last one has the weights. `imports`: functions that are called, by library; `jumps`: places
    in `text` of a jump to each.
    """

    def __init__(
        self,
        parts: Object,
        areas: tuple[Area, Area, Area],
        others: Sequence[Area],
        platform: Platform,
        machine: Machine,
    ) -> None:
        self.parts, self.platform, self.machine = parts, platform, machine
        self.text, self.constants, self.data = areas
        self.others = list(others)
        self.relocations = RELOCATIONS[machine.name]
        self.section_places = self._take_sections()
        self.exports: dict[str, tuple[Area, int]] = {}
        self.imports: dict[str, list[str]] = {}
        self.jumps: dict[str, int] = {}
        self.places = self._place_symbols()

    def _take_sections(self) -> dict[int, tuple[Area, int]]:
        """Append the object's sections to their areas; those without contents come last."""
        section_places: dict[int, tuple[Area, int]] = {}
        loaded = [i for i, row in enumerate(self.parts.rows) if row[2] & SHF_ALLOC and row[1] in (PROGBITS, NOBITS)]
        for i in sorted(loaded, key=lambda i: self.parts.rows[i][1] == NOBITS):
            row = self.parts.rows[i]
            area = self.text if row[2] & _SHF_EXECUTE else self.data if row[2] & SHF_WRITE else self.constants
            section_places[i] = (
                area,
                area.add(self.parts.contents(row), max(1, row[8]), row[5] if row[1] == NOBITS else None),
            )
        return section_places

    def _place_symbols(self) -> list[tuple[Area, int] | None]:
        own = {name: area for area in self.others if (d := area.source) for name in (d.symbol, *d.aliases)}
        library = {name: file for file, names in self.platform.imports.items() for name in names}
        code = self.platform.code_of(self.machine)
        added: dict[str, int] = {}
        symbol_places: list[tuple[Area, int] | None] = []
        for name, (_, info, visibility, section, value, _) in self.parts.symbol_rows():
            if section in self.section_places:
                area, start = self.section_places[section]
                symbol_place = area, start + value
                symbol_places.append(symbol_place)
                if info >> 4 and visibility != HIDDEN:
                    self.exports[name] = symbol_place
            elif name in own:
                symbol_places.append((own[name], 0))
            elif name in code or name in library:
                if name not in added:
                    added[name] = self.text.add(code.get(name, self.relocations.jump))
                if name in library:
                    self.imports.setdefault(library[name], []).append(name)
                    self.jumps[name] = added[name]
                symbol_places.append((self.text, added[name]))
            elif name and info >> 4:
                raise InternalError(f"link: code calls functions that {self.platform.name} has, got {name}")
            else:
                symbol_places.append(None)
        return symbol_places

    @abstractmethod
    def write(self, stream: BinaryIO) -> None:
        """Write the file in order, with zeros for its seal; the contents of `others` are read once."""

    @abstractmethod
    def sign(self, path: Path) -> None:
        """Sign the sealed file, if its system runs none without a signature."""

    def check_size(self, size: int) -> None:
        """Raise UnsupportedError for an image of more bytes than there are addresses for."""
        if size > _MOST_BYTES:
            rule = f"a library of {self.platform.name} has at most {_MOST_BYTES} bytes"
            raise UnsupportedError(f"write: {rule}, got {size}, of which weights are {self.others[-1].size}")

    def absolute(self) -> list[tuple[Area, int]]:
        """Return the places of whole addresses, which change with the address of the image."""
        return [(area, at) for area, at, _, kind, _ in self._rows() if kind == self.relocations.absolute]

    def aim_jumps(self, slots: dict[str, int]) -> None:
        """Let the jump to each imported function use the word at the address given by its name."""
        for name, jump in self.jumps.items():
            self.relocations.aim(self.text.data, jump, self.text.at + jump, slots[name])

    def relocate(self, base: int) -> None:
        """Complete code and data for an image at `base`; their areas have addresses by now."""
        for area, at, number, kind, addend in self._rows():
            symbol_place = self.places[number]
            if symbol_place is None:
                raise InternalError(f"link: a relocation refers to a symbol that has a place, got number {number}")
            target = symbol_place[0].at + symbol_place[1] + addend
            if kind == self.relocations.absolute:
                struct.pack_into("<Q", area.data, at, base + target)
            else:
                self.relocations.apply(area.data, at, kind, area.at + at, target)

    def _rows(self) -> Iterator[tuple[Area, int, int, int, int]]:
        """Yield the relocations: area, offset in it, number of the symbol, type, addend."""
        for row in self.parts.rows:
            if row[1] == RELA and row[7] in self.section_places:
                area, start = self.section_places[row[7]]
                for offset, info, addend in RELOCATION.iter_unpack(self.parts.contents(row)):
                    yield area, start + offset, info >> 32, info & 0xFFFFFFFF, addend
