"""Maps an open library into this process: the file that was checked, even if its name has been reused. Also of macOS.

/proc/self/fd/N      the usual way
its own path         without /proc
a copy in memory     if nothing may be run from its file system, or it has none
a copy in a folder   ... without /proc: TMPDIR, /tmp, /var/tmp or /dev/shm
"""

from __future__ import annotations

import sys

assert sys.platform != "win32"

import os
from _ctypes import dlclose, dlopen, dlsym  # `ctypes.CDLL` creates a class for each file, in a cycle of references
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from aot.runtime.errors import CorruptError, PlatformError

_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
_PIECE_BYTES = 2 << 20
_NOEXEC = os.ST_NOEXEC if sys.platform == "linux" else 4  # MNT_NOEXEC


def open_to_read(path: Path) -> int:
    """Return a descriptor of a file, without a wait for the writer of a FIFO."""
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK)


def replace(source: Path, target: Path) -> None:
    """Rename `source` to `target`, in place of a file that may be in use."""
    source.replace(target)


def temporary_folder() -> Path:
    """Return the folder of temporary files."""
    return Path(os.environ.get("TMPDIR", "/tmp"))


def map_library(descriptor: int, path: Path | None, name: str, before: Callable[[], None] | None = None) -> int:
    """Map the library behind `descriptor`; return its handle. `path`: its file; None: in memory.

    `before` is called before the file's code can run.

    PlatformError if this system has no way to map it, CorruptError for a file that cannot be loaded.
    """
    failed: OSError | None = None
    runs = not os.fstatvfs(descriptor).f_flag & _NOEXEC
    if runs and (where := _visible(descriptor, path)) is not None:
        if before is not None:
            before()
        try:
            return _loaded(where, descriptor, path)
        except OSError as error:
            if path is not None:
                raise CorruptError(f"load: {name}: the system cannot load it: {error}") from None
            failed = error
    for copy in (_in_memory, _in_folder) if before is None else (_in_memory,):  # a folder must be cleaned up afterwards
        try:
            with copy(descriptor) as where:
                if where is not None:
                    if before is not None:
                        before()
                    return dlopen(where, os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            failed = error
    if failed is not None and path is None:
        raise CorruptError(f"load: {name}: the system cannot load it: {failed}") from None
    rule = "/proc, or a folder that is not mounted noexec (TMPDIR)"
    raise PlatformError(f"load: {name}: needs {rule}, got neither: {failed or 'no such folder'}")


def anonymous_file() -> BinaryIO:
    """Return a file without a name, in memory if the system supports that."""
    try:
        return os.fdopen(_memory_file("memory"), "w+b")
    except OSError:  # not supported, or not permitted
        return import_module("tempfile").TemporaryFile()


def symbol(handle: int, name: str) -> int:
    """Return the address of a symbol of a mapped library; OSError if it has none of that name."""
    return dlsym(handle, name)


def unload(handle: int) -> None:
    """Unmap a library; nothing of it may run or be read any more."""
    dlclose(handle)


def _loaded(where: str, descriptor: int, path: Path | None) -> int:
    handle = dlopen(where, os.RTLD_NOW | os.RTLD_LOCAL)
    if path is not None and not where.startswith("/proc/") and not _is_same_file(path, descriptor):
        raise OSError(f"{path} was replaced while it was loaded")
    return handle


def _visible(descriptor: int, path: Path | None) -> str | None:
    """Return a path of the open file, unique to its identity; None if it has none.

    The loader remembers files by name: a reused descriptor number, or a file that has replaced another, would be
    mistaken for the old one. It also keeps each name of a loaded file, so names that never repeat would pile up.
    """
    facts = os.fstat(descriptor)
    file = facts.st_dev << 64 | facts.st_ino
    spelling = "".join("/." if file >> bit & 1 else "/" for bit in range(128))
    if os.path.exists(f"/proc/self/fd/{descriptor}"):
        return f"/proc/self/fd{spelling}/{descriptor}"
    if path is None or not _is_same_file(path, descriptor):
        return None
    return f"{os.path.abspath(path.parent)}{spelling}/{path.name}"


def _is_same_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except OSError:
        return False


@contextmanager
def _in_memory(descriptor: int) -> Generator[str | None]:
    """Yield the path of a copy in memory, on no file system; None without /proc."""
    copy = _memory_file("library")
    try:
        _copy(descriptor, copy)
        yield _visible(copy, None)
    finally:
        os.close(copy)


@contextmanager
def _in_folder(descriptor: int) -> Generator[str | None]:
    """Yield the path of a copy in a folder that code may run from; None if there is none."""
    for folder in (os.environ.get("TMPDIR", _FOLDERS[0]), *_FOLDERS):
        with suppress(OSError):
            if os.access(folder, os.W_OK) and not os.statvfs(folder).f_flag & _NOEXEC:
                path = os.path.join(folder, f".aot-{os.urandom(8).hex()}.so")
                copy = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o700)
                break
    else:
        yield None
        return
    try:
        _copy(descriptor, copy)
        yield path
    finally:
        os.close(copy)
        os.unlink(path)


def _memory_file(name: str) -> int:
    """Return a descriptor of a new file in memory; OSError if the system has none."""
    if sys.platform == "linux":
        return os.memfd_create(name)
    raise OSError("no files in memory")


def _copy(source: int, target: int) -> None:
    offset = 0
    while data := os.pread(source, _PIECE_BYTES, offset):
        offset += len(data)
        view = memoryview(data)
        while view:
            view = view[os.write(target, view) :]
