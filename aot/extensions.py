"""A user's extensions: Python files in a folder, which run as part of the compiler.

    DIR/ops/*.py        operations, under @op
    DIR/front/*.py      passes of a phase: classes with `find_and_replace_pattern` or `__call__`, and the rules of a
    DIR/middle/*.py     file as one pass of its name; in front conversions, too, of operations of ONNX files
    DIR/back/*.py

Files see each other by relative imports: `from ..ops.mine import Mine`.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType

from aot.passes.order import PHASES
from aot.passes.rewrite import Rule, RuleSet
from runtime.errors import UsageError

OPERATIONS = "ops"


def load_extensions(folder: Path) -> tuple[object, ...]:
    """The passes in a folder, whose operations and conversions are registered; UsageError for what cannot be run."""
    if not _files(folder):
        kinds = ", ".join((OPERATIONS, *PHASES))
        raise UsageError(f"--extensions: a folder that holds .py files in {kinds}, got {folder}")
    return _load(folder.resolve(), digest_of(folder))


def digest_of(folder: Path) -> str:
    """Of all that extensions in a folder say, hexadecimal."""
    digest = hashlib.sha256()
    for path in _files(folder):
        digest.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    """Operations first: passes use them."""
    return [path for kind in (OPERATIONS, *PHASES) for path in sorted(folder.glob(f"{kind}/*.py"))]


@cache
def _load(folder: Path, digest: str) -> tuple[object, ...]:
    package = ModuleType(f"aot_extensions_{digest[:16]}")
    package.__path__ = [str(folder)]
    sys.modules[package.__name__] = package
    invalidate_caches()
    found: list[object] = []
    for path in _files(folder):
        try:
            module = import_module(f"{package.__name__}.{path.parent.name}.{path.stem}")
        except Exception as error:
            raise UsageError(f"--extensions: {path}: {type(error).__name__}: {error}") from error
        if path.parent.name != OPERATIONS:
            found += _passes(module, path.stem, path.parent.name)
    return tuple(found)


def _passes(module: ModuleType, name: str, phase: str) -> Iterator[object]:
    """What a file declares itself, in its order."""
    for value in vars(module).values():
        own = isinstance(value, type) and value.__module__ == module.__name__
        if own and {"find_and_replace_pattern", "__call__"} & set(dir(value)):
            if not hasattr(value, "phase"):
                value.phase = phase
            yield value
    rules = tuple(v for v in vars(module).values() if isinstance(v, Rule) and v.body.__module__ == module.__name__)
    if rules:
        yield RuleSet(name, rules, phase=phase)
