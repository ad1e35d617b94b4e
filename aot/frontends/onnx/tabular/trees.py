"""Ensembles of trees of domain ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.frontends.onnx.tabular.scores import (
    ML,
    TRANSFORMS,
    first_largest,
    label_names,
    labels,
    one_of_two,
    pair_of,
    rows_of,
    transform_of,
    transformed,
)
from aot.frontends.onnx.tabular.tree_nodes import EQ, GT, GTE, LEQ, LT, MEMBER, MODES, NEQ, Branches, Weights, forest
from aot.ir.graph import OutPort
from aot.ir.types import Array, numpy_dtype
from aot.opset.estimators.trees import Aggregate
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")  # names by their number in TreeEnsemble-5
LEAF = -1
NAMES = {
    "BRANCH_LEQ": LEQ,
    "BRANCH_LT": LT,
    "BRANCH_GTE": GTE,
    "BRANCH_GT": GT,
    "BRANCH_EQ": EQ,
    "BRANCH_NEQ": NEQ,
    "LEAF": LEAF,
}


@onnx("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(node: OnnxNode, x: OutPort) -> OutPort:
    """Scores [rows, n_targets] of f32. One target is transformed by PROBIT only, as in ONNX Runtime."""
    targets, dtype = node.integer("n_targets"), _compared_type(x)
    branches, weights = _listed(node, "target", dtype)
    aggregate = AGGREGATES[node.choice("aggregate_function", {a: i for i, a in enumerate(AGGREGATES)}, "SUM")]
    scores = _scores(node, rows_of(node, x, dtype), branches, weights, targets, aggregate)
    finished = _finished(node, scores, aggregate, len(branches.roots), _attribute(node, "base_values", dtype))
    transform = transform_of(node)
    finished = finished if targets == 1 and transform != "PROBIT" else transformed(node, finished, transform)
    return node.cast(finished, DType.F32)


@onnx("TreeEnsemble", domain=ML)
def tree_ensemble(node: OnnxNode, x: OutPort) -> OutPort:
    """Scores [rows, n_targets] of x's type; f16 is computed in f32."""
    node.refuse(x.type.dtype not in (DType.F16, DType.F32, DType.F64), f"features are floats, got {x.type.dtype.value}")
    targets, dtype = node.integer("n_targets", 1), _compared_type(x)
    aggregate = _numbered(node, "aggregate_function", AGGREGATES, 1)
    transform = _numbered(node, "post_transform", TRANSFORMS, 0)
    branches, weights = _indexed(node, dtype)
    scores = _scores(node, rows_of(node, x, dtype), branches, weights, targets, aggregate)
    finished = _finished(node, scores, aggregate, len(branches.roots), np.zeros(0))
    finished = finished if targets == 1 and transform != "PROBIT" else transformed(node, finished, transform)
    return node.cast(finished, x.type.dtype)


