"""Nodes of trees of ai.onnx.ml, turned into comparisons `x <= threshold` of a `tree_tables.Forest`.

x < t         x <= the number before t               x >= t    the same, branches exchanged
x == t        t' < x <= t: two comparisons           x != t    the same, branches exchanged
x in {..}     a search among the bounds of the values
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array
from aot.opset.estimators.tree_tables import Forest
from aot.runtime.errors import ModelError, UnsupportedError

LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = MODES = range(7)  # in the numbering of TreeEnsemble-5
MAX_LEVELS = 4096  # levels of a tree at most
MAX_TABLE_RATIO = 64  # maximum ratio of a table of weights to the weights in the file
MAX_TARGETS = 1 << 20


@dataclass(frozen=True, slots=True)
class Branches:
    """Nodes that branch. A child >= 0 is a node, < 0 is leaf ~child; `members` are the values of MEMBER nodes."""

    modes: Array
    features: Array
    values: Array
    missing: Array  # true if NaN goes to the true branch
    children: Array  # [nodes, 2]: true, false
    roots: Array
    members: dict[int, Array] = field(default_factory=dict[int, Array])


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of leaves: `values[i]` is added to target `targets[i]` if a row reaches leaf `leaves[i]`.

    `trees`: the tree of each leaf, if the file has it.
    """

    leaves: Array
    targets: Array
    values: Array
    count: int  # number of all leaves
    trees: Array


def forest(kind: str, branches: Branches, weights: Weights, targets: int, fill: float) -> Forest:
    """Return the tables of an ensemble; `fill`: contribution of a leaf to targets that it has no weight for.

    ModelError for nodes that form no trees; UnsupportedError for trees that are too deep, or for too many targets.
    """
    order, leaf_trees = _visited(kind, branches, weights.count)
    first, width = _columns(kind, weights, leaf_trees, len(branches.roots), targets)
    if weights.count * width > max(1 << 20, MAX_TABLE_RATIO * len(weights.values)):
        raise UnsupportedError(f"{kind}: too many targets for {len(weights.values)} weights, got {width}")
    table = np.full((weights.count, width), fill, weights.values.dtype)
    cells = weights.leaves, weights.targets - first[np.maximum(leaf_trees, 0)][weights.leaves]
    table[cells] = 0
    np.add.at(table, cells, weights.values)
    return _compared(branches, order, table, first)


def _visited(kind: str, branches: Branches, leaves: int) -> tuple[Array, Array]:
    """Return the reachable nodes by tree and level; and for each leaf its tree, -1 for none, -2 for several."""
    trees, levels = (np.full(len(branches.modes), -1) for _ in range(2))
    leaf_trees = np.full(leaves, -1)
    refs, tree = branches.roots, np.arange(len(branches.roots))
    for level in range(MAX_LEVELS + 1):
        leaf = refs < 0
        known, new = leaf_trees[~refs[leaf]], tree[leaf]
        leaf_trees[~refs[leaf]] = np.where((known == -1) | (known == new), new, -2)
        nodes, tree = refs[~leaf], tree[~leaf]
        if not len(nodes):
            return np.lexsort((levels, trees))[np.count_nonzero(trees < 0) :], leaf_trees
        again = nodes[trees[nodes] >= 0]
        if len(again) or len(np.unique(nodes)) < len(nodes):
            node = again[0] if len(again) else nodes[np.bincount(nodes)[nodes] > 1][0]
            raise ModelError(f"{kind}: a node must have one parent at most, got several of node {node}")
        trees[nodes], levels[nodes] = tree, level
        refs, tree = branches.children[nodes].reshape(-1), np.repeat(tree, 2)
    raise UnsupportedError(f"{kind}: trees of at most {MAX_LEVELS} levels are supported, got a deeper one")


def _columns(kind: str, weights: Weights, leaf_trees: Array, trees: int, targets: int) -> tuple[Array, int]:
    """Return the first target that each tree's leaves add to; and the number of targets from there, equal for all."""
    if not 0 < targets <= MAX_TARGETS:
        raise UnsupportedError(f"{kind}: 1 to {MAX_TARGETS} targets are supported, got {targets}")
    wrong = weights.targets[(weights.targets < 0) | (weights.targets >= targets)]
    if len(wrong):
        raise ModelError(f"{kind}: a leaf's target must be in 0..{targets - 1}, got {wrong[0]}")
    owner = leaf_trees[weights.leaves]
    if (leaf_trees == -2).any():  # a leaf that several trees share has one position only
        return np.zeros(trees, np.int64), targets
    low, high = np.full(trees, targets), np.full(trees, -1)
    used = owner >= 0
    np.minimum.at(low, owner[used], weights.targets[used])
    np.maximum.at(high, owner[used], weights.targets[used])
    width = max(int((high - low).max(initial=0)) + 1, 1)
    return np.minimum(low, targets - width), width


