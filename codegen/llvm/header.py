"""The C header of a built model."""

from __future__ import annotations

from importlib.resources import files
from string import Template

from codegen.llvm.build import Built
from codegen.llvm.levels import Levels
from runtime.abi import ABI_VERSION, ERROR_CAPACITY, QUERY_PREFIX, WEIGHTS_PAGE
from runtime.manifest import TensorInfo, from_json


def header_text(built: Built | Levels) -> str:
    """Declares the query function of `built` and the types of `runtime.abi`; for C99 and C++."""
    manifest = from_json(built.manifest, built.tag)
    lines = [_line("input", i, t) for i, t in enumerate(manifest.inputs)]
    lines += [_line("output", i, t) for i, t in enumerate(manifest.outputs)]
    return Template((files("codegen.llvm") / "model.h").read_text(encoding="utf-8")).substitute(
        title=_plain(manifest.name) or "model",
        abi=ABI_VERSION,
        capacity=ERROR_CAPACITY,
        weights_offset=WEIGHTS_PAGE,
        query=QUERY_PREFIX + built.tag,
        external=int("external" in built.manifest),
        macro="AOT_" + built.tag.rpartition("_")[0].upper(),
        signature="\n".join(lines),
    )


def _line(kind: str, index: int, tensor: TensorInfo) -> str:
    return f" * {kind} {index}: {_plain(tensor.name)} {tensor}, at a multiple of {tensor.align} bytes"


def _plain(name: str) -> str:
    """`name` without what would end a comment."""
    return name.replace("*/", "* /").replace("\n", " ")
