"""Enters weights into the page table before they are used: in the background, while the first request is prepared.

A mapped file is entered into the page table by its first use, 64 KiB at a time. One call of the system enters all of it
at about half of the cost: 160 MB in 13 ms where first use took 24; in less than 1 where the system holds the file in
large pages. Without that call, pages are entered by their first use.
"""

from __future__ import annotations

import mmap
import threading

from aot.runtime.systems import memory

MIN_THREAD_BYTES = 4 << 20  # bytes below which a thread is not worth its start
_PIECE_BYTES = 8 << 20  # bytes per call, so that other changes of the process's memory do not wait long


def populate_later(address: int, size: int, keep: object) -> None:
    """Run `populate` in a new thread, which keeps `keep`, the owner of the memory, alive."""
    if size >= MIN_THREAD_BYTES:
        threading.Thread(target=populate, args=(address, size, keep), name="aot-pages", daemon=True).start()


def populate(address: int, size: int, keep: object = None) -> bool:
    """Map the pages of `size` readable bytes from `address` on; return False if the system cannot."""
    first = address // mmap.PAGESIZE * mmap.PAGESIZE
    memory.prefer_large_pages(first, address + size - first)
    pieces = range(first, address + size, _PIECE_BYTES)
    done = all(memory.enter_pages(at, min(_PIECE_BYTES, address + size - at)) for at in pieces)
    del keep
    return done
