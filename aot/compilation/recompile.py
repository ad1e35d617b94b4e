"""Options of a library, to compile its model once more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from aot.compilation.driver import stages
from aot.compilation.recorded_options import CONTENTS, contents_of
from aot.extensions.folder import load_for
from aot.frontends import framework_of
from aot.options import CompileOptions
from aot.options.declaration import Record
from aot.options.rules import AUTO, EXACT
from aot.options.table import options as rows
from aot.precision import F32
from aot.runtime.loading.manifest import Manifest


def options_of(manifest: Manifest, requested: CompileOptions) -> CompileOptions:
    """Return the options that a library was compiled with; options that its manifest lacks are as `requested`."""
    recorded_options = cast("Mapping[str, Any]", manifest.options)
    names = {name for name, row in rows().items() if row.record is not Record.NAMES}
    recorded: dict[str, Any] = {name: _frozen(value) for name, value in recorded_options.items() if name in names}
    levels = cast("list[dict[str, str]]", manifest.json.get("levels", []))
    recorded |= {"target": ",".join(level["target"] for level in levels)} if levels else {}
    return replace(requested, **recorded)


def with_decided(options: CompileOptions, manifest: Manifest) -> CompileOptions:
    """Return options with the types that weights decided in a library, where they were left to them."""
    recorded = manifest.options
    if options.precision is None:
        precision = str(recorded.get("precision", F32))
        options = replace(options, precision=precision, fast_math=options.fast_math or "fast_math" in recorded)
    if options.activations != AUTO:
        return options
    return replace(options, activations=str(recorded.get("activations", EXACT)))


def is_same(manifest: Manifest, model: Path, options: CompileOptions) -> bool:
    """True if compiling a model gives the library's content; raises the errors of compiling."""
    return stages(model, options).built.manifest["hash"] == manifest.json["hash"]


def to_give_again(manifest: Manifest, model: Path, options: CompileOptions) -> list[str]:
    """Return the names of options that must be given again: a library keeps hashes of them, and `options` differ."""
    contents = cast("Mapping[str, str]", manifest.options.get(CONTENTS, {}))
    extensions = None if options.extensions is None else load_for(options, framework_of(model))
    own = contents_of(options, extensions)
    return [name for name in sorted({*contents, *own}) if contents.get(name) != own.get(name)]


def _frozen(item: object) -> object:
    return tuple(_frozen(i) for i in cast("list[object]", item)) if isinstance(item, list) else item
