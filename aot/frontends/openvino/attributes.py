"""Conversion between attributes as text and fields of operations, by the types of the fields."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from enum import Enum, StrEnum
from functools import cache
from inspect import get_annotations
from math import prod
from typing import Any, Union, cast, get_args, get_origin

import numpy as np

from aot.codegen.ir.loops import Expr, Var
from aot.ir.inference import MAX_ELEMENTS
from aot.ir.op import Op
from aot.ir.registry import attributes, is_written
from aot.ir.types import Dim, Shape
from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError, ModelError, UnsupportedError

ShapeParser = Callable[[str], Shape | None]
TRUE, FALSE = frozenset({"true", "1"}), frozenset({"false", "0"})


class Symbols:
    """Creates the symbols of dynamic dimensions; their names are unique in the model."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def make(self, layer: str, position: int, low: int, high: int | None) -> Var:
        """Return a symbol, `x.d0` for the first dimension of layer `x`; `low <= dim <= high`."""
        stem = re.sub(r"[^A-Za-z0-9_.]", "_", layer)
        stem = f"{stem if re.match('[A-Za-z_]', stem) else f'_{stem}'}.d{position}"
        name, n = stem, 1
        while name in self._taken:
            n += 1
            name = f"{stem}.{n}"
        self._taken.add(name)
        return Var(name, None if high is None else high + 1, low)


def build(cls: type[Op], data: dict[str, str], shape: ShapeParser) -> Op:
    """Return the operation for a layer's attributes; unknown ones are ignored, absent ones have the class's defaults.

    `shape` parses shapes, which may have new symbols. ModelError for a value that does not fit.
    """
    values: dict[str, Any] = {}
    for field, xml, hint, parse in _fields(cls):
        text = data.get(xml)
        if text is not None:
            try:
                values[field] = parse(text, shape)
            except (ValueError, KeyError):
                shown = text if len(text) <= 60 else f"{text[:57]}..."
                raise ModelError(f"{cls.type}: attribute {xml} must be {_kind(hint)}, got {shown!r}") from None
    try:
        return cls(**values)
    except TypeError as error:
        raise ModelError(f"{cls.type}: attributes are missing: {error}") from error


def texts(op: Op, opset: str) -> dict[str, str]:
    """Return the attributes as text, in the definition of operation set `opset`; the inverse of `build`."""
    op, result = op.written_out(), dict[str, str]()
    for field, (name, xml, hint, _) in zip(attributes(op), _fields(type(op)), strict=True):
        value = getattr(op, name)
        shaped = hint in (Shape, Shape | None)
        if shaped or (value is not None and is_written(op, field, opset)):
            result[xml] = shape_text(value) if shaped else text_of(value)
    return result


def text_of(value: object) -> str:
    """Return a value of an attribute as text; the inverse of `convert`."""
    if isinstance(value, Enum):
        return f"{value.value}"
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(map(text_of, cast("tuple[object, ...]", value)))
    return repr(float(value)) if isinstance(value, float) else str(value)


def shape_text(shape: Shape | None) -> str:
    """Return a shape as text, `1,3,?,1..224,8..`; the inverse of `partial_shape`."""
    return "..." if shape is None else ",".join(map(_dim_text, shape))


def _dim_text(dim: Dim) -> str:
    if not isinstance(dim, Expr):
        return str(dim)
    low, high = (dim.low, dim.extent) if isinstance(dim, Var) else (0, None)
    if high is None:
        return f"{low}.." if low else "?"
    return f"{low}..{high - 1}" if isinstance(high, int) else "?"


def _is_union(hint: Any) -> bool:
    origin: object = get_origin(hint)
    return origin in (Union, types.UnionType) and hint != Dim


def convert(hint: Any, text: str, shape: ShapeParser) -> Any:
    """Return a text as a value of type `hint`; ValueError or KeyError if it does not fit."""
    return _parser(hint)(text, shape)


