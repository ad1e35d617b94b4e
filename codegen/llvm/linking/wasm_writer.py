"""Links objects of LLVM into a WebAssembly module, without a linker.

    types, functions, table, memory, stack pointer, exports | code | data: program, manifest, weights | seal

External weights are no segment: memory is kept for them, and who loads the module fills it.

With threads, it imports its memory and what starts, wakes and times them; the first instance fills the memory.

Memory: the stack, which ends with a trap where it is full; data; manifest; weights; what callers allocate. The module
exports its memory, its table of functions, in which function pointers are places, and the functions
that objects do not hide.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from aot.codegen.llvm.linking import wasm_object as wasm
from aot.codegen.llvm.linking.elf_writer import Data, Writer, aligned
from aot.codegen.llvm.linking.wasm_object import Relocation, Symbol, WasmObject, number, signed_number, vector
from aot.codegen.machines import Machine
from aot.codegen.platforms import Platform
from aot.runtime.abi import SEAL_SECTION
from aot.runtime.errors import InternalError, UnsupportedError
from aot.runtime.loading.foreign.wasm import CODE, CUSTOM, DATA, MAGIC

_PAGE, _STACK = 64 << 10, 1 << 20
_MOST_BYTES = (1 << 30) - (1 << 20)  # most bytes of a module that engines take
_MOST_MEMORY = 1 << 31  # bytes below those that it allocates
_PADDED = 5  # bytes of a number that a relocation changes
_TABLE_SECTION, _MEMORY_SECTION, _GLOBAL_SECTION, _EXPORT_SECTION, _ELEMENT_SECTION, _COUNT_SECTION = 4, 5, 6, 7, 9, 12
_I32, _FUNCTIONS, _END, _MEMORY_INIT = b"\x7f", b"\x70", b"\x0b", b"\xfc\x08"
_NO_PARAMETERS = b"\x60\0\0"  # type of a function
_MOST_PAGES = 1 << 15  # most pages of memory that threads share: it needs a bound
# Types of relocations: numbers of functions, types, globals and tables; places in the table; addresses.
_CALL, _TABLE_CODE, _TABLE_DATA, _LEB, _SLEB, _I32_DATA, _TYPE, _GLOBAL, _TABLE = 0, 1, 2, 3, 4, 5, 6, 7, 20


class WasmModule:
    """A module under construction; `sections` are data that define symbols which the objects lack, weights last."""

    def __init__(self, code: bytes, sections: Sequence[Data], platform: Platform, machine: Machine) -> None:
        del machine
        self.objects = wasm.unpacked(code)
        (self.seal,) = (data for data in sections if data.section == SEAL_SECTION)
        self.own = [data for data in sections if data is not self.seal]
        self.types: dict[bytes, int] = {}
        self.table: dict[int, int] = {}  # places of functions
        self.first: list[int] = []  # number of the first function of each object
        called = {name: i for i, each in enumerate(self.objects) for name, _ in each.imported}
        self.imports = [
            (file, name, called[name]) for file, names in platform.imports.items() for name in names if name in called
        ]
        count = len(self.imports)
        for each in self.objects:
            self.first.append(count)
            count += len(each.defined)
        self.places = self._place_segments()
        self.addresses = {name: self.at[i] for i, data in enumerate(self.own) for name in (data.symbol, *data.aliases)}
        self.functions = {name: k for k, (_, name, _) in enumerate(self.imports)}
        for i, each in enumerate(self.objects):
            self._define(i, each)
        self.exports = {name: index for name, index in self.functions.items() if name in self._shown}
        self.count = count
        for i, each in enumerate(self.objects):
            self._relocate(i, each, each.code, "reloc.CODE")
            self._relocate(i, each, each.data, "reloc.DATA")

    def _place_segments(self) -> list[list[int]]:
        """Place data in memory; set `at`, of `own`, and `end`."""
        at, addresses = _STACK, list[list[int]]()
        for each in self.objects:
            addresses.append([])
            for (begin, end), align in zip(each.segments, each.aligns, strict=True):
                at = aligned(at, align)
                addresses[-1].append(at)
                at += end - begin
        self.at: list[int] = []
        for data in self.own:
            self.at.append(aligned(at, 64))
            at = self.at[-1] + data.size
        self.end = aligned(at, 64)
        size = self.end - sum(data.size for data in self.own if data.reserved)
        if size > _MOST_BYTES:
            raise UnsupportedError(f"write: a module has at most {_MOST_BYTES} bytes, got {size}")
        if self.end > _MOST_MEMORY:
            raise UnsupportedError(f"write: a module has at most {_MOST_MEMORY} bytes of data, got {self.end}")
        return addresses

    @property
    def filled(self) -> list[tuple[int, Data]]:
        """Addresses and data of `own` in the module; external weights are left out."""
        return [(at, data) for at, data in zip(self.at, self.own, strict=True) if not data.reserved]

    def _define(self, i: int, each: WasmObject) -> None:
        for symbol in each.symbols:
            if symbol.flags & (wasm.UNDEFINED | wasm.LOCAL):
                continue
            if symbol.kind == wasm.OF_DATA:
                self.addresses[symbol.name] = self.places[i][symbol.number] + symbol.at
            elif symbol.kind == wasm.OF_FUNCTION:
                if symbol.name in self.functions:
                    raise InternalError(f"link: a function is defined once, got {symbol.name} twice")
                self.functions[symbol.name] = self.first[i] + symbol.number - len(each.imported)

    @property
    def _shown(self) -> frozenset[str]:
        hidden = wasm.HIDDEN | wasm.LOCAL | wasm.UNDEFINED
        return frozenset(s.name for each in self.objects for s in each.symbols if not s.flags & hidden)

    def _function(self, i: int, symbol: Symbol) -> int:
        imported = len(self.objects[i].imported)
        if symbol.flags & wasm.UNDEFINED:
            if symbol.name not in self.functions:
                raise InternalError(f"link: code calls functions that the module has, got {symbol.name}")
            return self.functions[symbol.name]
        return self.first[i] + symbol.number - imported

    def _address(self, i: int, symbol: Symbol) -> int:
        if not symbol.flags & wasm.UNDEFINED:
            return self.places[i][symbol.number] + symbol.at
        if symbol.name not in self.addresses:
            raise InternalError(f"link: code reads data that the module has, got {symbol.name}")
        return self.addresses[symbol.name]

    def _type(self, i: int, index: int) -> int:
        return self.types.setdefault(self.objects[i].types[index], len(self.types))

    def _relocate(self, i: int, each: WasmObject, body: bytearray, section: str) -> None:
        for row in each.relocations.get(section, ()):
            value = self._value(i, each, row)
            body[row.at : row.at + len(value)] = value

    def _value(self, i: int, each: WasmObject, row: Relocation) -> bytes:
        if row.kind == _TYPE:
            return number(self._type(i, row.index), _PADDED)
        symbol = each.symbols[row.index]
        if row.kind == _CALL:
            return number(self._function(i, symbol), _PADDED)
        if row.kind in (_TABLE_CODE, _TABLE_DATA):
            index = self.table.setdefault(self._function(i, symbol), len(self.table) + 1)
            return signed_number(index, _PADDED) if row.kind == _TABLE_CODE else index.to_bytes(4, "little")
        if row.kind in (_GLOBAL, _TABLE):  # there is one of each
            return number(0, _PADDED)
        if row.kind not in (_LEB, _SLEB, _I32_DATA):
            raise InternalError(f"link: a relocation must be of a known type, got {row.kind}")
        address = self._address(i, symbol) + row.addend
        if row.kind == _I32_DATA:
            return (address & 0xFFFFFFFF).to_bytes(4, "little")
        return number(address, _PADDED) if row.kind == _LEB else signed_number(address, _PADDED)

    def write(self, stream: BinaryIO) -> None:
        """Write the module in order, with zeros for its seal; the contents of `own` are read once."""
        out = Writer(stream)
        out.write(MAGIC)
        types = [number(self._type(i, t)) for i, each in enumerate(self.objects) for t in each.defined]
        bodies = [_sized(bytes(o.code[begin:end])) for o in self.objects for begin, end in o.bodies]
        exports = [(b"memory", wasm.MEMORY, 0), (b"table", wasm.TABLE, 0)]
        exports += [(name.encode(), wasm.FUNCTION, index) for name, index in self.exports.items()]
        pages = number(-(-self.end // _PAGE))
        memory: list[bytes] = [b"\0" + pages]
        if self.imports:  # threads: the memory is the host's, and the first instance fills it
            exports += [(b"stack", wasm.GLOBAL, 0), (b"fill_memory", wasm.FUNCTION, self.count)]
            types.append(number(self.types.setdefault(_NO_PARAMETERS, len(self.types))))
            bodies.append(_sized(self._filling()))
            memory = []
        imports = [
            _name(file) + _name(name) + b"\0" + number(self._import_type(name, i)) for file, name, i in self.imports
        ]
        imports += [_name("aot") + _name("memory") + b"\2\3" + pages + number(_MOST_PAGES)] * bool(self.imports)
        elements = b"\0" + _constant(1) + vector([number(f) for f in self.table])
        for kind, body in (
            (wasm.TYPES, vector(list(self.types))),
            (wasm.IMPORTS, vector(imports)),
            (wasm.FUNCTIONS, vector(types)),
            (_TABLE_SECTION, b"\1" + _FUNCTIONS + b"\0" + number(len(self.table) + 1)),
            (_MEMORY_SECTION, vector(memory)),
            (_GLOBAL_SECTION, b"\1" + _I32 + b"\1" + _constant(_STACK)),
            (_EXPORT_SECTION, vector([_sized(name) + bytes((kind,)) + number(index) for name, kind, index in exports])),
            (_ELEMENT_SECTION, b"\1" + elements),
            (_COUNT_SECTION, number(1 + len(self.filled))),
            (CODE, vector(bodies)),
        ):
            out.write(bytes((kind,)) + _sized(body))
        addresses = (_STACK, *(at for at, _ in self.filled))
        starts = [b"\1" if self.imports else b"\0" + _constant(at) for at in addresses]
        heads = [start + number(data.size) for start, (_, data) in zip(starts[1:], self.filled, strict=True)]
        first = number(len(starts)) + starts[0] + _sized(self._program())
        data_bytes = len(first) + sum(len(head) + data.size for head, (_, data) in zip(heads, self.filled, strict=True))
        out.write(bytes((DATA,)) + number(data_bytes) + first)
        for head, (_, data) in zip(heads, self.filled, strict=True):
            out.write(head)
            out.blocks(out.position, data.blocks, data.size)
        name = _sized(self.seal.section.encode())
        out.write(bytes((CUSTOM,)) + number(len(name) + self.seal.size) + name)
        out.blocks(out.position, self.seal.blocks, self.seal.size)

    def _import_type(self, name: str, i: int) -> int:
        return self._type(i, dict(self.objects[i].imported)[name])

    def _filling(self) -> bytes:
        """Return the body of a function that fills the memory with the segments of data."""
        body = b"\0"  # no locals
        rows = [(_STACK, len(self._program())), *((at, data.size) for at, data in self.filled)]
        for k, (at, size) in enumerate(rows):
            numbers = b"".join(_constant(n)[:-1] for n in (at, 0, size))
            body += numbers + _MEMORY_INIT + number(k) + b"\0"
        return body + _END

    def _program(self) -> bytes:
        body = bytearray()
        for each, addresses in zip(self.objects, self.places, strict=True):
            for (begin, end), at in zip(each.segments, addresses, strict=True):
                body += bytes(at - _STACK - len(body)) + each.data[begin:end]
        return bytes(body)

    def sign(self, path: Path) -> None:
        """Modules have no signature."""


def _name(text: str) -> bytes:
    return _sized(text.encode())


def _sized(body: bytes) -> bytes:
    return number(len(body)) + body


def _constant(value: int) -> bytes:
    """Return the expression that is an i32."""
    size = 1
    while not -(1 << 7 * size - 1) <= value < 1 << 7 * size - 1:
        size += 1
    return b"\x41" + signed_number(value, size) + _END