@dataclass(slots=True)
class _Tables:
    """Comparisons under construction: node i begins at comparison `made[i]`."""

    features: list[int] = field(default_factory=list[int])
    thresholds: list[float] = field(default_factory=list[float])
    children: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    nan_first: list[bool] = field(default_factory=list[bool])

    def add(self, feature: int, threshold: float, children: tuple[int, int], nan_first: bool) -> None:
        self.features.append(feature)
        self.thresholds.append(threshold)
        self.children.append(children)
        self.nan_first.append(nan_first)


def _compared(branches: Branches, order: Array, table: Array, columns: Array) -> Forest:
    dtype = branches.values.dtype
    sets = {int(i): _bounds(branches, int(i)) for i in order[branches.modes[order] >= EQ]}
    sizes = np.ones(len(branches.modes) + 1, np.int64)
    for i, members in sets.items():
        sizes[i] = max(len(members), 1)
    starts = np.full(len(branches.modes), -1)
    starts[order] = np.cumsum(sizes[order]) - sizes[order]
    refs = np.where(branches.children >= 0, starts[np.maximum(branches.children, 0)], branches.children)
    if sets:
        features, thresholds, children, nan_first = _searches(branches, order, refs, sets)
    else:
        features = branches.features[order]
        thresholds, children, nan_first = _plain(branches, order, refs)
    roots = np.where(branches.roots >= 0, starts[np.maximum(branches.roots, 0)], branches.roots)
    return Forest(
        features.astype(np.int32),
        thresholds.astype(dtype),
        children.astype(np.int32),
        nan_first.astype(np.bool_),
        roots.astype(np.int32),
        table,
        columns.astype(np.int32),
    )


def _plain(branches: Branches, order: Array, refs: Array) -> tuple[Array, Array, Array]:
    """Return thresholds, children and `nan_first` of nodes that compare by order."""
    modes, values, missing = branches.modes[order], branches.values[order], branches.missing[order]
    exchanged = (modes == GTE) | (modes == GT)
    before = np.nextafter(values, values.dtype.type(-np.inf))
    before = np.where(np.isneginf(values), np.nan, before)  # nothing is <= NaN
    thresholds = np.where((modes == LT) | (modes == GTE), before, values)
    thresholds = np.where(exchanged & np.isnan(values), np.inf, thresholds)  # x > NaN is false for all x
    children = np.where(exchanged[:, None], refs[order][:, ::-1], refs[order])
    return thresholds, children, np.where(exchanged, ~missing, missing)


def _bounds(branches: Branches, node: int) -> Array:
    """Return the bounds of a set, ascending: a number is a member if it is above an odd number of them."""
    values = branches.members.get(node, branches.values[node : node + 1])
    values = np.unique(values[~np.isnan(values)])
    before = np.nextafter(values, values.dtype.type(-np.inf))
    before = np.where(np.isneginf(values), np.nan, before)
    return np.stack([before, values], 1).reshape(-1)


def _searches(
    branches: Branches, order: Array, refs: Array, sets: dict[int, Array]
) -> tuple[Array, Array, Array, Array]:
    """Return all nodes, with tests for membership expanded to balanced trees of comparisons."""
    comparisons = _Tables()
    thresholds, children, nan_first = _plain(branches, order, refs)
    for k, i in enumerate(order.tolist()):
        feature = int(branches.features[i])
        if i not in sets:
            comparisons.add(
                feature, float(thresholds[k]), (int(children[k, 0]), int(children[k, 1])), bool(nan_first[k])
            )
            continue
        yes, no = refs[i].tolist()[::-1] if branches.modes[i] == NEQ else refs[i].tolist()
        known = sets[i].tolist()
        member = bool(branches.missing[i]) and branches.modes[i] != NEQ  # NaN differs from all values
        if known:
            _search(comparisons, feature, known, (no, yes), 1 if member else len(known))
        else:
            comparisons.add(feature, float("nan"), (yes, no), member)
    return (
        np.array(comparisons.features),
        np.array(comparisons.thresholds),
        np.array(comparisons.children),
        np.array(comparisons.nan_first),
    )


def _search(comparisons: _Tables, feature: int, known: Sequence[float], ends: tuple[int, int], nan: int) -> None:
    """Append a binary search among ascending bounds. A value above k of them goes to ends[k % 2]; NaN: k = `nan`."""

    def between(low: int, high: int) -> int:
        if low == high:
            return ends[low % 2]
        at, middle = len(comparisons.features), (low + high) // 2
        comparisons.add(feature, known[middle], (0, 0), nan <= middle)
        comparisons.children[at] = between(low, middle), between(middle + 1, high)
        return at

    between(0, len(known))
