"""Checked access to the tables of a flatbuffer, by the classes that the schema package generates.

    Table(Model).tables("Subgraphs")[0].ints("Inputs")

The generated classes trust offsets and lengths; a wrong one makes them raise or yields a length that no file has. Here
each vector is checked to lie in the file before it is read, and all that is read is counted: vectors that share their
elements must not make a small file a large model.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array
from aot.runtime.errors import AotError, BudgetError, CorruptError

MAX_READ = 1 << 22  # elements and tables; large networks have some 100 000
BROKEN = (struct.error, ValueError, TypeError, IndexError, OverflowError, AttributeError)
IDENTIFIER = b"TFL3"
FIRST_SLOT, SLOT = 4, 2  # bytes before the first entry of a table's list of fields, and of an entry


@contextmanager
def corrupt(file: str, what: str) -> Generator[None]:
    """Raise CorruptError for errors of the generated classes on offsets that point outside of the file."""
    try:
        yield
    except AotError:  # some are ValueErrors
        raise
    except BROKEN as error:
        raise CorruptError(f"{file}: {what} is damaged: {error}") from error


@dataclass(slots=True)
class Quota:
    """Number of elements that may still be read."""

    file: str
    left: int = MAX_READ

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise BudgetError(f"{self.file}: a model can have at most {MAX_READ} tables and elements, got more")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the file; fields are named as the schema names them, in capitals: `Inputs`, `OpcodeIndex`."""

    made: Any
    quota: Quota

    def number(self, field: str) -> Any:
        """Return a scalar field, or its default."""
        return getattr(self.made, field)()

    def stored(self, slot: int, kind: str = "Int32", default: int = 0) -> int:
        """Return the scalar field `slot` of the schema as it is stored, where its class hides it or is older.

        `kind`: its type by flatbuffers' name; `default`: the value of a field that is absent.
        """
        table: Any = self.made._tab
        position = table.Offset(FIRST_SLOT + SLOT * slot)
        flags: Any = getattr(import_module("flatbuffers.number_types"), f"{kind}Flags")
        return int(table.Get(flags, table.Pos + position)) if position else default

    def text(self, field: str) -> str:
        """Return a string, empty if it is absent."""
        raw = getattr(self.made, field)() or b""
        self.quota.take(len(raw) // 64)
        return bytes(raw).decode("utf-8", "replace")

    def table(self, field: str) -> Table | None:
        found = getattr(self.made, field)()
        self.quota.take(1)
        return None if found is None else Table(found, self.quota)

    def tables(self, field: str) -> list[Table]:
        """Return a vector of tables."""
        count = int(getattr(self.made, f"{field}Length")())
        self._check(count, 4)
        return [Table(getattr(self.made, field)(i), self.quota) for i in range(count)]

    def array(self, field: str) -> Array:
        """Return a vector of numbers as a view into the file; of size 0 if it is absent."""
        array: Any = getattr(self.made, f"{field}AsNumpy")()
        return np.empty(0, np.int32) if isinstance(array, int) else array

    def numbers(self, field: str) -> tuple[int, ...]:
        """Return a vector of numbers that is copied."""
        found = self.array(field)
        self.quota.take(found.size)
        return tuple(found.tolist())

    def union(self, field: str, kind: int, kinds: Any) -> tuple[str, Table] | None:
        """Return the table of a union and the name of its type; `kind`: its number in the class of numbers `kinds`."""
        found = getattr(self.made, field)()
        name = names_of(kinds).get(kind, "")
        if found is None or not name or name == "NONE":
            return None
        member = getattr(import_module(f"tflite.{name}"), name)()
        member.Init(found.Bytes, found.Pos)
        self.quota.take(1)
        return name, Table(member, self.quota)

    def fields(self) -> dict[str, Any]:
        """Return all fields by their names in small letters: numbers, texts, tuples; tables within it are left out."""
        values: dict[str, Any] = {}
        names = [n for n in _members(self.made.__class__) if n[0] != "_" and n != "Init" and "GetRoot" not in n]
        for name in names:
            if name.endswith(("Length", "IsNone", "AsNumpy", "BufferHasIdentifier")):
                continue
            if f"{name}AsNumpy" in names:
                values[small(name)] = self.numbers(name)
            elif f"{name}Length" not in names:
                value = getattr(self.made, name)()
                if isinstance(value, bytes):
                    values[small(name)] = self.text(name)
                elif isinstance(value, int | float | bool):
                    values[small(name)] = value
        self.quota.take(len(values))
        return values

    def _check(self, count: int, size: int) -> None:
        if count * size > len(self.made._tab.Bytes):
            raise CorruptError(f"{self.quota.file}: a vector must lie in the file, got one of {count} elements")
        self.quota.take(count)


def root(data: Any, file: str) -> Table:
    """Return the table Model of a file."""
    with corrupt(file, "the root table"):
        return Table(import_module("tflite.Model").Model.GetRootAs(data, 0), Quota(file))


def enumeration(name: str) -> Any:
    """Return the class of numbers that the schema has for a type, for instance BuiltinOperator."""
    return getattr(import_module(f"tflite.{name}"), name)


def names_of(kinds: Any) -> dict[int, str]:
    """Return the name of each number of an enumeration."""
    return {value: name for name, value in _members(kinds).items() if isinstance(value, int)}


def _members(table: Any) -> dict[str, Any]:
    found: dict[str, Any] = table.__dict__
    return dict(found)


def small(name: str) -> str:
    """`FusedActivationFunction` as `fused_activation_function`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
