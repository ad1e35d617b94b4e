"""A model to run or to time from the command line: loaded or compiled in memory, with arrays or noise as inputs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import typer

import aot
from aot.options import CompileOptions, Event, dims_of, shapes_of
from aot.runtime.arrays.files import Arrays, is_compiled, read_inputs
from aot.runtime.arrays.strings import joined
from aot.runtime.loading.manifest import Manifest
from aot.runtime.measuring.examples import example_inputs
from aot.runtime.model import CompiledModel, load
from aot.tools.running.pictures import is_picture, read_pictures

Texts = list[str] | None  # options as they are written


def ready(
    model: Path,
    threads: int | None,
    shape: Texts,
    dim: Texts,
    *,
    strict: bool = False,
    on_event: Event | None = None,
) -> CompiledModel:
    """Load a library, or compile a model in memory; `shape` and `dim` as for `aot compile`.

    `strict`: check all bytes of a library first. `on_event`: told how far it is.
    """
    if not is_compiled(model):
        options = CompileOptions(shapes=shapes_of(shape), dims=dims_of(dim), on_event=on_event)
        return aot.compile_model(model, options, threads=threads)
    told = on_event or _untold
    told("load", 0, 1)
    found = load(model, threads, strict=strict)
    told("load", 1, 1)
    return found


def _untold(stage: str, done: int, total: int) -> None:
    del stage, done, total


def inputs(model: Path, manifest: Manifest, files: Texts, shape: Texts, dim: Texts, *, made_up: bool = True) -> Arrays:
    """Return the arrays of the files, pictures for the first input; without any, noise, if `made_up`.

    `manifest`: the compiled model's; `shape` and `dim`: sizes of the noise.
    """
    infos = joined(manifest.inputs)
    pictures = [file for file in files or [] if is_picture(file)]
    others = [file for file in files or [] if file not in pictures]
    given = read_inputs(others, [t.name for t in infos][bool(pictures) :])
    if pictures:
        given[infos[0].name] = read_pictures([Path(file) for file in pictures], infos[0], partial(typer.echo, err=True))
    if given or not made_up:
        return given
    # a model compiled in memory has checked the names, and has no dimension where one size was given
    left = {str(d) for i in infos for d in i.shape}
    dims = [d for d in dims_of(dim) if is_compiled(model) or d[0] in left]
    return example_inputs(infos, manifest.rules, shapes_of(shape), dims)


__all__ = ["inputs", "ready"]
