"""Strings that an inference gets: compared, joined, split into words, matched, in capital or small letters."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from aot.frontends.conversion.automata import match_table
from aot.frontends.conversion.node_context import NodeContext
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.opset.control.strings import StringTensorPack, StringTensorUnpack
from aot.opset.control.texts import CODE_POINTS, StringEqual, StringLetters, StringMatch, StringWords
from aot.opset.elementwise.broadcasting import BroadcastMode
from aot.runtime.abi import DType
from aot.runtime.arrays.strings import ENCODING

SURROGATES = range(0xD800, 0xE000)  # code points that are no characters


def parts_of(node: NodeContext, x: OutPort) -> tuple[OutPort, ...]:
    """Return begins and ends of strings [..], i32, and the bytes of all of them [bytes], u8."""
    return tuple(node.build.node(StringTensorUnpack(), x, outputs=3).out_ports().values())


def texts_of(node: NodeContext, values: list[str]) -> OutPort:
    """Return a constant vector of strings."""
    return node.build.const(np.array([*values, ""], object)[:-1], DType.STRING)


def broadcast_together(node: NodeContext, a: OutPort, b: OutPort) -> tuple[OutPort, OutPort]:
    """Return two tensors of strings with one shape."""
    build, mode = node.build, BroadcastMode.BIDIRECTIONAL
    return build.Broadcast(a, build.ShapeOf(b), mode=mode), build.Broadcast(b, build.ShapeOf(a), mode=mode)


def equal_texts(node: NodeContext, a: OutPort, b: OutPort) -> OutPort:
    """Return where strings are equal, broadcast as numbers are; UnsupportedError for strings beside numbers."""
    if a.type.dtype is not b.type.dtype:
        node.refuse(True, f"strings are compared with strings, got {a.type} and {b.type}")
    one, other = broadcast_together(node, a, b)
    return node.build(StringEqual(), *parts_of(node, one), *parts_of(node, other))


def joined_texts(node: NodeContext, a: OutPort, b: OutPort) -> OutPort:
    """Return the concatenation of each string of `a` and its string of `b`: the bytes of both lie together."""
    build = node.build
    one, other = broadcast_together(node, a, b)
    last = node.list([one.type.rank])
    pairs = build.Concat(build.Unsqueeze(one, last), build.Unsqueeze(other, last), axis=one.type.rank)
    begins, ends, symbols = parts_of(node, pairs)
    begins, ends = (build.Gather(p, node.scalar(k), last) for k, p in enumerate((begins, ends)))
    return build(StringTensorPack(), begins, build.Reshape(ends, build.ShapeOf(begins)), symbols)


def in_letters(node: NodeContext, x: OutPort, change: Callable[[str], str]) -> OutPort:
    """Return strings with each character changed; those that would take more or fewer bytes stay."""
    begins, ends, symbols = parts_of(node, x)
    table = node.build.const(_letters(change), DType.I32)
    return node.build(StringTensorPack(), begins, ends, node.build(StringLetters(), symbols, table))


@lru_cache(maxsize=8)
def _letters(change: Callable[[str], str]) -> Array:
    """Return the code point of each character after a change, itself if that is not one character."""
    points = np.arange(CODE_POINTS, dtype=np.int32)
    for point in range(CODE_POINTS):
        if point not in SURROGATES and len(changed := change(chr(point))) == 1 and ord(changed) < CODE_POINTS:
            points[point] = ord(changed)
    return points


def matching_texts(node: NodeContext, x: OutPort, pattern: str) -> OutPort:
    """Return where a regular expression matches the whole string; UnsupportedError: see `match_table`."""
    table, accepts = match_table(pattern)
    build = node.build
    return build(StringMatch(), *parts_of(node, x), build.const(table, DType.I32), build.const(accepts, DType.I32))


def words_of(node: NodeContext, x: OutPort, separator: str, most_splits: int) -> tuple[OutPort, OutPort]:
    """Return the words of each string [.., most words], "" after the last, and their counts.

    Without a separator, words lie between white space.
    """
    build = node.build
    between = np.frombuffer(separator.encode(*ENCODING), np.uint8)
    op, mark = StringWords(most_splits), build.const(between, DType.U8)
    parts = parts_of(node, x)
    counts = build.node(op, *parts, node.list([0]), mark, outputs=3).out_port(2)
    word_counts = build.Concat(build.Reshape(counts, node.list([-1])), node.list([0]), axis=0)
    width = build.ReduceMax(word_counts, node.list([0]), keep_dims=False)
    positions = build.Range(node.scalar(0), width, node.scalar(1), output_type=DType.I64)
    found = build.node(op, *parts, positions, mark, outputs=3)
    return build(StringTensorPack(), found.out_port(0), found.out_port(1), parts[2]), counts
