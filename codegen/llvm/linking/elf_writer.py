"""Writes data as an ELF64 relocatable object, streamed: weights and manifest never pass through LLVM.

ELF header | section data, each at its alignment | .symtab .strtab .shstrtab | section headers
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.runtime.errors import InternalError
from aot.runtime.loading.elf import HEADER, SECTION, SYMBOL

PAGE = 4096
SHF_WRITE, SHF_ALLOC = 1, 2
PROGBITS, SYMTAB, STRTAB, RELA, NOBITS = 1, 2, 3, 4, 8
RELOCATION = struct.Struct("<QQq")  # place, symbol and type, addend
GLOBAL_OBJECT, GLOBAL_FUNCTION, SECTION_SYMBOL, HIDDEN = 0x11, 0x12, 0x03, 2
_PADDING = bytes(PAGE)


@dataclass(frozen=True, slots=True)
class Data:
    """A read-only section with a hidden global symbol at its start, and `aliases` of it.

    `blocks` are pairs of offset and bytes, ascending, without overlap; gaps are zero. `functions` are names that the
    section also defines as functions, as a stub of a library. A `reserved` section is writable memory without contents
    in the file, for something that will be mapped there.
    """

    section: str
    symbol: str
    size: int
    align: int
    blocks: Iterable[tuple[int, bytes | NDArray[np.generic]]]
    functions: tuple[str, ...] = ()
    reserved: bool = False
    kind: int = PROGBITS
    aliases: tuple[str, ...] = ()

    def header(self, name: int, offset: int) -> list[int]:
        """Return the section header, as the fields of SECTION."""
        kind, flags = (NOBITS, SHF_ALLOC | SHF_WRITE) if self.reserved else (self.kind, SHF_ALLOC)
        return [name, kind, flags, 0, offset, self.size, 0, 0, self.align, 0]

    @property
    def file_bytes(self) -> int:
        return 0 if self.reserved else self.size


def write_data_object(stream: BinaryIO, machine: int, sections: Sequence[Data], flags: int = 0) -> None:
    """Write a relocatable object for the e_machine `machine`, with its e_flags; the stream need not seek."""
    names, strings = _Strings(), _Strings()
    headers = [SECTION.pack(*[0] * 10)]
    symbols = [SYMBOL.pack(0, 0, 0, 0, 0, 0)]
    symbols += [SYMBOL.pack(0, SECTION_SYMBOL, 0, i, 0, 0) for i in range(1, len(sections) + 1)]
    local = len(symbols)
    offset = HEADER.size
    for i, data in enumerate(sections, 1):
        offset = aligned(offset, data.align)
        headers.append(SECTION.pack(*data.header(names.add(data.section), offset)))
        for name in (data.symbol, *data.aliases):
            symbols.append(SYMBOL.pack(strings.add(name), GLOBAL_OBJECT, HIDDEN, i, 0, data.size))
        symbols += [SYMBOL.pack(strings.add(name), GLOBAL_FUNCTION, 0, i, 0, data.size) for name in data.functions]
        offset += data.file_bytes

    symbol_bytes = b"".join(symbols)
    count = len(sections) + 5
    symtab, strtab, shstrtab, stack = (names.add(n) for n in (".symtab", ".strtab", ".shstrtab", ".note.GNU-stack"))
    at_symbols = aligned(offset, 8)
    at_strings = at_symbols + len(symbol_bytes)
    at_names = at_strings + len(strings.data)
    at_headers = aligned(at_names + len(names.data), 8)
    link = len(sections) + 2
    headers += [
        SECTION.pack(symtab, SYMTAB, 0, 0, at_symbols, len(symbol_bytes), link, local, 8, SYMBOL.size),
        SECTION.pack(strtab, STRTAB, 0, 0, at_strings, len(strings.data), 0, 0, 1, 0),
        SECTION.pack(shstrtab, STRTAB, 0, 0, at_names, len(names.data), 0, 0, 1, 0),
        SECTION.pack(stack, PROGBITS, 0, 0, at_names, 0, 0, 0, 1, 0),  # no executable stack
    ]

    out = Writer(stream)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    sizes = (HEADER.size, 0, 0, SECTION.size, count, link + 1)
    out.write(HEADER.pack(ident, 1, machine, 1, 0, 0, at_headers, flags, *sizes))
    for data in sections:
        out.data(data)
    out.pad_to(at_symbols)
    out.write(symbol_bytes)
    out.write(bytes(strings.data))
    out.write(bytes(names.data))
    out.pad_to(at_headers)
    out.write(b"".join(headers))


def aligned(offset: int, align: int) -> int:
    """Round `offset` up to a multiple of `align`."""
    return -(-offset // align) * align


class _Strings:
    def __init__(self) -> None:
        self.data = bytearray(1)

    def add(self, text: str) -> int:
        offset = len(self.data)
        self.data += text.encode() + b"\0"
        return offset


class Writer:
    """Writes a stream in order and counts its position."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.position = 0

    def write(self, data: bytes | NDArray[np.generic]) -> None:
        """Write bytes, or an array in C order."""
        view = memoryview(data) if isinstance(data, bytes) else _bytes_of(data)
        self.stream.write(view)
        self.position += view.nbytes

    def data(self, data: Data) -> None:
        """Write the contents of a section, at its alignment."""
        self.blocks(aligned(self.position, data.align), data.blocks, data.file_bytes)

    def blocks(self, start: int, blocks: Iterable[tuple[int, bytes | NDArray[np.generic]]], size: int) -> None:
        """Write `size` bytes from position `start` on: `blocks`, pairs of offset and bytes, and zeros between them."""
        for offset, block in blocks:
            self.pad_to(start + offset)
            self.write(block)
        self.pad_to(start + size)

    def pad_to(self, position: int) -> None:
        """Write zeros up to a position; InternalError if the stream is already past it."""
        if position < self.position:
            raise InternalError(
                f"write: data must not overlap: {self.position} bytes are written, got position {position}"
            )
        while self.position < position:
            self.write(_PADDING[: min(PAGE, position - self.position)])


def _bytes_of(array: NDArray[np.generic]) -> memoryview:
    # reshape before view: an array without dimensions cannot be viewed as bytes
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
