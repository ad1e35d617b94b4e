"""All readers of libraries have this in common: checked reads of an open file, its sections, its digest."""

from __future__ import annotations

import os
from importlib import import_module
from typing import BinaryIO, NamedTuple

from aot.runtime.errors import CorruptError, PlatformError
from aot.runtime.loading.digest import sha256

RELOCATABLE, SHARED_OBJECT = 1, 3
NO_BITS = 8
_FOREIGN = {b"MZ": ("pe", "PeFile", "Windows"), b"\xcf\xfa": ("macho", "MachFile", "macOS")}  # by the first bytes
_MAX_READ = 256 << 20  # bytes of one section at most


class Section(NamedTuple):
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
        """Return the SHA-256 of the file except for some sections."""
        gaps = [(section.offset, section.offset + section.size) for section in map(self.find, without)]
        gaps = sorted((*gaps, *self._changing))
        digest = sha256(self._size - sum(end - start for start, end in gaps))
        position = 0
        for start, end in (*gaps, (self._size, self._size)):
            while position < start:
                data = self._read(position, min(start - position, 1 << 20))
                digest.update(data)
                position += len(data)
            position = max(position, end)
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


def binary_file(stream: BinaryIO, name: str) -> BinaryFile:
    """Return the sections of an open ELF, PE or Mach-O file; CorruptError for a damaged one, and for any other.

    PlatformError for a file of another system where `aot.runtime` alone is installed.
    """
    stream.seek(0)
    module, reader, system = _FOREIGN.get(stream.read(2), ("", "", ""))
    if not module:
        return import_module(f"{__package__}.elf").ElfFile(stream, name)
    try:
        return getattr(import_module(f"{__package__}.foreign.{module}"), reader)(stream, name)
    except ModuleNotFoundError:
        rule = "the package aot reads libraries of other systems"
        raise PlatformError(f"load: {name} is a file of {system}, this system is another one; {rule}") from None
