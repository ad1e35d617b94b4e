"""Digest of nodes and data classes: equal ones have equal digests, in every process, and others have others.

a[i] * 2 + a[i]   ->   #0 Var(i) #1 Buffer(a) #2 Load(#1, #0) #3 Const(2) #4 Prim(mul, #2, #3) ...   ->   SHA-256
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, cast

from aot.codegen.ir.node import Node


def digest(root: object) -> str:
    """Return the SHA-256 of nodes, data classes and tuples of them. Nodes are numbered: shared ones count once."""
    root = _plain(root)
    numbers: dict[Node, int] = {}
    rows: list[str] = []
    waiting = list(_nodes((root,)))
    while waiting:  # not recursive: expressions may be deep
        node = waiting[-1]
        if node not in numbers:
            missing = [part for part in _nodes(node.parts()) if part not in numbers]
            if missing:
                waiting += missing
                continue
            rows.append(f"{type(node).__name__}{_text(node.parts(), numbers)}")
            numbers[node] = len(numbers)
        waiting.pop()
    rows.append(_text(root, numbers))
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def _plain(part: object) -> object:
    """Return a data class as nested tuples with nodes in them."""
    if isinstance(part, Node):
        return part
    if isinstance(part, tuple):
        return tuple(map(_plain, cast("tuple[object, ...]", part)))
    if is_dataclass(part):
        fields: dict[str, Any] = part.__dataclass_fields__
        return (type(part).__name__, *(_plain(getattr(part, field)) for field in fields))
    return part


def _nodes(parts: tuple[Any, ...]) -> Iterator[Node]:
    """Yield the nodes in nested tuples."""
    for part in parts:
        if isinstance(part, Node):
            yield part
        elif isinstance(part, tuple):
            yield from _nodes(cast("tuple[Any, ...]", part))


def _text(part: Any, numbers: dict[Node, int]) -> str:
    if isinstance(part, Node):
        return f"#{numbers[part]}"
    if isinstance(part, tuple):
        parts = cast("tuple[Any, ...]", part)
        return f"({','.join([_text(one, numbers) for one in parts])})"
    return str.__repr__(part) if isinstance(part, str) else repr(part)
