"""Changes LLVM's relocatable objects: gives them data sections for symbols that they lack, and hides symbols.

    ELF header | LLVM's sections | data, each at its alignment | .strtab with more names | section headers

So one object with weights and manifest needs no linker, whatever machine it is for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import BinaryIO

from aot.codegen.dataclass import dataclass
from aot.codegen.llvm.linking.elf_writer import GLOBAL_OBJECT, HIDDEN, NOBITS, SYMTAB, Data, Writer, aligned
from aot.runtime.errors import InternalError
from aot.runtime.loading.elf import HEADER, SECTION, SYMBOL

_UNDEFINED = 0
_MOST_SECTIONS = 0xFEFF  # larger section numbers have special meanings


@dataclass(frozen=True, slots=True)
class Object:
    """An object with section headers taken apart; `table` is the index of its symbol table."""

    data: bytearray
    header: list[object]
    rows: list[list[int]]
    table: int

    def contents(self, row: list[int]) -> bytes:
        """Return the contents of a section, by its header; none for one of zeros that are not in the file."""
        return b"" if row[1] == NOBITS else bytes(self.data[row[4] : row[4] + row[5]])

    def names(self) -> list[str]:
        """Return the names of the symbols, in order."""
        return self._texts(self.rows[self.table][6], [SYMBOL.unpack_from(self.data, at)[0] for at in self._places()])

    def section_names(self) -> list[str]:
        return self._texts(_integer(self.header[13]), [row[0] for row in self.rows])

    def symbols(self) -> dict[str, int]:
        """Return the offset in the file of each named symbol."""
        return {name: at for name, at in zip(self.names(), self._places(), strict=True) if name}

    def symbol_rows(self) -> list[tuple[str, tuple[int, ...]]]:
        """Return the name and the fields of SYMBOL, for each symbol."""
        row = self.rows[self.table]
        fields: list[tuple[int, ...]] = list(SYMBOL.iter_unpack(self.contents(row)))
        return list(zip(self._texts(row[6], [name for name, *_ in fields]), fields, strict=True))

    def _texts(self, table: int, offsets: list[int]) -> list[str]:
        text = self.contents(self.rows[table])
        return [text[p : text.index(b"\0", p)].decode() for p in offsets]

    def _places(self) -> range:
        row = self.rows[self.table]
        return range(row[4], row[4] + row[5], SYMBOL.size)


def add_sections(stream: BinaryIO, code: bytes, sections: Sequence[Data]) -> None:
    """Write `code`, a relocatable object, with `sections`; each defines its symbol, hidden, for the code to use."""
    parts = taken_apart(code)
    symbols = parts.symbols()
    first, names = len(parts.rows), parts.rows[_integer(parts.header[13])]
    if first + len(sections) > _MOST_SECTIONS:
        raise InternalError(f"elf: at most {_MOST_SECTIONS} sections, got {first + len(sections)}")
    strings = bytearray(parts.data[names[4] : names[4] + names[5]])
    offset = len(parts.data)
    for i, data in enumerate(sections, first):
        offset = aligned(offset, data.align)
        parts.rows.append(data.header(len(strings), offset))
        strings += data.section.encode() + b"\0"
        offset += data.file_bytes
        if data.symbol in symbols:
            at = symbols[data.symbol]
            SYMBOL.pack_into(parts.data, at, *_defined(parts.data, at, i, data.size))
    names[4:6] = offset, len(strings)
    at_headers = aligned(offset + len(strings), 8)
    parts.header[6], parts.header[12] = at_headers, len(parts.rows)

    out = Writer(stream)
    out.write(HEADER.pack(*parts.header))
    out.write(bytes(parts.data[HEADER.size :]))
    for data in sections:
        out.data(data)
    out.write(bytes(strings))
    out.pad_to(at_headers)
    out.write(b"".join(SECTION.pack(*row) for row in parts.rows))


def hidden(code: bytes, names: Iterable[str]) -> bytes:
    """Hide the symbols `names`: other objects of a link see them, but the linked library does not export them."""
    parts = taken_apart(code)
    symbols = parts.symbols()
    for name in names:
        parts.data[symbols[name] + 5] = HIDDEN  # st_other
    return bytes(parts.data)


def taken_apart(code: bytes) -> Object:
    header = list(HEADER.unpack_from(code))
    at, count = _integer(header[6]), _integer(header[12])
    rows = [list(SECTION.unpack_from(code, at + i * SECTION.size)) for i in range(count)]
    table = next((i for i, row in enumerate(rows) if row[1] == SYMTAB), None)
    if table is None:
        raise InternalError("elf: an object has a symbol table, got none")
    return Object(bytearray(code), header, rows, table)


def _defined(data: bytearray, at: int, section: int, size: int) -> tuple[int, ...]:
    name, _, _, where, _, _ = SYMBOL.unpack_from(data, at)
    if where != _UNDEFINED:
        raise InternalError("elf: a section defines what the code lacks, got a symbol that it has")
    return name, GLOBAL_OBJECT, HIDDEN, section, 0, size


def _integer(value: object) -> int:
    if not isinstance(value, int):
        raise InternalError(f"elf: the header holds numbers, got {value!r}")
    return value