def _parser(hint: Any) -> Callable[[str, ShapeParser], Any]:
    """Return the function that makes a value of type `hint` of a text."""
    if _is_union(hint):
        hint = next(h for h in get_args(hint) if h is not type(None))
    if hint == Shape:
        return lambda text, shape: shape(text)
    if get_origin(hint) is tuple:
        each = _parser(get_args(hint)[0])
        return lambda text, shape: tuple([each(part, shape) for part in _parts(text)])
    scalar = _scalar_parser(hint)
    return lambda text, _: scalar(text.strip())


def _scalar_parser(hint: Any) -> Callable[[str], Any]:
    if hint is DType:
        return element_type
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        members = {str(e.value).lower(): e for e in hint}
        return lambda text: members[text.lower()]
    return _PARSERS.get(hint, str)


def element_type(text: str) -> DType:
    """Return an element type; ValueError for an unknown one, UnsupportedError for `dynamic`."""
    lowered = text.strip().lower()
    if lowered in ("dynamic", "undefined", "unspecified"):
        raise UnsupportedError(f"element type must be known, got {lowered}")
    return DType("boolean" if lowered == "bool" else lowered)


def partial_shape(text: str, layer: str, symbols: Symbols) -> Shape | None:
    """Parse `1,3,?,1..224,8..`, with symbols for dynamic dimensions; None for `...`, an unknown rank."""
    if text.strip() == "...":
        return None
    parts = _parts(text)
    check_elements((1,) * len(parts), layer)
    dims = tuple(_dim(part, i, layer, symbols) for i, part in enumerate(parts))
    check_elements(tuple(d for d in dims if isinstance(d, int)), layer)
    return dims


def static_shape(text: str, layer: str) -> tuple[int, ...]:
    try:
        dims = tuple(int(part, 10) for part in _parts(text))
    except ValueError:
        raise CorruptError(f"layer {layer!r}: a shape must be a list of integers, got {text[:60]!r}") from None
    check_elements(dims, layer)
    return dims


def check_elements(dims: tuple[int, ...], layer: str) -> None:
    if len(dims) > 64 or any(d < 0 for d in dims) or prod(d or 1 for d in dims) > MAX_ELEMENTS:
        shown = ",".join(map(str, dims[:8]))
        rule = "a tensor can have at most 2^48 elements and no negative dimension"
        raise CorruptError(f"layer {layer!r}: {rule}, got [{shown}]")


def _dim(text: str, position: int, layer: str, symbols: Symbols) -> Dim:
    if text in ("?", "-1"):
        return symbols.make(layer, position, 0, None)
    if ".." not in text:
        return int(text, 10)
    low, high = text.split("..", 1)
    least, most = int(low or "0", 10), int(high, 10) if high else None
    if least < 0 or (most is not None and (most < least or most > MAX_ELEMENTS)) or least > MAX_ELEMENTS:
        raise CorruptError(f"layer {layer!r}: a range of sizes must rise, got {text!r}")
    return least if least == most else symbols.make(layer, position, least, most)


def _parts(text: str) -> list[str]:
    return [p.strip() for p in text.split(",")] if text.strip() else []


def _parse_boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in TRUE | FALSE:
        raise ValueError(text)
    return lowered in TRUE


_PARSERS: dict[Any, Callable[[str], Any]] = {bool: _parse_boolean, int: int, float: float}


def _kind(hint: Any) -> str:
    if _is_union(hint):
        return _kind(get_args(hint)[0])
    if hint == Shape:
        return "a shape"
    if get_origin(hint) is tuple:
        return f"a list, each {_kind(get_args(hint)[0])}"
    if hint is DType:
        return "an element type"
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return "one of " + ", ".join(str(e.value) for e in hint)
    return {"bool": "true or false", "int": "an integer", "float": "a number"}.get(hint.__name__, "text")


@cache
def _fields(cls: type[Op]) -> tuple[tuple[str, str, Any, Callable[[str, ShapeParser], Any]], ...]:
    """Return field, XML name, type and parser of each attribute."""
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        hints |= _types(base)
    names = [(f.name, str(f.metadata.get("xml", f.name))) for f in attributes(cls)]
    return tuple((name, xml, hints[name], _parser(hints[name])) for name, xml in names)


@cache
def _types(cls: type) -> dict[str, Any]:
    """Return the types of the fields that a class declares itself."""
    return get_annotations(cls, eval_str=True)
