"""The layout of what is installed: one package, `aot`, so that nothing clashes with a project's own folders.

    checkout      installed
    aot/          aot/
    runtime/      aot/runtime/    and runtime.py, which makes `import runtime` an alias
    codegen/      aot/codegen/
    cli.py        aot/cli.py

Imports are rewritten: `from runtime.errors import AotError` becomes `from aot.runtime.errors import AotError`. The
checkout itself, and an editable installation, keep the folders and their imports.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from setuptools.command.build_py import build_py

_MOVED = ("runtime", "codegen", "cli")
_FROM = re.compile(rf"^(\s*from )({'|'.join(_MOVED)})(?=[. ])", re.MULTILINE)
_IMPORT = re.compile(rf"^(\s*)import ({'|'.join(_MOVED)})$", re.MULTILINE)
_ALIAS = '''"""`import runtime`: an alias of `aot.runtime`, hidden by a project's own `runtime`."""

from typing import TYPE_CHECKING

from aot.runtime.alias import alias

if TYPE_CHECKING:
    from aot.runtime import *

alias(__name__, "aot.runtime")
'''


class BuildPy(build_py):
    """Build as ever, then lay out; an editable installation refers to the checkout instead."""

    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)  # files of former builds would be packed, too
        super().run()
        if not self.editable_mode:
            lay_out(Path(self.build_lib))


def lay_out(library: Path) -> None:
    """Move the packages of the checkout in the folder `library` into `aot`, and make their imports follow."""
    inner = library / "aot"
    inner.mkdir(exist_ok=True)
    (inner / "runtime.py").unlink(missing_ok=True)  # the alias of the checkout
    for name in _MOVED:
        for path in (library / name, library / f"{name}.py"):
            if path.exists():
                path.rename(inner / path.name)
    for path in sorted(inner.rglob("*.py")):
        path.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
    if (inner / "runtime").exists():
        (library / "runtime.py").write_text(_ALIAS, encoding="utf-8")


def rewritten(source: str) -> str:
    """Return Python source whose imports name the installed packages."""
    return _IMPORT.sub(r"\1import aot.\2 as \2", _FROM.sub(r"\1aot.\2", source))
