"""`aot info`: a compiled model, a model, or this machine in words."""

from __future__ import annotations

from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Annotated

import typer

from aot.commands.line import arguments as arg
from aot.commands.output import echo_json
from aot.options import CompileOptions
from aot.runtime.arrays.files import is_compiled
from aot.runtime.describe import costs, manifest_text
from aot.runtime.errors import UnsupportedError, UsageError
from aot.runtime.loading.library import read_manifest
from aot.runtime.machine_facts import machine_facts
from aot.runtime.regular import open_file


def info(
    file: Annotated[Path | None, typer.Argument(exists=True, help="m.so, or a model")] = None,
    machine: Annotated[
        bool, typer.Option("--machine", help="Describe this machine: instructions, caches, threads")
    ] = False,
    *,
    options: CompileOptions,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Describe a compiled model, a model file or this machine. Nothing of a file is run."""
    if file is None and not machine:
        raise UsageError("info: needs a file or --machine, got neither")
    here = machine_facts() if machine else None
    facts, text = _facts(file, options) if file is not None else ({}, "")
    if as_json:
        echo_json(facts | ({"machine_here": asdict(here)} if here is not None else {}))
        return
    typer.echo("\n".join(filter(None, (text, str(here) if here is not None else ""))))


def _facts(file: Path, options: CompileOptions) -> tuple[dict[str, object], str]:
    """Return the facts about a file, as JSON and as text."""
    if is_compiled(file):
        manifest = read_manifest(file)
        return manifest.json | {"costs": costs(manifest)}, manifest_text(manifest, file)
    from aot.frontends.gguf import about
    from aot.frontends.gguf.container import read_header
    from aot.frontends.kinds import is_gguf
    from aot.tools import overview

    with open_file(file, "model") if file.is_file() else BytesIO() as stream:
        header = read_header(file) if is_gguf(stream.read(4)) else None
    refused: UnsupportedError | None = None
    try:
        if header is None or header.records:
            graph, counts = overview.read(file, options.extensions, options.signature)
            return overview.facts(graph, counts), overview.text(graph, counts)
    except UnsupportedError as error:
        refused = error
        if header is None:
            raise
    found = about.facts(header, None if refused is None else str(refused))
    return found, about.text(found)
