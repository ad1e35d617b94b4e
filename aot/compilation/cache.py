"""Compiled models kept in a folder, found again by the content of the model's files, the options and the compiler.

    <folder>/<key>.so     key: SHA-256 of files, options, target's features, version and source of the compiler
    <folder>/<key>.weights

Entries appear whole or not at all, whichever processes write them; a damaged one is made again, with a warning. So is
one whose manifest has another key, or that other users could have written. A folder that they can write to is refused.
"""

from __future__ import annotations

import glob
import hashlib
import logging
import mmap
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

from aot.codegen.dataclass import dataclass
from aot.codegen.llvm.host import parse_target
from aot.codegen.llvm.levels import names_of
from aot.compilation.recorded_options import contents_of
from aot.extensions.folder import Extensions, load_for
from aot.frontends import framework_of
from aot.frontends.caffe.files import network_and_weights
from aot.frontends.kinds import GGUF, LANGUAGE_MODEL, SAVED_MODEL, ZIP, is_caffe, is_language_model
from aot.frontends.paddle.files import program_and_weights
from aot.options import CompileOptions
from aot.options.table import options as rows
from aot.runtime.errors import AotError, CorruptError, PlatformError, UsageError
from aot.runtime.loading.library import check_key, open_library, read_manifest, verify
from aot.runtime.loading.weights import beside
from aot.runtime.model import CompiledModel
from aot.runtime.regular import open_file, read_file
from aot.runtime.version import VERSION

_LOG = logging.getLogger(__name__)
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ABANDONED = 3600.0  # seconds after which a temporary file has no owner any more


@dataclass(frozen=True, slots=True)
class Entry:
    """A compiled model of the cache; `used`: the time it was last made or loaded, in seconds since the epoch."""

    path: Path
    bytes: int
    used: float

    @property
    def key(self) -> str:
        return self.path.stem


def key_of(model: Path, options: CompileOptions, extensions: Extensions | None = None) -> str:
    """Return the key of an entry. `extensions`: those that are loaded; None: they are loaded for it, if there are any.

    OSError if the model's files cannot be read, UsageError if extensions cannot be loaded.
    """
    digest = hashlib.sha256(f"{VERSION} {_source_digest()}\n".encode())
    for name in names_of(options.target):
        target = parse_target(name, options.cores)
        processor = f"{target.triple} {target.cpu} {target.llvm_features}"
        digest.update(f"{processor} {target.l1} {target.l2} {target.l3} {target.cores}\n".encode())
    for name, row in rows().items():
        if not row.harmless and not row.by_content:
            digest.update(f"{name}={getattr(options, name)!r}\n".encode())
    if options.tune is None and options.tune_file is not None and options.tune_file.exists():  # else it is written
        digest.update(hashlib.sha256(read_file(options.tune_file, "tune")).digest())
    loaded = None if options.extensions is None else extensions or load_for(options, framework_of(model))
    digest.update(repr(contents_of(options, loaded)).encode())
    for path in files_of(model):
        with open_file(path, "model") as stream:
            digest.update(f"{path.name} {hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def load_or_make(
    folder: Path,
    key_now: Callable[[], str],
    make: Callable[[Path, str], None],
    instead: Callable[[], CompiledModel],
    threads: int | None = None,
) -> CompiledModel:
    """Load a model from the cache; if it is missing or damaged, `make(path, key)` writes it to `path`.

    `key_now` gives the key of the files as they are; an entry whose files changed while it was made is not kept.
    `instead` makes a model that is not kept, where the folder cannot be made or written, as on a full disk.
    UsageError for a folder that other users can write to.
    """
    key = key_now()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        reason = _foreign(folder)
        if reason is not None:
            raise UsageError(f"cache: the folder must be writable by its user alone, got {folder}, {reason}")
        return _load_entry(folder / f"{key}.so", key, threads) or _compile_entry(folder, key, key_now, make, threads)
    except OSError as error:
        _LOG.warning("cache: %s: nothing is kept: %s", folder, error)
        return instead()


def _load_entry(path: Path, key: str, threads: int | None) -> CompiledModel | None:
    """Return the model of an entry, None if it is missing or damaged."""
    if path.exists():
        try:
            model = _loaded(path, path, key, threads)
        except PlatformError:
            raise
        except (AotError, OSError) as error:
            _LOG.warning("cache: %s is made again: %s", path, error)
        else:
            with suppress(OSError):  # another process has removed it, or the folder can only be read
                os.utime(path)  # for `gc`
            return model
    return None


def _compile_entry(
    folder: Path, key: str, key_now: Callable[[], str], make: Callable[[Path, str], None], threads: int | None
) -> CompiledModel:
    path = folder / f"{key}.so"
    with TemporaryDirectory(dir=folder, prefix=".aot-") as temporary:
        library = Path(temporary) / path.name
        make(library, key)
        parts = [file for file in (beside(library), library) if file.exists()]  # the library last: an entry is whole
        for file in parts:
            file.chmod(file.stat().st_mode & ~_OTHERS)
        if key_now() != key:
            _LOG.warning("cache: %s is not kept: its files have changed while it was compiled", path)
            return _loaded(library, library, key, threads)
        model = _loaded(library, path, key, threads)  # before others can remove it
        for file in parts:
            file.replace(folder / file.name)
    return model


def _loaded(path: Path, entry_path: Path, key: str, threads: int | None) -> CompiledModel:
    """Load `path`, which is or becomes `entry_path`.

    CorruptError if it is damaged, has another key, or others can write it.
    """
    for file in (path, beside(path)):
        reason = _foreign(file) if file.exists() else None
        if reason is not None:
            raise CorruptError(f"cache: {file}: an entry must be writable by its user alone, got {reason}")
    return CompiledModel(open_library(path, strict=True, key=key), threads, path=entry_path.resolve())


