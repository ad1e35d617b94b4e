"""Built models in the memory of this process: no file and no linker where LLVM's JIT links code of the system."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from aot.codegen.llvm.build import Built
from aot.codegen.llvm.jit import load
from aot.codegen.llvm.levels import Levels
from aot.codegen.platforms import PLATFORMS
from aot.runtime.loading.library import Library, open_bytes
from aot.runtime.model import CompiledModel
from aot.runtime.systems import SYSTEM


def in_memory(built: Built | Levels, threads: int | None = None) -> CompiledModel:
    """Load a built model, or its highest level that this machine runs, into this process."""
    level = built.best if isinstance(built, Levels) else built
    if not PLATFORMS[
        SYSTEM
    ].needs_linker:  # Windows: writing a library takes no longer, and JITLink does not support it
        return CompiledModel(_of_file(level), threads=threads)
    loaded = load(level)
    library = Library.at(loaded.query, level.manifest, keep=loaded.keep, save=built.write_shared)
    return CompiledModel(library, threads=threads)


def _of_file(built: Built) -> Library:
    """Return the library that a temporary file holds."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"model{built.platform.library}"
        built.write_shared(path)
        with path.open("rb") as stream:
            return open_bytes(stream)