@onnx("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(node: OnnxNode, x: OutPort) -> tuple[OutPort, OutPort]:
    """Labels [rows] and scores [rows, classes] of f32."""
    names, dtype = label_names(node, "classlabels_strings", "classlabels_int64s"), _compared_type(x)
    branches, weights = _listed(node, "class", dtype)
    base, rows = _attribute(node, "base_values", dtype), rows_of(node, x, dtype)
    scores = _scores(node, rows, branches, weights, len(names), "SUM")
    if len(base) not in ((0, len(names)) if len(names) != 2 else (0, 1, 2)):
        raise ModelError(f"{node.kind}: base_values must have none or {len(names)} numbers, got {len(base)}")
    if len(names) <= 2:
        label, totals = _two_classes(node, scores, names, weights, base)
    else:
        totals = _plus(node, scores, base)
        label = labels(node, names, first_largest(node, _eligible(node, totals, rows, branches, weights, base)))
        totals = transformed(node, totals, transform_of(node))
    return label, node.cast(totals, DType.F32)


def _two_classes(
    node: OnnxNode, scores: OutPort, names: Sequence[str] | Sequence[int], weights: Weights, base: Array
) -> tuple[OutPort, OutPort]:
    """Return labels and scores of one or two classes; leaves may have one score for both, or one for each."""
    build, transform, used = node.build, transform_of(node), set(weights.targets.tolist())
    first = build.Slice(scores, node.list([0]), node.list([1]), node.list([1]), node.list([1]))
    unnamed = names if isinstance(names[0], str) and len(names) == 2 else (0, 1)
    if len(names) == 1:
        total = _plus(node, first, base)
        score = transformed(node, total, transform) if transform == "PROBIT" else total
        return one_of_two(node, unnamed, total, 0.0), score
    least = 0.0 if (weights.values < 0).any() else 0.5
    if 1 not in used and len(base) < 2:
        score = _plus(node, first, base)
        return one_of_two(node, names, score, least), pair_of(node, score, transform, mixed=not least)
    if 1 not in used:
        score, other = _plus(node, first, base[:1]), node.build.Multiply(first, node.like(0, first))
        pair = build.Concat(score, other, axis=1)
        return one_of_two(node, names, score, least), transformed(node, pair, transform)
    second = build.Slice(scores, node.list([1]), node.list([2]), node.list([1]), node.list([1]))
    if len(base) == 2:  # ONNX Runtime adds only the second of two base values
        second = _plus(node, first, base[1:])
        first = build.Negative(second) if 0 in used else build.Multiply(first, node.like(0, first))
    elif 0 in used:
        first = _plus(node, first, base)
    pair = transformed(node, build.Concat(first, second, axis=1), transform)
    if 0 in used:
        return one_of_two(node, unnamed, second, 0.0), pair
    return one_of_two(node, names, second, least), pair


def _eligible(
    node: OnnxNode, scores: OutPort, rows: OutPort, branches: Branches, weights: Weights, base: Array
) -> OutPort:
    """Return scores; classes that no leaf of a row contributes to get -inf, so that they cannot be the label."""
    classes, trees = scores.shape[1], len(branches.roots)
    assert isinstance(classes, int)
    pairs = np.unique(np.stack([weights.leaves, weights.targets], 1), axis=0)
    said = np.zeros((trees, classes), np.int64)
    np.add.at(said, (weights.trees[pairs[:, 0]], pairs[:, 1]), 1)
    leaves = np.bincount(weights.trees, minlength=trees)
    if len(base) or (said == leaves[:, None]).any(0).all():
        return scores
    ones = replace(weights, values=np.ones_like(weights.values))
    known = _scores(node, rows, branches, ones, classes, "SUM")
    return node.build.Select(node.build.Greater(known, node.like(0, known)), scores, node.like(-np.inf, scores))


def _scores(
    node: OnnxNode, rows: OutPort, branches: Branches, weights: Weights, targets: int, aggregate: str
) -> OutPort:
    """Return sums, minima or maxima [rows, targets]; 0 where no leaf of a row contributes to a target."""
    kind = {"MIN": Aggregate.MIN, "MAX": Aggregate.MAX}.get(aggregate, Aggregate.SUM)
    _within(node, "nodes_featureids", branches.features, node.extent(rows, 1, "the number of features"))
    ensemble = forest(node.kind, branches, weights, targets, kind.identity)
    tables = (
        (ensemble.features, DType.I32),
        (ensemble.thresholds, rows.type.dtype),
        (ensemble.children, DType.I32),
        (ensemble.nan_first, DType.BOOL),
        (ensemble.roots, DType.I32),
        (ensemble.weights, rows.type.dtype),
        (ensemble.columns, DType.I32),
    )
    build = node.build
    totals = build.TreeEnsemble(rows, *(build.const(*t) for t in tables), targets=targets, aggregate=kind)
    if kind is Aggregate.SUM:
        return totals
    return build.Select(build.Equal(totals, node.like(kind.identity, totals)), node.like(0, totals), totals)


def _finished(node: OnnxNode, scores: OutPort, aggregate: str, trees: int, base: Array) -> OutPort:
    """Apply averages and base values: one for all targets or one for each."""
    targets = scores.shape[1]
    if len(base) not in (0, 1, targets):
        raise ModelError(f"{node.kind}: base_values must have none or {targets} numbers, got {len(base)}")
    node.refuse(len(base) == 1 != targets, f"one base value for {targets} targets has no meaning")
    if aggregate == "AVERAGE":
        scores = node.build.Divide(scores, node.like(trees, scores))
    return _plus(node, scores, base)


def _plus(node: OnnxNode, scores: OutPort, base: Array) -> OutPort:
    return node.build.Add(scores, node.build.const(base, scores.type.dtype)) if len(base) else scores


def _compared_type(x: OutPort) -> DType:
    """Return the type for comparing thresholds: integers become f32, as in ONNX Runtime."""
    return DType.F64 if x.type.dtype is DType.F64 else DType.F32


def _attribute(node: OnnxNode, name: str, dtype: DType) -> Array:
    """Return the numbers of an attribute, or of the tensor that replaces it."""
    if node.has(f"{name}_as_tensor"):
        return node.tensor(f"{name}_as_tensor").reshape(-1).astype(numpy_dtype(dtype))
    return np.array(node.numbers(name, ()), np.float32).astype(numpy_dtype(dtype))


def _numbered(node: OnnxNode, name: str, names: Sequence[str], default: int) -> str:
    number = node.integer(name, default)
    if not 0 <= number < len(names):
        raise ModelError(f"{node.kind}: {name} must be in 0..{len(names) - 1}, got {number}")
    return names[number]


def _equally_long(node: OnnxNode, tables: dict[str, Array]) -> None:
    """Raise ModelError for attributes that describe different numbers of nodes or leaves."""
    sizes = {name: len(table) for name, table in tables.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise ModelError(f"{node.kind}: attributes must have equal lengths, got {listed}")


def _listed(node: OnnxNode, prefix: str, dtype: DType) -> tuple[Branches, Weights]:
    """Return nodes and weights of attributes that number trees and nodes; the first node of a tree is its root."""
    integers = ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
    nodes: dict[str, Array] = {f"nodes_{name}": np.array(node.integers(f"nodes_{name}"), np.int64) for name in integers}
    nodes["nodes_values"] = _attribute(node, "nodes_values", dtype)
    nodes["nodes_modes"] = np.array([_mode(node, name) for name in node.texts("nodes_modes")], np.int64)
    missing = np.array(node.integers("nodes_missing_value_tracks_true", ()), np.int64)
    nodes["nodes_missing_value_tracks_true"] = missing if len(missing) else np.zeros_like(nodes["nodes_modes"])
    _equally_long(node, nodes)
    _, feature, true, false = (nodes[f"nodes_{n}"] for n in ("treeids", "featureids", "truenodeids", "falsenodeids"))
    trees, names, modes = nodes["nodes_treeids"], nodes["nodes_nodeids"], nodes["nodes_modes"]
    if not len(trees):
        raise ModelError(f"{node.kind}: there must be at least one node, got none")
    positions = {pair: i for i, pair in enumerate(zip(trees.tolist(), names.tolist(), strict=True))}
    if len(positions) < len(trees):
        raise ModelError(f"{node.kind}: nodes must have different numbers, got {len(trees) - len(positions)} twice")
    inner = modes != LEAF
    numbers = np.where(inner, np.cumsum(inner) - 1, ~(np.cumsum(~inner) - 1))
    children = np.stack([_node_indices(node, positions, trees[inner], c[inner]) for c in (true, false)], 1)
    order, first = np.unique(trees, return_index=True)
    roots = np.sort(first)
    branches = Branches(
        modes[inner],
        feature[inner],
        nodes["nodes_values"][inner],
        nodes["nodes_missing_value_tracks_true"][inner] == 1,
        numbers[children],
        numbers[roots],
    )
    rank = np.argsort(np.argsort(first))[np.searchsorted(order, trees)]
    return branches, _leaves(node, prefix, dtype, positions, numbers, rank[~inner])


def _leaves(
    node: OnnxNode, prefix: str, dtype: DType, positions: dict[tuple[int, int], int], numbers: Array, trees: Array
) -> Weights:
    """Return the weights of leaves; weights of inner nodes have no effect."""
    names = [f"{prefix}_{name}" for name in ("treeids", "nodeids", "ids")]
    tables: dict[str, Array] = {name: np.array(node.integers(name), np.int64) for name in names}
    tables[f"{prefix}_weights"] = _attribute(node, f"{prefix}_weights", dtype)
    _equally_long(node, tables)
    tree, name, target, value = tables.values()
    at = numbers[_node_indices(node, positions, tree, name)]
    leaf = at < 0
    return Weights(~at[leaf], target[leaf], value[leaf], len(trees), trees)


def _node_indices(node: OnnxNode, positions: dict[tuple[int, int], int], trees: Array, names: Array) -> Array:
    """Return the indices of nodes in the list."""
    pairs = list(zip(trees.tolist(), names.tolist(), strict=True))
    indices = [positions.get(pair, -1) for pair in pairs]
    if -1 in indices:
        tree, name = pairs[indices.index(-1)]
        raise ModelError(f"{node.kind}: nodes that are referred to must exist, got node {name} of tree {tree}")
    return np.array(indices, np.int64)


def _mode(node: OnnxNode, name: str) -> int:
    if name not in NAMES:
        raise ModelError(f"{node.kind}: nodes_modes must be of {', '.join(NAMES)}, got {name!r}")
    return NAMES[name]


def _indexed(node: OnnxNode, dtype: DType) -> tuple[Branches, Weights]:
    """Return nodes and weights of attributes that refer to nodes and leaves by index."""
    wide = numpy_dtype(dtype)
    integers = ("featureids", "truenodeids", "falsenodeids", "trueleafs", "falseleafs")
    nodes: dict[str, Array] = {f"nodes_{name}": np.array(node.integers(f"nodes_{name}"), np.int64) for name in integers}
    nodes["nodes_splits"] = node.tensor("nodes_splits").reshape(-1).astype(wide)
    nodes["nodes_modes"] = node.tensor("nodes_modes").reshape(-1).astype(np.int64)
    missing = np.array(node.integers("nodes_missing_value_tracks_true", ()), np.int64)
    nodes["nodes_missing_value_tracks_true"] = missing if len(missing) else np.zeros_like(nodes["nodes_modes"])
    _equally_long(node, nodes)
    feature, true, false, true_leaf, false_leaf, splits, modes, missing = nodes.values()
    _within(node, "nodes_modes", modes, len(MODES))
    values, targets = node.tensor("leaf_weights").reshape(-1).astype(wide), node.integers("leaf_targetids")
    _equally_long(node, {"leaf_weights": values, "leaf_targetids": np.array(targets)})
    children = np.stack([true, false], 1)
    leaf = np.stack([true_leaf, false_leaf], 1) != 0
    roots = np.array(node.integers("tree_roots"), np.int64)
    _within(node, "children that are leaves", children[leaf], len(values))
    _within(node, "children that are nodes", children[~leaf], len(modes))
    _within(node, "tree_roots", roots, len(modes))
    sets = _members(node, np.flatnonzero(modes == MEMBER), wide)
    refs = np.where(leaf, ~children, children)
    branches = Branches(modes, feature, splits, missing == 1, refs, roots, sets)
    leaves = np.arange(len(values))
    return branches, Weights(leaves, np.array(targets, np.int64), values, len(values), np.zeros_like(leaves))


def _members(node: OnnxNode, nodes: Array, dtype: np.dtype[np.generic]) -> dict[int, Array]:
    """Return the sets of MEMBER nodes, in order; NaN ends each of them."""
    values = node.tensor("membership_values").reshape(-1).astype(dtype) if len(nodes) else np.zeros(0)
    ends = np.flatnonzero(np.isnan(values))
    if len(ends) != len(nodes):
        raise ModelError(f"{node.kind}: membership_values must have a NaN for each of {len(nodes)}, got {len(ends)}")
    starts = [0, *(ends[:-1] + 1).tolist()]
    return {int(i): values[a:b] for i, a, b in zip(nodes, starts, ends, strict=False)}


def _within(node: OnnxNode, what: str, indices: Array, count: int) -> None:
    wrong = indices[(indices < 0) | (indices >= count)]
    if len(wrong):
        raise ModelError(f"{node.kind}: {what} must be in 0..{count - 1}, got {wrong[0]}")