def _foreign(path: Path) -> str | None:
    """Return why another user may have written a file or into a folder; None if no other user can."""
    facts = path.lstat()
    if not stat.S_ISREG(facts.st_mode) and not stat.S_ISDIR(facts.st_mode):
        return "a link or a device"
    if sys.platform != "win32":  # which has lists of access instead of owners and modes
        if facts.st_uid not in (os.geteuid(), 0):
            return f"owner {facts.st_uid}"
        if facts.st_mode & _OTHERS:
            return f"mode {stat.S_IMODE(facts.st_mode):o} (chmod go-w)"
    return None


def entries(folder: Path) -> list[Entry]:
    """Return all entries, the last used first; libraries with other names do not count."""
    paths = (path for path in folder.glob("*.so") if re.fullmatch("[0-9a-f]{64}", path.stem))
    return sorted((e for path in paths if (e := _entry(path)) is not None), key=lambda e: -e.used)


def damaged(folder: Path) -> Iterator[tuple[Entry, str]]:
    """Return the entries that would be compiled again, with the reason; none of them is loaded."""
    for entry in entries(folder):
        try:
            check_key(verify(entry.path), entry.key, str(entry.path))
            reason = next((r for r in map(_foreign, _parts(entry)) if r is not None), None)
            if reason is not None:
                yield entry, f"cache: {entry.path}: an entry must be writable by its user alone, got {reason}"
        except (AotError, OSError) as error:
            yield entry, str(error)


def collect(folder: Path, most_bytes: int | None = None, most_days: float | None = None) -> list[Entry]:
    """Remove damaged entries, those unused for `most_days`, then the longest unused until `most_bytes` are left.

    Files of dead processes are removed, too. Returns the removed entries; processes that have one loaded keep it.
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
        for path in _parts(entry):
            path.unlink(missing_ok=True)
    for path in (*folder.glob(".*.so.*"), *folder.glob(".*.weights.*"), *folder.glob(".aot-*")):
        with suppress(FileNotFoundError):  # its process has removed it
            if now - path.stat().st_mtime > _ABANDONED:
                remove = partial(rmtree, ignore_errors=True) if path.is_dir() else Path.unlink
                remove(path)
    return gone


def check_files(model: object) -> Path:
    """Return the model's file; UsageError for a graph, which has none."""
    if not isinstance(model, str | Path):
        raise UsageError(f"cache: the model must be a file, got a {type(model).__name__}")
    return Path(model)


def _parts(entry: Entry) -> list[Path]:
    """Return the files of an entry."""
    return [path for path in (entry.path, beside(entry.path)) if os.path.lexists(path)]


def _entry(path: Path) -> Entry | None:
    try:
        own = path.stat()
        side = beside(path).stat().st_size if beside(path).exists() else 0
    except FileNotFoundError:  # removed by another process
        return None
    return Entry(path, own.st_size + side, own.st_mtime)


def files_of(model: Path) -> list[Path]:
    """Return the model's file and the files that it may read: its .bin, and files in or below its folder that it names.

    Of a folder of Hugging Face its descriptions and weights; of a SavedModel all files of its folder; of a MetaGraph
    its checkpoint; of a network of Caffe or PaddlePaddle both files.
    """
    if is_language_model(model):
        return sorted(path for path in model.rglob("*") if path.suffix in LANGUAGE_MODEL and path.is_file())
    if is_caffe(model):
        return [path for path in network_and_weights(model) if path is not None]
    if paths := program_and_weights(model):
        return list(paths)
    if model.is_dir() or model.name in SAVED_MODEL:
        folder = model if model.is_dir() else model.parent
        return sorted(path for path in folder.rglob("*") if path.is_file())
    if model.suffix == ".meta":
        return sorted(path for path in model.parent.glob(f"{glob.escape(model.stem)}.*") if path.is_file())
    paths = [path for path in (model, model.with_suffix(".bin")) if path.exists()] or [model]
    if model.suffix == ".xml" or not model.stat().st_size:
        return paths
    with open_file(model, "model") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as text:
        if text[:4] in (GGUF, ZIP):  # it names no others, and is large
            return paths
        for path in sorted(model.parent.iterdir()):
            if path.is_dir():
                below = path.rglob("*") if text.find(f"{path.name}/".encode()) >= 0 else ()
                inside = {p: p.relative_to(model.parent).as_posix() for p in below if p.is_file()}
                paths += sorted(p for p, name in inside.items() if text.find(name.encode()) >= 0)
            elif path not in paths and text.find(path.name.encode()) >= 0:
                paths.append(path)
    return paths


@lru_cache(maxsize=1)
def _source_digest() -> str:
    """Return the digest of the compiler's sources: the code of a version may change during development."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[1]
    files = [Path(folder, name) for folder, _, names in os.walk(root, followlinks=True) for name in names]
    for path in sorted(p for p in files if p.suffix in (".py", ".ll", ".txt")):
        digest.update(f"{path.relative_to(root)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def describe(entry: Entry) -> str:
    """Return a line of text: key, size, age, model."""
    try:
        manifest = read_manifest(entry.path)
        what = f"{manifest.name}, {manifest.options.get('target', '')}"
    except (AotError, OSError):
        what = "damaged"
    days = (time.time() - entry.used) / 86400
    return f"{entry.key[:16]}  {entry.bytes / 1e6:9.2f} MB  {days:7.2f} days  {what}"
