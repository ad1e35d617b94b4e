"""Readers of the values that keywords have for options in Python: mappings by name, numbers, sequences, paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any, cast

import numpy as np

from aot.options.declaration import Keyword
from aot.options.texts import Nested, bytes_of, dims_of, shapes_of


def _shape(name: str, value: Any) -> tuple[str, tuple[int | str, ...]]:
    if isinstance(value, str):
        return shapes_of([f"{name}={value}"])[0]
    dims = [_dimension(one) for one in value]
    return name, shapes_of([f"{name}=?,{','.join(dims)}"])[0][1][1:] if dims else ()


def _dimension(value: Any) -> str:
    """Return the text of a number or a name; TypeError for other values."""
    if isinstance(value, bool):
        raise TypeError
    return value if isinstance(value, str) else str(index(value))


def _dim(name: str, value: Any) -> tuple[str, int, int | None]:
    if isinstance(value, str):
        return dims_of([f"{name}={value}"])[0]
    if not isinstance(value, (tuple, list)):
        value = value, value
    least, greatest = cast("tuple[Any, Any]", value)
    return dims_of([f"{name}={_dimension(least)}..{'' if greatest is None else _dimension(greatest)}"])[0]


def _value(name: str, value: Any) -> tuple[str, Nested]:
    return name, _nested(np.asarray(value).tolist())


def _nested(value: object) -> Nested:
    if isinstance(value, (tuple, list)):
        return tuple(map(_nested, cast("list[object]", value)))
    if not isinstance(value, bool | int | float):
        raise TypeError
    return value


def _layout(name: str, value: Any) -> tuple[str, str]:
    if not isinstance(value, str) or not value.isalpha():
        raise TypeError
    return name, value.upper()


def _sizes(name: str, value: Any) -> tuple[str, tuple[int, ...]]:
    values = cast("tuple[Any, ...]", value if isinstance(value, (tuple, list)) else (value,))
    sizes = tuple(int(_dimension(n)) for n in values)
    if not sizes or min(sizes) < 0:
        raise ValueError
    return name, sizes


def _channels(name: str, value: Any) -> tuple[str, tuple[float, ...]]:
    channels = np.asarray(value, np.float64)
    if channels.ndim > 1 or not channels.size:
        raise ValueError
    return name, tuple(channels.reshape(-1).tolist())


def _sequence(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, (tuple, list)):
        raise TypeError
    return tuple(cast("Sequence[Any]", value))


def _path(value: Any) -> Path:
    if not isinstance(value, (str, PathLike)):
        raise TypeError
    return Path(cast("str | PathLike[str]", value))


def _paths(value: Any) -> tuple[Path, ...]:
    return tuple(map(_path, _sequence(value)))


def _bytes(value: Any) -> int | None:
    if isinstance(value, str):
        return bytes_of(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


def _optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


_CHANNELS = "name: number, or a number for each channel"
SHAPES = Keyword("Mapping[str, Sequence[int | str] | str]", "name: numbers, names and `?`", _shape, by_name=True)
DIMS = Keyword(
    "Mapping[str, int | tuple[int, int | None] | str]", "name: size, or (least, greatest)", _dim, by_name=True
)
VALUES = Keyword(
    "Mapping[str, Nested | Sequence[Any] | NDArray[Any]]",
    "name: number, nested sequence or array of numbers",
    _value,
    by_name=True,
)
LAYOUTS = Keyword("Mapping[str, str]", "name: layout", _layout, by_name=True)
CHANNELS = Keyword("Mapping[str, float | Sequence[float]]", _CHANNELS, _channels, by_name=True)
SIZES = Keyword("Mapping[str, int | Sequence[int]]", "name: sizes", _sizes, by_name=True)
SEQUENCE = Keyword("Sequence[str]", "list or tuple", _sequence)
PLACE = Keyword("Sequence[int]", "list or tuple of a row and a column", _sequence)
PATHS = Keyword("Sequence[str | PathLike[str]]", "list or tuple of paths", _paths)
PATH = Keyword("str | PathLike[str] | None", "str or path or None", _optional(_path))
BYTES = Keyword("int | str | None", "int or str or None", _optional(_bytes))
