"""Options of custom operations: bytes in a form of the operation's own, checked before use."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from aot.frontends.tflite.registry import TfliteNode
from aot.frontends.tflite.schema import BROKEN
from aot.runtime.errors import ModelError

MAX_BYTES = 1 << 16
MAX_ENTRIES = 256  # entries of a map


def flexible(node: TfliteNode) -> dict[str, Any]:
    """Return options that are a map of flexbuffers: numbers, texts, and vectors of numbers as tuples.

    Other values are left out. No value is followed into another map: vectors that share their elements could be larger
    than any memory.
    """
    raw = _raw(node)
    if not raw:
        return {}
    try:
        root: Any = import_module("flatbuffers.flexbuffers").GetRoot(raw)
        if not root.IsMap:
            raise ModelError(f"{node.kind}: options must be a map of flexbuffers, got another value")
        table = root.AsMap
        if len(table) > MAX_ENTRIES:
            raise ModelError(f"{node.kind}: options can have at most {MAX_ENTRIES} entries, got {len(table)}")
        options = {str(key.Value): _plain(table[i], len(raw)) for i, key in enumerate(table.Keys)}
    except (*BROKEN, AssertionError, RecursionError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{node.kind}: options must be a map of flexbuffers, got others: {error}") from error
    return {name: value for name, value in options.items() if value is not None}


def _plain(value: Any, most: int) -> Any:
    """Return a number, a text or a tuple of numbers. `most`: elements that the bytes can hold."""
    if value.IsBool or value.IsNumeric or value.IsString:
        return value.Value
    for kind in ("TypedVector", "FixedTypedVector", "Vector"):
        if getattr(value, f"Is{kind}") and not value.IsMap:
            elements: Any = getattr(value, f"As{kind}")
            if len(elements) > most:
                raise ValueError(f"a vector of {len(elements)} elements")
            listed: list[Any] = [elements[i] for i in range(len(elements))]
            return tuple(e.Value for e in listed) if all(e.IsNumeric for e in listed) else None
    return None


def whole(node: TfliteNode, facts: dict[str, Any], name: str, least: int = 0, most: int = (1 << 16) - 1) -> int:
    """Return the option `name`, which is a whole number from `least` to `most`."""
    value = facts.get(name)
    if not isinstance(value, int) or not least <= value <= most:
        raise ModelError(f"{node.kind}: {name} must be {least} to {most}, got {value}")
    return value


def wholes(node: TfliteNode, facts: dict[str, Any], name: str, least: int = 0, most: int = (1 << 16) - 1) -> list[int]:
    """Return the option `name`, which is one whole number from `least` to `most`, or more of them."""
    value: Any = facts.get(name)
    if not isinstance(value, tuple) or not value:
        raise ModelError(f"{node.kind}: {name} must be numbers from {least} to {most}, got {value}")
    return [whole(node, {name: number}, name, least, most) for number in cast("tuple[Any, ...]", value)]


def real(node: TfliteNode, facts: dict[str, Any], name: str) -> float:
    """Return the option `name`, which is a finite number."""
    value = facts.get(name)
    if not isinstance(value, int | float) or not abs(value) < float("inf"):
        raise ModelError(f"{node.kind}: {name} must be a finite number, got {value}")
    return float(value)


def numbers(node: TfliteNode, count: int) -> list[int]:
    """Return options that are a structure of C: the first `count` numbers of 4 bytes, and maybe others."""
    raw = _raw(node)
    if len(raw) < 4 * count:
        raise ModelError(f"{node.kind}: options must be {count} numbers of 4 bytes, got {len(raw)} bytes")
    return [int.from_bytes(raw[4 * i : 4 * i + 4], "little", signed=True) for i in range(count)]


def _raw(node: TfliteNode) -> bytes:
    raw = bytes(node.attrs.get("options", b""))
    if len(raw) > MAX_BYTES:
        raise ModelError(f"{node.kind}: options can have at most {MAX_BYTES} bytes, got {len(raw)}")
    return raw
