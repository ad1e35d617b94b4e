"""Maps an open library into this process: the file that was checked, even if its name has been reused.

its own path          unless a file that had this path before is still loaded: the loader remembers files by name
another name of it    a hard link beside it
a copy                in the folder of temporary files; also for a library in memory

A file that is open or loaded can be renamed where all who opened it agree, but not replaced.
"""

from __future__ import annotations

import sys

assert sys.platform == "win32"

import ctypes
import msvcrt
import os
from _ctypes import FreeLibrary, LoadLibrary
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, cast

from aot.runtime.errors import CorruptError
from aot.runtime.systems.windows import KERNEL32

_READ_ACCESS = 0x80000000  # GENERIC_READ
_SHARE_MODE = 7  # others may read, write, and rename or remove
_OPEN_EXISTING = 3  # OPEN_EXISTING
_FOLDERS_TOO = 0x02000000  # FILE_FLAG_BACKUP_SEMANTICS: a folder is opened, too, and refused by its kind
_LONGEST_PATH = 259  # characters of a path without a prefix
_ASIDE_SUFFIX = "aot-old"  # suffix of files that were replaced while they were in use
_PIECE_BYTES = 2 << 20
_COPY_PREFIX = "aot-library-"  # prefix of copies' names

KERNEL32.CreateFileW.restype = ctypes.c_void_p
KERNEL32.GetModuleHandleW.restype = ctypes.c_void_p
KERNEL32.GetProcAddress.restype = ctypes.c_void_p
KERNEL32.GetProcAddress.argtypes = (ctypes.c_void_p, ctypes.c_char_p)

_removed_later: dict[int, list[Path]] = {}  # by handle: files that can be removed once the library is unloaded
_loaded: dict[str, tuple[int, int]] = {}  # by path: device and number of the file that was last loaded from there


def long_path(path: Path | str) -> str:
    """Return an absolute path, with the prefix that lets a path have up to 32767 characters if it needs it."""
    text = os.path.abspath(path)
    if len(text) <= _LONGEST_PATH or text.startswith("\\\\?\\"):
        return text
    return "\\\\?\\UNC\\" + text[2:] if text.startswith("\\\\") else "\\\\?\\" + text


def open_to_read(path: Path) -> int:
    """Return a descriptor of a file, which others may rename or replace meanwhile."""
    handle = KERNEL32.CreateFileW(long_path(path), _READ_ACCESS, _SHARE_MODE, None, _OPEN_EXISTING, _FOLDERS_TOO, None)
    if handle in (None, ctypes.c_void_p(-1).value):
        error = ctypes.WinError(ctypes.get_last_error())
        error.filename = str(path)
        raise error
    return msvcrt.open_osfhandle(handle, os.O_RDONLY | os.O_BINARY | os.O_NOINHERIT)


def replace(source: Path, target: Path) -> None:
    """Rename `source` to `target`; a file that is in use gets another name first, and is removed by a later call."""
    for old in target.parent.glob(f".{target.name}.*.{_ASIDE_SUFFIX}"):
        with suppress(OSError):  # it is still in use
            old.unlink()
    try:
        source.replace(target)
    except PermissionError:
        aside = target.with_name(f".{target.name}.{os.urandom(8).hex()}.{_ASIDE_SUFFIX}")
        target.rename(aside)
        source.replace(target)


def temporary_folder() -> Path:
    """Return the folder of temporary files."""
    return Path(os.environ.get("TEMP") or os.environ.get("TMP") or ".")


def map_library(descriptor: int, path: Path | None, name: str, before: Callable[[], None] | None = None) -> int:
    """Map the library behind `descriptor`; return its handle. `path`: its file; None: in memory.

    `before` is called before the file's code can run. CorruptError for a file that cannot be loaded.
    """
    if before is not None:
        before()
    try:
        for where, remove in _places(descriptor, path):
            handle = LoadLibrary(_loadable(where), 0)
            if remove:
                _removed_later.setdefault(handle, []).append(where)
                return handle
            if _is_same_file(where, descriptor):
                _loaded[_loadable(where)] = _identity(descriptor)
                return handle
            unload(handle)
        raise OSError(f"{path} was replaced while it was loaded")
    except OSError as error:
        raise CorruptError(f"load: {name}: the system cannot load it: {error}") from None


def anonymous_file() -> BinaryIO:
    """Return a file that has no name once it is closed."""
    return cast(BinaryIO, import_module("tempfile").TemporaryFile())


def symbol(handle: int, name: str) -> int:
    """Return the address of a symbol of a mapped library; OSError if it has none of that name."""
    address = KERNEL32.GetProcAddress(handle, name.encode())
    if address is None:
        raise ctypes.WinError(ctypes.get_last_error())
    return address


def unload(handle: int) -> None:
    """Unmap a library; nothing of it may run or be read any more."""
    FreeLibrary(handle)
    left = [path for path in _removed_later.pop(handle, []) if not _is_removed(path)]
    if left:  # it is loaded once more
        _removed_later[handle] = left


def _places(descriptor: int, path: Path | None) -> Iterator[tuple[Path, bool]]:
    """Yield paths of the open file that the loader does not know for another one, and whether to remove each later."""
    if path is not None and _is_same_file(path, descriptor):
        where = _loadable(path)
        if KERNEL32.GetModuleHandleW(where) is None or _loaded.get(where) == _identity(descriptor):
            yield path, False
        for old in path.parent.glob(f".{path.name}.*.dll"):
            _is_removed(old)
        link = path.with_name(f".{path.name}.{os.urandom(8).hex()}.dll")
        with suppress(OSError):
            os.link(long_path(path), long_path(link))
            yield link, True
    yield _copied(descriptor), True


def _loadable(path: Path) -> str:
    """Return the path as the loader takes it: it adds `.dll` to a name without a dot."""
    text = long_path(path)
    return text if path.suffix else text + "."


def _is_same_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(long_path(path)), os.fstat(descriptor))
    except OSError:
        return False


def _identity(descriptor: int) -> tuple[int, int]:
    facts = os.fstat(descriptor)
    return facts.st_dev, facts.st_ino


def _is_removed(path: Path) -> bool:
    """Remove a file; False if it is in use."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _copied(descriptor: int) -> Path:
    """Return the path of a copy; those of processes that have ended are removed."""
    folder = temporary_folder()
    for old in folder.glob(f"{_COPY_PREFIX}*"):
        _is_removed(old)
    path = folder / f"{_COPY_PREFIX}{os.urandom(8).hex()}.dll"
    os.lseek(descriptor, 0, os.SEEK_SET)
    with path.open("xb") as target:
        while data := os.read(descriptor, _PIECE_BYTES):
            target.write(data)
    return path
