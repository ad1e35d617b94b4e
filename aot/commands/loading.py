"""A model to run or to time from the command line: loaded or compiled in memory, with arrays or noise as inputs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import aot
from aot.commands.line.declared import echo
from aot.compilation.search.examples import example_inputs
from aot.options import CompileOptions, Event
from aot.runtime.arrays.files import Arrays, is_compiled, read_inputs
from aot.runtime.arrays.strings import joined
from aot.runtime.errors import UsageError
from aot.runtime.loading.manifest import Manifest
from aot.runtime.model import CompiledModel, load
from aot.tools.running.pictures import is_picture, read_pictures


def ready(
    model: Path,
    threads: int | None,
    options: CompileOptions | None = None,
    *,
    strict: bool = False,
    on_event: Event | None = None,
) -> CompiledModel:
    """Load a library, or compile a model in memory with `options`.

    `strict`: check all bytes of a library first. `on_event`: is called with the progress.
    """
    if not is_compiled(model):
        return aot.compile_model(model, replace(options or CompileOptions(), on_event=on_event), threads=threads)
    progress = on_event or _untold
    progress("load", 0, 1)
    result = load(model, threads, strict=strict)
    progress("load", 1, 1)
    return result


def adapter(path: Path | None, manifest: Manifest) -> Arrays | None:
    """Return the inputs of a language model for an adapter, None without one."""
    if path is None:
        return None
    from aot.frontends.adapters import read_adapter

    return read_adapter(path, manifest)


def _untold(stage: str, done: int, total: int) -> None:
    del stage, done, total


def inputs(
    model: Path, manifest: Manifest, files: list[str] | None, options: CompileOptions, *, made_up: bool = True
) -> Arrays:
    """Return the arrays of the files, images for the first input; without files, noise, if `made_up`.

    `manifest`: the compiled model's; `options`: the shapes and dims of the noise.
    """
    infos = joined(manifest.inputs)
    images = [file for file in files or [] if is_picture(file)]
    others = [file for file in files or [] if file not in images]
    arrays = read_inputs(others, [t.name for t in infos][bool(images) :])
    if images:
        arrays[infos[0].name] = read_pictures([Path(file) for file in images], infos[0], partial(echo, err=True))
    needed = [t.name for t in infos if t.default is None]
    if arrays or not (made_up or needed):
        return arrays
    if not made_up:
        rule = f"inputs: arrays for {', '.join(needed)} (x.npy, NAME=x.npy), or for noise --shape or --dim"
        raise UsageError(f"{rule}, got none")
    # a model compiled in memory has checked the names, and has no dimension where one size was given
    left = {str(d) for i in infos for d in i.shape}
    dims = [d for d in options.dims if is_compiled(model) or d[0] in left]
    return example_inputs(infos, manifest.rules, options.shapes, dims)


__all__ = ["inputs", "ready"]
