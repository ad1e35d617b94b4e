"""The registry of conversions of a framework: a table that modules fill at the first lookup.

CONVERSIONS = Table("onnx", __name__, FAMILIES)

@CONVERSIONS.register("Celu")
def celu(node: NodeContext, x: OutPort) -> OutPort: ...

CONVERSIONS.of("Celu")          celu, or the conversion of an extension that takes part in the compilation
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, TypeVar

from aot.frontends.conversion.attributes import with_attributes
from aot.frontends.conversion.node_context import Conversion
from aot.ir.scope import current, scope_for
from aot.runtime.abi import DType

F = TypeVar("F", bound=Callable[..., Any])


class Table:
    """The conversions of a framework's operations, those of extensions apart: they live as long as a compilation.

    `families`: folders beside `module` whose modules register conversions.
    """

    def __init__(self, framework: str, module: str, families: tuple[str, ...]) -> None:
        self.framework, self.package, self.families = framework, module.rpartition(".")[0], families
        self.built_in = dict[str, Conversion]()

    def enter(self, kinds: tuple[str, ...], conversion: Conversion) -> None:
        """Enter the conversion of operations; one of an extension's module is found in its compilation alone."""
        scope = scope_for(conversion.__module__)
        if scope is None:
            self.built_in.update(dict.fromkeys(kinds, conversion))
        else:
            scope.conversions.update({(self.framework, kind): conversion for kind in kinds})

    def register(self, *kinds: str) -> Callable[[F], F]:
        """Return a decorator that enters a function under the names of operations."""

        def entering(function: F) -> F:
            conversion = with_attributes(function)
            self.enter(kinds, conversion)
            return conversion

        return entering

    def load(self) -> dict[str, Conversion]:
        """Return the conversions of this project, all of them imported."""
        _load(self.package, self.families)
        return self.built_in

    def of_extension(self, kind: str) -> Conversion | None:
        """Return the conversion of an operation that an extension has registered; None if there is none."""
        return current().conversions.get((self.framework, kind))

    def of(self, kind: str) -> Conversion | None:
        """Return the conversion of an operation, an extension's or a built-in one; None if there is none."""
        return self.of_extension(kind) or self.load().get(kind)


@cache
def _load(package: str, families: tuple[str, ...]) -> None:
    """Import all modules in folders of a package: conversions that register themselves."""
    for family in families:
        folder = import_module(f"{package}.{family}")
        for module in walk_packages(folder.__path__, f"{folder.__name__}."):
            import_module(module.name)


def decorator(table: dict[str, F]) -> Callable[..., Callable[[F], F]]:
    """Return a decorator that enters a function in a table under the names that it is given."""

    def named(*names: str) -> Callable[[F], F]:
        def entering(function: F) -> F:
            table.update(dict.fromkeys(names, function))
            return function

        return entering

    return named


def renames(words: str) -> dict[str, str]:
    """Return names of operations by a framework's names: `Abs` is the name in both, `Ceil=Ceiling` has two."""
    return {name: own or name for name, _, own in (word.partition("=") for word in words.split())}


def element_types(words: str) -> dict[int, DType]:
    """Return element types by the numbers that a framework has for them: `1=f32`."""
    return {int(number): DType(name) for number, _, name in (word.partition("=") for word in words.split())}
