"""A user's extensions: their additions to the tables of operations and conversions, while one compilation runs.

The built-in tables never change: a definition outside of this project goes into the scope of the compilation that
loads it, and is found in that compilation alone.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from inspect import currentframe
from typing import Any

from aot.codegen.dataclass import dataclass

EXTENSION_MODULES = "aot_extensions_"  # prefix of the names of modules of extension folders
_PROJECT = "aot."  # modules of this project, which may be imported while a compilation runs


@dataclass(frozen=True, slots=True)
class Scope:
    """Operations by class name, by type and version, and by set and type; conversions by domain and kind.

    As in the built-in tables; sets are those of other names than `opset13`. `keeps_loops`: conversions unroll none.
    """

    operations: dict[str, type[Any]] = field(default_factory=dict[str, type[Any]])
    types: dict[str, dict[int, type[Any]]] = field(default_factory=dict[str, dict[int, type[Any]]])
    sets: dict[tuple[str, str], type[Any]] = field(default_factory=dict[tuple[str, str], type[Any]])
    conversions: dict[tuple[str, str], Any] = field(default_factory=dict[tuple[str, str], Any])
    keeps_loops: bool = False


_NONE = Scope()
_CURRENT: ContextVar[Scope] = ContextVar("scope", default=_NONE)


def current() -> Scope:
    """Return the scope of the compilation that runs in this thread; an empty one outside of compilations."""
    return _CURRENT.get()


def scope_for(module: str) -> Scope | None:
    """Return the scope that gets a definition of `module`; None: it goes into the built-in tables."""
    scope = _CURRENT.get()
    return None if scope is _NONE or module.startswith(_PROJECT) else scope


def raised_in(error: BaseException) -> str | None:
    """Return the last line of an extension's file in an error's traceback, as `FILE:LINE`; None without one."""
    line = None
    trace = error.__traceback__
    while trace is not None:
        if str(trace.tb_frame.f_globals.get("__name__", "")).startswith(EXTENSION_MODULES):
            line = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename:
        line = f"{error.filename}:{error.lineno}"
    return line


def called_from() -> str | None:
    """Return the class, or the function, of an extension that is running, with its line; None outside of extensions."""
    frame = currentframe()
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(EXTENSION_MODULES):
            own = frame.f_locals.get("self", frame.f_locals.get("cls"))
            name = frame.f_code.co_name if own is None else getattr(own, "__name__", type(own).__name__)
            return f"{name}, {frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return None


@contextmanager
def within(scope: Scope | None) -> Generator[None]:
    """Let `scope` be the current one; None: the one without extensions."""
    token = _CURRENT.set(_NONE if scope is None else scope)
    try:
        yield
    finally:
        _CURRENT.reset(token)
