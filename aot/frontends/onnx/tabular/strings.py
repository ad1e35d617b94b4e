"""Strings: joined, split into words, cleaned of words that do not count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.frontends.conversion.lookup import place_of
from aot.frontends.conversion.texts import in_letters, joined_texts, matching_texts, texts_of, words_of
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort

CHANGES = {"LOWER": str.lower, "UPPER": str.upper}


@onnx("StringConcat")
def string_concat(node: OnnxNode, a: OutPort, b: OutPort) -> OutPort:
    return joined_texts(node, a, b)


@onnx("StringSplit")
def string_split(
    node: OnnxNode, x: OutPort, *, delimiter: str = "", maxsplit: int | None = None
) -> tuple[OutPort, OutPort]:
    return words_of(node, x, delimiter, -1 if maxsplit is None else maxsplit)


@onnx("RegexFullMatch")
def regex_full_match(node: OnnxNode, x: OutPort, *, pattern: str) -> OutPort:
    return matching_texts(node, x, pattern)


@onnx("StringNormalizer")
def string_normalizer(
    node: OnnxNode,
    x: OutPort,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: bool = False,
    stopwords: Sequence[str] = (),
) -> OutPort:
    """Drop stop words of [count] or [1, count] strings, and change letters; one empty string if none is left."""
    node.refuse(case_change_action not in (*CHANGES, "NONE"), f"case_change_action is unknown: {case_change_action!r}")
    node.refuse(x.type.rank not in (1, 2), f"strings must be [count] or [1, count], got {x.type}")
    kept = _without(node, x, stopwords, is_case_sensitive) if stopwords else x
    return in_letters(node, kept, CHANGES[case_change_action]) if case_change_action in CHANGES else kept


def _without(node: OnnxNode, x: OutPort, stopwords: Sequence[str], sensitive: bool) -> OutPort:
    """Return the strings that are no stop words, one empty string if all are."""
    build, rank, zero = node.build, x.type.rank, node.list([0])
    flat = build.Reshape(x, node.list([-1]))
    compared = flat if sensitive else in_letters(node, flat, str.lower)
    words = np.array([w if sensitive else w.lower() for w in stopwords], object)
    stays = build.Equal(place_of(node, compared, words), len(words))
    none = build.LogicalNot(build.ReduceLogicalOr(stays, zero, keep_dims=True))
    positions = build.NonZero(build.Concat(stays, none, axis=0))
    port = build.Gather(
        build.Concat(flat, texts_of(node, [""]), axis=0), build.Squeeze(positions, zero), node.scalar(0)
    )
    return build.Unsqueeze(port, zero) if rank == 2 else port
