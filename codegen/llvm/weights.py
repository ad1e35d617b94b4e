"""Weights that are made once: hashed, and kept in a file without a name until they are written.

The hash of weights is in the symbols of a library, so it is known before they can be written. Packing the numbers of a
large language model again takes longer than copying them, and the file becomes the library where that is possible.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import sys
import tempfile
import weakref
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from contextvars import copy_context
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np
from numpy.typing import NDArray

from aot.codegen.ir.program import ConstantBlock
from aot.runtime.systems import processor

LEAST_BYTES = 4 << 20  # least bytes of weights that several threads make, and that are kept; smaller ones take 0.02 s
ROOM = 2 << 20  # bytes before weights in their file: a large page, and more than most libraries have besides weights
MAX_THREADS = 4  # threads that make pieces: NumPy holds the interpreter's lock between its loops
AHEAD_BYTES = 16 << 20  # most bytes of finished pieces that wait in the queue

Blocks = tuple[ConstantBlock, ...]


class WeightsFile:
    """Weights in a file without a name, after room for what a linker makes of the code."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        """`stream`: has the `size` bytes at `ROOM`."""
        mapped = mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ, offset=ROOM)
        self._descriptor = os.dup(stream.fileno())
        weakref.finalize(self, os.close, self._descriptor)
        # one block, so that it is written in pages as large as can be
        self.blocks: Blocks = (ConstantBlock(0, np.frombuffer(mapped, np.uint8)),)
        self.is_library = False  # once the file has a name, others may change it

    def becomes(self, linked: Path) -> bool:
        """Make the file the library at `linked`, of `ROOM` bytes at most, with the weights at `ROOM`.

        False for a file that is a library already, and where a file can get no name: `linked` is as before.
        """
        if self.is_library or sys.platform != "linux":
            return False
        named = linked.with_name(f"{linked.name}.whole")
        folder = os.open(linked.parent, os.O_RDONLY)
        try:  # with a folder, Python calls linkat(2), which follows the link in /proc
            os.link(f"/proc/self/fd/{self._descriptor}", named.name, dst_dir_fd=folder, follow_symlinks=True)
        except OSError:  # another file system, a file that was made with a name, no /proc
            return False
        finally:
            os.close(folder)
        self.is_library = True
        with named.open("r+b") as stream:
            stream.write(linked.read_bytes())
        named.chmod(linked.stat().st_mode & 0o777)
        named.replace(linked)
        return True


def hashed(blocks: Blocks, size: int, folder: Path | None) -> tuple[str, WeightsFile | None]:
    """Return the SHA-256 of the `size` bytes of weights, and the same bytes in a file, None for small ones.

    `folder`: where large ones that are made at each access are kept; None for nowhere. A folder without room for them
    is left alone.
    """
    if folder is not None and sum(b.nbytes for b in blocks if b.make is not None) >= LEAST_BYTES:
        with suppress(OSError):  # no room beside the library; it may fit alone
            return _made(blocks, size, folder)
    return weights_hash(blocks, size), None


def _made(blocks: Blocks, size: int, folder: Path) -> tuple[str, WeightsFile]:
    digest = hashlib.sha256()
    with _unnamed(folder) as stream:
        stream.seek(ROOM)
        for part in parts_of(blocks, size):
            digest.update(part)
            stream.write(part)
        stream.flush()
        return digest.hexdigest(), WeightsFile(stream, size)


def _unnamed(folder: Path) -> IO[bytes]:
    """Open a new file without a name; where the system can do so, it can get one later."""
    if sys.platform == "linux":
        with suppress(OSError):  # a file system that cannot
            return os.fdopen(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600), "w+b")
    return tempfile.TemporaryFile(dir=folder, prefix=".aot-")


def weights_hash(blocks: Blocks, size: int) -> str:
    """Return the SHA-256 of the `size` bytes of weights, in hexadecimal."""
    digest = hashlib.sha256()
    for part in parts_of(blocks, size):
        digest.update(part)
    return digest.hexdigest()


def parts_of(blocks: Blocks, size: int) -> Iterator[bytes | memoryview]:
    """Yield the `size` bytes of weights in order; gaps are zero."""
    offset = 0
    with _Makers(blocks) as makers:
        for block in blocks:
            yield from zeros(block.offset - offset)
            yield from (piece.data for piece in makers.pieces(block))
            offset = block.offset + block.nbytes
    yield from zeros(size - offset)


class _Makers(AbstractContextManager["_Makers"]):
    """Threads that make pieces of large weights ahead of their use; none on one processor, or for small weights."""

    def __init__(self, blocks: Blocks) -> None:
        self._threads = min(len(processor.allowed_processors()), MAX_THREADS)
        large = sum(b.nbytes for b in blocks if b.make is not None) >= LEAST_BYTES
        self._pool = ThreadPoolExecutor(self._threads) if large and self._threads > 1 else None

    def pieces(self, block: ConstantBlock) -> Iterator[NDArray[np.uint8]]:
        """Yield the bytes of a block in order."""
        makers = block.makers()
        ahead = min(AHEAD_BYTES * len(makers) // max(block.nbytes, 1), self._threads)  # pieces that wait to be taken
        if self._pool is None or not ahead:
            yield from block.pieces()
            return
        waiting: deque[Future[NDArray[np.uint8]]] = deque()
        for make in makers:
            if len(waiting) > ahead:
                yield waiting.popleft().result()
            waiting.append(self._pool.submit(copy_context().run, make))
        while waiting:
            yield waiting.popleft().result()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


def zeros(count: int) -> Iterator[bytes]:
    """Yield `count` zero bytes, a piece at a time."""
    piece = bytes(1 << 20)
    yield from (piece for _ in range(count >> 20))
    yield piece[: count & (1 << 20) - 1]
