"""Puts weights into a linked library: the linker only reserves their addresses, and never sees a byte of them.

    linked     LOAD ... | LOAD rw: .data .bss weights (NOBITS) |       NOTE
    written    LOAD ... | LOAD rw: .data .bss | LOAD r: weights |      at the end of the file

So a library is written once, in order, and linking takes no memory for weights. The note only provides a
program header, which becomes the weights'. Large weights lie a large page from the begin of the file: those that are in
a file of their own, with room before them, need not be written again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from aot.codegen.llvm.linking.elf_writer import NOBITS, PROGBITS, SHF_ALLOC, Data, aligned
from aot.codegen.llvm.weights import ROOM, WeightsFile
from aot.runtime.errors import PlatformError
from aot.runtime.loading.elf import HEADER, SECTION

SHT_NOTE = 7
_SEGMENT = struct.Struct("<IIQQQQQQ")  # type, flags, offset, address, physical, size in file, in memory, align
_LOAD, _NOTE, _PHDR, _READ = 1, 4, 6, 4
LARGE_PAGE = 2 << 20
GAP = 1 << 20  # bytes of padding in the file, at most, that place weights for large pages
LARGE = 64 << 20  # least bytes of weights that lie at `ROOM`, with up to 3 % of padding
_NOTE_BODY = struct.pack("<III", 4, 0, 0) + b"aot\0"


def placeholder() -> Data:
    """Return the note, for an object that reserves weights."""
    return Data(".note.aot", "", len(_NOTE_BODY), 4, [(0, _NOTE_BODY)], kind=SHT_NOTE)


def alignment(size: int, page: int) -> int:
    """Return the alignment of the section of `size` bytes of weights. `page`: bytes of the largest page."""
    return LARGE_PAGE if size >= LARGE else page


def append(
    path: Path, section: str, align: int, parts: Iterable[bytes | memoryview], file: WeightsFile | None = None
) -> None:
    """Write `parts`, the contents of the reserved `section`, after the linked library.

    `align`: bytes of the largest page. `file`: one with the same contents, which may become the library.
    PlatformError for a linker that has not put the section at the end of a segment.
    """
    with path.open("r+b") as stream:
        header: tuple[int, ...] = HEADER.unpack(stream.read(HEADER.size))
        segments = _table(stream, header[5], header[10], _SEGMENT)
        rows = _table(stream, header[6], header[12], SECTION)
        row = rows[_find(stream, rows, rows[header[13]], section)]
        at, align = _place(path.stat().st_size, row[3], row[5], align)
        _split(segments, row, at, align)
        row[1:3], row[4] = (PROGBITS, SHF_ALLOC), at
        segments.sort(key=lambda s: (s[0] != _PHDR, s[0] != _LOAD, s[3] if s[0] == _LOAD else 0))
        stream.seek(header[5])
        stream.write(b"".join(_SEGMENT.pack(*s) for s in segments))
        stream.seek(header[6])
        stream.write(b"".join(SECTION.pack(*r) for r in rows))
    if at == ROOM and file is not None and file.becomes(path):
        return
    with path.open("r+b") as stream:
        stream.seek(at)
        for piece in pieces(at, parts):
            stream.write(piece)


def _place(end: int, address: int, size: int, align: int) -> tuple[int, int]:
    """Return the offset of the contents in the file, and the alignment of their segment.

    Aligned to large pages, at an offset congruent to the address, a file that the system caches in large pages can be
    mapped in large pages.
    """
    if size >= LARGE and end <= ROOM and (address - ROOM) % LARGE_PAGE == 0:
        return ROOM, LARGE_PAGE
    like = end + (address - end) % LARGE_PAGE
    return (like, LARGE_PAGE) if size >= LARGE_PAGE and like - end <= GAP else (aligned(end, align), align)


def _table(stream: BinaryIO, at: int, count: int, form: struct.Struct) -> list[list[int]]:
    stream.seek(at)
    return [list(row) for row in form.iter_unpack(stream.read(count * form.size))]


def pieces(at: int, parts: Iterable[bytes | memoryview]) -> Iterator[bytearray | memoryview]:
    """Yield the same bytes in pieces of large pages: the system caches data written at once in pages as large."""
    buffered = bytearray()
    for part in parts:
        view = memoryview(part).cast("B")
        while len(view):
            room = LARGE_PAGE - (at + len(buffered)) % LARGE_PAGE
            here, view = view[:room], view[room:]
            if buffered or len(here) < room:
                buffered += here
            if len(here) == room:
                yield buffered or here
                at, buffered = at + len(buffered or here), bytearray()
    yield buffered


def _find(stream: BinaryIO, rows: list[list[int]], names: list[int], name: str) -> int:
    stream.seek(names[4])
    text = stream.read(names[5])
    for i, row in enumerate(rows):
        if text[row[0] :].split(b"\0", 1)[0] == name.encode() and row[1] == NOBITS:
            return i
    raise PlatformError(f"link: the linker keeps the section {name}, got a library without it")


def _split(segments: list[list[int]], row: list[int], at: int, align: int) -> None:
    """Move the section from the end of the segment that holds it to the segment of the note."""
    start, size = row[3], row[5]
    for s in segments:
        if s[0] == _LOAD and s[3] <= start < s[3] + s[6]:
            if s[3] + s[6] > aligned(start + size, align) or s[3] + s[5] > start:
                break
            s[6] = start - s[3]
            own = next(n for n in segments if n[0] == _NOTE) if s[6] else s
            own[:] = [_LOAD, _READ, at, start, start, size, size, align]
            return
    raise PlatformError("link: the linker puts reserved memory at the end of a segment, got it elsewhere")
