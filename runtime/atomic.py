"""Files that appear whole or not at all, and copies of open ones."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from aot.runtime.systems import loading

_PIECE_BYTES = 2 << 20  # one large page


@contextmanager
def naming(path: Path) -> Generator[None]:
    """Give an OSError that has no file name, as that of a full disk, the name `path`."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """Yield a new, empty file beside `path` that is renamed to `path` at the end; after an exception it is removed.

    A process that is killed leaves at most a hidden file `.NAME.*`, never half of `path`. An OSError names `path`,
    FileNotFoundError a folder that does not exist.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(path.parent))
    temporary_path = path.parent / f".{path.name}.{os.urandom(8).hex()}"
    mode = 0o777 if path.suffix == ".so" else 0o666
    try:
        os.close(os.open(temporary_path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    except OSError as error:
        error.filename = str(path)
        raise
    try:
        with naming(path):
            yield temporary_path
            umask = os.umask(0)
            os.umask(umask)
            temporary_path.chmod(mode & ~umask)
            loading.replace(temporary_path, path)
    finally:
        temporary_path.unlink(missing_ok=True)


@contextmanager
def temporary(suffix: str) -> Generator[Path]:
    """Yield a path in a private temporary folder; both are removed at the end."""
    folder = loading.temporary_folder() / f"aot-{os.urandom(8).hex()}"
    folder.mkdir(mode=0o700)
    try:
        yield folder / f"model{suffix}"
    finally:
        for path in folder.iterdir():
            path.unlink()
        with suppress(OSError):
            folder.rmdir()


def copy(source: BinaryIO, target: BinaryIO) -> None:
    """Copy the rest of `source` to `target`."""
    while data := source.read(_PIECE_BYTES):
        target.write(data)
