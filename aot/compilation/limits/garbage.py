"""Fewer runs of the garbage collector while a model is compiled; memory that is free goes back to the system."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from types import TracebackType

NEW_OBJECTS = 1_000_000  # allocations between two collections: YOLOv8n compiles without any, which took 0.2 of 5.5 s


class FewerCollections:
    """While any thread is inside, the garbage collector runs after 1 000 000 new objects instead of Python's 700.

    A compilation makes expressions by the million and few cycles, so nearly all that the collector walks through stays.
    The threshold is the process's. A higher threshold, or a disabled collector, is left as it is.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._usual = gc.get_threshold()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._usual = gc.get_threshold()
                if 0 < self._usual[0] < NEW_OBJECTS:
                    gc.set_threshold(NEW_OBJECTS, *self._usual[1:])
            self._inside += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                gc.set_threshold(*self._usual)


FEWER_COLLECTIONS = FewerCollections()


def return_free_memory() -> None:
    """Return memory to the system that the C library keeps after it was freed: 45 MB after the tree of a large file.

    Other C libraries than glibc have no function for it, and keep less.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(ctypes.c_size_t(0))
