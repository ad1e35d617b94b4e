"""Files that a library was made of, with their hashes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from aot.codegen.dataclass import dataclass
from aot.compilation.cache import files_of
from aot.runtime.regular import open_file


@dataclass(frozen=True, slots=True)
class Material:
    """A file: its name without folders, SHA-256 in hexadecimal, bytes."""

    name: str
    sha256: str
    size: int


def material(path: Path) -> Material:
    """Return the facts of a file; OSError if it cannot be read."""
    with open_file(path, "hash") as stream:
        return Material(path.name, hashlib.file_digest(stream, "sha256").hexdigest(), path.stat().st_size)


def materials(model: Path) -> list[Material]:
    """Return the files of a model, as an .xml and its .bin, in reading order."""
    return [material(path) for path in files_of(model)]
