"""Loads the modules of a folder under names of their own, and remembers the source that each was made from.

    aot_extensions_3.ops.square      DIR/ops/square.py
    aot_extensions_3.inside.tools    DIR/tools.py and ...
    aot_extensions_3.beside.tools    ... DIR/../tools.py, where a file of the folder says `import tools`
    aot_extensions_3.ops.square      the same module as above, where a file says `import DIR.ops.square`

Names of Model Optimizer's modules (`openvino.tools.mo.ops.op`, `mo.ops.op`) lead to `aot.mo` (see `aot.mo.names`).
So two folders may have modules of one name, a changed file is loaded anew, and no byte code that is kept elsewhere is
taken for it. A module that the program itself has imported before stays shared with it. `import numpy` gives NumPy with
the names that it had when files were written for Model Optimizer (see `numpy_names`).
"""

from __future__ import annotations

import builtins
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from aot.extensions.numpy_names import NUMPY
from aot.ir.scope import EXTENSION_MODULES
from aot.runtime.errors import MissingError

_PREFIX = EXTENSION_MODULES
_MO = ("openvino", "mo", "extensions")  # first parts of Model Optimizer's import names
_NUMBERS = count()
_INSTALLED = {Path(place).resolve() for place in sysconfig.get_paths().values()}


class Modules:
    """The modules of one folder."""

    def __init__(self, folder: Path) -> None:
        """`folder` is resolved."""
        self.folder = folder
        self.name = f"{_PREFIX}{next(_NUMBERS)}"
        self._sources: dict[Path, bytes] = {}
        self._homes: dict[str, str | None] = {}
        self.uses_mo = False  # a module of Model Optimizer's was imported
        self.builtins = {**vars(builtins), "__import__": self._import}
        for name, path in (("", folder), (".inside", folder), (".beside", folder.parent)):
            package = ModuleType(self.name + name)
            package.__path__ = [str(path)]
            sys.modules[package.__name__] = package
        _FINDER.packages[self.name] = self

    def load(self, name: str) -> ModuleType:
        """Load the module of the folder that is called `ops.square`; raises the errors of its code."""
        return import_module(f"{self.name}.{name}")

    def read(self, path: Path) -> bytes:
        """Return the source in a file, which is remembered."""
        data = self._sources[path.resolve()] = path.read_bytes()
        return data

    def start(self) -> None:
        """Run the folder's own `__init__.py`, if there is one; raises the errors of its code."""
        path = self.folder / "__init__.py"
        if path.is_file():
            package = sys.modules[self.name]
            vars(package).update(__builtins__=self.builtins, __file__=str(path), __package__=self.name)
            exec(compile(self.read(path), str(path), "exec"), vars(package))

    def loaded(self) -> list[ModuleType]:
        """Return all loaded modules of the folder, and the loaded modules beside it."""
        return [m for name, m in list(sys.modules.items()) if name.partition(".")[0] == self.name]

    def sources(self) -> dict[str, bytes]:
        """Return the source of every module that was loaded, by its path from the folder on."""
        return {str(_from(self.folder, path)): data for path, data in self._sources.items()}

    def changed(self) -> bool:
        """True if a file has another content now."""
        return any(not path.is_file() or path.read_bytes() != data for path, data in self._sources.items())

    def forget(self) -> None:
        """Remove the modules: they could not be loaded."""
        del _FINDER.packages[self.name]
        for name in [name for name in list(sys.modules) if name.partition(".")[0] == self.name]:
            del sys.modules[name]

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """`__import__` of the folder's modules: those from the folder and from beside it get private names."""
        top = name.partition(".")[0]
        if top in _MO and not level and not self._has_file(name):
            module = self._from_mo(name, fromlist or ())
            if module is not None:
                return module
        if not level and top == self.folder.name and self._is_own(name):
            private = f"{self.name}{name.removeprefix(top)}"
            return builtins.__import__(private, globals, locals, fromlist or (), 0)
        home = None if level else self._home(top)
        if home is None:
            module = builtins.__import__(name, globals, locals, fromlist or (), level)
            return NUMPY if module is np else module
        if fromlist:
            return builtins.__import__(f"{self.name}.{home}.{name}", globals, locals, fromlist, 0)
        import_module(f"{self.name}.{home}.{name}")
        return sys.modules[f"{self.name}.{home}.{top}"]

    def _is_own(self, name: str) -> bool:
        """True if a name that begins with the folder's is of the folder, rather than of a package of that name."""
        top, _, rest = name.partition(".")
        if rest:
            path = self.folder.joinpath(*rest.split("."))
            return path.is_dir() or path.with_suffix(".py").is_file()
        spec = sys.modules[top].__spec__ if top in sys.modules else PathFinder.find_spec(top)
        return spec is None or str(self.folder) in (spec.submodule_search_locations or ())

    def _has_file(self, name: str) -> bool:
        """True if the folder, or its parent, has a file for a module."""
        paths = [root.joinpath(*name.split(".")) for root in (self.folder, self.folder.parent)]
        return any(path.with_suffix(".py").is_file() or (path / "__init__.py").is_file() for path in paths)

    def _from_mo(self, name: str, wanted: Sequence[str]) -> Any:
        """Return the module or member that an import of Model Optimizer's names; None for another name."""
        part = name == "openvino.tools" and "mo" in wanted
        if name.startswith("openvino") and not part and not f"{name}.".startswith("openvino.tools.mo."):
            return None
        if find_spec("networkx") is None:
            raise MissingError(f"{name}: Model Optimizer's classes need the package networkx: pip install networkx")
        names: Any = import_module("aot.mo.names")
        result = names.imported(name, wanted)
        self.uses_mo = self.uses_mo or result is not None
        return result

    def _home(self, top: str) -> str | None:
        """Place of a top-level module: `inside` the folder or `beside` it; None: elsewhere, or it is shared."""
        if top not in self._homes:
            self._homes[top] = self._home_of(top)
        return self._homes[top]

    def _home_of(self, top: str) -> str | None:
        loaded = sys.modules.get(top)
        spec = loaded.__spec__ if loaded is not None else PathFinder.find_spec(top)
        if spec is None:
            return None
        packages = list(spec.submodule_search_locations or ())
        file = packages[0] if packages else spec.origin
        path = Path(file).resolve().parent if file is not None else None
        if path not in (self.folder, self.folder.parent) or path in _INSTALLED:
            return None
        if loaded is not None:
            if spec.origin is not None and Path(spec.origin).is_file():
                self.read(Path(spec.origin))
            return None
        return "inside" if path == self.folder else "beside"


class _Finder(MetaPathFinder):
    """Finds the modules of all folders by their private names."""

    def __init__(self) -> None:
        self.packages: dict[str, Modules] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        owner = self.packages.get(fullname.partition(".")[0])
        if owner is None:
            return None
        PathFinder.invalidate_caches()  # the folder may have changed within the resolution of its timestamp
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path, owner)
        elif spec is not None and spec.origin is not None and Path(spec.origin).is_file():
            owner.read(Path(spec.origin))
        return spec


class _Loader(SourceFileLoader):
    """Compiles modules without files of byte code, and remembers their source."""

    def __init__(self, fullname: str, path: str, owner: Modules) -> None:
        super().__init__(fullname, path)
        self._owner = owner

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self._owner.read(Path(path)), path)

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = self._owner.builtins
        super().exec_module(module)


def _from(folder: Path, path: Path) -> Path:
    """Return a path from the folder on; from its parent on, `..` is its first part."""
    if path.is_relative_to(folder):
        return path.relative_to(folder)
    return Path("..") / path.relative_to(folder.parent) if path.is_relative_to(folder.parent) else path


_FINDER = _Finder()
sys.meta_path.insert(0, _FINDER)
