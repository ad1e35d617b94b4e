"""Texts of a file for people: its description, its tensors' normalisation, and the files packed with it, as labels.

Packed files are a zip archive after the tables.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any
from zipfile import BadZipFile, ZipFile

from aot.frontends.tflite.nets import Nets
from aot.frontends.tflite.normalization import ENTRY, tensors_described

MAX_FILES = 100  # files of the archive that are listed
MAX_BYTES = 1 << 20  # bytes of a file whose lines are counted
MAX_TEXT = 500  # characters of a text


def described(nets: Nets) -> dict[str, str]:
    """Return texts about a model by their subject: description, metadata, files, tensors."""
    texts: dict[str, str] = {}
    description = nets.model.text("Description")
    if description:
        texts["description"] = description[:MAX_TEXT]
    entries = nets.model.tables("Metadata")
    names = [entry.text("Name") for entry in entries]
    if names:
        texts["metadata"] = ", ".join(names[:MAX_FILES])[:MAX_TEXT]
    for entry, name in zip(entries, names, strict=True):
        number = int(entry.number("Buffer"))
        if name == ENTRY and number < len(nets.buffers):
            texts |= tensors_described(nets.buffers[number].array("Data").tobytes())
    files = packed_files(nets.data)
    if files:
        texts["files"] = ", ".join(files)[:MAX_TEXT]
    return texts


def packed_files(data: Any) -> list[str]:
    """Return the files packed with a model; texts with their number of lines."""
    try:
        with ZipFile(BytesIO(data)) as archive:
            return [_named(archive, info) for info in archive.infolist()[:MAX_FILES]]
    except (BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError):
        return []


def _named(archive: ZipFile, info: Any) -> str:
    if not info.filename.endswith(".txt") or info.file_size > MAX_BYTES:
        return str(info.filename)
    with archive.open(info) as file:
        lines = len(file.read(MAX_BYTES).splitlines())
    return f"{info.filename} ({lines} lines)"
