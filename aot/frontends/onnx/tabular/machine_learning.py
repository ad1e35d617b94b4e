"""Counts of n-grams, and the simple operations of domain ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.frontends.conversion.lookup import place_of
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

ML = "ai.onnx.ml"


@onnx("Binarizer", domain=ML)
def binarizer(node: OnnxNode, x: OutPort, *, threshold: float = 0.0) -> OutPort:
    above = node.build.Greater(x, node.like(threshold, x))
    return node.cast(above, x.type.dtype)


@onnx("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(node: OnnxNode, x: OutPort, positions: OutPort) -> OutPort:
    """Gather elements of the last axis."""
    elements = node.build.Gather(x, node.reshape(positions, (-1,)), node.scalar(x.type.rank - 1))
    return node.build.Unsqueeze(elements, node.list([0])) if x.type.rank == 1 else elements


@dataclass(frozen=True, slots=True)
class _Grams:
    """The n-grams of one length: [count, n], and their columns in the output."""

    elements: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    columns: Sequence[int]


def _grams(node: OnnxNode, pool: Sequence[int]) -> list[_Grams]:
    """Return the n-grams by length; ModelError if the pool is no whole number of n-grams."""
    starts, columns = node.integers("ngram_counts"), node.integers("ngram_indexes")
    grams: list[_Grams] = []
    taken = 0
    for n, (start, end) in enumerate(zip(starts, (*starts[1:], len(pool)), strict=True), 1):
        part = np.array(pool[start:end], np.int64)
        if part.size % n or taken + part.size // n > len(columns):
            raise ModelError(f"{node.kind}: {part.size} elements are no whole number of {n}-grams that have columns")
        count = part.size // n
        grams.append(_Grams(part.reshape(count, n), columns[taken : taken + count]))
        taken += count
    return grams


@onnx("TfIdfVectorizer")
def tf_idf_vectorizer(node: OnnxNode, x: OutPort) -> OutPort:
    """Count the pool's n-grams, with gaps of up to `max_skip_count` elements between their elements."""
    build, rank = node.build, x.type.rank
    mode, length = node.text("mode"), x.type.static_shape[-1]
    columns = node.integers("ngram_indexes")
    weights = np.array(node.numbers("weights", [1.0] * len(columns)), np.float32)
    if x.type.dtype is DType.STRING:  # as their places among the texts of the pool
        words = {text: i for i, text in enumerate(dict.fromkeys(node.texts("pool_strings")))}
        pool = [words[text] for text in node.texts("pool_strings")]
        wide = place_of(node, x, np.array(list(words), object))
    else:
        pool, wide = node.integers("pool_int64s"), node.cast(x, DType.I64)
    width, taken = max(columns) + 1, 0
    total = build.const(np.zeros(width, np.float32), DType.F32)
    for n, grams in enumerate(_grams(node, pool), 1):
        own_weights = weights[taken : taken + len(grams.columns)]
        taken += len(grams.columns)
        if not node.integer("min_gram_length") <= n <= node.integer("max_gram_length") or not len(grams.columns):
            continue
        skips = range(1 if n == 1 else min(node.integer("max_skip_count"), length) + 1)
        positions = [i + (s + 1) * np.arange(n) for s in skips for i in range(length - (n - 1) * (s + 1))]
        if not positions:
            continue
        count = _counted(node, wide, np.stack(positions), grams)
        if mode != "TF":
            count = build.Minimum(count, 1.0) if mode == "IDF" else count
            count = build.Multiply(count, build.const(own_weights, DType.F32))
        spread = np.zeros((len(grams.columns), width), np.float32)
        spread[np.arange(len(grams.columns)), grams.columns] = 1
        total = build.Add(total, build.MatMul(count, build.const(spread, DType.F32)))
    return build.Broadcast(total, node.list([*x.type.static_shape[:-1], width])) if rank > 1 else total


def _counted(
    node: OnnxNode, x: OutPort, positions: np.ndarray[tuple[int, int], np.dtype[np.int64]], grams: _Grams
) -> OutPort:
    """Count the windows that equal each n-gram: [.., grams]."""
    build, rank = node.build, x.type.rank
    windows = build.Gather(x, build.const(positions, DType.I64), node.scalar(rank - 1))
    same = build.Equal(build.Unsqueeze(windows, node.list([rank])), build.const(grams.elements, DType.I64))
    whole = build.ReduceLogicalAnd(same, node.list([rank + 1]))
    return build.ReduceSum(node.cast(whole, DType.F32), node.list([rank - 1]))
