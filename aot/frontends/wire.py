"""Messages in protobuf's wire format, by a table of the fields that are wanted. It needs no package.

    {"Version": {1: "version:int"}, "Program": {1: "blocks:Block*", 4: "version:Version"}}

Fields that are not in the table are skipped; those that end with `*` are repeated.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from aot.runtime.errors import CorruptError

Message = dict[str, Any]
Table = Mapping[str, Mapping[int, str]]

_SIZES = {1: 8, 5: 4}  # bytes of a field by its wire type
_VARINT, _BYTES = 0, 2
_FORMATS = {"float": "<f", "double": "<d"}


def varint(data: bytes | memoryview, at: int, file: str) -> tuple[int, int]:
    """Return the number at an offset, and the offset after it."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
    raise CorruptError(f"{file}: a number can have at most 10 bytes and an end, got none at {at}")


def parsed(data: memoryview, kind: str, table: Table, file: str) -> Message:
    """Return a message: its fields by their names, lists for repeated ones. CorruptError for other bytes."""
    message: Message = {}
    fields = {number: _field(text) for number, text in table[kind].items()}
    for _, name, _ in (f for f in fields.values() if f[2]):
        message[name] = []
    for number, wire, value in _fields(data, file):
        if number not in fields:
            continue
        own, name, repeated = fields[number]
        if repeated:
            packed = wire == _BYTES and own in ("int", "bool", *_FORMATS)
            message[name] += _packed(value, own, file) if packed else [_value(own, wire, value, table, file)]
        else:
            message[name] = _value(own, wire, value, table, file)
    return message


def _field(text: str) -> tuple[str, str, bool]:
    """Return the kind and the name of a field, and True if it is repeated."""
    name, _, kind = text.partition(":")
    return kind.removesuffix("*"), name, kind.endswith("*")


def _fields(data: memoryview, file: str) -> Iterator[tuple[int, int, Any]]:
    """Yield number, wire type and value of each field: an integer, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at, file)
        wire = key & 7
        if wire == _VARINT:
            value, at = varint(data, at, file)
            yield key >> 3, wire, value
            continue
        if wire == _BYTES:
            size, at = varint(data, at, file)
        elif wire in _SIZES:
            size = _SIZES[wire]
        else:
            raise CorruptError(f"{file}: fields must be numbers or bytes, got wire type {wire} at {at}")
        if at + size > len(data):
            raise CorruptError(f"{file}: a field of {size} bytes must end in its message, got {len(data) - at} bytes")
        yield key >> 3, wire, data[at : at + size]
        at += size


def _value(kind: str, wire: int, value: Any, table: Table, file: str) -> Any:
    """Return the value of a field."""
    if kind in _FORMATS:
        return _real(kind, value, file)
    if (wire == _VARINT) != (kind in ("int", "bool")):
        raise CorruptError(f"{file}: a field must be of type {kind}, got wire type {wire}")
    if kind == "bool":
        return bool(value)
    if kind == "int":
        return _signed(value)
    if kind == "text":
        return bytes(value).decode("utf-8", "replace")
    return parsed(value, kind, table, file)


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _real(kind: str, value: Any, file: str) -> float:
    size = struct.calcsize(_FORMATS[kind])
    if isinstance(value, int) or len(value) != size:
        raise CorruptError(f"{file}: a {kind} must have {size} bytes, got others")
    return struct.unpack(_FORMATS[kind], value)[0]


def _packed(data: memoryview, kind: str, file: str) -> list[Any]:
    """Return the numbers of a repeated field that is packed."""
    if kind in _FORMATS:
        size = struct.calcsize(_FORMATS[kind])
        return [_real(kind, data[i : i + size], file) for i in range(0, len(data), size)]
    numbers, at = list[Any](), 0
    while at < len(data):
        value, at = varint(data, at, file)
        numbers.append(bool(value) if kind == "bool" else _signed(value))
    return numbers
