"""Reuses the memory of unreferenced results for the next ones, because it is in the page table already.

y = model(x)     y refers to the last results while the next ones are computed, so the results before are reused
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from aot.runtime.arrays.tensors import Array

MIN_RECYCLED_BYTES = 1 << 16  # bytes of a result: less is soon there
GENERATIONS = 2


class Recycler:
    """The last results of one request, in arrays allocated for it."""

    def __init__(self) -> None:
        self._kept: list[tuple[Array, ...]] = []

    def keep(self, arrays: tuple[Array, ...]) -> None:
        self._kept.append(arrays)
        del self._kept[:-GENERATIONS]

    def take(self) -> tuple[Array, ...] | None:
        """Return the oldest results, if there is no other reference to them, to a part of them or to their memory."""
        if len(self._kept) < GENERATIONS or not _HAS_GIL or _references(self._kept, 0) != _SOLE_REFERENCE:
            return None
        arrays = self._kept[0]
        owners = [array.base for array in arrays]
        for i in range(len(arrays)):
            others = _references(arrays, i) - _SOLE_REFERENCE
            if others or (owners[i] is not None and _references(owners, i) != _SOLE_REFERENCE + 1):
                return None
        del self._kept[0]
        return arrays


def _references(items: Sequence[object], n: int) -> int:
    return sys.getrefcount(items[n])


_SOLE_REFERENCE = _references([object()], 0)  # reference count of an object that only a sequence holds
_HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()  # without the lock, each thread has its own count
