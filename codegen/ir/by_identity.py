"""Caches of functions of works, by the object: to find an equal one would compare two whole nests at each call."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Generic, TypeVar, cast

A = TypeVar("A")
T = TypeVar("T")


class _Same(Generic[A]):
    """A key that is equal where the work is the same object."""

    __slots__ = ("work",)

    def __init__(self, work: A) -> None:
        self.work = work

    def __hash__(self) -> int:
        return id(self.work)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.work is cast("_Same[A]", other).work


def by_identity(size: int) -> Callable[[Callable[[A], T]], Callable[[A], T]]:
    """Cache the results of a function for the last `size` works, which are kept."""

    def cached(run: Callable[[A], T]) -> Callable[[A], T]:
        @lru_cache(maxsize=size)
        def known(key: _Same[A]) -> T:
            return run(key.work)

        @wraps(run)
        def found(work: A) -> T:
            return known(_Same(work))

        return found

    return cached
