"""Opens a compiled model: file -> manifest -> checks -> dlopen -> table of functions.

Nothing of the file runs before ABI version, machine and processor features have been checked.
"""

from __future__ import annotations

import ctypes
import json
import os
import weakref
from collections.abc import Callable, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

from aot.runtime.abi import (
    ABI_VERSION,
    MANIFEST_SECTION,
    MAX_THREADS,
    OLDEST_TABLE_BYTES,
    QUERY_PREFIX,
    WEIGHTS_SECTION,
    Table,
)
from aot.runtime.atomic import copy, replacing
from aot.runtime.errors import CorruptError, PlatformError, UsageError
from aot.runtime.loading.binary_file import RELOCATABLE, SHARED_OBJECT, BinaryFile, binary_file
from aot.runtime.loading.elf import copy_one
from aot.runtime.loading.manifest import Manifest, from_json, parse
from aot.runtime.loading.pages import populate_later
from aot.runtime.loading.seal import is_whole
from aot.runtime.loading.weights import beside, check, check_embedded, info_in, map_into
from aot.runtime.machine import machine_name, missing_features, refused_tiles, system_of
from aot.runtime.machines import ARCHITECTURES
from aot.runtime.regular import open_file
from aot.runtime.systems import SYSTEM, loading

_QUERY = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int32)
_INFER = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
_SHAPES = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_ARENA_SIZE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
_STATE_SIZE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
_POOL_CREATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)
_POOL_DESTROY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_POOL_RESIZE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
_OUTPUTS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_GENERATE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
_FORGET = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_ERROR_TEXT = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_int32)


class Library:
    """The functions of one compiled model, from a file or from memory; `Table` describes them."""

    def __init__(self, manifest: Manifest, query: int, keep: object, save: Callable[[Path], None]) -> None:
        address = _QUERY(query)(ABI_VERSION)
        alone = "levels" not in manifest.json
        if address is None and alone and manifest.json.get("tiles") and (why := refused_tiles()):
            rule = "the system must allow tile registers (AMX)"
            raise PlatformError(f"load: {manifest.name}: {rule}, got {why}; compile for x86-64-v4,v4-amx too")
        if address is None:
            reason = "none of its levels runs here" if "levels" in manifest.json else "another ABI version"
            raise PlatformError(f"load: {manifest.name}: the code must have ABI version {ABI_VERSION}, got {reason}")
        table = Table.from_address(address)
        if table.bytes < (least := OLDEST_TABLE_BYTES):
            raise CorruptError(f"load: {manifest.name}: the table must have {least} bytes or more, got {table.bytes}")
        self.manifest = _of_level(manifest, table) if "levels" in manifest.json else manifest
        self.weights, self.weights_bytes = table.weights, table.weights_bytes
        self.infer = _INFER(table.infer)
        self.shapes = _SHAPES(table.shapes)
        self.arena_size = _ARENA_SIZE(table.arena_size)
        self.state_size = _STATE_SIZE(table.state_size)
        self.output_sizes = _OUTPUTS(table.output_sizes)
        self.output_dims = _OUTPUTS(table.output_dims)
        self.save = save
        self._pool_create = _POOL_CREATE(table.pool_create)
        self._pool_destroy = _POOL_DESTROY(table.pool_destroy)
        self._pool_resize = _POOL_RESIZE(table.pool_resize)
        self._error_text = _ERROR_TEXT(table.error_text)
        loop = table.bytes >= ctypes.sizeof(Table) and bool(table.generate)
        self.generate = _GENERATE(table.generate if loop else 0)
        self.forget = _FORGET(table.forget if loop else 0)
        self.has_loop = loop
        self._keep = keep

    @classmethod
    def at(cls, query: int, manifest: object, *, keep: object, save: Callable[[Path], None]) -> Library:
        """Return a model in memory, from the address of its query function and the parsed JSON of its manifest.

        `keep` keeps the code alive; `save` writes it as a file.
        """
        return cls(from_json(manifest, "memory"), query, keep, save)

    def pool(self, threads: int) -> Pool:
        return Pool(self, threads)

    def error_text(self, code: int) -> str:
        """Return the text of an error code of `infer` or `shapes`."""
        return self._error_text(code).decode()

    def create_pool(self, threads: int) -> tuple[int, Callable[[int], None], Callable[[int, int], None]]:
        """Create a pool; return its address, and the functions that destroy and resize it."""
        address = self._pool_create(threads)
        if not address:
            raise MemoryError("pool: out of memory")
        return address, self._pool_destroy, self._pool_resize


