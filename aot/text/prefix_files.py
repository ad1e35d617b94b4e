"""Blocks of keys and values in a folder, so that they outlive the process: a file each, those used last are kept.

TAG-HASH.block: a digest of the rest | the arrays of all variables, one after the other
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aot.runtime.arrays.tensors import Array
from aot.runtime.atomic import replacing
from aot.runtime.errors import UsageError

SUFFIX = ".block"
_DIGEST_BYTES = 16


class PrefixFiles:
    """Blocks of one model in a folder, within a number of bytes; for any number of threads, and of processes.

    Files that are damaged, or gone, are as good as none. A folder is trusted as its model is.
    """

    def __init__(self, folder: Path, tag: str, empty: Sequence[Array], most: int) -> None:
        """`tag`: the model's own; `empty`: arrays of the shapes and types of a block. UsageError for no folder."""
        if not folder.is_dir():
            raise UsageError(f"--cache: must be a folder, got {folder}")
        self._folder, self._tag, self._most = folder, tag, most
        self._empty, self._lock = empty, threading.Lock()
        files = sorted((s.st_mtime_ns, p.name, s.st_size) for p in folder.glob(f"{tag}-*{SUFFIX}") if (s := p.stat()))
        self._sizes = OrderedDict((name, size) for _, name, size in files)  # those that were used last come last

    def read(self, key: bytes) -> tuple[Array, ...] | None:
        """Return a block, None if there is none."""
        path, data = self._path(key), b""
        with suppress(OSError):
            data = path.read_bytes()
            path.touch()
        body = memoryview(data)[_DIGEST_BYTES:]
        if len(body) != sum(a.nbytes for a in self._empty) or data[:_DIGEST_BYTES] != _digest(body):
            return None
        arrays, at = list[Array](), 0
        for like in self._empty:
            part: NDArray[np.generic] = np.frombuffer(body, like.dtype, like.size, at)
            arrays.append(part.reshape(like.shape))
            at += like.nbytes
        with self._lock:
            self._sizes[path.name] = len(data)
            self._sizes.move_to_end(path.name)
        return tuple(arrays)

    def write(self, key: bytes, arrays: Sequence[Array]) -> None:
        """Keep a block, unless the disk is full; others go if there is no room."""
        path, body = self._path(key), b"".join(a.tobytes() for a in arrays)
        with suppress(OSError), replacing(path) as file:
            file.write_bytes(_digest(body) + body)
        with self._lock:
            self._sizes[path.name] = _DIGEST_BYTES + len(body)
            while sum(self._sizes.values()) > self._most:
                name, _ = self._sizes.popitem(last=False)
                with suppress(OSError):
                    (self._folder / name).unlink()

    def _path(self, key: bytes) -> Path:
        return self._folder / f"{self._tag}-{key.hex()}{SUFFIX}"


def _digest(body: bytes | memoryview) -> bytes:
    return blake2b(body, digest_size=_DIGEST_BYTES).digest()
