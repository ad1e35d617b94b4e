"""Links an object of LLVM into a library of macOS, a Mach-O file with a signature of its own, without a linker.

    __TEXT: headers, code, constants | __DATA: addresses, data | __AOT: manifest, seal, weights | __LINKEDIT: tables

A place in the file is the place in memory. Nothing in it depends on time or on the name of the file. At its end is a
signature of nobody ("ad hoc"): the system runs no code of an Apple processor without one.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from aot.codegen.llvm.linking.elf_writer import Data, Writer, aligned
from aot.codegen.llvm.linking.image import Area, Image
from aot.codegen.llvm.linking.relocatable import taken_apart
from aot.codegen.machines import Machine
from aot.codegen.platforms import Platform
from aot.runtime.loading.foreign.macho import (
    CPUS,
    HEADER,
    LIBRARY,
    LOAD_SEGMENT,
    MAGIC,
    NAMES,
    SECTION,
    SEGMENT,
    SIGNATURE,
)

_PAGE, _HASHED = 16 << 10, 4096  # of memory; of a signature
_READ, _WRITE, _EXECUTE = 1, 2, 4
_FLAGS = 0x100085  # all symbols are found, each in one library
_CODE, _POINTERS = 0x80000400, 6  # flags of sections: instructions; addresses of functions of other libraries
# Load commands: places of the tables, tables of symbols, an identity, the system's version, names of libraries.
_TABLES, _SYMBOLS, _DYNAMIC_SYMBOLS, _UUID, _BUILT_FOR, _OWN_NAME, _NEEDED = 0x80000022, 2, 0xB, 0x1B, 0x32, 0xD, 0xC
_VERSION = 14 << 16 | 4 << 8  # macOS 14.4
_NAME = b"@rpath/model.dylib"
_IDENTIFIER = b"aot.model\0"
_DIRECTORY = struct.Struct(">9I4B4I4Q")
_AD_HOC = 0x20002  # made by a linker, for nobody


class MachImage(Image):
    """An image of macOS under construction."""

    def __init__(self, code: bytes, sections: Sequence[Data], platform: Platform, machine: Machine) -> None:
        self.slots = Area("__got", _POINTERS)
        areas = Area("__text", _CODE), Area("__const"), Area("__data")
        others = [Area(NAMES[data.section], size=data.size, source=data) for data in sections]
        super().__init__(taken_apart(code), areas, others, platform, machine)
        self.data.data += bytes(self.data.size - len(self.data.data))
        self.names = [name for names in self.imports.values() for name in names]
        self.slots.add(bytes(8 * len(self.names)))
        self.segments = [
            ("__TEXT", _READ | _EXECUTE, [self.text, self.constants]),
            ("__DATA", _READ | _WRITE, [self.slots, self.data]),
            ("__AOT", _READ, self.others),
        ]
        self.starts: list[int] = []
        self.linkedit = self.signature_at = self.end = 0
        self.tables: list[bytes] = [b""] * 6
        at = aligned(HEADER.size + len(b"".join(self._commands())), 64)
        for _, _, inside in self.segments:
            self.starts.append(aligned(at, _PAGE) if self.starts else 0)
            at = max(at, self.starts[-1])
            for area in inside:
                align = _PAGE if area.source is not None and area.source.align >= 4096 else 64
                area.at = at = aligned(at, align)
                at += area.size
        self.linkedit = aligned(at, _PAGE)
        self.check_size(self.linkedit)
        self.aim_jumps({name: self.slots.at + 8 * i for i, name in enumerate(self.names)})
        self.relocate(0)
        self.tables = [self._rebases(), self._binds(), self._exports(), *self._symbols()]
        self.signature_at = aligned(self._table_places()[-1][0] + self._table_places()[-1][1], 16)
        self.end = self.signature_at + self._signature_size()

    def _table_places(self) -> list[tuple[int, int]]:
        """Return where each table begins in the file, and its bytes."""
        extents: list[tuple[int, int]] = []
        at = self.linkedit
        for table in self.tables:
            extents.append((at, len(table)))
            at = aligned(at + len(table), 8)
        return extents

    def _data_offset(self, address: int) -> bytes:
        return _uleb(address - self.starts[1])

    def _rebases(self) -> bytes:
        """Return instructions that add the image's address to each whole address."""
        addresses = sorted(area.at + at for area, at in self.absolute())
        return b"\x11" + b"".join(b"\x21" + self._data_offset(at) + b"\x51" for at in addresses) + b"\0"

    def _binds(self) -> bytes:
        """Return instructions that write the address of each imported function to its slot."""
        body = bytearray()
        for i, name in enumerate(self.names):
            body += b"\x11\x40_" + name.encode() + b"\0\x51\x71" + self._data_offset(self.slots.at + 8 * i) + b"\x90"
        return bytes(body) + b"\0"

    def _exports(self) -> bytes:
        """Return the tree of exported symbols: a root with an edge to each."""
        leaves = [b"\0" + _uleb(area.at + offset) for area, offset in self.exports.values()]
        edges = [b"_" + name.encode() + b"\0" for name in self.exports]
        at = 2 + sum(map(len, edges)) + 4 * len(edges)  # each offset takes four bytes
        root = bytearray((0, len(edges)))
        for edge, leaf in zip(edges, leaves, strict=True):
            root += edge + _uleb(at, 4)
            at += 2 + len(leaf)
        return bytes(root) + b"".join(bytes((len(leaf),)) + leaf + b"\0" for leaf in leaves)

    def _symbols(self) -> tuple[bytes, bytes, bytes]:
        """Return the table of symbols, the numbers of those that slots are for, and their names."""
        names, rows = bytearray(b" \0"), bytearray()
        for name, (area, offset) in self.exports.items():
            rows += struct.pack("<IBBHQ", len(names), 0x0F, 1, 0, area.at + offset)
            names += b"_" + name.encode() + b"\0"
        for name in self.names:  # defined by the first needed library
            rows += struct.pack("<IBBHQ", len(names), 0x01, 0, 1 << 8, 0)
            names += b"_" + name.encode() + b"\0"
        first = len(self.exports)
        return bytes(rows), struct.pack(f"<{len(self.names)}I", *range(first, first + len(self.names))), bytes(names)

    def _commands(self) -> list[bytes]:
        """Return the load commands; their sizes do not depend on places."""
        starts = [*self.starts, self.linkedit] if self.starts else [0] * (len(self.segments) + 1)
        commands: list[bytes] = []
        for i, (name, access, inside) in enumerate(self.segments):
            size = starts[i + 1] - starts[i]
            rows = [
                SECTION.pack(
                    *(area.name.encode(), name.encode(), area.at, area.size, area.at, 6),
                    *(0, 0, area.flags, 0, 0, 0),
                )
                for area in inside
            ]
            commands.append(_segment(name, starts[i], size, size, access, rows))
        in_linkedit = max(self.end - self.linkedit, 0)
        commands.append(_segment("__LINKEDIT", self.linkedit, aligned(in_linkedit, _PAGE), in_linkedit, _READ, []))
        (rebase, bind, export, symbols, slots, names) = self._table_places()
        (library,) = self.platform.imports
        count, unknown = len(self.exports), len(self.names)
        commands += [
            _library(_OWN_NAME, _NAME),
            struct.pack("<12I", _TABLES, 48, *rebase, *bind, 0, 0, 0, 0, *export),
            struct.pack("<6I", _SYMBOLS, 24, symbols[0], count + unknown, *names),
            struct.pack("<8I", _DYNAMIC_SYMBOLS, 80, 0, 0, 0, count, count, unknown)
            + bytes(24)
            + struct.pack("<2I", slots[0], unknown)
            + bytes(16),
            struct.pack("<2I", _UUID, 24) + hashlib.sha256(" ".join(self.exports).encode()).digest()[:16],
            struct.pack("<6I", _BUILT_FOR, 24, 1, _VERSION, _VERSION, 0),
            _library(_NEEDED, library.encode()),
            struct.pack("<4I", SIGNATURE, 16, self.signature_at, self.end - self.signature_at),
        ]
        return commands

    def write(self, stream: BinaryIO) -> None:
        commands = self._commands()
        body = b"".join(commands)
        out = Writer(stream)
        number = CPUS[self.machine.architecture.elf]
        out.write(HEADER.pack(MAGIC, number, 0, LIBRARY, len(commands), len(body), _FLAGS, 0) + body)
        for area in (area for _, _, inside in self.segments for area in inside):
            area.write(out, area.at)
        for (at, _), table in zip(self._table_places(), self.tables, strict=True):
            out.pad_to(at)
            out.write(table)
        out.pad_to(self.end)

    def _signature_size(self) -> int:
        pages = -(-self.signature_at // _HASHED)
        return aligned(20 + _DIRECTORY.size + len(_IDENTIFIER) + 32 * pages, 16)

    def sign(self, path: Path) -> None:
        """Write the signature: the SHA-256 of each page before it."""
        with path.open("r+b") as stream:
            pages = range(0, self.signature_at, _HASHED)
            hashes = [hashlib.sha256(stream.read(min(_HASHED, self.signature_at - at))).digest() for at in pages]
            start = _DIRECTORY.size + len(_IDENTIFIER)
            size = start + 32 * len(hashes)
            directory = _DIRECTORY.pack(
                *(0xFADE0C02, size, 0x20400, _AD_HOC, start, _DIRECTORY.size, 0, len(hashes), self.signature_at),
                *(32, 2, 0, 12, 0, 0, 0, 0, 0, 0, self.starts[1], 0),
            )
            stream.seek(self.signature_at)
            stream.write(
                struct.pack(">5I", 0xFADE0CC0, 20 + size, 1, 0, 20) + directory + _IDENTIFIER + b"".join(hashes)
            )


def _segment(name: str, at: int, size: int, file_bytes: int, access: int, rows: Iterable[bytes]) -> bytes:
    body = b"".join(rows)
    count = len(body) // SECTION.size
    head = SEGMENT.pack(
        LOAD_SEGMENT, SEGMENT.size + len(body), name.encode(), at, size, at, file_bytes, access, access, count, 0
    )
    return head + body


def _library(kind: int, name: bytes) -> bytes:
    size = aligned(24 + len(name) + 1, 8)
    return struct.pack("<6I", kind, size, 24, 2, 1 << 16, 1 << 16) + name.ljust(size - 24, b"\0")


def _uleb(number: int, least: int = 1) -> bytes:
    """Return a number in groups of seven bits, the lowest first, in at least that many bytes."""
    body = bytearray()
    while number >> 7 or len(body) + 1 < least:
        body.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*body, number))
