"""One package under two names: `aot.runtime` and `runtime` are the same modules, whichever of them is the real name."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType


def alias(name: str, package: str) -> None:
    """Make `name` another name of `package`, now and for submodules that are imported later."""
    sys.modules[name] = import_module(package)
    sys.meta_path.insert(0, _Alias(name, package))


class _Alias:
    """Finds and loads `name.x` by importing `package.x`, as long as `name` is the alias.

    It has no base class: `importlib.abc` takes as long to import as half of the runtime.
    """

    def __init__(self, name: str, package: str) -> None:
        self._name, self._package = name, package
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a specification for a submodule of the alias."""
        del path, target
        if not fullname.startswith(f"{self._name}.") or sys.modules.get(self._name) is not sys.modules[self._package]:
            return None
        return ModuleSpec(fullname, self)  # pyrefly: ignore[bad-argument-type]  it has both methods

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the real module; ModuleNotFoundError if there is none."""
        module = import_module(self._package + spec.name[len(self._name) :])
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module back its own specification, which the import system has replaced."""
        spec = module.__spec__
        assert spec is not None
        module.__spec__ = self._specs.pop(spec.name)
