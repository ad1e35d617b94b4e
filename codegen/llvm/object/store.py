"""Object code cached by key in a folder of the user's. Damaged or foreign entries are never used.

    <folder>/ab/ab54...     SHA-256 of key and content | content      one of 256 folders, each with its share of bytes

Entries appear whole or not at all, whichever processes write them. A folder that others can read or write is not used.
Errors of the system are not reported: an entry that cannot be read is compiled again, and one that cannot be written
is not kept.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from aot.codegen.dataclass import dataclass

MAX_BYTES = 1 << 30  # bytes of all entries
SHARES = 256  # folders, by the first byte of the key
_SWEPT = 16  # Evict the least recently used entries on one of 16 writes
_ABANDONED = 3600.0  # seconds after which the writer of a temporary file is taken for dead
_USED = 3600.0  # resolution of the time of the last use, in seconds
_HASH_BYTES = 32
_IMPORTED = time.time()
_SLACK = 2.0  # seconds that the import of the other modules may have taken before this one

if sys.platform == "win32":  # no kernels are kept: folders have no descriptors
    _FOLDER = _READ = _WRITE = 0
else:
    _FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    _READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    _WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class Stored:
    """An entry of a store; `used`: the time of its last use, in seconds since the epoch."""

    key: str
    bytes: int
    used: float


class Store:
    """A folder with entries, of `most_bytes` bytes in all; each is as large as its folder's share at most."""

    def __init__(self, folder: Path, most_bytes: int = MAX_BYTES) -> None:
        self.folder, self._share = folder, max(1, most_bytes // SHARES)
        self._writes = True  # False once the disk was full

    def get(self, key: str) -> bytes | None:
        """Return the content of an entry; None if there is none. A damaged one is removed."""
        try:
            with _opened(self.folder) as root, _opened(key[:2], root) as folder_fd:
                return _content(key, folder_fd)
        except (OSError, _ForeignError):
            return None

    def put(self, key: str, content: bytes) -> None:
        """Keep an entry, if there is room for it."""
        if not self._writes or _HASH_BYTES + len(content) > self._share:
            return
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _opened(self.folder) as root:
                with suppress(FileExistsError):
                    os.mkdir(key[:2], 0o700, dir_fd=root)
                with _opened(key[:2], root) as folder_fd:
                    _write(key, content, folder_fd)
                    if int(key[2:4], 16) % _SWEPT == 0:
                        _sweep(folder_fd, self._share)
        except (OSError, _ForeignError):
            self._writes = False

    def entries(self) -> list[Stored]:
        """Return all entries, the last used first; none if the folder cannot be read."""
        stored = [entry for folder_fd in self._places() for entry in _entries(folder_fd)]
        return sorted(stored, key=lambda entry: -entry.used)

    def damaged(self) -> list[str]:
        """Return the keys of the entries that are not whole or not the user's, which are removed."""
        keys: list[str] = []
        for folder_fd in self._places():
            keys += [entry.key for entry in _entries(folder_fd) if _content(entry.key, folder_fd) is None]
        return keys

    def shrink(self, most_bytes: int | None = None, most_days: float | None = None) -> list[Stored]:
        """Remove entries unused for `most_days`, then the longest unused until `most_bytes` are left; return them."""
        removed: list[Stored] = []
        bytes_left = most_bytes
        for entry in self.entries():
            bytes_left = None if bytes_left is None else bytes_left - entry.bytes
            is_old = most_days is not None and time.time() - entry.used > most_days * 86400
            if is_old or (bytes_left is not None and bytes_left < 0):
                removed.append(entry)
        for folder_fd in self._places():
            names = set(os.listdir(folder_fd))
            for entry in removed:
                if entry.key in names:
                    _remove(entry.key, folder_fd)
            _sweep(folder_fd, self._share)
        return removed

    def _places(self) -> Iterator[int]:
        """Yield the opened folders of entries."""
        with suppress(OSError, _ForeignError), _opened(self.folder) as root:
            for name in sorted(os.listdir(root)):
                with suppress(OSError, _ForeignError), _opened(name, root) as folder_fd:
                    yield folder_fd


class _ForeignError(Exception):
    """Others may have written a folder or a file."""


@contextmanager
def _opened(path: str | Path, root: int | None = None) -> Generator[int]:
    """Open a folder that is the user's alone; OSError for a link."""
    if sys.platform == "win32":
        raise _ForeignError
    descriptor = os.open(path, _FOLDER, dir_fd=root)
    try:
        _check(descriptor)
        yield descriptor
    finally:
        os.close(descriptor)


def _check(descriptor: int) -> os.stat_result:
    if sys.platform != "win32":
        facts = os.fstat(descriptor)
        if facts.st_uid == os.geteuid() and not stat.S_IMODE(facts.st_mode) & 0o077:
            return facts
    raise _ForeignError


def _content(key: str, folder_fd: int) -> bytes | None:
    """Return the content of an entry; None if there is none, or if it is damaged and therefore removed."""
    try:
        descriptor = os.open(key, _READ, dir_fd=folder_fd)
    except FileNotFoundError:
        return None
    except OSError:  # a link
        _remove(key, folder_fd)
        return None
    with os.fdopen(descriptor, "rb") as stream:
        try:
            facts = _check(descriptor)
            data = stream.read() if stat.S_ISREG(facts.st_mode) else b""
        except (OSError, _ForeignError):
            data, facts = b"", None
        content = data[_HASH_BYTES:]
        if facts is None or data[:_HASH_BYTES] != _hash(key, content):
            _remove(key, folder_fd)
            return None
        if time.time() - facts.st_mtime > _USED:
            with suppress(OSError):
                os.utime(descriptor)
    return content


def _hash(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\n" + content).digest()


def _write(key: str, content: bytes, folder_fd: int) -> None:
    temporary = f".{os.urandom(8).hex()}"
    try:
        with os.fdopen(os.open(temporary, _WRITE, 0o600, dir_fd=folder_fd), "wb") as stream:
            stream.write(_hash(key, content) + content)
        os.replace(temporary, key, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    except OSError:
        _remove(temporary, folder_fd)
        raise


def _remove(name: str, folder_fd: int) -> None:
    with suppress(OSError):  # another process has removed it
        os.unlink(name, dir_fd=folder_fd)


def _entries(folder_fd: int) -> Iterator[Stored]:
    with os.scandir(folder_fd) as files:
        for file in files:
            if not file.name.startswith("."):
                with suppress(FileNotFoundError):
                    facts = file.stat(follow_symlinks=False)
                    yield Stored(file.name, facts.st_size, facts.st_mtime)


def _sweep(folder_fd: int, share: int) -> None:
    """Remove the least recently used entries of a folder beyond its share, and files of dead processes."""
    for entry in sorted(_entries(folder_fd), key=lambda entry: -entry.used):
        share -= entry.bytes
        if share < 0:
            _remove(entry.key, folder_fd)
    for name in os.listdir(folder_fd):
        if name.startswith("."):
            with suppress(OSError):
                if time.time() - os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_mtime > _ABANDONED:
                    _remove(name, folder_fd)


@lru_cache(maxsize=1)
def compiler_digest() -> str | None:
    """Return the digest of what determines the object code of a kernel besides the target: versions and sources.

    Sources count by path, size and time of their last change: these are read ten times as fast as the text. None if a
    source has changed since this process read it.
    """
    digest = hashlib.sha256(f"{llvmlite.__version__} {llvm.llvm_version_info}\n".encode())
    codegen = Path(__file__).parents[2]
    for root in (codegen, codegen.parent / "runtime"):
        for folder, folders, names in os.walk(root):
            folders.sort()
            for path in sorted(f"{folder}/{name}" for name in names if name.endswith((".py", ".ll"))):
                facts = os.stat(path)
                if facts.st_mtime > _IMPORTED - _SLACK:
                    return None
                digest.update(f"{path} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()
