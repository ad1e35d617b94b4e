"""A user's extensions: Python files in a folder, which run as part of the compiler.

    DIR/ops/*.py        operations, under @op
    DIR/front/*.py      passes of a phase: classes with `find_and_replace_pattern` or `__call__`, and the rules of a
    DIR/middle/*.py     file as one pass of its name; in front conversions, too, of operations of ONNX files
    DIR/back/*.py

Files see each other by relative imports: `from ..ops.mine import Mine`. Modules that they import from the folder, or
from beside it, are part of them. What they register is there in the compilations that name the folder, and in no other.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from types import ModuleType

from aot.ir.scope import Scope, within
from aot.modules import Modules
from aot.passes.pass_order import PHASES
from aot.passes.rewrite import Rule, RuleSet
from runtime.errors import UsageError

OPERATIONS = "ops"


@dataclass(frozen=True, slots=True)
class Extensions:
    """The passes of a folder, what it registers, and the modules that it was loaded from."""

    passes: tuple[object, ...]
    scope: Scope
    modules: Modules

    @property
    def digest(self) -> str:
        """SHA-256 of the source of all modules that have been loaded, hexadecimal."""
        digest = hashlib.sha256()
        for label, data in sorted(self.modules.sources().items()):
            digest.update(f"{label} {len(data)}\n".encode() + data)
        return digest.hexdigest()


_LOADED: dict[Path, tuple[list[Path], Extensions]] = {}  # by folder: loaded anew once a file has changed
_LOADING = RLock()


def load_extensions(folder: Path) -> Extensions:
    """Load the extensions in a folder; UsageError for what cannot be run."""
    folder = Path(os.path.realpath(folder))  # which takes links in a circle for a path that is not there
    files = _files(folder)
    if not files:
        kinds = ", ".join((OPERATIONS, *PHASES))
        raise UsageError(f"--extensions: a folder that holds .py files in {kinds}, got {folder}")
    with _LOADING:
        known = _LOADED.get(folder)
        if known is None or known[0] != files or known[1].modules.changed():
            known = _LOADED[folder] = files, _load(folder, files)
        return known[1]


def _files(folder: Path) -> list[Path]:
    """The files of a folder: operations first, as passes use them."""
    return [path for kind in (OPERATIONS, *PHASES) for path in sorted(folder.glob(f"{kind}/*.py"))]


def _load(folder: Path, files: list[Path]) -> Extensions:
    modules, scope = Modules(folder), Scope()
    found: list[object] = []
    try:
        with within(scope):
            for path in files:
                module = _imported(modules, path)
                if path.parent.name != OPERATIONS:
                    found += _passes(module, path.stem, path.parent.name)
    except BaseException:
        modules.forget()
        raise
    return Extensions(tuple(found), scope, modules)


def _imported(modules: Modules, path: Path) -> ModuleType:
    try:
        return modules.load(f"{path.parent.name}.{path.stem}")
    except Exception as error:
        raise UsageError(f"--extensions: {path}: {type(error).__name__}: {error}") from error


def _passes(module: ModuleType, name: str, phase: str) -> Iterator[object]:
    """The passes that a file declares itself, in its order."""
    for value in vars(module).values():
        own = isinstance(value, type) and value.__module__ == module.__name__
        if own and {"find_and_replace_pattern", "__call__"} & set(dir(value)):
            if not hasattr(value, "phase"):
                value.phase = phase
            yield value
    rules = tuple(v for v in vars(module).values() if isinstance(v, Rule) and v.body.__module__ == module.__name__)
    if rules:
        yield RuleSet(name, rules, phase=phase)
