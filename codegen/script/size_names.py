"""Names of sizes in the arguments of a script: variables are compared by their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from types import FunctionType, MethodType, ModuleType
from typing import cast

from aot.codegen.ir.expressions import variables
from aot.codegen.ir.loops import Buffer, Expr

_MAX_DEPTH = 4  # levels: arguments, an argument, its fields, their members


def size_names(*values: object) -> frozenset[str]:
    """Return the names of the variables in expressions, in shapes of buffers, and in the fields of objects."""
    return frozenset(v.name for e in _expressions(values, _MAX_DEPTH) for v in variables(e))


def _expressions(value: object, depth: int) -> Iterator[Expr]:
    if isinstance(value, Expr):
        yield value
        return
    if isinstance(value, Buffer):
        yield from (n for n in (*value.shape, *value.strides) if isinstance(n, Expr))
        return
    for part in _parts(value) if depth else ():
        yield from _expressions(part, depth - 1)


def _parts(value: object) -> list[object]:
    """Return the members of a collection, the fields of an object, or the captures of a function."""
    match value:
        case list() | tuple() | set() | frozenset():
            return list(cast(Iterable[object], value))
        case Mapping():
            return list(cast(Mapping[object, object], value).values())
        case type() | ModuleType():
            return []
        case FunctionType():
            return list(_captured(value))
        case MethodType():
            return [value.__self__]
        case _ if is_dataclass(value):
            return [getattr(value, name, None) for name in value.__dataclass_fields__]
        case _:
            return list[object](getattr(value, "__dict__", {}).values())


def _captured(function: FunctionType) -> Iterator[object]:
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # a closure's variable that is not assigned yet
            yield cell.cell_contents
