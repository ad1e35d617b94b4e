"""Arrays between two pages that cannot be read: a read before or behind one ends the process."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

from aot.ir.types import Array
from aot.runtime.arrays.tensors import MALLOC_ALIGN

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)


def fenced(array: Array, kept: list[mmap.mmap]) -> Array:
    """A copy, C-contiguous, behind which at most 15 bytes can be read, and before which less than a page.

    `kept` holds its memory. Arrays are not copied by the runtime if their addresses are multiples of 16.
    """
    if array.dtype == object or not array.nbytes or not array.flags.c_contiguous:
        return array
    size = -(-array.nbytes // PAGE) * PAGE
    memory = mmap.mmap(-1, size + 2 * PAGE)
    kept.append(memory)
    start = np.frombuffer(memory, np.uint8).ctypes.data
    for fence in (start, start + PAGE + size):
        if _libc.mprotect(ctypes.c_void_p(fence), ctypes.c_size_t(PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    place = PAGE + size - -(-array.nbytes // MALLOC_ALIGN) * MALLOC_ALIGN
    made = np.frombuffer(memory, np.uint8, array.nbytes, place).view(array.dtype).reshape(array.shape)
    made[...] = array
    return made
