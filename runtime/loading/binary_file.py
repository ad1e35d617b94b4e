"""Checked reads of an open library, its sections and its digest, which the readers of all formats share."""

from __future__ import annotations

import os
from importlib import import_module
from typing import BinaryIO, NamedTuple

from aot.runtime.errors import CorruptError, PlatformError
from aot.runtime.loading.digest import sha256

RELOCATABLE, SHARED_OBJECT = 1, 3
PROGRAM_BITS, NO_BITS = 1, 8  # kinds of sections: with bytes in the file, and without
_FOREIGN = {  # readers of libraries of other systems, by the first bytes of the file
    b"MZ": ("pe", "PeFile", "Windows"),
    b"\xcf\xfa\xed\xfe": ("macho", "MachFile", "macOS"),
    b"\0asm": ("wasm", "WasmFile", "WebAssembly"),
}
FIRST_BYTES = (b"\x7fELF", *_FOREIGN)  # begins of libraries
_MAX_READ = 256 << 20  # bytes of one section at most
_BLOCK = 1 << 20  # bytes that are hashed at once


class Section(NamedTuple):
    """A section of `size` bytes, from byte `offset` of the file on; `kind`: sh_type of ELF, whatever the format."""

    name: str
    kind: int
    offset: int
    size: int


class BinaryFile:
    """Sections of an open file; every offset is checked against the size of the file before it is used."""

    kind: int  # RELOCATABLE or SHARED_OBJECT, as all kinds of ELF
    machine: int  # e_machine of ELF, whatever the format
    sections: tuple[Section, ...]
    _changing: tuple[tuple[int, int], ...] = ()  # parts of the file that are not part of the digest

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream = stream
        self._name = name
        self._size = os.fstat(stream.fileno()).st_size

    def find(self, name: str) -> Section:
        """Return the section called `name`, which is within the file; CorruptError if there is none."""
        for section in self.sections:
            if section.name == name and section.kind != NO_BITS and section.offset + section.size <= self._size:
                return section
        raise self._corrupt(f"none with the section {name}")

    def section(self, name: str) -> bytes:
        """Return the contents of the section called `name`; CorruptError if there is none."""
        section = self.find(name)
        return self._read(section.offset, section.size)

    def digest(self, without: tuple[str, ...]) -> bytes:
        """Return the SHA-256 of the file except for some sections; CorruptError if its parts overlap."""
        gaps = [(section.offset, section.offset + section.size) for section in map(self.find, without)]
        gaps = [*sorted((*gaps, *self._changing)), (self._size, self._size)]
        ends = [0, *(end for _, end in gaps)]
        if any(not before <= start <= end for before, (start, end) in zip(ends, gaps, strict=False)):
            raise self._corrupt("one whose parts overlap, or lie behind its end")
        digest = sha256(self._size - sum(end - start for start, end in gaps))
        for begin, (end, _) in zip(ends, gaps, strict=False):
            for at in range(begin, end, _BLOCK):
                digest.update(self._read(at, min(end - at, _BLOCK)))
        return digest.digest()

    def _read(self, offset: int, size: int) -> bytes:
        if size > _MAX_READ or offset + size > self._size:
            raise self._corrupt("one that is cut short or damaged")
        self._stream.seek(offset)
        data = self._stream.read(size)
        if len(data) != size:
            raise self._corrupt("one that is cut short")
        return data

    def _corrupt(self, what: str, advice: str = "") -> CorruptError:
        return CorruptError(f"load: {self._name}: must be a whole compiled model, got {what}", advice=advice)


def is_foreign(head: bytes) -> bool:
    """True if a file with these first bytes, 4 or more, is a library of Windows or macOS, or a WebAssembly module."""
    return _foreign(head) is not None


def _foreign(head: bytes) -> tuple[str, str, str] | None:
    return next((reader for first, reader in _FOREIGN.items() if head.startswith(first)), None)


def binary_file(stream: BinaryIO, name: str) -> BinaryFile:
    """Return the sections of an open ELF, PE, Mach-O or WebAssembly file; CorruptError for a damaged or other one.

    PlatformError for a file of another system where `aot.runtime` alone is installed.
    """
    stream.seek(0)
    foreign = _foreign(stream.read(4))
    if foreign is None:
        return import_module(f"{__package__}.elf").ElfFile(stream, name)
    module, reader, system = foreign
    try:
        return getattr(import_module(f"{__package__}.foreign.{module}"), reader)(stream, name)
    except ModuleNotFoundError:
        rule = "the package aot reads libraries of other systems"
        raise PlatformError(f"load: {name} is a file of {system}, this system is another one; {rule}") from None
