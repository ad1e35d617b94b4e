"""Object code kept in a folder of the user's, found again by a key; what is damaged or not the user's is never used.

    <folder>/ab/ab54...     SHA-256 of key and content | content      one of 256 folders, each with its share of bytes

Entries appear whole or not at all, whichever processes write them. A folder that others can read or write is not used.
No error of the system is told: what cannot be read is compiled again, and what cannot be written is not kept.
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

MAX_BYTES = 1 << 30  # of all entries
SHARES = 256  # folders, by the first byte of the key
_SWEPT = 16  # one of so many new entries makes its folder forget those that were not used for longest
_ABANDONED = 3600.0  # seconds after which a temporary file has no owner any more
_USED = 3600.0  # seconds to which the time of the last use is exact
_HASH_BYTES = 32
_IMPORTED = time.time()
_SLACK = 2.0  # seconds before, in which other modules may have been imported

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
            with _opened(self.folder) as root, _opened(key[:2], root) as position:
                return _content(key, position)
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
                with _opened(key[:2], root) as position:
                    _write(key, content, position)
                    if int(key[2:4], 16) % _SWEPT == 0:
                        _sweep(position, self._share)
        except (OSError, _ForeignError):
            self._writes = False

    def entries(self) -> list[Stored]:
        """Return all entries, the last used first; none if the folder cannot be read."""
        stored = [entry for place in self._places() for entry in _entries(place)]
        return sorted(stored, key=lambda entry: -entry.used)

    def damaged(self) -> list[str]:
        """Return the keys of the entries that are not whole or not the user's, which are removed."""
        results: list[str] = []
        for position in self._places():
            results += [entry.key for entry in _entries(position) if _content(entry.key, position) is None]
        return results

    def shrink(self, most_bytes: int | None = None, most_days: float | None = None) -> list[Stored]:
        """Remove entries unused for `most_days`, then the longest unused until `most_bytes` are left; return them."""
        gone: list[Stored] = []
        left = most_bytes
        for entry in self.entries():
            left = None if left is None else left - entry.bytes
            old = most_days is not None and time.time() - entry.used > most_days * 86400
            if old or (left is not None and left < 0):
                gone.append(entry)
        for position in self._places():
            names = set(os.listdir(position))
            for entry in gone:
                if entry.key in names:
                    _remove(entry.key, position)
            _sweep(position, self._share)
        return gone

    def _places(self) -> Iterator[int]:
        """Yield the opened folders of entries."""
        with suppress(OSError, _ForeignError), _opened(self.folder) as root:
            for name in sorted(os.listdir(root)):
                with suppress(OSError, _ForeignError), _opened(name, root) as position:
                    yield position


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


def _content(key: str, position: int) -> bytes | None:
    """Return the content of an entry; None if there is none, or if it is damaged and therefore removed."""
    try:
        descriptor = os.open(key, _READ, dir_fd=position)
    except FileNotFoundError:
        return None
    except OSError:  # a link
        _remove(key, position)
        return None
    with os.fdopen(descriptor, "rb") as stream:
        try:
            facts = _check(descriptor)
            data = stream.read() if stat.S_ISREG(facts.st_mode) else b""
        except (OSError, _ForeignError):
            data, facts = b"", None
        content = data[_HASH_BYTES:]
        if facts is None or data[:_HASH_BYTES] != _hash(key, content):
            _remove(key, position)
            return None
        if time.time() - facts.st_mtime > _USED:
            with suppress(OSError):
                os.utime(descriptor)
    return content


def _hash(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\n" + content).digest()


def _write(key: str, content: bytes, position: int) -> None:
    temporary = f".{os.urandom(8).hex()}"
    try:
        with os.fdopen(os.open(temporary, _WRITE, 0o600, dir_fd=position), "wb") as stream:
            stream.write(_hash(key, content) + content)
        os.replace(temporary, key, src_dir_fd=position, dst_dir_fd=position)
    except OSError:
        _remove(temporary, position)
        raise


def _remove(name: str, position: int) -> None:
    with suppress(OSError):  # another process has removed it
        os.unlink(name, dir_fd=position)


def _entries(position: int) -> Iterator[Stored]:
    with os.scandir(position) as scandir_iterator:
        for file in scandir_iterator:
            if not file.name.startswith("."):
                with suppress(FileNotFoundError):
                    facts = file.stat(follow_symlinks=False)
                    yield Stored(file.name, facts.st_size, facts.st_mtime)


def _sweep(position: int, share: int) -> None:
    """Remove the entries of a folder that were not used for longest, beyond its share, and files of dead processes."""
    for entry in sorted(_entries(position), key=lambda entry: -entry.used):
        share -= entry.bytes
        if share < 0:
            _remove(entry.key, position)
    for name in os.listdir(position):
        if name.startswith("."):
            with suppress(OSError):
                if time.time() - os.stat(name, dir_fd=position, follow_symlinks=False).st_mtime > _ABANDONED:
                    _remove(name, position)


@lru_cache(maxsize=1)
def compiler_digest() -> str | None:
    """Return the digest of all that makes object code of a kernel besides the target: versions, and the sources.

    Sources count by path, size and time of their last change, which is read ten times as fast as their text. None if
    they have changed since this process has read them.
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
