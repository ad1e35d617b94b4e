"""Attributes of Model Optimizer's names as functions of the attributes of a node's file, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.mo.bridge.values import plain

ABSENT = object()  # the node has no attribute of the name


@dataclass(frozen=True, slots=True)
class File:
    """A node as its file has it."""

    attrs: dict[str, Any]
    opset: int
    outputs: int

    def get(self, name: str, otherwise: Any = None) -> Any:
        return self.attrs.get(name, otherwise)


@dataclass(frozen=True, slots=True)
class Attr:
    """An attribute. `read` gives its value, or ABSENT; `write` the value of the file's attribute `file`."""

    name: str
    read: Callable[[File], Any]
    file: str = ""  # empty: a changed value changes nothing in the file
    write: Callable[[Any], Any] = plain


def as_it_is(value: Any) -> Any:
    return value


def ints(value: Any) -> Any:
    return np.asarray(value, np.int64)


def called(name: str, file: str, otherwise: Any = None, kind: Callable[[Any], Any] = as_it_is) -> Attr:
    """Declare an attribute that the file calls `file`."""

    def read(given: File) -> Any:
        value = given.get(file, otherwise)
        return value if value is None or value is ABSENT else kind(value)

    return Attr(name, read, file)


def always(**values: Any) -> tuple[Attr, ...]:
    """Return attributes that do not depend on the file."""

    def reader_of(value: Any) -> Callable[[File], Any]:
        return lambda file: value

    return tuple(Attr(name, reader_of(value)) for name, value in values.items())


def one_of(name: str, file: str, names: dict[Any, Any], otherwise: Any) -> Attr:
    """Declare an attribute with other names of its values in the file."""
    back = {value: key for key, value in names.items()}

    def read(given: File) -> Any:
        return names.get(given.get(file, otherwise), given.get(file))

    return Attr(name, read, file, lambda value: back.get(value, value))


def constant() -> tuple[Attr, ...]:
    """Return the attributes of a constant."""
    return (
        called("value", "value"),
        Attr("shape", lambda file: ints(np.shape(file.get("value")))),
        Attr("data_type", lambda file: np.asarray(file.get("value")).dtype),
    )
