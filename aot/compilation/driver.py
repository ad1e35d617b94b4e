"""Compile a model: into memory, into a file, or into a folder that keeps compiled models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Unpack

from aot.compilation.cache import check_files, key_of, load_or_make
from aot.compilation.compilation import Compilation
from aot.compilation.jit import in_memory
from aot.compilation.limits.garbage import FEWER_COLLECTIONS
from aot.compilation.sources import Source, as_file
from aot.ir.graph import Graph
from aot.options import CompileOptions
from aot.options.keywords import with_keywords
from aot.options.typed import CompileKeywords
from aot.runtime.errors import PlatformError, UsageError
from aot.runtime.machine import machine_name, missing_features
from aot.runtime.model import CompiledModel, load
from aot.runtime.properties import checked
from aot.runtime.systems import SYSTEM


def stages(
    model: str | Path | Graph, options: CompileOptions | None = None, **keywords: Unpack[CompileKeywords]
) -> Compilation:
    """Return all stages of one compilation, each made when it is first used.

    `model`: a file (.xml, .onnx) or a graph; `keywords`: options that win over those in `options`. Raises UsageError
    for arguments of other types.
    """
    _check_type("model", model, str | Path | Graph)
    _check_type("options", options, CompileOptions | None)
    return Compilation(model, with_keywords(options, keywords))


def compile_model(
    model: Source,
    options: CompileOptions | None = None,
    *,
    output: str | Path | None = None,
    threads: int | None = None,
    cache_dir: str | Path | None = None,
    properties: Mapping[str, object] | None = None,
    **keywords: Unpack[CompileKeywords],
) -> CompiledModel:
    """Compile in memory, without a linker, or into the file `output`; return the loaded model.

    `model`: a file (.xml, .onnx), its bytes, a ModelProto of ONNX, or a graph. `threads`: threads of an inference, as
    for `runtime.load`; None: as many as this process may use. `cache_dir`: a folder in which the code is kept; it is
    taken from there if files, options and compiler are the same. `properties`: of the model, by OpenVINO's names, as
    for `CompiledModel.set_property`. `keywords`: options by name (`aot.CompileKeywords`),
    which win over those in `options`. A library for another system or machine is written by `Compilation.write_library`
    of `stages`:

        compile_model("m.xml", shapes={"x": ("batch", 3, 224, 224)}, dims={"batch": (1, 64)}, target="x86-64-v3")

    Raises UsageError for wrong arguments, ModelError for a wrong file, UnsupportedError for a network that cannot be
    compiled, BudgetError beyond `max_memory` or `max_seconds`: each names the fault and the layer. PlatformError
    for a target whose code does not run here, before anything is compiled or written.
    """
    if output is not None and cache_dir is not None:
        raise UsageError("compile: output and cache_dir cannot be given together, got both")
    for name, value in (properties or {}).items():
        checked(name, value)
    with as_file(model) as path, FEWER_COLLECTIONS:
        compiled = _compiled(stages(path, options, **keywords), path, output, threads, cache_dir)
    compiled.set_property(properties or {})
    return compiled


def _compiled(
    compilation: Compilation,
    model: str | Path | Graph,
    output: str | Path | None,
    threads: int | None,
    cache_dir: str | Path | None,
) -> CompiledModel:
    _check_loads_here(compilation)
    if output is not None:
        compilation.write_library(output)
        return load(output, threads)
    if cache_dir is None:
        return in_memory(compilation.built, threads)
    file = check_files(model)

    def make(path: Path, key: str) -> None:
        compilation.session.library.key = key
        compilation.built.write_shared(path)

    def key_now() -> str:
        return key_of(file, compilation.options, compilation.session.library.extensions)

    return load_or_make(Path(cache_dir), key_now, make, lambda: in_memory(compilation.built, threads), threads)


def _check_loads_here(compilation: Compilation) -> None:
    """Raise PlatformError if code for the target, of several the lowest, does not run in this process."""
    session = compilation.session
    target = session.at_level(session.levels[0]).target if session.levels[1:] else session.target
    here, there = f"{SYSTEM} on {machine_name()}", f"{target.platform.name} on {target.machine.name}"
    if here == there:
        missing = list[str]() if target.is_own else missing_features(target.isa_features)
        here, there = f"{here} without {', '.join(missing)}", session.options.target
        if not missing:
            return
    rule = f"a compiled model is loaded into this process, {here}"
    advice = "to write it without loading it: aot.stages(MODEL, target=…).write_library(PATH), or aot compile"
    raise PlatformError(f"compile: {rule}, got a target for {there}", advice=advice)


def _check_type(name: str, value: object, expected: UnionType) -> None:
    if not isinstance(value, expected):
        raise UsageError(f"compile: {name} must be {expected}, got {type(value).__name__}")
