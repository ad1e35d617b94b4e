"""The entries of an archive, checked before anything of them is read.

    m/archive_version   m/byteorder   m/models/model.json   m/data/weights/weight_0 ...     in one folder
    hand_detector.tflite   hand_landmarks_detector.tflite                                   flat

Entries that are stored as they are, as PyTorch stores them, are mapped and not copied. Pickled entries are never read.
"""

from __future__ import annotations

import json
import mmap
import zlib
from dataclasses import field
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from aot.codegen.dataclass import dataclass
from aot.runtime.errors import BudgetError, CorruptError, UnsupportedError
from aot.runtime.regular import open_file

MAX_ENTRIES = 1 << 18  # two for each tensor of the largest networks, with room
MAX_JSON_BYTES = 1 << 28  # networks of 10 000 nodes have a few MB
MAX_INFLATION = 64  # times as many bytes as a packed entry has; JSON shrinks to a tenth, weights hardly
SLACK = 1 << 20  # bytes that may always be unpacked
MAX_LETTERS = 255  # characters of a file name without its folders
LOCAL_HEADER = 30  # bytes of the header before an entry, without name and extra field


@dataclass(slots=True)
class Archive:
    """A zip. `root`: the folder that all names begin with, if any; `entries`: by their names below it."""

    file: str
    data: memoryview
    zip: ZipFile
    root: str
    entries: dict[str, ZipInfo] = field(default_factory=dict[str, ZipInfo])

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def read(self, name: str) -> memoryview:
        """Return the bytes of an entry. CorruptError if there is none or if it is damaged."""
        info = self.entries.get(name)
        if info is None:
            raise CorruptError(f"{self.file}: the archive must have an entry {name!r}, got none")
        if info.compress_type == ZIP_STORED:
            return self._stored(info)
        try:
            return memoryview(self.zip.read(info))
        except (BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
            raise self._damaged(info, str(error)) from error

    def text(self, name: str) -> str:
        try:
            return bytes(self.read(name)).decode().strip()
        except UnicodeDecodeError as error:
            raise self._damaged(self.entries[name], "no UTF-8") from error

    def json(self, name: str) -> Any:
        """Return the value in an entry. CorruptError if it is no JSON; BudgetError if it is too long."""
        info = self.entries.get(name)
        if info is not None and info.file_size > MAX_JSON_BYTES:
            rule = f"JSON has at most {MAX_JSON_BYTES} bytes"
            raise BudgetError(f"{self.file}: {name}: {rule}, got {info.file_size}")
        try:
            return json.loads(bytes(self.read(name)))
        except (ValueError, RecursionError) as error:
            raise CorruptError(f"{self.file}: {name}: no JSON: {error}") from error

    def head(self, name: str, count: int) -> bytes:
        """Return the first bytes of an entry; nothing else of it is read or checked."""
        info = self.entries[name]
        try:
            with self.zip.open(info) as file:
                return file.read(count)
        except (BadZipFile, zlib.error, EOFError, OSError, RuntimeError) as error:
            raise self._damaged(info, str(error)) from error

    def _stored(self, info: ZipInfo) -> memoryview:
        """Return the bytes of an entry where they lie."""
        head = self.data[info.header_offset : info.header_offset + LOCAL_HEADER]
        if bytes(head[:4]) != b"PK\x03\x04" or len(head) < LOCAL_HEADER:
            raise self._damaged(info, "its header is missing")
        lengths = (int.from_bytes(head[i : i + 2], "little") for i in (26, 28))
        start = info.header_offset + LOCAL_HEADER + sum(lengths)
        result = self.data[start : start + info.file_size]
        if len(result) != info.file_size or info.compress_size != info.file_size:
            raise self._damaged(info, f"it has {info.file_size} bytes, got {len(result)}")
        if zlib.crc32(result) != info.CRC:
            raise self._damaged(info, "its checksum differs")
        return result

    def _damaged(self, info: ZipInfo, reason: str) -> CorruptError:
        return CorruptError(f"{self.file}: entry {info.filename!r} is damaged: {reason}")


def open_archive(path: Path, *, is_flat: bool = False) -> Archive:
    """Map a file and check its entries, see `archive_of`."""
    with open_file(path, "model") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return archive_of(data, path.name, path, is_flat=is_flat)


def archive_of(data: memoryview, file: str, source: Path | None = None, *, is_flat: bool = False) -> Archive:
    """Return the archive in bytes, its entries checked. `is_flat`: they lie in no folder, instead of in one.

    `source`: the file that has these bytes. CorruptError for a zip that is damaged or whose names are others;
    BudgetError for one that would unpack to far more than it has.
    """
    try:
        archive = ZipFile(BytesIO(data) if source is None else source)
    except (BadZipFile, OSError, ValueError, NotImplementedError, RecursionError) as error:
        raise CorruptError(f"{file}: no zip archive: {error}") from error
    infos = [i for i in archive.infolist() if not i.is_dir()]
    if not 0 < len(infos) <= MAX_ENTRIES:
        raise CorruptError(f"{file}: an archive must have 1 to {MAX_ENTRIES} entries, got {len(infos)}")
    result = Archive(file, data, archive, "" if is_flat else infos[0].filename.partition("/")[0])
    for info in infos:
        result.entries[_inner_name(info, result)] = info
    _check_sizes(infos, result)
    return result


def _inner_name(info: ZipInfo, archive: Archive) -> str:
    """Return the checked name of an entry below the root."""
    name = _flat_name(info, archive) if not archive.root else _name_in_root(info, archive)
    if name in archive.entries:
        raise CorruptError(f"{archive.file}: names of entries must differ, got {name!r} twice")
    if info.flag_bits & 1:
        raise UnsupportedError(f"{archive.file}: entries must not be encrypted, got {name!r} encrypted")
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise UnsupportedError(f"{archive.file}: {name}: entries must be stored or deflated, got {info.compress_type}")
    return name


def _flat_name(info: ZipInfo, archive: Archive) -> str:
    if not is_plain(info.filename):
        raise CorruptError(f"{archive.file}: names of entries must have no folders, got {info.filename!r}")
    return info.filename


def _name_in_root(info: ZipInfo, archive: Archive) -> str:
    parts = info.filename.split("/")
    if len(parts) < 2 or parts[0] != archive.root or any(p in ("", ".", "..") for p in parts) or "\\" in info.filename:
        raise CorruptError(f"{archive.file}: entries must lie in the folder {archive.root!r}, got {info.filename!r}")
    return "/".join(parts[1:])


def is_plain(name: str) -> bool:
    """True for a name that is no path and can be shown."""
    return (
        0 < len(name) <= MAX_LETTERS and name not in (".", "..") and name.isprintable() and not set(name) & set("/\\:")
    )


def _check_sizes(infos: list[ZipInfo], archive: Archive) -> None:
    for info in infos:
        if info.file_size > SLACK + MAX_INFLATION * info.compress_size:
            rule = f"an entry unpacks to at most {MAX_INFLATION} times its size"
            raise BudgetError(f"{archive.file}: {rule}, got {info.file_size} bytes from {info.compress_size}")
    total = sum(i.compress_size for i in infos)
    if total > len(archive.data):
        raise CorruptError(f"{archive.file}: entries must not overlap, got {total} bytes in {len(archive.data)}")