class Pool:
    """Threads that work on requests of any model with the same ABI version; started by their first request."""

    def __init__(self, library: Library, threads: int) -> None:
        _check_threads(threads)
        self.address, destroy, self._resize = library.create_pool(threads)
        self.threads = threads
        self._library = library  # keeps the code that the threads run
        # not at exit: a daemon thread may still be in an inference, and the system ends the workers anyway
        weakref.finalize(self, _end, library, destroy, self.address).atexit = False

    def resize(self, threads: int) -> None:
        """Change the number of threads; running requests are not affected, later ones use the new number."""
        _check_threads(threads)
        self._resize(self.address, threads)
        self.threads = threads


def _of_level(manifest: Manifest, table: Table) -> Manifest:
    """Return the whole model's manifest with the entries of the level that the code chose."""
    tree: dict[str, object] = json.loads(ctypes.string_at(table.manifest, table.manifest_bytes))
    entries = {key: manifest.json[key] for key in ("hash", "tag", "levels")}
    return from_json(tree | entries, manifest.name)


def _check_threads(threads: Any) -> None:
    if not hasattr(threads, "__index__"):  # NumPy's integers are numbers, too
        rule = "must be an integer; properties are set by set_property"
        raise UsageError(f"threads: {rule}, got {threads!r}")
    if not 1 <= threads <= MAX_THREADS:
        raise UsageError(f"threads: must be from 1 to {MAX_THREADS}, got {threads}")


def read_manifest(path: Path, whole: bool = False) -> Manifest:
    """Return the manifest of a library or an object, without running it; CorruptError, OSError.

    PlatformError for another version. `whole`: the digest of a library is checked, which reads all but its weights.
    """
    with open_file(path, "load") as stream:
        manifest = _read_manifest(stream, str(path), (SHARED_OBJECT, RELOCATABLE))
        if whole:
            _check_whole(binary_file(stream, str(path)), str(path))
        return manifest


def open_library(
    path: Path,
    weights: Path | None = None,
    strict: bool = False,
    key: str | None = None,
    before: Callable[[], None] | None = None,
    trusted: Callable[[BufferedReader], None] | None = None,
) -> Library:
    """Load the file `path`; CorruptError if it is damaged, PlatformError if it is not for this machine, OSError.

    A file that was replaced under the same name is loaded anew. It stays loaded as long as the library is in use.
    `weights`: the file of external weights; None: `m.weights` beside `m.so`. `strict`: embedded weights are checked
    too, which reads all of them. `key`: the key that the file must have as an entry of the compile cache. `before` is
    called when all is checked and no code of the file has run. `trusted` raises an error for an open file that is not
    to be loaded; the file that it has read is loaded, even if its name has been reused.
    """
    with open_file(path, "load") as stream:
        if trusted is not None:
            trusted(stream)
        if strict:
            _verify(stream, str(path), None)
        return _open(stream, path, weights if weights is not None else beside(path), key, before)


def open_bytes(data: BinaryIO) -> Library:
    """Open the library at the position of a stream, as `open_library`; the bytes after it stay unread.

    UsageError for a library whose weights are external, and for a stream of text.
    """
    with loading.anonymous_file() as stream:
        copy_one(data, stream)
        stream.flush()
        return _open(stream, None, None)


def _open(
    stream: BinaryIO,
    path: Path | None,
    weights: Path | None,
    key: str | None = None,
    before: Callable[[], None] | None = None,
) -> Library:
    name = "memory" if path is None else str(path)
    manifest = _read_manifest(stream, name)
    if key is not None:
        check_key(manifest, key, name)
    _check_machine(manifest, name)
    file = binary_file(stream, name)
    _check_whole(file, name)
    info = info_in(manifest.json, name)
    if info is None:
        library = _loaded(stream.fileno(), None, manifest, path, before)
    elif weights is None:
        raise UsageError(f"load: {name}: needs the path of its weights, a file of their own, got none")
    else:
        with _external(weights, name) as side:
            check(side, info, str(weights))
            library = _loaded(stream.fileno(), side.fileno(), manifest, path, before)
            map_into(side, library.weights, info.bytes)
    populate_later(library.weights, library.weights_bytes, library)
    return library


