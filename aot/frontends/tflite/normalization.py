"""Normalisation and range of tensors, as the metadata of a file describe them to people and their programs.

The table ModelMetadata lies in the buffer of the entry TFLITE_METADATA, as a flatbuffer of its own. Fields are read by
their numbers in metadata_schema.fbs of TensorFlow Lite Support 0.4, for which there is no package without TensorFlow.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

from aot.frontends.tflite.schema import BROKEN

Table = Any  # flatbuffers' own table, which has no types

ENTRY = "TFLITE_METADATA"
IDENTIFIER = b"M001"
MAX_SHOWN = 64  # tensors, process units and channels that are shown
MAX_TEXT = 200  # characters of a name or a description

# Numbers of fields in the schema
_SUBGRAPHS = 3  # field of ModelMetadata
_SIDES = {"input": 2, "output": 3}  # fields of SubGraphMetadata
_NAME, _DESCRIPTION, _UNITS, _STATS = 0, 1, 4, 5  # of TensorMetadata
_KIND, _OPTIONS = 0, 1  # of ProcessUnit
_NORMALIZATION = 1  # kind of a process unit
_MEAN, _STD = 0, 1  # of NormalizationOptions
_MAX, _MIN = 0, 1  # of Stats


def tensors_described(raw: bytes) -> dict[str, str]:
    """Return a text for each described tensor of the first sub-graph, by `input NAME`; none for damaged metadata."""
    if raw[4:8] != IDENTIFIER:
        return {}
    try:
        return dict(_texts(_at(raw, *struct.unpack_from("<I", raw))))
    except BROKEN:
        return {"metadata of tensors": "damaged"}


def _texts(root: Table) -> Iterator[tuple[str, str]]:
    for subgraph in _tables(root, _SUBGRAPHS)[:1]:
        for side, field in _SIDES.items():
            for number, tensor in enumerate(_tables(subgraph, field)):
                text = "; ".join(_facts(tensor))
                if text:
                    yield f"{side} {_text(tensor, _NAME) or number}", text


def _facts(tensor: Table) -> Iterator[str]:
    """Yield lines about a tensor: normalisation, range, description."""
    for unit in _tables(tensor, _UNITS):
        position = unit.Offset(_slot(_KIND))
        kind = unit.Bytes[unit.Pos + position] if position else 0
        options = _table(unit, _OPTIONS)
        if kind == _NORMALIZATION and options is not None:
            yield f"(x - mean) / std with mean {_shown(options, _MEAN)}, std {_shown(options, _STD)}"
    stats = _table(tensor, _STATS)
    if stats is not None and (_numbers(stats, _MIN) or _numbers(stats, _MAX)):
        yield f"from {_shown(stats, _MIN)} to {_shown(stats, _MAX)}"
    if description := _text(tensor, _DESCRIPTION):
        yield description


def _at(data: bytes, position: int) -> Table:
    return import_module("flatbuffers.table").Table(data, position)  # the package is optional


def _slot(field: int) -> int:
    return 4 + 2 * field


def _text(table: Table, field: int) -> str:
    position = table.Offset(_slot(field))
    return bytes(table.String(table.Pos + position)).decode("utf-8", "replace")[:MAX_TEXT] if position else ""


def _table(table: Table, field: int) -> Table | None:
    position = table.Offset(_slot(field))
    return _at(table.Bytes, table.Indirect(table.Pos + position)) if position else None


def _tables(table: Table, field: int) -> list[Table]:
    position = table.Offset(_slot(field))
    if not position:
        return []
    start, count = table.Vector(position), min(table.VectorLen(position), MAX_SHOWN)
    return [_at(table.Bytes, table.Indirect(start + 4 * i)) for i in range(count)]


def _numbers(table: Table, field: int) -> list[float]:
    position = table.Offset(_slot(field))
    if not position:
        return []
    count = min(table.VectorLen(position), MAX_SHOWN)
    floats: Any = np.frombuffer(table.Bytes, "<f4", count, table.Vector(position))
    return [float(v) for v in floats]


def _shown(table: Table, field: int) -> str:
    return ",".join(f"{value:.7g}" for value in _numbers(table, field)) or "none"
