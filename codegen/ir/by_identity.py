"""Caches by the identity of their keys: to compare two nests by value takes as long as to walk them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Generic, TypeVar, cast

A = TypeVar("A")
T = TypeVar("T")


class Same(Generic[A]):
    """A key that equals keys of the same object alone."""

    __slots__ = ("argument",)

    def __init__(self, argument: A) -> None:
        self.argument = argument

    def __hash__(self) -> int:
        return id(self.argument)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.argument is cast("Same[A]", other).argument


def kept(argument: object, slot: str) -> dict[Any, Any]:
    """Return the results that are kept in the attribute `slot` of an object: a dictionary, which grows."""
    results: dict[Any, Any] | None = getattr(argument, slot, None)
    if results is None:
        results = {}
        object.__setattr__(argument, slot, results)
    return results


def by_identity(size: int, slot: str) -> Callable[[Callable[[A], T]], Callable[[A], T]]:
    """Cache the result of a function in the attribute `slot` of its argument, where the class has it.

    Results of other objects are cached for the `size` ones of the last calls, which stay alive.
    """

    def decorate(run: Callable[[A], T]) -> Callable[[A], T]:
        @lru_cache(maxsize=size)
        def result_of(key: Same[A]) -> T:
            return run(key.argument)

        @wraps(run)
        def cached(argument: A) -> T:
            result: T | None = getattr(argument, slot, None)
            if result is None:
                if not hasattr(type(argument), slot):
                    return result_of(Same(argument))
                result = run(argument)
                object.__setattr__(argument, slot, result)
            return result

        return cached

    return decorate
