"""Compilations of one model after another in bounded memory.

A graph is a cycle of objects, which keeps the model's mapped file until the garbage collector runs; and code that was
compiled into memory has all weights there, where a library maps them from its file.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from aot.codegen.llvm.build import Built
from aot.codegen.llvm.levels import Levels
from aot.compilation.compilation import Compilation
from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.compilation.limits.budget import file_bytes
from aot.options import CompileOptions
from aot.runtime.errors import PlatformError, UnsupportedError
from aot.runtime.model import CompiledModel, load

LARGE = 16 << 20  # bytes of weights that are freed at once: the collector looks at all objects of the process


def alone(model: Path, options: CompileOptions) -> Compilation:
    """Return the stages of a compilation; large graphs of earlier ones that have no references are freed first."""
    if file_bytes(model) > LARGE:
        gc.collect()
    return stages(model, options)


def mapped(make: Callable[[], Built | Levels], threads: int | None = None) -> CompiledModel:
    """Load the library that `make` builds, from an unlinked file: its weights are mapped, the model's are not.

    Into memory if there is no linker, or if the weights are more than a library can hold.
    """
    with TemporaryDirectory(prefix="aot-code-") as folder:
        path, built = Path(folder, "model.so"), make()
        try:
            built.write_shared(path)
        except (PlatformError, UnsupportedError):
            return in_memory(built, threads)
        del built
        if path.stat().st_size > LARGE:
            gc.collect()
        return load(path, threads)
