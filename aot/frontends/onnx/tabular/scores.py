"""Labels and transformed scores, from the raw scores of classifiers and regressors of ai.onnx.ml.

ONNX says little about classifiers with one score for two classes; the rules here are those of ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.frontends.onnx.registry import OnnxNode
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

ML = "ai.onnx.ml"
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")  # names by their number in TreeEnsemble-5
MAX_ZERO_SCORE = 1e-7  # SOFTMAX_ZERO treats smaller scores as 0


def transform_of(node: OnnxNode) -> str:
    return node.choice("post_transform", {t: t for t in TRANSFORMS}, "NONE")


def rows_of(node: OnnxNode, x: OutPort, dtype: DType) -> OutPort:
    """Return features as rows of floats; a vector is one row."""
    if x.type.rank not in (1, 2) or x.type.dtype in (DType.STRING, DType.BOOL):
        raise ModelError(f"{node.kind}: features must be numbers with 1 or 2 dimensions, got {x.type}")
    x = node.cast(x, dtype)
    return node.build.Unsqueeze(x, node.list([0])) if x.type.rank == 1 else x


def transformed(node: OnnxNode, scores: OutPort, transform: str) -> OutPort:
    """Return scores [rows, n] transformed by `post_transform`."""
    build = node.build
    match transform:
        case "SOFTMAX":
            return build.Softmax(scores, axis=1)
        case "LOGISTIC":
            return build.Sigmoid(scores)
        case "SOFTMAX_ZERO":
            most = build.ReduceMax(scores, node.list([1]), keep_dims=True)
            other = build.Greater(build.Abs(scores), node.like(MAX_ZERO_SCORE, scores))
            shares = build.Exp(build.Subtract(scores, most))
            zeros = build.Multiply(scores, build.Exp(build.Negative(most)))
            total = build.ReduceSum(build.Select(other, shares, node.like(0, scores)), node.list([1]), keep_dims=True)
            return build.Divide(build.Select(other, shares, zeros), total)
        case "PROBIT":
            return _probit(node, scores)
        case _:
            return scores


def _probit(node: OnnxNode, scores: OutPort) -> OutPort:
    """Return sqrt 2 erfinv(2 s - 1), by the approximation with 0.147 that ONNX Runtime uses."""
    build = node.build
    x = build.Subtract(build.Multiply(scores, node.like(2, scores)), node.like(1, scores))
    log = build.Log(build.Multiply(build.Subtract(node.like(1, x), x), build.Add(node.like(1, x), x)))
    half = build.Add(build.Multiply(log, node.like(0.5, x)), node.like(2 / (3.14159 * 0.147), x))
    inner = build.Subtract(build.Multiply(half, half), build.Multiply(log, node.like(1 / 0.147, x)))
    root = build.Sqrt(build.Subtract(build.Sqrt(inner), half))
    signed = build.Select(build.Less(x, node.like(0, x)), build.Negative(root), root)
    return build.Multiply(signed, node.like(1.41421356, x))


def pair_of(node: OnnxNode, score: OutPort, transform: str, mixed: bool) -> OutPort:
    """Return the scores of two classes from one [rows, 1]: -s and s if weights have `mixed` signs, else 1 - s and s.

    UnsupportedError for PROBIT, for which ONNX Runtime leaves the second score undefined.
    """
    node.refuse(transform == "PROBIT", "PROBIT of one score for two classes is not defined")
    build, negative = node.build, node.build.Negative(score)
    if transform == "LOGISTIC":
        return build.Sigmoid(build.Concat(negative, score, axis=1))
    return build.Concat(negative if mixed else build.Subtract(node.like(1, score), score), score, axis=1)


def first_largest(node: OnnxNode, scores: OutPort) -> OutPort:
    """Return the index of the largest score of each row [rows], the first of equal ones."""
    top = node.build.TopK(scores, node.scalar(1), axis=1, index_element_type=DType.I64, outputs=2)
    return node.build.Squeeze(top.node.out_port(1), node.list([1]))


def label_names(node: OnnxNode, texts: str, integers: str) -> tuple[str, ...] | tuple[int, ...]:
    """Return the class labels; ModelError unless one of the two attributes has some."""
    names = node.texts(texts, ()) or node.integers(integers, ())
    if not names:
        raise ModelError(f"{node.kind}: {texts} or {integers} must name the classes, got neither")
    return names


def labels(node: OnnxNode, names: Sequence[str] | Sequence[int], position: OutPort) -> OutPort:
    """Return the labels at indices [rows]: texts or i64."""
    table = named(node, names)
    return node.build.Gather(table, position, node.scalar(0))


def named(node: OnnxNode, names: Sequence[str] | Sequence[int]) -> OutPort:
    """Return a constant of texts or i64."""
    if names and isinstance(names[0], str):
        return node.build.const(np.array(names, object), DType.STRING)
    return node.build.const(np.array(names, np.int64), DType.I64)


def one_of_two(node: OnnxNode, names: Sequence[str] | Sequence[int], score: OutPort, least: float) -> OutPort:
    """Return the second label where a score [rows, 1] is above `least`, else the first."""
    above = node.build.Greater(score, node.like(least, score))
    return labels(node, names, node.build.Squeeze(node.cast(above, DType.I64), node.list([1])))
