"""Several relocatable objects of LLVM as one, without a linker: sections side by side, symbols joined.

    ELF header | sections of the first object, of the second, ... | .symtab .strtab | section headers

Symbols that one object defines and another one uses become local, so that two models in one program do not see each
other's kernels.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from dataclasses import field

from aot.codegen.dataclass import dataclass
from aot.codegen.llvm.object.elf_writer import HEADER, NOBITS, SECTION, STRTAB, SYMBOL, SYMTAB, Writer, aligned
from aot.codegen.llvm.object.relocatable import Object, taken_apart
from aot.runtime.errors import InternalError

_NULL, _RELA, _GROUP, _ADDRSIG = 0, 4, 17, 0x6FFF4C03
_RESERVED = 0xFF00  # section numbers from here on have special meanings
_FILE = 4  # type of a symbol
_RELOCATION = struct.Struct("<QQq")
_NOTE = ".note.GNU-stack"


@dataclass(slots=True)
class _Symbol:
    """`home` is the object that defines it, None if none does; `shared`: another object uses it."""

    name: str
    fields: tuple[int, int, int, int, int]  # info, visibility, section, value, size
    home: int | None
    shared: bool = False

    @property
    def local(self) -> bool:
        return (self.shared and self.home is not None) or self.fields[0] >> 4 == 0

    def packed(self, name: int) -> bytes:
        info, *rest = self.fields
        return SYMBOL.pack(name, info & 0xF, 0, *rest[1:]) if self.local else SYMBOL.pack(name, info, *rest)


@dataclass(slots=True)
class _Joined:
    rows: list[list[int]] = field(default_factory=lambda: [[0] * 10])
    names: list[str] = field(default_factory=lambda: [""])
    bodies: list[bytes] = field(default_factory=lambda: [b""])
    symbols: list[_Symbol] = field(default_factory=list[_Symbol])
    globals: dict[str, _Symbol] = field(default_factory=dict[str, _Symbol])
    relocations: list[tuple[int, list[_Symbol]]] = field(default_factory=list[tuple[int, list[_Symbol]]])

    def add(self, number: int, parts: Object) -> None:
        """Add an object's sections and symbols; relocations are rewritten once all symbols have their places."""
        moved = self._sections(parts)
        known = self._symbols(number, parts, moved)
        self.relocations += [(new, known) for old, new in moved.items() if parts.rows[old][1] == _RELA]

    def _sections(self, parts: Object) -> dict[int, int]:
        """Append the sections that are kept; return their new numbers by the old ones."""
        names = parts.section_names()
        moved: dict[int, int] = {}
        for old, row in enumerate(parts.rows):
            if row[1] == _GROUP:
                raise InternalError(f"elf: objects without groups of sections, got {names[old]}")
            if row[1] in (_NULL, SYMTAB, STRTAB, _ADDRSIG) or (names[old] == _NOTE and _NOTE in self.names):
                continue
            moved[old] = len(self.rows)
            self.rows.append(list(row))
            self.names.append(names[old])
            self.bodies.append(b"" if row[1] == NOBITS else bytes(parts.data[row[4] : row[4] + row[5]]))
        for old, new in moved.items():
            if parts.rows[old][1] == _RELA:
                self.rows[new][7] = moved[parts.rows[old][7]]  # the section that it relocates
        return moved

    def _symbols(self, number: int, parts: Object, moved: dict[int, int]) -> list[_Symbol]:
        known: list[_Symbol] = []
        for name, (_, info, visibility, section, value, size) in parts.symbol_rows():
            home = moved.get(section, section)
            symbol = _Symbol(name, (info, visibility, home, value, size), number if section else None)
            if info >> 4 == 0:
                if known and info & 0xF != _FILE and (section >= _RESERVED or section in moved):
                    self.symbols.append(symbol)
            else:
                symbol = self._global(symbol)
            known.append(symbol)
        return known

    def _global(self, symbol: _Symbol) -> _Symbol:
        found = self.globals.setdefault(symbol.name, symbol)
        if found is symbol:
            self.symbols.append(symbol)
            return symbol
        if found.home is not None and symbol.home is not None:
            raise InternalError(f"elf: a symbol is defined once, got {symbol.name} twice")
        if symbol.home is not None:
            found.fields, found.home = symbol.fields, symbol.home
        found.shared = True
        return found

    def write(self, header: list[object]) -> bytes:
        self.symbols.sort(key=lambda s: not s.local)
        places = {id(s): i for i, s in enumerate(self.symbols, 1)}
        for new, known in self.relocations:
            self.bodies[new] = _relocated(self.bodies[new], [places.get(id(s), 0) for s in known])
            self.rows[new][6] = len(self.rows)
        strings = _Strings()
        symbols = [bytes(SYMBOL.size), *(s.packed(strings.at(s.name)) for s in self.symbols)]
        first = 1 + sum(s.local for s in self.symbols)
        self._append(".symtab", SYMTAB, b"".join(symbols), [len(self.rows) + 1, first, 8, SYMBOL.size])
        for name in self.names:
            strings.at(name)
        strings.at(".strtab")
        self._append(".strtab", STRTAB, bytes(strings.data), [0, 0, 1, 0])
        return self._written(header, strings)

    def _append(self, name: str, kind: int, body: bytes, rest: list[int]) -> None:
        self.rows.append([0, kind, 0, 0, 0, len(body), *rest])
        self.names.append(name)
        self.bodies.append(body)

    def _written(self, header: list[object], strings: _Strings) -> bytes:
        position = HEADER.size
        for row, name, body in zip(self.rows, self.names, self.bodies, strict=True):
            row[0] = strings.at(name)
            if row[1] != _NULL:
                position = aligned(position, max(1, row[8]))
                row[4] = position
                position += len(body)
        stream = io.BytesIO()
        out = Writer(stream)
        at_headers = aligned(position, 8)
        out.write(HEADER.pack(*header[:6], at_headers, *header[7:12], len(self.rows), len(self.rows) - 1))
        for row, body in zip(self.rows[1:], self.bodies[1:], strict=True):
            out.pad_to(row[4])
            out.write(body)
        out.pad_to(at_headers)
        out.write(b"".join(SECTION.pack(*row) for row in self.rows))
        return stream.getvalue()


class _Strings:
    """A string table that holds each text once."""

    def __init__(self) -> None:
        self.data = bytearray(1)
        self._known = {"": 0}

    def at(self, text: str) -> int:
        if text not in self._known:
            self._known[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return self._known[text]


def combine(objects: Sequence[bytes]) -> bytes:
    """Combine objects into one; InternalError if two of them define the same symbol."""
    if len(objects) == 1:
        return objects[0]
    joined = _Joined()
    taken = [taken_apart(code) for code in objects]
    for number, parts in enumerate(taken):
        joined.add(number, parts)
    if len(joined.rows) + 2 >= _RESERVED:
        raise InternalError(f"elf: fewer than {_RESERVED} sections, got {len(joined.rows)}")
    return joined.write(taken[0].header)


def _relocated(body: bytes, places: list[int]) -> bytes:
    """Rewrite relocations with the new numbers of their symbols."""
    made = bytearray(body)
    for at in range(0, len(made), _RELOCATION.size):
        offset, info, addend = _RELOCATION.unpack_from(made, at)
        _RELOCATION.pack_into(made, at, offset, places[info >> 32] << 32 | info & 0xFFFFFFFF, addend)
    return bytes(made)
