"""A user's extensions: their additions to the tables of operations and conversions, while one compilation runs.

The built-in tables never change: a definition outside of this project goes into the scope of the compilation that
loads it, and is found in that compilation alone.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

_PROJECT = "aot."  # modules of this project, which may be imported while a compilation runs


@dataclass(frozen=True, slots=True)
class Scope:
    """Operations by class name, and by type and version; conversions by domain and kind: as in the built-in tables."""

    operations: dict[str, type[Any]] = field(default_factory=dict[str, type[Any]])
    types: dict[str, dict[int, type[Any]]] = field(default_factory=dict[str, dict[int, type[Any]]])
    conversions: dict[tuple[str, str], Any] = field(default_factory=dict[tuple[str, str], Any])


_NONE = Scope()
_CURRENT: ContextVar[Scope] = ContextVar("scope", default=_NONE)


def current() -> Scope:
    """The scope of the compilation that runs in this thread; an empty one outside of compilations."""
    return _CURRENT.get()


def scope_for(module: str) -> Scope | None:
    """The scope that takes a definition of `module`; None: the built-in tables do."""
    scope = _CURRENT.get()
    return None if scope is _NONE or module.startswith(_PROJECT) else scope


@contextmanager
def within(scope: Scope | None) -> Generator[None]:
    """Let `scope` be the current one; None: no extensions are there."""
    token = _CURRENT.set(_NONE if scope is None else scope)
    try:
        yield
    finally:
        _CURRENT.reset(token)
