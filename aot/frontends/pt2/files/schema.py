"""Typed access to the JSON of an archive: errors name the expected type and the place.

graph = Table(value, "m.pt2: graph");  graph.text("name");  graph.tables("nodes");  graph.union("arg")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from aot.runtime.errors import CorruptError

T = TypeVar("T")
WORDS = {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}
INT64 = 1 << 63


class Table:
    """An object of the JSON. `where` says which one, for errors."""

    __slots__ = ("_fields", "where")

    def __init__(self, value: Any, where: str) -> None:
        self.where = where
        self._fields: Mapping[str, Any] = value if type(value) is dict else wrong(value, dict, where)

    def __contains__(self, name: str) -> bool:
        return self._fields.get(name) is not None

    def _get(self, name: str, kind: type[T]) -> T:
        value = self._fields.get(name)
        if type(value) is kind:
            return value
        if name not in self._fields:
            raise CorruptError(f"{self.where}: must have a field {name}, got none")
        return wrong(value, kind, self.place(name))

    def place(self, name: str) -> str:
        return f"{self.where}: {name}"

    def text(self, name: str) -> str:
        return self._get(name, str)

    def whole(self, name: str) -> int:
        value = self._get(name, int)
        return value if -INT64 <= value < INT64 else whole(value, self.place(name))

    def flag(self, name: str) -> bool:
        return self._get(name, bool)

    def list(self, name: str) -> Sequence[Any]:
        value = self._fields.get(name)
        return value if type(value) is list else wrong(value, list, self.place(name))

    def table(self, name: str) -> Table:
        return Table(self._get(name, dict), f"{self.where}: {name}")

    def tables(self, name: str) -> Iterator[Table]:
        for i, value in enumerate(self.list(name)):
            yield Table(value, f"{self.where}: {name}[{i}]")

    def items(self) -> Iterator[tuple[str, Table]]:
        """Fields that are objects, by name."""
        for name, value in self._fields.items():
            yield name, Table(value, self.place(name))

    def value(self, name: str) -> Any:
        return self._fields.get(name)

    def union(self) -> tuple[str, Any]:
        """Return tag and value of a union: an object with one field."""
        return union(self._fields, self.where)


def union(value: Any, where: str) -> tuple[str, Any]:
    """Return tag and value of an object with one field."""
    fields: Mapping[str, Any] = value if type(value) is dict else wrong(value, dict, where)
    if len(fields) != 1:
        raise CorruptError(f"{where}: a union must have one field, got {len(fields)}")
    (item,) = fields.items()
    return item


def elements(value: Any, where: str) -> Sequence[Any]:
    """Return the elements of a list."""
    return value if type(value) is list else wrong(value, list, where)


def whole(value: Any, where: str) -> int:
    """Return an integer of 64 bits."""
    number: int = value if type(value) is int else wrong(value, int, where)
    if not -INT64 <= number < INT64:
        raise CorruptError(f"{where}: integers must have 64 bits, got more")
    return number


def real(value: Any, where: str) -> float:
    """Return a float; infinities and NaN are words."""
    if isinstance(value, str) and value in WORDS:
        return WORDS[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        wrong(value, float, where)
    return float(whole(value, where) if isinstance(value, int) else value)


def wrong(value: Any, kind: type[object], where: str) -> NoReturn:
    raise CorruptError(f"{where}: must be of type {kind.__name__}, got {type(value).__name__}")
