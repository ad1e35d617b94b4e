"""Memo of values made of expressions, for each state of the variables in them.

Statements of unrolled loops are visited many times, mostly with the same values of the variables that they read. Sums
come from this memo, so equal ones are nearly always one object: states are compared by identity, which is cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from aot.codegen.ir.expressions import variables
from aot.codegen.ir.index import Affine
from aot.codegen.ir.loops import Expr, Var

T = TypeVar("T")


class Memo(Generic[T]):
    """Memo of some expressions, keyed by identities; it keeps them and their states alive so that no id is reused."""

    __slots__ = ("_known", "_read", "_roots")

    def __init__(self, *roots: Expr) -> None:
        self._roots = roots
        self._read = tuple(variables(*roots))
        self._known: dict[tuple[int, ...], tuple[T, list[object]]] = {}

    def of(self, env: Mapping[Var, Affine], lane: Var | None, make: Callable[[], T]) -> T:
        """Return the value for `env` and `lane`, as far as the expressions read them; `make` computes a new one."""
        state: list[object] = [lane, *map(env.get, self._read)]
        key = tuple(map(id, state))
        value = self._known.get(key)
        if value is None:
            value = self._known[key] = make(), state
        return value[0]
