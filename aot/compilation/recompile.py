"""Options of a library, to compile its model once more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from aot.compilation.driver import stages
from aot.options import CompileOptions
from runtime.loading.manifest import Dim, Manifest


def options_of(manifest: Manifest, asked: CompileOptions) -> CompileOptions:
    """Return the options with which a library was compiled, as far as its manifest tells; the others as `asked`."""
    told = cast("Mapping[str, Any]", manifest.options)
    names = ("small_weights", "plain_products", "precision", "target", "level")
    found: dict[str, Any] = {name: told[name] for name in names if name in told}
    for name in ("layouts", "mean", "scale", "reverse_channels"):
        if told.get(name):
            found[name] = tuple(_frozen(item) for item in told[name])
    levels = cast("list[dict[str, str]]", manifest.json.get("levels", []))
    found |= {"target": ",".join(level["target"] for level in levels)} if levels else {}
    found |= {"specialise": _specialised(manifest)} if not asked.specialise else {}
    if not asked.shapes:
        turned = {name for name, _ in found.get("layouts", asked.layouts)}
        plain = [info for info in manifest.inputs if not info.string and info.name not in turned]
        found["shapes"] = tuple((info.name, tuple(_size(d) for d in info.shape)) for info in plain)
    if not asked.dims:
        found["dims"] = tuple(
            (str(s["name"]), int(s["min"]), s.get("max"))
            for s in cast("list[dict[str, Any]]", manifest.json["symbols"])
            if any(isinstance(d, Dim) and d.text == s["name"] for info in manifest.inputs for d in info.shape)
        )
    return replace(asked, **found)


def is_same(manifest: Manifest, model: Path, options: CompileOptions) -> bool:
    """True if compiling a model gives the library's content; raises the errors of compiling."""
    return stages(model, options).built.manifest["hash"] == manifest.json["hash"]


def _specialised(manifest: Manifest) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the sizes by name of which the library has all combinations, as `CompileOptions` takes them."""
    sizes: dict[str, dict[int, None]] = {}
    for version in cast("list[dict[str, dict[str, int]]]", manifest.json.get("versions", [])):
        for name, size in version["sizes"].items():
            sizes.setdefault(name, {})[size] = None
    return tuple((name, tuple(found)) for name, found in sizes.items())


def _size(dim: int | Dim) -> int | str:
    """Return a dimension as `--shape` takes it; an expression stays as the file has it."""
    return dim if isinstance(dim, int) else dim.text if dim.text.replace(".", "_").isidentifier() else "?"


def _frozen(item: object) -> object:
    return tuple(_frozen(i) for i in cast("list[object]", item)) if isinstance(item, list) else item
