"""Digest of nodes and data classes: equal ones have equal digests, in every process, and others have others.

a[i] * 2 + a[i]   ->   #0 Var(i) #1 Buffer(a) #2 Load(#1, #0) #3 Const(2) #4 Prim(mul, #2, #3) ...   ->   SHA-256
"""

from __future__ import annotations

import hashlib
from dataclasses import Field, is_dataclass
from typing import Any

from aot.codegen.ir.node import Node

_PLAIN = frozenset((int, float, str, bool, type(None)))  # whose `repr` tells them apart, in tuples, too


def digest(root: object) -> str:
    """Return the SHA-256 of nodes, data classes and tuples of them. Nodes are numbered: shared ones count once."""
    numbers: dict[Node, int] = {}
    known: dict[int, str] = {}  # texts by the identity of what they stand for: to compare it takes longer
    rows: list[str] = []
    waiting: list[Node] = []
    _texts((root,), known, waiting)
    while waiting:  # not recursive: expressions may be deep
        node = waiting[-1]
        if id(node) not in known:
            number = numbers.get(node)
            if number is None:
                count = len(waiting)
                texts = _texts(node.parts(), known, waiting)
                if len(waiting) > count:
                    continue
                number = numbers[node] = len(rows)
                rows.append(f"{type(node).__name__}({','.join(texts)})")
            known[id(node)] = f"#{number}"
        waiting.pop()
    rows += _texts((root,), known, waiting)
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def _texts(parts: tuple[Any, ...], known: dict[int, str], missing: list[Node]) -> list[str]:
    """Return the texts of values. Nodes that have none yet are added to `missing`."""
    texts: list[str] = []
    for part in parts:
        kind = type(part)
        if kind in _PLAIN or (kind is tuple and _PLAIN.issuperset(map(type, part))):
            text = repr(part)
        elif kind is tuple:
            text = f"({','.join(_texts(part, known, missing))})"
        elif isinstance(part, Node):
            text = known.get(id(part), "")
            if not text:
                missing.append(part)
        elif isinstance(part, str):
            text = str.__repr__(part)
        elif is_dataclass(part):
            text, count = known.get(id(part), ""), len(missing)
            if not text:
                text = _record(part, known, missing)
                if len(missing) == count:
                    known[id(part)] = text
        else:
            text = repr(part)
        texts.append(text)
    return texts


def _record(part: Any, known: dict[int, str], missing: list[Node]) -> str:
    """Return the text of a data class: its name, and the fields that differ from their defaults."""
    names: list[str] = []
    values: list[object] = []
    fields: dict[str, Field[Any]] = part.__dataclass_fields__
    for name, field in fields.items():
        value: object = getattr(part, name)
        default: object = field.default
        if value is not default and (type(value) is not type(default) or value != default):
            names.append(name)
            values.append(value)
    return f"{type(part).__name__}[{','.join(names)}]({','.join(_texts(tuple(values), known, missing))})"
