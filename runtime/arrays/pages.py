"""Pages of large arrays: small ones if little of the memory is used at first, and those of mapped files.

Where little of it is used, large pages take up to 512 times the memory, and as much more time to fill: the first call
of a language model with room for 4096 tokens took 213 ms instead of 34. Through large pages all of it is read faster.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from aot.runtime.errors import BudgetError
from aot.runtime.systems import memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGE_BYTES = 4 << 20  # bytes from which on NumPy requests large pages


def small_pages(count: int) -> mmap.mmap:
    """Return `count` zeros; a page takes memory once it is touched. BudgetError if there is no memory."""
    try:
        return memory.small_pages(count)
    except (OSError, OverflowError):
        raise BudgetError(f"memory: the system has no {count} bytes left") from None


def join_pages(small: mmap.mmap) -> None:
    """Make large pages of small ones if the system can."""
    memory.join_pages(small)


def release(array: NDArray[Any]) -> None:
    """Give back the pages of an array that is a view of a mapped file; the system reads them again if they are used.

    Pages that are not wholly the array's, files that are mapped for writing and other arrays stay as they are.
    """
    mapping = mapping_of(array)
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


def mapping_of(array: NDArray[Any]) -> mmap.mmap | None:
    """Return the mapping that an array is a view of; None without one."""
    base: Any = array
    while isinstance(base, np.ndarray | memoryview):
        base = base.obj if isinstance(base, memoryview) else base.base
    return base if isinstance(base, mmap.mmap) else None
