"""The code of Model Optimizer's transformations that there is code for, by `module.class`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, TypeVar

C = TypeVar("C", bound=type[Any])

_CODE: dict[str, type[Any]] = {}


def transformation(module: str) -> Callable[[C], C]:
    """Register a class as the code of Model Optimizer's class of its name in `module`, `middle.L2NormFusing`."""

    def register(cls: C) -> C:
        _CODE[f"{module}.{cls.__name__}"] = cls
        return cls

    return register


def code_of(key: str) -> type[Any] | None:
    """Return the code of a transformation, `module.class`; None if it is a place in the order only."""
    _load()
    return _CODE.get(key)


@cache
def _load() -> None:
    package = import_module("aot.mo.transformations")
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)
