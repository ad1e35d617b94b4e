"""Operation classes by their attribute `op`: of the extensions that take part, and of the library."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_OWN: ContextVar[dict[str, Any] | None] = ContextVar("classes", default=None)


class Registered(MutableMapping[str, Any]):
    """The classes; one that is set is there in the compilation that runs, and in no other."""

    def __init__(self) -> None:
        self._library: Callable[[str], Any] | None = None
        self._names: Callable[[], list[str]] = list
        self._loose: dict[str, Any] = {}  # set outside of compilations

    def give_library(self, find: Callable[[str], Any], names: Callable[[], list[str]]) -> None:
        """`find` returns the library's class of a name, or None; `names` lists them."""
        self._library, self._names = find, names

    def _own(self) -> dict[str, Any]:
        own = _OWN.get()
        return self._loose if own is None else own

    def __getitem__(self, name: str) -> Any:
        own = self._own()
        if name in own:
            return own[name]
        cls = None if self._library is None else self._library(name)
        if cls is None:
            raise KeyError(name)
        return cls

    def __setitem__(self, name: str, cls: Any) -> None:
        self._own()[name] = cls

    def __delitem__(self, name: str) -> None:
        del self._own()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._own(), *self._names()]))

    def __len__(self) -> int:
        return len(list(iter(self)))


REGISTERED = Registered()


@contextmanager
def classes(own: dict[str, Any]) -> Generator[None]:
    """Let `own` take and give the classes of extensions."""
    token = _OWN.set(own)
    try:
        yield
    finally:
        _OWN.reset(token)
