"""Strings: constants are computed with while the file is converted, those of inputs when the network runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from aot.frontends.conversion.texts import (
    equal_texts,
    in_letters,
    joined_texts,
    matching_texts,
    parts_of,
    texts_of,
    words_of,
)
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.runtime.abi import DType
from aot.runtime.arrays.strings import ENCODING

SPACE = " \t\n\v\f\r"  # white space between words
CHANGES: dict[str, Callable[[str], str]] = {
    "StringLower": str.lower,
    "StringUpper": str.upper,
    "StringStrip": lambda text: text.strip(SPACE),
}


def _in_ascii(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(change(c) if c.isascii() else c for c in text)


ASCII_CHANGES = {kind: _in_ascii(change) for kind, change in CHANGES.items()}


def _is_known(*xs: OutPort) -> bool:
    return all(x.value is not None for x in xs)


def _texts(node: TfNode, x: OutPort) -> Array:
    """Return the strings of a constant; UnsupportedError if they are none."""
    node.refuse(x.type.dtype is not DType.STRING or x.value is None, "strings must be constants")
    return node.known(x, "strings")


def _constant(node: TfNode, values: list[str], shape: tuple[int, ...]) -> OutPort:
    return node.build.const(np.array(values, object).reshape(shape), DType.STRING)


def _encoded(text: str) -> bytes:
    return text.encode(*ENCODING)


@tf(*CHANGES)
def changed(node: TfNode, x: OutPort) -> OutPort:
    """Only letters of ASCII have two cases, unless an encoding is given."""
    is_ascii = node.kind != "StringStrip" and node.text("encoding") != "utf-8"
    change = (ASCII_CHANGES if is_ascii else CHANGES)[node.kind]
    if node.kind != "StringStrip" and not _is_known(x):
        return in_letters(node, x, change)
    texts = _texts(node, x)
    return _constant(node, [change(t) for t in texts.flat], texts.shape)


@tf("StringJoin")
def join(node: TfNode, *xs: OutPort) -> OutPort:
    """Concatenated strings; scalars broadcast."""
    if not _is_known(*xs):
        between = node.text("separator")
        middle = [texts_of(node, [between])] if between else []
        parts = [p for x in xs for p in (*middle, x)][len(middle) :]
        port = reduce(lambda a, b: joined_texts(node, a, b), parts)
        return port if any(x.type.rank for x in xs) or not middle else node.single(port)
    parts = np.broadcast_arrays(*(_texts(node, x) for x in xs))
    rows = zip(*(p.flat for p in parts), strict=True)
    return _constant(node, [node.text("separator").join(row) for row in rows], parts[0].shape)


@tf("StringLength")
def length(node: TfNode, x: OutPort) -> OutPort:
    """Counts of bytes, or of characters."""
    characters = node.text("unit") == "UTF8_CHAR"
    if not characters and not _is_known(x):
        begins, ends, _ = parts_of(node, x)
        return node.build.Subtract(ends, begins)
    texts = _texts(node, x)
    sizes = [len(t) if characters else len(_encoded(t)) for t in texts.flat]
    return node.build.const(np.array(sizes, np.int32).reshape(texts.shape), DType.I32)


@tf("StringToNumber")
def to_number(node: TfNode, x: OutPort) -> OutPort:
    found, dtype = _texts(node, x), node.dtype("out_type")
    read = float if dtype.is_float else int
    return node.build.const(np.array([read(t) for t in found.flat]).reshape(found.shape), dtype)


@tf("StringSplitV2")
def split(node: TfNode, x: OutPort, separator: OutPort) -> tuple[OutPort, ...]:
    """The words of each string as a sparse tensor: places [count, 2], words, and shape [strings, most words]."""
    most = node.integer("maxsplit")
    between = str(_texts(node, separator).reshape(-1)[0])
    if not _is_known(x):
        return _split(node, x, between, most)
    cut = [_encoded(t).split(_encoded(between) or None, most) for t in _texts(node, x).reshape(-1)]  # at ASCII's space
    rows = [[word.decode(*ENCODING) for word in row] for row in cut]
    positions = np.array([(i, k) for i, row in enumerate(rows) for k in range(len(row))], np.int64).reshape(-1, 2)
    words = [w for row in rows for w in row]
    shape = node.list([len(rows), max(map(len, rows), default=0)])
    return node.build.const(positions, DType.I64), _constant(node, words, (len(words),)), shape


def _split(node: TfNode, x: OutPort, separator: str, most: int) -> tuple[OutPort, ...]:
    """Return the words of a vector of strings, as `split` does."""
    build, zero = node.build, node.scalar(0)
    words, counts = words_of(node, x, separator, most)
    width = node.dims(words, [1])
    positions = build.Range(zero, build.Squeeze(width, node.list([0])), node.scalar(1), output_type=DType.I64)
    inside = build.Less(positions, build.Unsqueeze(counts, node.list([1])))
    at = build.Transpose(build.NonZero(inside, output_type=DType.I64), node.list([1, 0]))
    return at, build.GatherND(words, at), build.Concat(node.dims(x, [0]), width, axis=0)


@tf("StaticRegexFullMatch")
def static_regex_full_match(node: TfNode, x: OutPort) -> OutPort:
    return matching_texts(node, x, node.text("pattern"))


@tf("RegexFullMatch")
def regex_full_match(node: TfNode, x: OutPort, pattern: OutPort) -> OutPort:
    return matching_texts(node, x, str(_texts(node, pattern).reshape(-1)[0]))


@tf("Equal", "NotEqual")
def equal(node: TfNode, a: OutPort, b: OutPort) -> OutPort:
    build = node.build
    if DType.STRING not in (a.type.dtype, b.type.dtype):
        return build.Equal(a, b) if node.kind == "Equal" else build.NotEqual(a, b)
    port = equal_texts(node, a, b)
    return port if node.kind == "Equal" else build.LogicalNot(port)
