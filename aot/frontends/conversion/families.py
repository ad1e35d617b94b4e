"""Tables of conversions: their modules enter functions, and are imported when a table is asked first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, TypeVar

from aot.frontends.conversion.calls import Conversion
from aot.ir.scope import current, scope_for

F = TypeVar("F", bound=Callable[..., Any])


@cache
def load_families(package: str, families: tuple[str, ...]) -> None:
    """Import all modules in folders of a package: conversions that register themselves."""
    for family in families:
        folder = import_module(f"{package}.{family}")
        for module in walk_packages(folder.__path__, f"{folder.__name__}."):
            import_module(module.name)


def enter(table: dict[str, Conversion], domain: str, kinds: Sequence[str], conversion: Conversion, module: str) -> None:
    """Enter the conversion of operations in a table; that of an extension's module, in the extension's own one.

    `domain`: name of the framework there.
    """
    scope = scope_for(module)
    if scope is None:
        table.update(dict.fromkeys(kinds, conversion))
    else:
        scope.conversions.update({(domain, kind): conversion for kind in kinds})


def entered(table: dict[str, Conversion], domain: str, kind: str) -> Conversion | None:
    """Return the conversion of an operation, that of an extension that takes part first; None if there is none."""
    return current().conversions.get((domain, kind)) or table.get(kind)


def decorator(table: dict[str, F]) -> Callable[..., Callable[[F], F]]:
    """Return a decorator that enters a function in a table under the names that it is given."""

    def named(*names: str) -> Callable[[F], F]:
        def entering(function: F) -> F:
            table.update(dict.fromkeys(names, function))
            return function

        return entering

    return named
