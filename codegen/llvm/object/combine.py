"""Several relocatable objects of LLVM as one, without a linker: equal sections joined, symbols joined and renamed.

    ELF header | .text of all objects, .rodata of all, ..., relocations | .symtab .strtab | section headers

Symbols that one object defines and another one uses, and hidden ones, become local, so that two models in one program
do not see each other's kernels.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import field

from aot.codegen.dataclass import dataclass
from aot.codegen.llvm.linking.elf_writer import (
    HIDDEN,
    NOBITS,
    RELA,
    RELOCATION,
    SECTION_SYMBOL,
    STRTAB,
    SYMTAB,
    Writer,
    aligned,
)
from aot.codegen.llvm.linking.relocatable import Object, taken_apart
from aot.runtime.errors import InternalError
from aot.runtime.loading.elf import HEADER, SECTION, SYMBOL

_NULL, _GROUP, _ADDRSIG = 0, 17, 0x6FFF4C03
_ATTRIBUTES = 0x70000003  # section type: extensions that code uses; RISC-V and Arm have the same number
_RESERVED = 0xFF00  # section numbers from here on have special meanings
_FILE = 4  # type of a symbol


@dataclass(slots=True, eq=False)
class _Section:
    """Sections of equal name and kind, one after another; `row` are the fields of SECTION."""

    number: int
    name: str
    row: list[int]
    body: bytearray = field(default_factory=bytearray)
    size: int = 0

    def add(self, body: bytes, size: int, align: int) -> int:
        """Append the contents of a section; return where they begin."""
        start = aligned(self.size, max(1, align))
        if self.row[1] != NOBITS:
            self.body += bytes(start - self.size) + body
        self.size, self.row[8] = start + size, max(self.row[8], align)
        return start


@dataclass(slots=True, eq=False)
class _Symbol:
    """`home` is the object that defines it, None if none does; `shared`: another object uses it."""

    name: str
    fields: tuple[int, int, int, int, int]  # info, visibility, section, value, size
    home: int | None
    shared: bool = False

    @property
    def local(self) -> bool:
        defined = self.home is not None and (self.shared or self.fields[1] == HIDDEN)
        return defined or self.fields[0] >> 4 == 0

    def packed(self, name: int, local: bool) -> bytes:
        info, *rest = self.fields
        return SYMBOL.pack(name, info & 0xF, 0, *rest[1:]) if local else SYMBOL.pack(name, info, *rest)


_Place = tuple[_Symbol, int]  # a symbol, and the offset of the old symbol from it, in bytes


@dataclass(slots=True)
class _Joined:
    sections: dict[tuple[object, ...], _Section] = field(default_factory=dict[tuple[object, ...], _Section])
    symbols: list[_Symbol] = field(default_factory=list[_Symbol])
    globals: dict[str, _Symbol] = field(default_factory=dict[str, _Symbol])
    begins: dict[int, _Symbol] = field(default_factory=dict[int, _Symbol])  # symbols of sections, by their numbers
    relocations: list[tuple[_Section, int, bytes, list[_Place]]] = field(
        default_factory=list[tuple[_Section, int, bytes, list[_Place]]]
    )

    def add(self, number: int, parts: Object, names: Mapping[str, str]) -> None:
        """Add an object, whose symbols get the `names` given for theirs.

        Relocations are rewritten once all symbols have their places.
        """
        own = parts.section_names()
        joined_of: dict[int, tuple[_Section, int]] = {}
        for old, row in enumerate(parts.rows):
            if row[1] == _GROUP:
                raise InternalError(f"elf: objects without groups of sections, got {own[old]}")
            if row[1] == _ATTRIBUTES and number:  # equal in all objects, and one section for all
                continue
            if row[1] not in (_NULL, SYMTAB, STRTAB, _ADDRSIG, RELA):
                section = self._section(own[old], row)
                joined_of[old] = section, section.add(parts.contents(row), row[5], row[8])
        known = self._symbols(number, parts, joined_of, names)
        for old, row in enumerate(parts.rows):
            if row[1] == RELA:
                target, base = joined_of[row[7]]
                section = self._section(own[old], row, target.number)
                self.relocations.append((section, base, parts.contents(row), known))

    def _section(self, name: str, row: list[int], target: int = 0) -> _Section:
        """Return the section that takes those like `row`; `target`: the section that it relocates."""
        key = (name, row[1], row[2], row[9], target)
        if key not in self.sections:
            number = len(self.sections) + 1
            self.sections[key] = _Section(number, name, [*row[:7], target, *row[8:]])
        return self.sections[key]

    def _symbols(
        self, number: int, parts: Object, joined_of: dict[int, tuple[_Section, int]], names: Mapping[str, str]
    ) -> list[_Place]:
        """Add the symbols of an object; return the place of each, in order.

        A joined section has no symbol: its begin is an offset from the symbol of the section that contains it. A linker
        that joins equal constants moves what a symbol names, and takes the bytes after it for a part of that constant.
        """
        known: list[_Place] = []
        for name, (_, info, visibility, section, value, size) in parts.symbol_rows():
            home, base = section, 0
            if section in joined_of:
                joined, base = joined_of[section]
                home = joined.number
                if info == SECTION_SYMBOL:
                    known.append((self._begin(joined, number), base))
                    continue
            fields = (info, visibility, home, value + base, size)
            symbol = _Symbol(names.get(name, name), fields, number if section else None)
            if info >> 4 == 0:
                if known and info & 0xF != _FILE and (section >= _RESERVED or section in joined_of):
                    self.symbols.append(symbol)
            else:
                symbol = self._global(symbol)
            known.append((symbol, 0))
        return known

    def _begin(self, section: _Section, home: int) -> _Symbol:
        if section.number not in self.begins:
            self.begins[section.number] = _Symbol("", (SECTION_SYMBOL, 0, section.number, 0, 0), home)
            self.symbols.append(self.begins[section.number])
        return self.begins[section.number]

    def _global(self, symbol: _Symbol) -> _Symbol:
        known = self.globals.setdefault(symbol.name, symbol)
        if known is symbol:
            self.symbols.append(symbol)
            return symbol
        if known.home is not None and symbol.home is not None:
            raise InternalError(f"elf: a symbol is defined once, got {symbol.name} twice")
        if symbol.home is not None:
            known.fields, known.home = symbol.fields, symbol.home
        known.shared = True
        return known

    def write(self, header: list[object]) -> bytes:
        own: list[_Symbol] = []
        shown: list[_Symbol] = []
        for symbol in self.symbols:
            (own if symbol.local else shown).append(symbol)
        number_of = {id(s): i for i, s in enumerate([*own, *shown], 1)}
        table = len(self.sections) + 1
        for section, base, body, known in self.relocations:
            text = _relocated(body, base, [(number_of.get(id(s), 0), distance) for s, distance in known])
            section.add(text, len(text), 8)
            section.row[6] = table
        strings = _Strings()
        symbols = [bytes(SYMBOL.size), *(s.packed(strings.at(s.name), True) for s in own)]
        symbols += [s.packed(strings.at(s.name), False) for s in shown]
        first = 1 + len(own)
        self._append(".symtab", SYMTAB, b"".join(symbols), [table + 1, first, 8, SYMBOL.size])
        for section in self.sections.values():
            strings.at(section.name)
        strings.at(".strtab")
        self._append(".strtab", STRTAB, bytes(strings.data), [0, 0, 1, 0])
        return self._written(header, strings)

    def _append(self, name: str, kind: int, body: bytes, rest: list[int]) -> None:
        section = self.sections[name,] = _Section(len(self.sections) + 1, name, [0, kind, 0, 0, 0, 0, *rest])
        section.add(body, len(body), section.row[8])

    def _written(self, header: list[object], strings: _Strings) -> bytes:
        offset = HEADER.size
        sections = list(self.sections.values())
        for section in sections:
            offset = aligned(offset, max(1, section.row[8]))
            section.row[0], section.row[4], section.row[5] = strings.at(section.name), offset, section.size
            offset += len(section.body)
        stream = io.BytesIO()
        out = Writer(stream)
        at_headers = aligned(offset, 8)
        out.write(HEADER.pack(*header[:6], at_headers, *header[7:12], len(sections) + 1, len(sections)))
        for section in sections:
            out.pad_to(section.row[4])
            out.write(bytes(section.body))
        out.pad_to(at_headers)
        out.write(b"".join(SECTION.pack(*row) for row in ([0] * 10, *(section.row for section in sections))))
        return stream.getvalue()


class _Strings:
    """A string table that holds each text once."""

    def __init__(self) -> None:
        self.data = bytearray(1)
        self._known = {"": 0}

    def at(self, text: str) -> int:
        offset = self._known.get(text)
        if offset is None:
            offset = self._known[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return offset


def combine(objects: Iterable[tuple[bytes, Mapping[str, str]]]) -> bytes:
    """Combine objects, whose symbols get the names given for theirs, into one; equal names are one symbol.

    InternalError if two of them define the same symbol.
    """
    joined = _Joined()
    taken = [(taken_apart(code), names) for code, names in objects]
    for number, (parts, names) in enumerate(taken):
        joined.add(number, parts, names)
    return joined.write(taken[0][0].header)


def _relocated(body: bytes, base: int, new_symbols: list[tuple[int, int]]) -> bytes:
    """Rewrite relocations for a section that begins at `base` of another one.

    `new_symbols`: for each symbol its new number, and the offset of the old symbol from the new one, in bytes.
    """
    patched = bytearray(body)
    for at in range(0, len(patched), RELOCATION.size):
        offset, info, addend = RELOCATION.unpack_from(patched, at)
        symbol: int = info >> 32
        number, distance = new_symbols[symbol]
        RELOCATION.pack_into(patched, at, offset + base, number << 32 | info & 0xFFFFFFFF, addend + distance)
    return bytes(patched)
