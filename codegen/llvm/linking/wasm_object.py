"""Takes LLVM's relocatable objects of WebAssembly apart: functions, segments of data, symbols, relocations.

A module is a list of sections. In an object, "linking" names symbols; "reloc.CODE" and "reloc.DATA" list the places
in code and data that refer to one. Numbers are LEB128: groups of seven bits, the lowest first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from aot.codegen.dataclass import dataclass
from aot.runtime.errors import InternalError
from aot.runtime.loading.foreign.wasm import CODE, CUSTOM, DATA, MAGIC

TYPES, IMPORTS, FUNCTIONS = 1, 2, 3  # kinds of sections
FUNCTION, TABLE, MEMORY, GLOBAL = 0, 1, 2, 3  # kinds of imports and exports
OF_FUNCTION, OF_DATA, OF_GLOBAL, OF_SECTION, OF_TABLE = 0, 1, 2, 3, 5  # kinds of symbols
LOCAL, HIDDEN, UNDEFINED, _EXPLICIT_NAME = 2, 4, 0x10, 0x40  # flags of symbols
_SEGMENTS, _SYMBOLS = 5, 8  # parts of the linking section
_WITH_ADDEND = (3, 4, 5, 8, 9)  # types of relocations
_LENGTH_BYTES = 8


@dataclass(frozen=True, slots=True)
class Symbol:
    """`number`: of the function, global or segment in its object; `at`: in the segment."""

    name: str
    kind: int
    flags: int
    number: int
    at: int = 0


@dataclass(frozen=True, slots=True)
class Relocation:
    """A place of a section's contents; `index`: of a symbol, or of a type."""

    kind: int
    at: int
    index: int
    addend: int


@dataclass(slots=True, eq=False)
class WasmObject:
    """An object; numbers of functions count the imported ones first. `names`: new names of symbols."""

    names: Mapping[str, str]
    types: list[bytes] = field(default_factory=list[bytes])
    imported: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])  # functions: name, type
    defined: list[int] = field(default_factory=list[int])  # types of functions
    code: bytearray = field(default_factory=bytearray)  # contents of the section
    bodies: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])  # begin and end in `code`
    data: bytearray = field(default_factory=bytearray)  # contents of the section
    segments: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])  # begin and end in `data`
    aligns: list[int] = field(default_factory=list[int])  # of the segments
    symbols: list[Symbol] = field(default_factory=list[Symbol])
    relocations: dict[str, list[Relocation]] = field(default_factory=dict[str, list[Relocation]])


class Reader:
    """Reads numbers and names of a module in order."""

    def __init__(self, data: bytes | bytearray, at: int = 0) -> None:
        self.data, self.at = data, at

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def number(self, signed: bool = False) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value - (1 << shift) if signed and byte & 0x40 else value

    def block(self) -> bytes:
        size = self.number()
        self.at += size
        return bytes(self.data[self.at - size : self.at])

    def name(self) -> str:
        return self.block().decode()

    def count(self) -> range:
        return range(self.number())


def number(value: int, least: int = 1) -> bytes:
    """Return a number in at least that many bytes."""
    body = bytearray()
    while value >> 7 or len(body) + 1 < least:
        body.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*body, value))


def signed_number(value: int, size: int) -> bytes:
    """Return a signed number in `size` bytes."""
    return number(value & (1 << 7 * size) - 1, size)


def packed(objects: Iterable[tuple[bytes, Mapping[str, str]]]) -> bytes:
    """Return objects as one, each with the new names of its symbols; `unpacked` takes them apart."""
    body = bytearray()
    for code, names in objects:
        for part in (json.dumps(names, sort_keys=True).encode(), code):
            body += len(part).to_bytes(_LENGTH_BYTES, "little") + part
    return bytes(body)


def unpacked(data: bytes) -> list[WasmObject]:
    """Return the objects of `packed`."""
    parts: list[bytes] = []
    at = 0
    while at < len(data):
        end = at + _LENGTH_BYTES + int.from_bytes(data[at : at + _LENGTH_BYTES], "little")
        parts.append(data[at + _LENGTH_BYTES : end])
        at = end
    return [wasm_object(code, json.loads(names)) for names, code in zip(parts[::2], parts[1::2], strict=True)]


