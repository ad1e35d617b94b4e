"""Renames the sizes that works read, so that kernels that differ in these names alone are shared.

y0[i, j] = x0[i, j] for i in s9, j in s48        becomes        y0[i, j] = x0[i, j] for i in size0, j in size1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from operator import is_
from typing import Any, TypeVar, cast

from aot.codegen.ir.index import factors, product_of
from aot.codegen.ir.loops import Expr, LoopKind, Prim, Space, Var
from aot.codegen.ir.node import Node
from aot.runtime.abi import DType

T = TypeVar("T")
_PLAIN = frozenset((int, float, str, bool, type(None), DType, Space, LoopKind))  # without variables


def renamed(work: T, names: Mapping[Var, Var]) -> T:
    """Rename variables everywhere in a work or a tuple of works: in values, extents, shapes, strides and bounds."""
    if not names:
        return work
    return _changed(work, names, {})


# No closures that call each other: only the garbage collector would free them, with all that they hold.
def _changed(part: Any, names: Mapping[Var, Var], known: dict[Node, Node]) -> Any:
    if type(part) in _PLAIN:
        return part
    if isinstance(part, tuple):
        return _parts(cast("tuple[Any, ...]", part), names, known)
    if isinstance(part, Node):
        node = known.get(part)
        if node is None:
            if isinstance(part, Var) and part in names:
                node = names[part]
            else:
                old = part.parts()
                new = _parts(old, names, known)
                node = part if new is old else _node(part, new)
            known[part] = node
        return node
    if is_dataclass(part) and not isinstance(part, type):
        old = tuple(getattr(part, f.name) for f in fields(part))
        new = _parts(old, names, known)
        return part if new is old else type(part)(*new)
    return part


def _parts(old: tuple[Any, ...], names: Mapping[Var, Var], known: dict[Node, Node]) -> tuple[Any, ...]:
    parts: list[Any] = []
    for part in old:  # a comprehension has a frame of its own: the deepest expressions would be too deep
        parts.append(_changed(part, names, known))  # noqa: PERF401
    new = tuple(parts)
    return old if all(map(is_, old, new)) else new


def _node(old: Node, new: tuple[Any, ...]) -> Node:
    """Rebuild a node from other parts; factors of sizes are sorted by their new names."""
    node = type(old)(*new)
    if isinstance(node, Prim) and node.fn == "mul" and node.dtype is DType.I64 and _are_sizes(node):
        return product_of(node)
    return node


def _are_sizes(e: Expr) -> bool:
    return all(isinstance(f, Var) for f in factors(e))
