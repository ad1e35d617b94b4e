"""The header of a container of LiteRT-LM: its version, what it says of itself, and where its sections lie.

    LITERTLM   version: 3 u32   0   end of the header: u64   a flatbuffer   sections, at multiples of 16 KB

The flatbuffer is read by the numbers of its fields: no package has its classes.
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import field
from importlib import import_module
from typing import Any

from aot.codegen.dataclass import dataclass
from aot.frontends.archive import is_plain
from aot.frontends.tflite.schema import FIRST_SLOT, SLOT, corrupt
from aot.runtime.errors import BudgetError, CorruptError

MAJOR = 1  # major version that can be read
START = 32  # byte at which the flatbuffer begins
MAX_HEADER = 1 << 18
MAX_ELEMENTS = 1 << 12  # elements of all vectors together
MAX_TEXT = 500
KINDS = (
    "none", "data", "deprecated data", "TFLiteModel", "SentencePiece tokenizer", "LlmMetadata",
    "tokenizer of Hugging Face", "TFLiteWeights", *["metadata"] * 4,
)  # fmt: skip
NUMBERS = ("Uint8", "Int8", "Uint16", "Int16", "Uint32", "Int32", "Float32", "Bool", "", "Uint64", "Int64", "Float64")
TEXT = 9  # member of the union of values that is a string


@dataclass(frozen=True, slots=True)
class Part:
    """A section: bytes `begin` to `end` of the file."""

    name: str
    kind: str
    begin: int
    end: int


@dataclass(slots=True)
class Header:
    """Facts of a container, as it says them of itself, and its sections."""

    version: str
    about: dict[str, str] = field(default_factory=dict[str, str])
    sections: list[Part] = field(default_factory=list[Part])


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of a flatbuffer; `left`: how many elements of vectors may still be read, for all tables of a file."""

    made: Any
    left: list[int]

    def place(self, slot: int) -> int:
        """Return where the field `slot` stands; 0 for one that is absent."""
        offset = int(self.made.Offset(FIRST_SLOT + SLOT * slot))
        return offset and offset + self.made.Pos

    def number(self, slot: int, kind: str) -> Any:
        flags: Any = getattr(import_module("flatbuffers.number_types"), f"{kind}Flags")
        position = self.place(slot)
        return self.made.Get(flags, position) if position else 0

    def text(self, slot: int) -> str:
        position = self.place(slot)
        raw = bytes(self.made.String(position))[:MAX_TEXT] if position else b""
        return "".join(c if c.isprintable() else " " for c in raw.decode("utf-8", "replace"))

    def table(self, slot: int) -> _Table | None:
        position = self.place(slot)
        return self._at(position) if position else None

    def tables(self, slot: int) -> list[_Table]:
        position = self.place(slot)
        if not position:
            return []
        count, first = self.made.VectorLen(position - self.made.Pos), self.made.Vector(position - self.made.Pos)
        self.left[0] -= count
        if self.left[0] < 0:
            raise BudgetError(f"a header has at most {MAX_ELEMENTS} elements, got more")
        return [self._at(first + 4 * i) for i in range(count)]

    def _at(self, position: int) -> _Table:
        return _Table(
            import_module("flatbuffers.table").Table(self.made.Bytes, self.made.Indirect(position)), self.left
        )


def read(data: memoryview, file: str) -> Header:
    """Return the header of a container, checked."""
    if len(data) < START:
        raise CorruptError(f"{file}: a header must have {START} bytes or more, got {len(data)}")
    *version, _, end = struct.unpack_from("<4IQ", data, 8)
    if version[0] != MAJOR:
        raise CorruptError(f"{file}: version {MAJOR} of LiteRT-LM's containers can be read, got {version[0]}")
    if not START < end <= min(len(data), MAX_HEADER):
        raise CorruptError(
            f"{file}: the header must end in the file, at most {MAX_HEADER} bytes from its start, got {end}"
        )
    header = Header(".".join(map(str, version)))
    with corrupt(file, "the header"):
        raw = bytes(data[START:end])
        first = int.from_bytes(raw[:4], "little")
        root = _Table(import_module("flatbuffers.table").Table(raw, first), [MAX_ELEMENTS])
        own, listed = root.table(0), root.table(1)
        header.about = {} if own is None else _values(own.tables(0))
        parts = list[Part]() if listed is None else [_part(table) for table in listed.tables(0)]
    header.sections = _named(parts, file)
    _check_places(header.sections, end, len(data), file)
    return header


def _part(table: _Table) -> Part:
    number = int(table.number(3, "Uint8"))
    kind = KINDS[number] if number < len(KINDS) else f"kind {number}"
    name = _values(table.tables(0)).get("model_type", kind)
    return Part(
        f"{name} weights" if kind == "TFLiteWeights" else name, kind, *(int(table.number(i, "Uint64")) for i in (1, 2))
    )


def _named(parts: list[Part], file: str) -> list[Part]:
    """Return the sections; sections of equal names are numbered."""
    times, results = Counter[str](), list[Part]()
    for part in parts:
        if not is_plain(part.name):
            raise CorruptError(f"{file}: names of sections must be no paths, got {part.name!r}")
        times[part.name] += 1
        name = part.name if times[part.name] == 1 else f"{part.name} {times[part.name]}"
        results.append(Part(name, part.kind, part.begin, part.end))
    return results


def _check_places(parts: list[Part], start: int, end: int, file: str) -> None:
    """Refuse sections that lie outside of the file, or in others."""
    for part in sorted(parts, key=lambda p: (p.begin, p.end)):
        if not start <= part.begin <= part.end <= end:
            rule = f"sections lie one behind another, in bytes {start} to {end}"
            raise CorruptError(f"{file}: {rule}, got {part.name!r} at {part.begin} to {part.end}")
        start = part.end


def _values(pairs: list[_Table]) -> dict[str, str]:
    """Return the texts and numbers of a list of keys and values."""
    values: dict[str, str] = {}
    for pair in pairs:
        kind, value_table = int(pair.number(1, "Uint8")), pair.table(2)
        if value_table is not None and 0 < kind <= len(NUMBERS):
            values[pair.text(0)] = (
                value_table.text(0) if kind == TEXT else str(value_table.number(0, NUMBERS[kind - 1]))
            )
    return values