def _loaded(
    source: int, side: int | None, manifest: Manifest, path: Path | None, before: Callable[[], None] | None
) -> Library:
    """Load the library behind a descriptor, with weights from `side`; both descriptors are kept for export."""
    name = "memory" if path is None else str(path)
    descriptors = [os.dup(d) for d in (source, side) if d is not None]
    try:
        handle = loading.map_library(descriptors[0], path, name, before)
    except BaseException:
        _close(descriptors)
        raise
    try:
        query = loading.symbol(handle, QUERY_PREFIX + manifest.tag)
        library = Library(manifest, query, None, lambda path: _save(descriptors, path))
    except BaseException as error:
        _unload(handle, descriptors)
        if isinstance(error, OSError):
            raise CorruptError(f"load: {name}: the system cannot load it: {error}") from None
        raise
    weakref.finalize(library, _unload, handle, descriptors).atexit = False
    return library


def check_key(manifest: Manifest, key: str, name: str) -> None:
    """Raise CorruptError unless the manifest is that of the cache entry `key`."""
    actual = manifest.json.get("key", "none")
    if actual != key:
        raise CorruptError(
            f"load: {name}: its key must be {key[:16]}..., got {str(actual)[:16]}: another model's entry"
        )


def verify(path: Path) -> Manifest:
    """Check the whole file and its external weights, and return the manifest; CorruptError. Nothing is run."""
    with open_file(path, "load") as stream:
        return _verify(stream, str(path), beside(path))


def _verify(stream: BinaryIO, name: str, weights: Path | None) -> Manifest:
    manifest = _read_manifest(stream, name)
    file = binary_file(stream, name)
    _check_whole(file, name)
    embedded, external = info_in(manifest.json, name, "embedded"), info_in(manifest.json, name)
    if embedded is not None:
        check_embedded(stream, file.find(WEIGHTS_SECTION).offset, embedded, name)
    if external is not None and weights is not None:
        with _external(weights, name) as side:
            check(side, external, str(weights))
    return manifest


def _check_whole(file: BinaryFile, name: str) -> None:
    if file.kind != RELOCATABLE and not is_whole(file):  # a linker writes objects anew
        raise CorruptError(f"load: {name}: must have the digest it was written with, got another: it is damaged")


def _external(weights: Path, name: str) -> BinaryIO:
    """Open the weights file of library `name`; OSError."""
    try:
        return open_file(weights, "weights")
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, f"the weights of {name} are missing", str(weights)) from None


def _end(library: Library, destroy: Callable[[int], None], address: int) -> None:
    """Unload the library after its pool is destroyed, in any order of collection."""
    destroy(address)
    del library


def _unload(handle: int, descriptors: list[int]) -> None:
    loading.unload(handle)
    _close(descriptors)


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _save(descriptors: list[int], path: Path) -> None:
    """Write the files behind the descriptors, library and weights, to `path` and beside it; each atomically."""
    for descriptor, target in reversed(list(zip(descriptors, (path, beside(path)), strict=False))):
        with os.fdopen(os.dup(descriptor), "rb") as source, replacing(target) as new, new.open("wb") as stream:
            source.seek(0)
            copy(source, stream)


def _read_manifest(stream: BinaryIO, name: str, kinds: Sequence[int] = (SHARED_OBJECT,)) -> Manifest:
    file = binary_file(stream, name)
    if file.kind not in kinds:
        objects = "an object to link; aot compile MODEL -o m.so makes a library"
        kind = objects if file.kind == RELOCATABLE else f"ELF type {file.kind}"
        raise CorruptError(f"load: {name}: must be a shared object, got {kind}")
    manifest = parse(file.section(MANIFEST_SECTION), name)
    if manifest.machine != file.machine:
        raise CorruptError(f"load: {name}: the manifest says machine {manifest.machine}, the file says {file.machine}")
    return manifest


def _check_machine(manifest: Manifest, name: str) -> None:
    names = {known.elf: known.name for known in ARCHITECTURES.values()}
    if (system := system_of(str(manifest.json["triple"]))) != SYSTEM:
        raise PlatformError(f"load: {name} is compiled for {system}, this system is {SYSTEM}; compile it for {SYSTEM}")
    needed, here = names.get(manifest.machine, f"ELF machine {manifest.machine}"), machine_name()
    if needed != here:
        raise PlatformError(f"load: {name} is compiled for {needed}, this machine is {here}; compile it for {here}")
    missing = missing_features(manifest.features)
    if missing:
        target = manifest.options.get("target", "native")
        made_for = "another processor" if target == "native" else target
        levels = ARCHITECTURES[here].levels
        runnable = [level for level, features in levels.items() if not missing_features(features)][-1:] or ["native"]
        lacks = f"is compiled for {made_for}, this processor lacks: {', '.join(missing)}"
        raise PlatformError(f"load: {name} {lacks}; compile it for {runnable[0]}")
