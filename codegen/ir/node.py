"""Nodes of the loop-nest IR: structural equality, and a hash at constant cost."""

from __future__ import annotations

import operator
from typing import Any, ClassVar, TypeVar, dataclass_transform

from aot.codegen.dataclass import dataclass

N = TypeVar("N")


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[N]) -> type[N]:
    """Make a class of nodes of its annotations.

    The type checker forbids changes; at run time nothing does, because a frozen class is made three times as slowly,
    and a compilation makes nodes by the million.
    """
    result: Any = dataclass(slots=True, eq=False)(cls)
    result._fields = staticmethod(operator.attrgetter(*result.__match_args__))
    return result


class Node:
    """Structural equality and a hash that is computed once; expressions are graphs, so neither may walk a tree."""

    __slots__ = ("_hash",)
    _hash: int
    _fields: ClassVar[staticmethod[[Any], tuple[Any, ...]]]

    def parts(self) -> tuple[Any, ...]:
        """Return the fields, in order."""
        return self._fields(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the class and the fields for `pickle`: hashes are left out, since they differ between processes."""
        return type(self), self._fields(self)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = hash((type(self), self._fields(self)))
            return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return False
        assert isinstance(other, Node)
        try:
            differ = self._hash != other._hash
        except AttributeError:
            differ = hash(self) != hash(other)
        return not differ and self._fields(self) == other._fields(other)
