"""The operations of TensorFlow Lite that can be read, as a page: docs/use/models/tflite-ops.md is made from it.

python -m aot.frontends.tflite.table > docs/use/models/tflite-ops.md
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from importlib import import_module

from aot.frontends.tflite.importer import RULES
from aot.frontends.tflite.registry import CONVERSIONS, EXACT, load_conversions
from aot.frontends.tflite.schema import enumeration, names_of

WITHIN_A_LEVEL = ("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM")  # sums are exact; LiteRT approximates the functions of gates
TITLE = """# Operations of TensorFlow Lite

The operations of TensorFlow Lite that can be read; made by `python -m aot.frontends.tflite.table`. [The
page](tflite.md) of the format says what holds for quantised tensors.
"""


def families() -> dict[str, list[str]]:
    """Return the operations that have a conversion, by the family that the module of the conversion declares."""
    load_conversions()
    import_module("aot.frontends.tflite.reader")  # it has the rules registered
    found = defaultdict[str, list[str]](list)
    for kind, conversion in {**CONVERSIONS, **RULES}.items():
        if kind in RULES and kind in CONVERSIONS and conversion is RULES[kind]:
            conversion = CONVERSIONS[kind]
        module = import_module(conversion.__module__)
        found[(module.__doc__ or "").strip().partition("\n")[0].rstrip(".:")].append(kind)
    return found


def builtins() -> set[str]:
    """Return all operations of the schema, but those that stand for others."""
    return set(names_of(enumeration("BuiltinOperator")).values()) - {"CUSTOM", "PLACEHOLDER_FOR_GREATER_OP_CODES"}


def _row(what: str, kinds: Iterable[str]) -> str:
    return f"| {what} | {' '.join(f'`{k}`' for k in sorted(kinds))} |"


def markdown() -> str:
    """Return the page."""
    rows = [_row(what, kinds) for what, kinds in sorted(families().items())]
    read = {k for kinds in families().values() for k in kinds}
    known = builtins()
    lines = [
        TITLE,
        f"{len(read & known)} of {len(known)} operations of the schema, and {len(read - known)} custom ones.",
        "",
        "| family | operations |",
        "|--|--|",
        *rows,
        "",
        "## Quantised",
        "",
        "Bit for bit what LiteRT's reference kernels give, where all tensors have 8 bits; convolutions,",
        "FULLY_CONNECTED and QUANTIZE also where they have 16, QUANTIZE where they have 32:",
        "",
        " ".join(f"`{k}`" for k in sorted({*EXACT} - {*WITHIN_A_LEVEL})),
        "",
        f"Within a level of LiteRT's: {' and '.join(f'`{k}`' for k in WITHIN_A_LEVEL)} of 8 bits",
        "with cell states of 16; data of 16 bits and an SVDF's state of 8, as TensorFlow Lite for microcontrollers has",
        "them, are read, too.",
        "",
        "## Refused",
        "",
        " ".join(f"`{k}`" for k in sorted(known - read)),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(markdown())
