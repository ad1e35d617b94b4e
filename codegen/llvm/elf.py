"""Writes data as an ELF64 relocatable object, streamed: weights and manifest never pass through LLVM.

    ELF header | section data, each at its alignment | .symtab .strtab .shstrtab | section headers
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from runtime.errors import InternalError

PAGE = 4096
_SHF_ALLOC = 2
_PROGBITS, _SYMTAB, _STRTAB = 1, 2, 3
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_GLOBAL_OBJECT, _GLOBAL_FUNCTION, _SECTION_SYMBOL, _HIDDEN = 0x11, 0x12, 0x03, 2
_PADDING = bytes(PAGE)


@dataclass(frozen=True, slots=True)
class Data:
    """A read-only section with one hidden global symbol at its start.

    `blocks` are pairs of offset and bytes, ascending, without overlap; gaps are zero. `functions` are names that the
    section defines too, for others to call: a stand-in for a library that is not there.
    """

    section: str
    symbol: str
    size: int
    align: int
    blocks: Iterable[tuple[int, bytes | NDArray[np.generic]]]
    functions: tuple[str, ...] = ()


def write_data_object(stream: BinaryIO, machine: int, sections: Sequence[Data]) -> None:
    """Write a relocatable object for the e_machine `machine`; the stream need not seek."""
    names, strings = _Strings(), _Strings()
    headers = [_SECTION.pack(*[0] * 10)]
    symbols = [_SYMBOL.pack(0, 0, 0, 0, 0, 0)]
    symbols += [_SYMBOL.pack(0, _SECTION_SYMBOL, 0, i, 0, 0) for i in range(1, len(sections) + 1)]
    local = len(symbols)
    position = _HEADER.size
    for i, data in enumerate(sections, 1):
        position = _aligned(position, data.align)
        headers.append(
            _SECTION.pack(names.add(data.section), _PROGBITS, _SHF_ALLOC, 0, position, data.size, 0, 0, data.align, 0)
        )
        symbols.append(_SYMBOL.pack(strings.add(data.symbol), _GLOBAL_OBJECT, _HIDDEN, i, 0, data.size))
        symbols += [_SYMBOL.pack(strings.add(name), _GLOBAL_FUNCTION, 0, i, 0, data.size) for name in data.functions]
        position += data.size

    symbol_bytes = b"".join(symbols)
    count = len(sections) + 5
    symtab, strtab, shstrtab, stack = (names.add(n) for n in (".symtab", ".strtab", ".shstrtab", ".note.GNU-stack"))
    at_symbols = _aligned(position, 8)
    at_strings = at_symbols + len(symbol_bytes)
    at_names = at_strings + len(strings.data)
    at_headers = _aligned(at_names + len(names.data), 8)
    link = len(sections) + 2
    headers += [
        _SECTION.pack(symtab, _SYMTAB, 0, 0, at_symbols, len(symbol_bytes), link, local, 8, _SYMBOL.size),
        _SECTION.pack(strtab, _STRTAB, 0, 0, at_strings, len(strings.data), 0, 0, 1, 0),
        _SECTION.pack(shstrtab, _STRTAB, 0, 0, at_names, len(names.data), 0, 0, 1, 0),
        _SECTION.pack(stack, _PROGBITS, 0, 0, at_names, 0, 0, 0, 1, 0),  # no executable stack
    ]

    out = _Writer(stream)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    sizes = (_HEADER.size, 0, 0, _SECTION.size, count, link + 1)
    out.write(_HEADER.pack(ident, 1, machine, 1, 0, 0, at_headers, 0, *sizes))
    for data in sections:
        start = _aligned(out.position, data.align)
        for offset, block in data.blocks:
            out.pad_to(start + offset)
            out.write(block)
        out.pad_to(start + data.size)
    out.pad_to(at_symbols)
    out.write(symbol_bytes)
    out.write(bytes(strings.data))
    out.write(bytes(names.data))
    out.pad_to(at_headers)
    out.write(b"".join(headers))


def _aligned(position: int, align: int) -> int:
    return -(-position // align) * align


class _Strings:
    def __init__(self) -> None:
        self.data = bytearray(1)

    def add(self, text: str) -> int:
        offset = len(self.data)
        self.data += text.encode() + b"\0"
        return offset


class _Writer:
    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.position = 0

    def write(self, data: bytes | NDArray[np.generic]) -> None:
        view = memoryview(data) if isinstance(data, bytes) else _bytes_of(data)
        self.stream.write(view)
        self.position += view.nbytes

    def pad_to(self, position: int) -> None:
        if position < self.position:
            raise InternalError(f"elf: data overlaps, at {self.position}, got offset {position}")
        while self.position < position:
            self.write(_PADDING[: min(PAGE, position - self.position)])


def _bytes_of(array: NDArray[np.generic]) -> memoryview:
    # reshape before view: an array without dimensions cannot be seen as bytes
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
