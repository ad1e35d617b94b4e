"""Tables of decision trees in the form that kernels read, from nodes that refer to each other.

    COMPLETE   every tree has 2^depth leaves and needs no references: the children of slot k are 2k and 2k + 1
    LINKED     the two children of a node are adjacent: the next node is link + (x > threshold); a leaf links to itself
    masks      a tree of at most 32 leaves: a feature above a node's threshold excludes the leaves of its left branch

Comparisons are made on integers that are ordered as the floats are (`ordered`), so that NaN takes the node's branch.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array
from aot.runtime.errors import ModelError, ShapeError

MAX_MASK_LEAVES = 32
MAX_COMPLETE_RATIO = 4  # complete trees may take this many times the memory of linked ones
MAX_COMPLETE_LEVELS = 12  # most levels of complete trees


@dataclass(frozen=True, slots=True)
class Forest:
    """Nodes of all trees: an input row goes to child 0 if x[feature] <= threshold, else to child 1.

    A child c >= 0 is node c, which comes after its parent; c < 0 is leaf ~c. `nan_first`: NaN goes to child 0.
    Leaf l of tree t adds weights[l] to the targets from columns[t] on.
    """

    features: Array  # i32 [nodes]
    thresholds: Array  # f32 or f64 [nodes]
    children: Array  # i32 [nodes, 2]
    nan_first: Array  # boolean [nodes]
    roots: Array  # i32 [trees]
    weights: Array  # [leaves, width]
    columns: Array  # i32 [trees]

    def check(self, name: str, features: int, targets: int) -> None:
        """Raise ModelError for indices out of range or not after their parent, ShapeError for wrong shapes."""
        nodes, leaves = len(self.features), len(self.weights)
        shapes = {
            "thresholds": (self.thresholds.shape, (nodes,)),
            "children": (self.children.shape, (nodes, 2)),
            "nan_first": (self.nan_first.shape, (nodes,)),
            "columns": (self.columns.shape, self.roots.shape),
        }
        for table, (shape, expected) in shapes.items():
            if shape != expected:
                raise ShapeError(f"{name}: {table} must have shape {list(expected)}, got {list(shape)}")
        if self.roots.ndim != 1 or not self.roots.size or self.weights.ndim != 2 or not self.weights.size:
            raise ShapeError(f"{name}: there must be at least one tree and one leaf, got {self.roots.shape}")
        _inside(name, "features", self.features, 0, features)
        _inside(name, "columns", self.columns, 0, targets - self.weights.shape[1] + 1)
        for table, indices in (("children", self.children), ("roots", self.roots)):
            _inside(name, table, indices, -leaves, nodes)
        early = np.nonzero((self.children >= 0) & (self.children <= np.arange(nodes)[:, None]))
        if len(early[0]):
            node = int(early[0][0])
            raise ModelError(f"{name}: a child must follow its parent, got {self.children[node]} of node {node}")

    @property
    def depths(self) -> Array:
        """Most comparisons that a row needs, for each tree."""
        depths = [0] * (len(self.features) + 1)  # the last entry is for all leaves
        children: list[list[int]] = np.maximum(self.children, -1).tolist()
        for node in range(len(children) - 1, -1, -1):
            low, high = children[node]
            depths[node] = 1 + max(depths[low], depths[high])
        return np.array(depths)[np.maximum(self.roots, -1)]


def _inside(name: str, table: str, values: Array, low: int, high: int) -> None:
    wrong = values[(values < low) | (values >= high)]
    if wrong.size:
        raise ModelError(f"{name}: {table} must be in {low}..{high - 1}, got {wrong.flat[0]}")


def ordered(x: Array, nan_first: bool | Array) -> Array:
    """Return integers in the order of floats: 0 equals -0; NaN is before or after all others."""
    wide = np.int32 if x.dtype.itemsize == 4 else np.int64
    limits = np.iinfo(wide)
    bits = np.ascontiguousarray(x).view(wide)
    bits = np.where(bits < 0, bits ^ limits.max, bits)
    bits = np.where(bits == -1, 0, bits)
    return np.where(np.isnan(x), np.where(nan_first, limits.min, limits.max), bits).astype(wide)


@dataclass(frozen=True, slots=True)
class Packed:
    """Tables of one form. `links` are features of COMPLETE trees, (feature, link) pairs of LINKED ones.

    `depths`: most comparisons of any tree of each group; `depth`: of all groups.
    """

    complete: bool
    depth: int
    thresholds: Array
    links: Array
    roots: Array
    weights: Array
    columns: Array
    depths: Array
    nan_first: tuple[bool, ...]  # one for each copy of the features in the compared rows


@dataclass(frozen=True, slots=True)
class Masks:
    """Nodes of tree t are starts[t] .. starts[t + 1] - 1. A row's leaf is the lowest bit that no node excludes.

    `bits`: leaves that remain if the feature exceeds the threshold. weights [trees * 32, width].
    """

    starts: Array
    features: Array
    thresholds: Array
    bits: Array
    weights: Array


def pack(forest: Forest, features: int, group: int, zero: float) -> tuple[Packed, Masks | None]:
    """Choose the form, and pad to a multiple of `group` trees with single-leaf trees that add `zero`."""
    if not len(forest.features):  # an unused node, so that loads have one to index
        none = np.zeros(1, np.int32)
        node = np.zeros(1, forest.thresholds.dtype)
        forest = replace(forest, features=none, thresholds=node, nan_first=none != 0, children=np.full((1, 2), -1))
    flags = np.unique(forest.nan_first)
    firsts = tuple(bool(flag) for flag in flags) or (False,)
    columns = forest.features + features * (forest.nan_first if len(firsts) == 2 else 0)
    limits = ordered(forest.thresholds, nan_first=True)  # only a NaN that comes first is <= NaN
    masks = _masks(forest, columns, limits)
    forest = _padded(forest, -len(forest.roots) % group, zero)
    depths = forest.depths.reshape(-1, group).max(1).astype(np.int32)
    depth, trees = int(depths.max()), len(forest.roots)
    slots, real = trees << min(depth, MAX_COMPLETE_LEVELS + 1), len(forest.features) + len(forest.weights)
    if 0 < depth <= MAX_COMPLETE_LEVELS and slots <= MAX_COMPLETE_RATIO * real:
        return _complete(forest, columns, limits, depths, firsts), masks
    return _linked(forest, columns, limits, depths, firsts), masks


def _padded(forest: Forest, more: int, zero: float) -> Forest:
    weights = np.full((1 if more else 0, forest.weights.shape[1]), zero, forest.weights.dtype)
    return replace(
        forest,
        roots=np.concatenate([forest.roots, np.full(more, ~len(forest.weights), forest.roots.dtype)]),
        weights=np.concatenate([forest.weights, weights]),
        columns=np.concatenate([forest.columns, np.zeros(more, forest.columns.dtype)]),
    )


def _complete(forest: Forest, columns: Array, limits: Array, depths: Array, firsts: tuple[bool, ...]) -> Packed:
    """Make all trees as deep as the deepest one: a leaf further up is repeated in all slots below it."""
    trees, most, depth = len(forest.roots), np.iinfo(limits.dtype).max, int(depths.max())
    features = np.zeros((trees, 1 << depth), np.int32)
    thresholds = np.full((trees, 1 << depth), most, limits.dtype)
    level = forest.roots.reshape(trees, 1)
    for d in range(depth):
        inner = level >= 0
        row = slice(1 << d, 2 << d)
        node = np.maximum(level, 0)
        features[:, row] = np.where(inner, columns[node], 0)
        thresholds[:, row] = np.where(inner, limits[node], most)
        below = np.where(inner[..., None], forest.children[node], level[..., None])
        level = below.reshape(trees, 2 << d)
    weights = forest.weights[~level].reshape(-1, forest.weights.shape[1])
    roots = np.arange(trees, dtype=np.int32)
    full = np.full_like(depths, depth)
    return Packed(True, depth, thresholds, features, roots, weights, forest.columns, full, firsts)


def _linked(forest: Forest, columns: Array, limits: Array, depths: Array, firsts: tuple[bool, ...]) -> Packed:
    """Link slots: 2i and 2i + 1 are the children of node i, the roots follow; no key exceeds a leaf's threshold.

    The link of a leaf is its own slot; its weights are at the same index. No link leads to the last slot: that link + 1
    is always one of the slots is seen from the greatest link.
    """
    slots = np.concatenate([forest.children.reshape(-1), forest.roots])
    inner, node = slots >= 0, np.maximum(slots, 0)
    own = np.arange(len(slots))
    links = np.stack([np.where(inner, columns[node], 0), np.where(inner, 2 * slots, own)], 1)
    thresholds = np.where(inner, limits[node], np.iinfo(limits.dtype).max)
    weights = np.where(inner[:, None], 0, forest.weights[np.where(inner, 0, ~slots)])
    roots = own[len(slots) - len(forest.roots) :].astype(np.int32)
    return Packed(
        False,
        int(depths.max()),
        np.append(thresholds, 0).astype(limits.dtype),
        np.append(links, [[0, 0]], 0).astype(np.int32),
        roots,
        np.append(weights, weights[:1] * 0, 0).astype(forest.weights.dtype),
        forest.columns,
        depths,
        firsts,
    )


def _masks(forest: Forest, columns: Array, limits: Array) -> Masks | None:
    """Return the masks; None if a tree has too many leaves, or nodes with more than one parent."""
    used = np.concatenate([forest.children.reshape(-1), forest.roots])
    used = used[used >= 0]
    if len(np.unique(used)) < len(used):
        return None
    children, starts = forest.children.tolist(), [0]
    order: list[int] = []
    bits: list[int] = []
    weights = np.zeros((len(forest.roots), MAX_MASK_LEAVES, forest.weights.shape[1]), forest.weights.dtype)
    for tree, root in enumerate(forest.roots.tolist()):
        leaves, first = _leaves(children, root)
        if leaves is None:
            return None
        weights[tree, : len(leaves)] = forest.weights[leaves]
        for node, (low, middle) in first.items():
            order.append(node)
            bits.append(~(((1 << middle) - 1) & ~((1 << low) - 1)))
        starts.append(len(order))
    return Masks(
        np.array(starts, np.int32),
        columns[order].astype(np.int32),
        limits[order],
        np.array(bits, np.int64).astype(np.int32),
        weights.reshape(-1, forest.weights.shape[1]),
    )


def _leaves(children: list[list[int]], root: int) -> tuple[list[int] | None, dict[int, tuple[int, int]]]:
    """Return the leaves from left to right, and for each node the position of its first leaf and of its right child's.

    None instead of leaves if there are too many.
    """
    leaves: list[int] = []
    low: dict[int, int] = {}
    positions: dict[int, tuple[int, int]] = {}
    stack: list[tuple[int, bool]] = [(root, False)]
    while stack:
        at, middle = stack.pop()
        if at < 0:
            leaves.append(~at)
            if len(leaves) > MAX_MASK_LEAVES:
                return None, positions
        elif middle:
            positions[at] = low[at], len(leaves)
            stack.append((children[at][1], False))
        else:
            low[at] = len(leaves)
            stack += [(at, True), (children[at][0], False)]
    return leaves, positions
