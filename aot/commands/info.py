"""`aot info`: a compiled model, a model, or this machine in words."""

from __future__ import annotations

from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

from aot.commands.line import arguments as arg
from aot.commands.line.declared import argument, echo, option
from aot.commands.output import echo_json
from aot.options import CompileOptions
from aot.runtime.arrays.files import is_compiled
from aot.runtime.describe import costs, manifest_text
from aot.runtime.errors import UnsupportedError, UsageError
from aot.runtime.loading.library import read_manifest
from aot.runtime.machine_facts import machine_facts
from aot.runtime.regular import open_file


def info(
    file: Annotated[Path | None, argument(exists=True, help="m.so, or a model")] = None,
    machine: Annotated[bool, option("--machine", help="Describe this machine: instructions, caches, threads")] = False,
    targets: Annotated[bool, option("--targets", help="List what --target takes")] = False,
    *,
    options: CompileOptions,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Describe a model, compiled or not, this machine or targets. Nothing of a file is run."""
    if file is None and not machine and not targets:
        raise UsageError("info: needs a file, --machine or --targets, got none of them")
    here = machine_facts() if machine else None
    facts, text = _facts(file, options) if file is not None else ({}, "")
    listed = _targets() if targets else []
    if as_json:
        more: dict[str, object] = {"machine_here": asdict(here)} if here is not None else {}
        echo_json(facts | more | ({"targets": listed} if targets else {}))
        return
    lines = [f"{t['name']:22} {t['system']}, {t['machine']}{_also(t['short'])}" for t in listed]
    echo("\n".join(filter(None, (text, str(here) if here is not None else "", *lines))))


def _targets() -> list[dict[str, Any]]:
    """Return the targets, each once, with the short names that it has, too."""
    from aot.codegen.target import targets_by_name

    targets: dict[tuple[str, str], dict[str, Any]] = {}
    for name, (platform, machine, level) in targets_by_name().items():
        entry = {"name": name, "system": platform.name, "machine": machine.name, "short": list[str]()}
        first = targets.setdefault((platform.name, level), entry)
        if first is not entry:
            first["short"].append(name)
    return list(targets.values())


def _also(names: list[str]) -> str:
    return f"; also {', '.join(names)}" if names else ""


def _facts(file: Path, options: CompileOptions) -> tuple[dict[str, object], str]:
    """Return the facts about a file, as JSON and as text."""
    if is_compiled(file):
        manifest = read_manifest(file, whole=True)
        return manifest.json | {"costs": costs(manifest)}, manifest_text(manifest, file)
    from aot.frontends.kinds import is_container, is_gguf
    from aot.tools import overview

    with open_file(file, "model") if file.is_file() else BytesIO() as stream:
        head = stream.read(8)
    if is_container(head, file):
        return _container_facts(file, options)
    if is_gguf(head):
        return _gguf_facts(file, options)
    graph, counts = overview.read(file, options.extensions, options.signature)
    return overview.facts(graph, counts), overview.text(graph, counts)


def _gguf_facts(file: Path, options: CompileOptions) -> tuple[dict[str, object], str]:
    """Return the facts about a GGUF file, and about its network if it can be compiled."""
    from aot.frontends.gguf import about
    from aot.frontends.gguf.container import read_header
    from aot.tools import overview

    header, refused = read_header(file), None
    if header.records:
        try:
            graph, counts = overview.read(file, options.extensions, options.signature)
        except UnsupportedError as error:
            refused = str(error)
        else:
            facts = about.facts(header, None)
            text = f"{about.text(facts)}\n{overview.text(graph, counts)}"
            return overview.facts(graph, counts) | {"gguf": facts}, text
    facts = about.facts(header, refused)
    return facts, about.text(facts)


def _container_facts(file: Path, options: CompileOptions) -> tuple[dict[str, object], str]:
    """Return the facts about a container, and about the network in it that is named or the only one."""
    from aot.frontends.tflite import containers
    from aot.tools import overview

    container = containers.open_container(file)
    facts, text = containers.facts(container), containers.text(container)
    if options.signature is None and len(container.networks) != 1:
        return facts, text
    graph, counts = overview.read(file, options.extensions, options.signature)
    return facts | {"network": overview.facts(graph, counts)}, f"{text}\n{overview.text(graph, counts)}"
