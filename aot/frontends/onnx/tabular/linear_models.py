"""Linear models and support vector machines of domain ai.onnx.ml. They compute in f32, as ONNX Runtime does."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.frontends.onnx.tabular.scores import (
    ML,
    first_largest,
    label_names,
    labels,
    one_of_two,
    pair_of,
    rows_of,
    transform_of,
    transformed,
)
from aot.ir.graph import OutPort
from aot.ir.types import Array
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

MIN_PROBABILITY = 1e-7  # lower bound of a probability of two classes
MAX_PAIRED_CLASSES = 256  # limit for probabilities by pairs of classes: their matrices grow with the third power
MAX_PAIR_ELEMENTS = 1 << 26  # elements at most of the matrix from support vectors to pairs of classes


@onnx("LinearRegressor", domain=ML)
def linear_regressor(node: OnnxNode, x: OutPort) -> OutPort:
    """x coefficients^T + intercepts [rows, targets]. One target is transformed by PROBIT only, as ONNX Runtime does."""
    targets, transform = node.integer("targets", 1), transform_of(node)
    scores = _linear(node, rows_of(node, x, DType.F32), "coefficients", targets, node.numbers("intercepts", ()))
    return scores if targets == 1 and transform != "PROBIT" else transformed(node, scores, transform)


@onnx("LinearClassifier", domain=ML)
def linear_classifier(node: OnnxNode, x: OutPort) -> tuple[OutPort, OutPort]:
    """Labels [rows] and scores [rows, classes]; one score with two labels becomes 1 - s and s."""
    names, transform = label_names(node, "classlabels_strings", "classlabels_ints"), transform_of(node)
    rows, intercepts = rows_of(node, x, DType.F32), node.numbers("intercepts", ())
    count = len(intercepts) or len(node.numbers("coefficients")) // max(node.extent(rows, 1, "the features"), 1)
    scores = _linear(node, rows, "coefficients", count, intercepts)
    if count > 1:
        if len(names) < count:
            raise ModelError(f"LinearClassifier: each of {count} scores must have a label, got {len(names)}")
        return labels(node, names, first_largest(node, scores)), transformed(node, scores, transform)
    if len(names) != 2:
        raise ModelError(f"LinearClassifier: one score must have two labels, got {len(names)}")
    return one_of_two(node, names, scores, 0.0), pair_of(node, scores, transform, mixed=False)


def _matrix(node: OnnxNode, name: str, rows: int, columns: int) -> Array:
    """Return a matrix that an attribute lists row by row; ModelError for another number of elements."""
    matrix = np.array(node.numbers(name), np.float32)
    if rows < 1 or matrix.size != rows * columns:
        raise ModelError(f"{node.kind}: {name} must have {rows} x {columns} numbers, got {matrix.size}")
    return matrix.reshape(rows, columns)


def _linear(node: OnnxNode, x: OutPort, name: str, count: int, offsets: Sequence[float]) -> OutPort:
    """Return x [rows, features] times a matrix [count, features], plus an offset for all results or one for each."""
    matrix = _matrix(node, name, count, node.extent(x, 1, "the number of features"))
    if len(offsets) not in (0, 1, count):
        raise ModelError(f"{node.kind}: there must be an offset for each of {count} scores, got {len(offsets)}")
    product = node.build.MatMul(x, node.build.const(matrix, DType.F32), transpose_b=True)
    return node.build.Add(product, node.build.const(np.array(offsets), DType.F32)) if len(offsets) else product


@onnx("SVMRegressor", domain=ML)
def svm_regressor(node: OnnxNode, x: OutPort) -> OutPort:
    """kernel(x, vectors) coefficients + rho [rows, 1]; its sign, 1 or -1, for `one_class`."""
    build, rows, count = node.build, rows_of(node, x, DType.F32), node.integer("n_supports", 0)
    rho = node.numbers("rho")[:1]
    if count > 0:
        scores = _linear(node, _kernel(node, rows, count), "coefficients", 1, rho)
    else:
        scores = _linear(node, rows, "coefficients", 1, rho)
    if node.flag("one_class"):
        above = build.Greater(scores, node.like(0, scores))
        return build.Select(above, node.like(1, scores), node.like(-1, scores))
    return scores


def _kernel(node: OnnxNode, x: OutPort, count: int) -> OutPort:
    """Return the kernel of each row with each support vector [rows, count]."""
    build = node.build
    vectors = build.const(_matrix(node, "support_vectors", count, node.extent(x, 1, "the features")), DType.F32)
    kind = node.choice("kernel_type", {k: k for k in ("LINEAR", "POLY", "RBF", "SIGMOID")}, "LINEAR")
    gamma, shift, degree = (*node.numbers("kernel_params", ()), 0.0, 0.0, 0.0)[:3]
    if kind == "RBF":
        difference = build.Subtract(build.Unsqueeze(x, node.list([1])), vectors)
        distance = build.ReduceSum(build.Multiply(difference, difference), node.list([2]))
        return build.Exp(build.Multiply(distance, node.like(-gamma, distance)))
    dot = build.MatMul(x, vectors, transpose_b=True)
    if kind == "LINEAR":
        return dot
    scaled = build.Add(build.Multiply(dot, node.like(gamma, dot)), node.like(shift, dot))
    return build.Tanh(scaled) if kind == "SIGMOID" else build.Power(scaled, node.like(degree, scaled))


@onnx("SVMClassifier", domain=ML)
def svm_classifier(node: OnnxNode, x: OutPort) -> tuple[OutPort, OutPort]:
    """Labels [rows]; scores [rows, n]: a probability for each class, or a score for each pair of classes."""
    names, transform = label_names(node, "classlabels_strings", "classlabels_ints"), transform_of(node)
    rows, sizes = rows_of(node, x, DType.F32), node.integers("vectors_per_class", ())
    if sum(sizes) <= 0:
        return _linear_svm(node, rows, names, transform)
    node.refuse(
        len(names) > MAX_PAIRED_CLASSES, f"at most {MAX_PAIRED_CLASSES} classes are supported, got {len(names)}"
    )
    if len(sizes) != len(names) or len(sizes) < 2 or min(sizes) < 0:
        raise ModelError(f"SVMClassifier: vectors_per_class must have {len(names)} numbers, two or more, got {sizes}")
    build, pairs = node.build, list(combinations(range(len(names)), 2))
    between = _pair_scores(node, rows, sizes, pairs)
    votes = np.zeros((2, len(pairs), len(names)), np.float32)
    for k, (i, j) in enumerate(pairs):
        votes[0, k, i] = votes[1, k, j] = 1
    won = build.Convert(build.Greater(between, node.like(0, between)), destination_type=DType.F32)
    counts = build.Add(
        build.MatMul(won, build.const(votes[0], DType.F32)),
        build.MatMul(build.Subtract(node.like(1, won), won), build.const(votes[1], DType.F32)),
    )
    label, scores = labels(node, names, first_largest(node, counts)), node.cast(between, DType.F32)
    slopes, shifts = (np.array(node.numbers(name, ()), np.float32) for name in ("prob_a", "prob_b"))
    if len(slopes):
        if min(len(slopes), len(shifts)) < len(pairs) or len(slopes) != len(shifts):
            raise ModelError(f"SVMClassifier: prob_a and prob_b must have {len(pairs)} numbers, got {len(slopes)}")
        return label, transformed(node, _probabilities(node, scores, slopes, shifts, pairs, len(names)), transform)
    if len(names) > 2:
        return label, transformed(node, scores, transform)
    return label, pair_of(node, scores, transform, mixed=transform == "NONE")


def _pair_scores(node: OnnxNode, rows: OutPort, sizes: Sequence[int], pairs: Sequence[tuple[int, int]]) -> OutPort:
    """Return a score for each pair of classes [rows, pairs], above 0 for the first; f64, since signs choose labels."""
    build, count = node.build, sum(sizes)
    coefficients = _matrix(node, "coefficients", len(sizes) - 1, count)
    node.refuse(
        count * len(pairs) > MAX_PAIR_ELEMENTS, f"too many vectors of pairs of classes, got {count * len(pairs)}"
    )
    rho = np.array(node.numbers("rho"), np.float64)[: len(pairs)]
    if len(rho) < len(pairs):
        raise ModelError(f"SVMClassifier: rho must have {len(pairs)} numbers, got {len(rho)}")
    ends = np.cumsum(sizes)
    own = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    table = np.zeros((count, len(pairs)))
    for k, (i, j) in enumerate(pairs):
        table[own[i], k] = coefficients[j - 1, own[i]]
        table[own[j], k] = coefficients[i, own[j]]
    kernel = node.cast(_kernel(node, rows, count), DType.F64)
    return build.Add(build.MatMul(kernel, build.const(table, DType.F64)), build.const(rho, DType.F64))


def _probabilities(
    node: OnnxNode, scores: OutPort, slopes: Array, shifts: Array, pairs: Sequence[tuple[int, int]], classes: int
) -> OutPort:
    """Return probabilities of classes [rows, classes], from a logistic function of the score of each pair."""
    build, count = node.build, len(pairs)
    value = build.Multiply(scores, build.const(slopes[:count], DType.F32))
    logistic = build.Sigmoid(build.Negative(build.Add(value, build.const(shifts[:count], DType.F32))))
    first = build.Clamp(logistic, min=MIN_PROBABILITY, max=float(np.float32(1) - np.float32(MIN_PROBABILITY)))
    positions = np.full((classes, classes), 2 * count)
    for k, (i, j) in enumerate(pairs):
        positions[i, j], positions[j, i] = k, count + k
    whole = build.Concat(first, build.Subtract(node.like(1, first), first), axis=1)
    padded = build.Pad(whole, node.list([0, 0]), node.list([0, 1]), node.like(0, whole))
    return build.PairwiseCoupling(build.Gather(padded, build.const(positions, DType.I64), node.scalar(1)))


def _linear_svm(
    node: OnnxNode, rows: OutPort, names: Sequence[str] | Sequence[int], transform: str
) -> tuple[OutPort, OutPort]:
    """Return labels and scores without support vectors, by a row of coefficients for each class."""
    build, rho = node.build, node.numbers("rho")[:1]
    scores = _linear(node, rows, "coefficients", len(names), rho)
    position = first_largest(node, scores)
    if len(names) == 2 and not node.numbers("prob_a", ()):
        largest = build.ReduceMax(scores, node.list([1]))
        positive = min(node.numbers("coefficients")) >= 0
        high = (build.GreaterEqual if positive else build.Greater)(largest, node.like(0.5 if positive else 0, largest))
        position = build.Select(high, node.scalar(1), position)
    if len(names) > 1 or transform == "PROBIT":
        scores = transformed(node, scores, transform)
    return labels(node, names, position), scores
