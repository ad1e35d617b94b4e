"""Options of a library, to compile its model once more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

from aot.compilation.driver import stages
from aot.options import CompileOptions
from aot.runtime.loading.manifest import Manifest

NOT_RECORDED = {"values", "extensions"}  # a manifest has their names only


def options_of(manifest: Manifest, asked: CompileOptions) -> CompileOptions:
    """Return the options with which a library was compiled; those that its manifest does not have are as `asked`."""
    told = cast("Mapping[str, Any]", manifest.options)
    names = {f.name for f in fields(CompileOptions)} - NOT_RECORDED
    found: dict[str, Any] = {name: _frozen(value) for name, value in told.items() if name in names}
    levels = cast("list[dict[str, str]]", manifest.json.get("levels", []))
    found |= {"target": ",".join(level["target"] for level in levels)} if levels else {}
    return replace(asked, **found)


def is_same(manifest: Manifest, model: Path, options: CompileOptions) -> bool:
    """True if compiling a model gives the library's content; raises the errors of compiling."""
    return stages(model, options).built.manifest["hash"] == manifest.json["hash"]


def _frozen(item: object) -> object:
    return tuple(_frozen(i) for i in cast("list[object]", item)) if isinstance(item, list) else item
