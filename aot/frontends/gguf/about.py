"""Contents of a GGUF file of any architecture, as facts and in words."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import cast

from aot.frontends.gguf.blocks import FORMATS
from aot.frontends.gguf.container import Header

LONGEST_VALUE = 100  # characters of a value that are shown
SHOWN = 8  # elements of a list
GENERAL, WORDS = "general.", "tokenizer."
TYPES = {  # types of ggml without a format here
    9: "Q8_1",
    15: "Q8_K",
    16: "IQ2_XXS",
    17: "IQ2_XS",
    18: "IQ3_XXS",
    19: "IQ1_S",
    21: "IQ3_S",
    22: "IQ2_S",
    24: "I8",
    25: "I16",
    26: "I32",
    27: "I64",
    28: "F64",
    29: "IQ1_M",
}


def facts(header: Header, refused: str | None) -> dict[str, object]:
    """`refused`: why the file cannot be compiled; None for a vocabulary alone, and for a network that can be."""
    groups: dict[str, dict[str, object]] = {"about": {}, "sizes": {}, "tokenizer": {}}
    for key, value in header.metadata.items():
        group = "about" if key.startswith(GENERAL) else "tokenizer" if key.startswith(WORDS) else "sizes"
        groups[group][key.removeprefix(GENERAL)] = _short(value)
    elements: Counter[str] = Counter()
    for record in header.records:
        elements[_type_name(record.kind)] += prod(record.shape)
    return {
        "name": header.file,
        "architecture": str(header.metadata.get("general.architecture"))[:LONGEST_VALUE],
        **groups,
        "tensors": len(header.records),
        "elements": dict(elements.most_common()),
        "refused": refused,
    }


def text(found: dict[str, object]) -> str:
    """Return the facts as text."""
    lines = [f"{found['name']}: GGUF, architecture {found['architecture']}, {found['tensors']} tensors"]
    for group in ("about", "sizes", "tokenizer"):
        lines += [f"  {group:9} {k}: {v}" for k, v in cast("dict[str, object]", found[group]).items()]
    elements = cast("dict[str, int]", found["elements"])
    lines += [f"  weights   {', '.join(f'{count} of {kind}' for kind, count in elements.items()) or 'none'}"]
    why = found["refused"] or (None if found["tensors"] else "a vocabulary without a network")
    return "\n".join([*lines, *([f"  compiled  no: {why}"] if why else ())])


def _type_name(kind: int) -> str:
    known_format = FORMATS.get(kind)
    return known_format.name if known_format is not None else TYPES.get(kind, f"type {kind}")


def _short(value: object) -> object:
    """Return a value, a list by its length, and a text without its end if it is long."""
    if isinstance(value, list) and len(cast("list[object]", value)) > SHOWN:
        return f"{len(cast('list[object]', value))} elements"
    if isinstance(value, str) and (len(value) > LONGEST_VALUE or not value.isprintable()):
        return f"{value[:LONGEST_VALUE]!r} … {len(value)} characters"
    return value