def wasm_object(code: bytes, names: Mapping[str, str]) -> WasmObject:
    """Take an object apart; InternalError if it is none."""
    if not code.startswith(MAGIC):
        raise InternalError("wasm: an object begins as a module does, got another begin")
    module, reader = WasmObject(names), Reader(code, len(MAGIC))
    while reader.at < len(code):
        kind, body = reader.byte(), reader.block()
        if kind == CODE:
            module.code = bytearray(body)
        elif kind == DATA:
            module.data = bytearray(body)
        _read_section(module, kind, Reader(body))
    return module


def _read_section(module: WasmObject, kind: int, reader: Reader) -> None:
    if kind == CUSTOM:
        name = reader.name()
        if name == "linking":
            _read_linking(module, reader)
        elif name.startswith("reloc."):
            reader.number()
            module.relocations[name] = [_relocation(reader) for _ in reader.count()]
    elif kind == TYPES:
        for _ in reader.count():
            start = reader.at
            reader.byte()
            reader.block()
            reader.block()
            module.types.append(bytes(reader.data[start : reader.at]))
    elif kind == IMPORTS:
        module.imported = [entry for _ in reader.count() if (entry := _import(reader)) is not None]
    elif kind == FUNCTIONS:
        module.defined = [reader.number() for _ in reader.count()]
    elif kind == CODE:
        module.bodies = [_place(reader) for _ in reader.count()]
    elif kind == DATA:
        module.segments = [_segment(reader) for _ in reader.count()]


def _place(reader: Reader) -> tuple[int, int]:
    size = reader.number()
    reader.at += size
    return reader.at - size, reader.at


def _segment(reader: Reader) -> tuple[int, int]:
    if reader.number():
        raise InternalError("wasm: segments of an object have addresses, got another kind")
    reader.byte()  # i32.const
    reader.number(signed=True)
    reader.byte()  # end
    return _place(reader)


def _import(reader: Reader) -> tuple[str, int] | None:
    """Read an import; return the name and the type of a function."""
    reader.block()
    name = reader.name()
    kind = reader.byte()
    if kind == FUNCTION:
        return name, reader.number()
    if kind in (TABLE, GLOBAL):
        reader.byte()
    if kind == GLOBAL:
        reader.byte()
        return None
    has_most = reader.byte() & 1
    reader.number()
    if has_most:
        reader.number()
    return None


def _relocation(reader: Reader) -> Relocation:
    kind, at, index = reader.byte(), reader.number(), reader.number()
    return Relocation(kind, at, index, reader.number(signed=True) if kind in _WITH_ADDEND else 0)


def _read_linking(module: WasmObject, reader: Reader) -> None:
    reader.number()
    while reader.at < len(reader.data):
        kind, body = reader.byte(), Reader(reader.block())
        if kind == _SEGMENTS:
            for _ in body.count():
                body.block()
                module.aligns.append(1 << body.number())
                body.number()
        elif kind == _SYMBOLS:
            module.symbols = [_symbol(body, module) for _ in body.count()]


def _symbol(reader: Reader, module: WasmObject) -> Symbol:
    kind, flags = reader.byte(), reader.number()
    if kind == OF_SECTION:
        return Symbol("", kind, flags, reader.number())
    if kind == OF_DATA:
        name = reader.name()
        name = module.names.get(name, name)
        if flags & UNDEFINED:
            return Symbol(name, kind, flags, 0)
        number, at, _ = reader.number(), reader.number(), reader.number()
        return Symbol(name, kind, flags, number, at)
    number = reader.number()
    named = not flags & UNDEFINED or flags & _EXPLICIT_NAME
    name = reader.name() if named else module.imported[number][0] if kind == OF_FUNCTION else ""
    return Symbol(module.names.get(name, name), kind, flags, number)


def vector(items: Sequence[bytes]) -> bytes:
    """Return items after their number."""
    return number(len(items)) + b"".join(items)
