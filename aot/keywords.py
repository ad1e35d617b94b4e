"""Options of a compilation as keywords: `compile_model(m, shapes={"x": (1, 3, "h", "w")}, target="x86-64-v3")`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from aot.options import CompileOptions, Nested, bytes_of, dims_of, shapes_of
from aot.runtime.errors import UsageError


class CompileKeywords(TypedDict, total=False):
    """Keywords of `compile_model` and `stages`, which win over those of `options`. Absent keywords have their defaults.

    `target`: `native`, `x86-64-v2`, `x86-64-v3`, `x86-64-v4` or `aarch64`, or several: `x86-64-v2,v3`.
    `shapes`: for each dimension of an input a number, a name or `?` (as in the file): `{"x": (1, 3, "h", "?")}` or
    `{"x": "1,3,h,?"}`. `dims`: for names of dimensions a size, or the least and the greatest one: `{"h": (1, 640)}`
    or `{"h": "1..640"}`; None as the greatest one: no bound. `values`: inputs that become constants.
    `layouts`: the layout in which an input is given: `{"x": "NHWC"}`. `mean`, `scale`: of an input, one number or one
    for each channel: `{"x": (123.7, 116.3, 103.5)}`; `reverse_channels`: inputs whose channels come in the opposite
    order. `specialise`: sizes of dimensions that get a
    version of their own: `{"batch": (1, 8)}`. `feeds`: constants that become optional inputs.
    `max_memory`: bytes, or a text such as `2GB`; `max_seconds`, `tune`: seconds. The others are as in CompileOptions.
    """

    target: str
    shapes: Mapping[str, Sequence[int | str] | str]
    dims: Mapping[str, int | tuple[int, int | None] | str]
    values: Mapping[str, Nested | Sequence[Any] | NDArray[Any]]
    layouts: Mapping[str, str]
    mean: Mapping[str, float | Sequence[float]]
    scale: Mapping[str, float | Sequence[float]]
    reverse_channels: Sequence[str]
    specialise: Mapping[str, int | Sequence[int]]
    feeds: Sequence[str]
    signature: str | None
    seed: int | None
    level: int | None
    external_weights: bool
    small_weights: bool
    plain_products: bool
    disable_layout_change: bool
    max_context: int | None
    last_logits: bool
    row_lengths: bool
    precision: str
    fast_math: bool
    activations: str
    max_memory: int | str | None
    max_seconds: float | None
    cores: int | None
    tune: float | None
    tune_file: str | PathLike[str] | None
    kernel_cache: str | PathLike[str] | None
    extensions: str | PathLike[str] | None
    verify: bool


def with_keywords(options: CompileOptions | None, keywords: CompileKeywords) -> CompileOptions:
    """Return `options` with those in `keywords` changed. UsageError names an unknown option or a wrong value."""
    given = cast("dict[str, object]", keywords)
    known = CompileKeywords.__annotations__
    if unknown := sorted(given.keys() - known):
        raise UsageError(f"compile: options are {', '.join(known)}, got {unknown[0]}")
    return replace(options or CompileOptions(), **{name: _read(name, value) for name, value in given.items()})


def _read(name: str, value: object) -> Any:
    if name in _MAPPINGS:
        if not isinstance(value, Mapping):
            raise UsageError(f"compile: {name} is a mapping by name, got {value!r}")
        found = cast("Mapping[object, object]", value)
        return tuple(_entry(name, key, one) for key, one in found.items())
    if name in ("feeds", "reverse_channels") and isinstance(value, list | tuple):
        return tuple(cast("list[object]", value))
    if name == "max_memory" and isinstance(value, str):
        return bytes_of(value)
    if name in ("tune_file", "kernel_cache", "extensions") and isinstance(value, str | PathLike):
        return Path(cast("str", value))
    expected = _PLAIN.get(name, ())
    if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
        kinds = " or ".join("None" if t is type(None) else t.__name__ for t in expected)
        raise UsageError(f"compile: {name} is {kinds}, got {value!r}")
    return value


def _entry(name: str, key: object, value: object) -> tuple[Any, ...]:
    try:
        if not isinstance(key, str):
            raise TypeError
        return _MAPPINGS[name](key, value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"compile: {name} has an entry {_FORMS[name]}, got {key!r}: {value!r}") from error


def _shape(name: str, value: Any) -> tuple[Any, ...]:
    if isinstance(value, str):
        return shapes_of([f"{name}={value}"])[0]
    dims = [_dimension(one) for one in value]
    return name, shapes_of([f"{name}=?,{','.join(dims)}"])[0][1][1:] if dims else ()


def _dimension(value: Any) -> str:
    """Return the text of a number or a name; TypeError for other values."""
    if isinstance(value, bool):
        raise TypeError
    return value if isinstance(value, str) else str(index(value))


def _dim(name: str, value: Any) -> tuple[Any, ...]:
    if isinstance(value, str):
        return dims_of([f"{name}={value}"])[0]
    if not isinstance(value, tuple | list):
        value = value, value
    least, greatest = cast("tuple[Any, Any]", value)
    return dims_of([f"{name}={_dimension(least)}..{'' if greatest is None else _dimension(greatest)}"])[0]


def _value(name: str, value: Any) -> tuple[str, Nested]:
    return name, _nested(np.asarray(value).tolist())


def _nested(value: object) -> Nested:
    if isinstance(value, list | tuple):
        return tuple(map(_nested, cast("list[object]", value)))
    if not isinstance(value, bool | int | float):
        raise TypeError
    return value


def _layout(name: str, value: Any) -> tuple[str, str]:
    if not isinstance(value, str) or not value.isalpha():
        raise TypeError
    return name, value.upper()


def _sizes(name: str, value: Any) -> tuple[str, tuple[int, ...]]:
    found = cast("tuple[Any, ...]", value if isinstance(value, tuple | list) else (value,))
    sizes = tuple(int(_dimension(n)) for n in found)
    if not sizes or min(sizes) < 0:
        raise ValueError
    return name, sizes


def _channels(name: str, value: Any) -> tuple[str, tuple[float, ...]]:
    found = np.asarray(value, np.float64)
    if found.ndim > 1 or not found.size:
        raise ValueError
    return name, tuple(found.reshape(-1).tolist())


_MAPPINGS: dict[str, Callable[[str, Any], tuple[Any, ...]]] = {
    "shapes": _shape,
    "dims": _dim,
    "values": _value,
    "layouts": _layout,
    "specialise": _sizes,
    "mean": _channels,
    "scale": _channels,
}
_FORMS = {
    "shapes": "name: numbers, names and `?`",
    "dims": "name: size, or (least, greatest)",
    "values": "name: number, nested sequence or array of numbers",
    "layouts": "name: layout",
    "specialise": "name: sizes",
    "mean": "name: number, or a number for each channel",
    "scale": "name: number, or a number for each channel",
}
_NONE = type(None)
_PLAIN: dict[str, tuple[type, ...]] = {
    "target": (str,),
    "cores": (int, _NONE),
    "feeds": (list, tuple),
    "signature": (str, _NONE),
    "reverse_channels": (list, tuple),
    "seed": (int, _NONE),
    "level": (int, _NONE),
    "external_weights": (bool,),
    "small_weights": (bool,),
    "plain_products": (bool,),
    "disable_layout_change": (bool,),
    "max_context": (int, _NONE),
    "last_logits": (bool,),
    "row_lengths": (bool,),
    "precision": (str,),
    "fast_math": (bool,),
    "activations": (str,),
    "max_memory": (int, str, _NONE),
    "max_seconds": (int, float, _NONE),
    "tune": (int, float, _NONE),
    "tune_file": (str, _NONE),
    "kernel_cache": (str, _NONE),
    "extensions": (str, _NONE),
    "verify": (bool,),
}
