"""Constant strings: operations on them are computed while the file is converted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aot.frontends.tf.registry import Call, tf
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.runtime.abi import DType

SPACE = " \t\n\v\f\r"  # white space between words
CHANGES: dict[str, Callable[[str], str]] = {
    "StringLower": str.lower,
    "StringUpper": str.upper,
    "StringStrip": lambda text: text.strip(SPACE),
}


def _texts(node: Call, x: OutPort) -> Array:
    """Return the strings of a constant; UnsupportedError if they are none."""
    node.refuse(x.type.dtype is not DType.STRING or x.value is None, "strings must be constants")
    return node.known(x, "strings")


def _constant(node: Call, values: list[str], shape: tuple[int, ...]) -> OutPort:
    return node.build.const(np.array(values, object).reshape(shape), DType.STRING)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


@tf(*CHANGES)
def changed(node: Call, x: OutPort) -> OutPort:
    """Only letters of ASCII have two cases, unless an encoding is given."""
    change, found = CHANGES[node.kind], _texts(node, x)
    if node.kind != "StringStrip" and node.text("encoding") != "utf-8":
        return _constant(node, ["".join(change(c) if c.isascii() else c for c in t) for t in found.flat], found.shape)
    return _constant(node, [change(t) for t in found.flat], found.shape)


@tf("StringJoin")
def join(node: Call, *xs: OutPort) -> OutPort:
    """Strings one behind the other; scalars go with all."""
    parts = np.broadcast_arrays(*(_texts(node, x) for x in xs))
    rows = zip(*(p.flat for p in parts), strict=True)
    return _constant(node, [node.text("separator").join(row) for row in rows], parts[0].shape)


@tf("StringLength")
def length(node: Call, x: OutPort) -> OutPort:
    """Counts of bytes, or of characters."""
    found, characters = _texts(node, x), node.text("unit") == "UTF8_CHAR"
    sizes = [len(t) if characters else len(_encoded(t)) for t in found.flat]
    return node.build.const(np.array(sizes, np.int32).reshape(found.shape), DType.I32)


@tf("StringToNumber")
def to_number(node: Call, x: OutPort) -> OutPort:
    found, dtype = _texts(node, x), node.dtype("out_type")
    read = float if dtype.is_float else int
    return node.build.const(np.array([read(t) for t in found.flat]).reshape(found.shape), dtype)


@tf("StringSplitV2")
def split(node: Call, x: OutPort, separator: OutPort) -> tuple[OutPort, ...]:
    """The words of each string as a sparse tensor: places [count, 2], words, and shape [strings, most words]."""
    most = node.integer("maxsplit")
    between = str(_texts(node, separator).reshape(-1)[0]) or None
    rows = [t.split(between, most) for t in _texts(node, x).reshape(-1)]
    places = np.array([(i, k) for i, row in enumerate(rows) for k in range(len(row))], np.int64).reshape(-1, 2)
    words = [w for row in rows for w in row]
    shape = node.list([len(rows), max(map(len, rows), default=0)])
    return node.build.const(places, DType.I64), _constant(node, words, (len(words),)), shape
