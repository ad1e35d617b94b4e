"""Pages of mapped files: those that are no longer needed need not stay in memory."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

from aot.runtime.systems import memory


def release(array: NDArray[Any]) -> None:
    """Give back the pages of an array that is a view of a mapped file; the system reads them again if they are used.

    Pages that are not wholly the array's, files that are mapped for writing and other arrays stay as they are.
    """
    mapping = _mapping(array)
    if mapping is None or not array.size:
        return
    whole = np.frombuffer(mapping, np.uint8)
    if whole.flags.writeable:
        return
    start, (low, high) = byte_bounds(whole)[0], byte_bounds(array)
    first = -(-(low - start) // mmap.PAGESIZE) * mmap.PAGESIZE
    last = (high - start) // mmap.PAGESIZE * mmap.PAGESIZE
    if first < last:
        memory.release(mapping, first, last - first)


def _mapping(array: NDArray[Any]) -> mmap.mmap | None:
    """Return the mapping that an array is a view of; None without one."""
    base: Any = array
    while isinstance(base, np.ndarray | memoryview):
        base = base.obj if isinstance(base, memoryview) else base.base
    return base if isinstance(base, mmap.mmap) else None
