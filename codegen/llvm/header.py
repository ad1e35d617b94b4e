"""The header of a built model, for C or for C++."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template

from aot.codegen.llvm.build import Built
from aot.codegen.llvm.levels import Levels
from aot.runtime.abi import (
    ABI_VERSION,
    ARENA_ALIGN,
    CANCEL_WORDS,
    ERROR_CANCELLED,
    ERROR_CAPACITY,
    QUERY_PREFIX,
    WEIGHTS_PAGE,
)
from aot.runtime.errors import UsageError
from aot.runtime.loading.manifest import TensorInfo, from_json

_RESERVED = ("ABI", "CAPACITY", "CANCELLED", "WEIGHTS_OFFSET")  # AOT_... in every header


def checked_name(name: str) -> str:
    """Return the user's name of a model for its header; UsageError unless AOT_NAME can be a macro of its own."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or name.upper() in _RESERVED:
        raise UsageError(f"--name: a C identifier, but none of {', '.join(_RESERVED).lower()}, got {name!r}")
    return name


def name_from(text: str) -> str:
    """Derive a model's name from a file's name: `mobilenet-v2.1` becomes `mobilenet_v2_1`."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    return name if name and not name[0].isdigit() and name.upper() not in _RESERVED else f"model_{name}".strip("_")


def header_text(built: Built | Levels, name: str | None = None) -> str:
    """Return a header that declares the query function of `built` and the types of `aot.runtime.abi`, for C99 and C++.

    `name`: a C identifier from which all macros are made; None: the model's name. Headers of two different models with
    one name cannot be included together.
    """
    stem, _, digest = built.tag.rpartition("_")
    macro = f"AOT_{name if name is not None else name_from(stem)}".upper()
    manifest = from_json(built.manifest, built.tag)
    lines = [_line("input", i, t) for i, t in enumerate(manifest.inputs)]
    lines += [_line("output", i, t) for i, t in enumerate(manifest.outputs)]
    return Template(Path(__file__).with_name("model.h").read_text(encoding="utf-8")).substitute(
        title=_plain(manifest.name) or "model",
        abi=ABI_VERSION,
        capacity=ERROR_CAPACITY,
        weights_offset=WEIGHTS_PAGE,
        query=QUERY_PREFIX + built.tag,
        external=int("external" in built.manifest),
        cancellable=int(manifest.cancel is not None),
        cancelled=ERROR_CANCELLED,
        cancel_words=CANCEL_WORDS,
        guard=f"{macro}_{digest.upper()}_H",
        macro=macro,
        inputs=len(manifest.inputs),
        outputs=len(manifest.outputs),
        symbols=manifest.stored,
        memory=_memory(built, macro),
        signature="\n".join(lines),
    )


def cpp_header_text(built: Built | Levels, name: str | None = None) -> str:
    """Return the header of `header_text` with classes of C++17 after it, which own memory, threads and library."""
    c_header = header_text(built, name)
    match = re.search(r"^#define (AOT_\w+)_NAME ", c_header, re.MULTILINE)
    assert match is not None
    text = Path(__file__).with_name("model.hpp").read_text(encoding="utf-8")
    return Template(text).substitute(header=c_header, macro=match[1])


def _memory(built: Built | Levels, macro: str) -> str:
    """Return macros of the bytes of arena and state, the most of all levels; none for sizes that vary."""
    levels = built.built if isinstance(built, Levels) else (built,)

    def fixed(key: str) -> list[int]:
        return [size for level in levels if isinstance(size := level.manifest.get(key), int)]

    arena, scratch, state = map(fixed, ("arena", "scratch", "state"))
    lines: list[str] = []
    if len(arena) == len(scratch) == len(levels):
        each = -(-max(scratch) // ARENA_ALIGN) * ARENA_ALIGN
        room = f"({max(arena)} + {each} * (int64_t)(threads))"
        lines.append(f"#define {macro}_ARENA(threads) {room} /* bytes: arena_size, at most */")
    if len(state) == len(levels):
        lines.append(f"#define {macro}_STATE {max(state)} /* bytes: state_size, at most */")
    return "\n".join(lines)


def _line(kind: str, index: int, tensor: TensorInfo) -> str:
    return f" * {kind} {index}: {_plain(tensor.name)} {tensor}, at a multiple of {tensor.align} bytes"


def _plain(name: str) -> str:
    """Replace in `name` line breaks and the end of a C comment."""
    return name.replace("*/", "* /").replace("\n", " ")
