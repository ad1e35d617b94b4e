"""Built models in the memory of this process: no file, no linker."""

from __future__ import annotations

from aot.codegen.llvm.build import Built
from aot.codegen.llvm.jit import load
from aot.codegen.llvm.levels import Levels
from aot.runtime.loading.library import Library
from aot.runtime.model import CompiledModel


def in_memory(built: Built | Levels, threads: int | None = None) -> CompiledModel:
    """Load a built model into this process, or its highest level that runs here."""
    one = built.best if isinstance(built, Levels) else built
    loaded = load(one)
    library = Library.at(loaded.query, one.manifest, keep=loaded.keep, save=built.write_shared)
    return CompiledModel(library, threads=threads)
