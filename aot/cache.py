"""Compiled models kept in a folder, found again by the content of the model's files, the options and the compiler.

    <folder>/<key>.so     key: SHA-256 of files, options, target's features, version and source of the compiler
    <folder>/<key>.weights

Entries appear whole or not at all, whichever processes write them; a damaged one is made again, with a warning.
"""

from __future__ import annotations

import hashlib
import logging
import mmap
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from pathlib import Path
from shutil import rmtree

import codegen
from aot.extensions import digest_of
from aot.options import CompileOptions
from codegen.llvm.levels import names_of
from codegen.target import Target
from runtime.errors import AotError, PlatformError, UsageError
from runtime.library import read_manifest, verify
from runtime.model import CompiledModel, load
from runtime.version import VERSION
from runtime.weights import beside

_LOG = logging.getLogger(__name__)
_LEFT_OUT = (  # change no code; extensions count by their content
    "print_after", "save_temps", "on_event", "on_dump", "extensions", "max_memory", "max_seconds", "hard_limits",
)  # fmt: skip
_ABANDONED = 3600.0  # seconds after which a temporary file has no owner any more


@dataclass(frozen=True, slots=True)
class Entry:
    """A compiled model of the cache; `used` is when it was last made or loaded, in seconds since the epoch."""

    path: Path
    bytes: int
    used: float

    @property
    def key(self) -> str:
        return self.path.stem


def key_of(model: Path, options: CompileOptions) -> str:
    """What an entry is found by; OSError if the model's files cannot be read."""
    digest = hashlib.sha256(f"{VERSION} {_source_digest()}\n".encode())
    for name in names_of(options.target):
        target = Target.parse(name)
        processor = f"{target.triple} {target.cpu} {target.llvm_features}"
        digest.update(f"{processor} {target.l1} {target.l2} {target.l3}\n".encode())
    for field in fields(options):
        if field.name not in _LEFT_OUT:
            digest.update(f"{field.name}={getattr(options, field.name)!r}\n".encode())
    if options.extensions is not None:
        digest.update(digest_of(options.extensions).encode())
    for path in files_of(model):
        with path.open("rb") as stream:
            digest.update(f"{path.name} {hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def load_or_make(
    folder: Path, model: Path, options: CompileOptions, make: Callable[[Path], None], threads: int | None = None
) -> CompiledModel:
    """The model from the cache; if it is not there or damaged, `make` writes it to the path that it is given."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{key_of(model, options)}.so"
    if path.exists():
        try:
            found = load(path, threads, strict=True)
            os.utime(path)  # for `gc`
        except PlatformError:
            raise
        except (AotError, OSError) as error:
            _LOG.warning("cache: %s is made again: %s", path, error)
        else:
            return found
    make(path)
    return load(path, threads)


def entries(folder: Path) -> list[Entry]:
    """All entries, the last used first; libraries that are called otherwise are none."""
    paths = (path for path in folder.glob("*.so") if re.fullmatch("[0-9a-f]{64}", path.stem))
    return sorted((e for path in paths if (e := _entry(path)) is not None), key=lambda e: -e.used)


def damaged(folder: Path) -> Iterator[tuple[Entry, str]]:
    """Entries that would be made again, with the reason; nothing of them is run."""
    for entry in entries(folder):
        try:
            verify(entry.path)
        except (AotError, OSError) as error:
            yield entry, str(error)


def collect(folder: Path, most_bytes: int | None = None, most_days: float | None = None) -> list[Entry]:
    """Remove damaged entries, those unused for `most_days`, then the longest unused until `most_bytes` are left.

    What dead processes left is removed too. Gives what was removed; processes that have an entry loaded keep it.
    """
    now = time.time()
    gone = [entry for entry, _ in damaged(folder)]
    left = most_bytes
    for entry in entries(folder):
        if entry in gone:
            continue
        old = most_days is not None and now - entry.used > most_days * 86400
        left = None if left is None else left - entry.bytes
        if old or (left is not None and left < 0):
            gone.append(entry)
    for entry in gone:
        for path in (entry.path, beside(entry.path)):
            path.unlink(missing_ok=True)
    for path in (*folder.glob(".*.so.*"), *folder.glob(".*.weights.*"), *folder.glob(".aot-*")):
        if now - path.stat().st_mtime > _ABANDONED:
            remove = partial(rmtree, ignore_errors=True) if path.is_dir() else Path.unlink
            remove(path)
    return gone


def check_files(model: object) -> Path:
    """The model's file; UsageError for a graph, which has none."""
    if not isinstance(model, str | Path):
        raise UsageError(f"cache: a model is found by the content of its file, got a {type(model).__name__}")
    return Path(model)


def _entry(path: Path) -> Entry | None:
    try:
        own = path.stat()
        side = beside(path).stat().st_size if beside(path).exists() else 0
    except FileNotFoundError:  # removed by another process
        return None
    return Entry(path, own.st_size + side, own.st_mtime)


def files_of(model: Path) -> list[Path]:
    """The model and what it may read: its .bin, and the files beside it, or in folders beside it, that it names."""
    found = [path for path in (model, model.with_suffix(".bin")) if path.exists()] or [model]
    if model.suffix == ".xml" or not model.stat().st_size:
        return found
    with model.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as text:
        named = [p for p in sorted(model.parent.iterdir()) if p not in found and text.find(p.name.encode()) >= 0]
    for path in named:
        found += sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    return found


@lru_cache(maxsize=1)
def _source_digest() -> str:
    """Of the compiler itself: a version may change while it is worked on."""
    digest = hashlib.sha256()
    for root in (Path(__file__).parent, Path(str(codegen.__file__)).parent):
        for path in sorted(p for p in root.rglob("*") if p.suffix in (".py", ".ll")):
            digest.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def describe(entry: Entry) -> str:
    """One line: key, size, age, model."""
    try:
        manifest = read_manifest(entry.path)
        what = f"{manifest.name}, {manifest.options.get('target', '')}"
    except (AotError, OSError):
        what = "damaged"
    days = (time.time() - entry.used) / 86400
    return f"{entry.key[:16]}  {entry.bytes / 1e6:9.2f} MB  {days:7.2f} days  {what}"
