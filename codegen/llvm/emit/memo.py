"""Memo of values made of expressions, for each state of the variables in them.

Statements of unrolled loops are visited many times, mostly with the same values of the variables that they read. Sums
come from this memo, so equal ones are nearly always one object: states are compared by identity, which is cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, cast

from aot.codegen.ir.expressions import variables
from aot.codegen.ir.index import Affine
from aot.codegen.ir.loops import Expr, Statement, Var
from aot.codegen.ir.node import Node

_MOST = 1 << 16  # nodes that are known when a kernel begins
_KNOWN: dict[Node, Node] = {}  # expressions and buffers of this kernel and those before it
T = TypeVar("T")
N = TypeVar("N", bound=Node)


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


def unified(nodes: tuple[N, ...]) -> tuple[N, ...]:
    """Return the same nodes with one object for equal expressions and buffers, as in the sums that are known."""
    if len(_KNOWN) > _MOST:
        _KNOWN.clear()
    return _unified(nodes, {})


def _unified(parts: tuple[Any, ...], seen: dict[int, Node]) -> Any:
    """`seen`: the nodes of this kernel for those of its loops that were seen, by identity."""
    new: list[object] | None = None
    for i, part in enumerate(parts):
        if isinstance(part, Node):
            node = seen.get(id(part)) or _node(part, seen)
        elif type(part) is tuple:
            node = _unified(cast(tuple[object, ...], part), seen)
        else:
            continue
        if node is not part:
            new = list(parts) if new is None else new
            new[i] = node
    return parts if new is None else tuple(new)


def _node(node: Node, seen: dict[int, Node]) -> Node:
    is_statement = isinstance(node, Statement)
    result = None if is_statement else _KNOWN.get(node)
    if result is None:
        fields = node.parts()
        new = _unified(fields, seen)
        result = node if new is fields else type(node)(*new)
        if not is_statement:
            _KNOWN[node] = result
    seen[id(node)] = result
    return result
