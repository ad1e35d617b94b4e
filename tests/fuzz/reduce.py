"""Delta debugging: the fewest atoms of a case with which it still fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def fewest(atoms: Sequence[T], holds: Callable[[Sequence[T]], bool]) -> list[T]:
    """A part of `atoms` for which `holds` is True, and of which no single atom can be left out.

    Leaves out chunks, first halves and then ever smaller ones (Zeller and Hildebrandt 2002). `holds(atoms)` is True.
    """
    left, size = list(atoms), max(len(atoms) // 2, 1)
    while left:
        at, shorter = 0, False
        while at < len(left):
            rest = left[:at] + left[at + size :]
            if holds(rest):
                left, shorter = rest, True
            else:
                at += size
        if size == 1 and not shorter:
            break
        size = max(size // 2, 1)
    return left
