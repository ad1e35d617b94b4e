"""Opens regular files only: a FIFO would wait for a writer, a device would never end."""

from __future__ import annotations

import os
import stat
from io import BufferedReader
from pathlib import Path

from aot.runtime.errors import UsageError
from aot.runtime.systems import loading

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}


def open_file(path: Path, what: str) -> BufferedReader:
    """Open the file `path`, or the one that it links to; UsageError, beginning with `what`, if it is no regular file.

    OSError if there is none, and for a cycle of links.
    """
    _check(os.stat(path).st_mode, path, what)  # before it is opened, which may have effects on a device
    descriptor = loading.open_to_read(path)
    try:
        _check(os.fstat(descriptor).st_mode, path, what)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_file(path: Path, what: str) -> bytes:
    """Return the contents of a file, see `open_file`."""
    with open_file(path, what) as stream:
        return stream.read()


def check_file(path: Path, what: str) -> None:
    """Raise UsageError unless `path` is a file or links to one; OSError if there is none."""
    _check(os.stat(path).st_mode, path, what)


def _check(mode: int, path: Path, what: str) -> None:
    if not stat.S_ISREG(mode):
        raise UsageError(f"{what}: must be a file, got {_KINDS.get(stat.S_IFMT(mode), 'another thing')}: {path}")
