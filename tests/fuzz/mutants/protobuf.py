"""Mutations of any protobuf message: fields, elements of repeated fields, entries of maps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tests.fuzz.mutants.changes import REALS, WORDS, changed_bytes, number
from tests.properties.drawing import Draw

RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
Path = tuple[tuple[str, int], ...]  # field and position, -1 where it is not repeated


def is_map(field: FieldDescriptor) -> bool:
    """True for a map: a repeated field of entries, which Python shows as a dictionary."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def messages(root: Message, path: Path = ()) -> Iterator[tuple[Path, Message]]:
    """Yield a message and all messages inside, with their paths; values of a map by their order."""
    yield path, root
    for field, value in root.ListFields():
        if is_map(field):
            inner = [v for v in value.values() if isinstance(v, Message)]
        elif field.message_type is None:
            continue
        elif not field.is_repeated:
            yield from messages(value, (*path, (field.name, -1)))
            continue
        else:
            inner = list(value)
        for k, part in enumerate(inner):
            yield from messages(part, (*path, (field.name, k)))


def messages_of(root: Message, name: str) -> list[Any]:
    """Return the messages of a type inside of a message."""
    return [m for _, m in messages(root) if m.DESCRIPTOR.name == name]


def copy(message: Any) -> Any:
    """Copy a message, sharing nothing: to copy a message into a part of itself ends the process."""
    return type(message).FromString(message.SerializeToString())


def change_field(d: Draw, root: Message) -> None:
    """Change, clear or double one field of one message, or exchange or delete elements of it."""
    found = [m for _, m in messages(root) if m.ListFields()]
    if not found:
        return
    inner = d.pick(found)
    field, value = d.pick(inner.ListFields())
    if is_map(field):
        del value[d.pick(sorted(value))]
    elif field.is_repeated:
        _change_element(d, field, value)
    elif field.message_type is None and d.integer(0, 3):
        setattr(inner, field.name, _value(d, field, value))
    else:
        inner.ClearField(field.name)


def _change_element(d: Draw, field: FieldDescriptor, values: Any) -> None:
    at = d.integer(0, len(values) - 1)
    match d.integer(0, 3):
        case 0:
            del values[at]
        case 1 if field.message_type is None:
            values.append(values[at])
        case 1:
            values.add().CopyFrom(copy(values[at]))
        case 2 if len(values) > 1:
            _exchange(values, at, d.integer(0, len(values) - 1), field.message_type is not None)
        case _ if field.message_type is None:
            values[at] = _value(d, field, values[at])
        case _:
            del values[at]


def _exchange(values: Any, a: int, b: int, message: bool) -> None:
    if not message:
        values[a], values[b] = values[b], values[a]
        return
    x, y = copy(values[a]), copy(values[b])
    values[a].CopyFrom(y)
    values[b].CopyFrom(x)


def _value(d: Draw, field: FieldDescriptor, old: object) -> object:
    """Draw another value of a field that holds no message."""
    match old:
        case bool():
            return not old
        case int() if field.enum_type is not None:
            return d.pick(field.enum_type.values).number
        case int():
            low, high = RANGES[field.cpp_type]
            return min(max(number(d, old), low), high)
        case float():
            return d.pick([*REALS, old + 1, -old])
        case bytes():
            return changed_bytes(d, old)
        case _:
            return d.pick([*WORDS, f"{old}_"])
