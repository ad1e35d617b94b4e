"""Conversions register themselves: their modules are imported when a table is asked first."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import walk_packages


@cache
def load_families(package: str, families: tuple[str, ...]) -> None:
    """Import all modules in folders of a package: conversions that register themselves."""
    for family in families:
        folder = import_module(f"{package}.{family}")
        for module in walk_packages(folder.__path__, f"{folder.__name__}."):
            import_module(module.name)
