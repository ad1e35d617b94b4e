"""Pages of memory, by calls of Linux."""

from __future__ import annotations

import sys

assert sys.platform == "linux"

import ctypes
import mmap
import os
from contextlib import suppress

_MAP_FIXED = 16
_HUGEPAGE = 14  # MADV_HUGEPAGE
_POPULATE_READ = 22  # MADV_POPULATE_READ, Linux 5.14
_COLLAPSE = 25  # MADV_COLLAPSE, Linux 6.1


def map_file(descriptor: int, offset: int, address: int, size: int) -> None:
    """Map `size` bytes of a file, readable, in place of reserved memory at `address`; OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64)
    mapped = libc.mmap(address, size, mmap.PROT_READ, mmap.MAP_SHARED | _MAP_FIXED, descriptor, offset)
    if mapped != address:
        raise OSError(ctypes.get_errno(), f"weights: cannot be mapped: {os.strerror(ctypes.get_errno())}")


def prefer_large_pages(address: int, size: int) -> None:
    """Ask for large pages of memory that is read from disk; refused by systems without them."""
    _advise(address, size, _HUGEPAGE)


def enter_pages(address: int, size: int) -> bool:
    """Enter readable memory into the page table; False if the system cannot."""
    return _advise(address, size, _POPULATE_READ)


def small_pages(count: int) -> mmap.mmap:
    """Return `count` zeros; a page takes memory once it is touched. OSError or OverflowError."""
    pages = mmap.mmap(-1, count, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a system without large pages
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return pages


def join_pages(memory: mmap.mmap) -> None:
    """Make large pages of small ones if the system can."""
    with suppress(OSError):
        memory.madvise(mmap.MADV_HUGEPAGE)
        memory.madvise(_COLLAPSE)


def release(mapping: mmap.mmap, first: int, size: int) -> None:
    """Give back pages of a file; the system reads them again if they are used."""
    mapping.madvise(mmap.MADV_DONTNEED, first, size)


def _advise(address: int, size: int, advice: int) -> bool:
    call = ctypes.CDLL(None).madvise
    call.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return call(address, size, advice) == 0
