"""Ensembles of decision trees over rows of features.

Rows are compared as integers that are ordered as floats are. Two algorithms, which add leaves in the same order:

    walks    GROUP_TREES trees of a row at a time, to hide the latency of their loads; for any number of rows
    masks    all nodes of a small tree, BLOCK_ROWS rows in vectors: no chains, no branches; for blocks of several rows
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.definition import Definition
from aot.codegen.ir.loops import Buffer, Const, Expr, Space, Var, cast, dense, prim, select
from aot.codegen.script.script import Scripted, array, lanes, loops, parallel
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.op import DecomposedOp, Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, TensorType
from aot.opset.estimators.tree_tables import MAX_MASK_LEAVES, Forest, ordered, pack
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError, UnsupportedError

GROUP_TREES = 8  # trees of a row that are walked together, to hide the latency of their loads
BLOCK_ROWS = 32  # rows of a block
MIN_MASK_ROWS = 4  # rows of a block from which on masks are faster than walks
MAX_TRANSPOSED_COLUMNS = 256  # columns up to which the transposed block stays in L1
MAX_UNROLLED_WEIGHTS = 8  # weights of a leaf up to which their additions are unrolled


class Aggregate(StrEnum):
    """Function that combines the weights of a row's leaves."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"

    @property
    def fn(self) -> str:
        return "add" if self is Aggregate.SUM else self.value

    @property
    def identity(self) -> float:
        return {"sum": 0.0, "min": float("inf"), "max": float("-inf")}[self.value]


@op("extension")
class TreeEnsemble(DecomposedOp):
    """Sums, minima or maxima of the leaves that each row x[i] reaches; ai.onnx.ml, see `tree_tables.Forest`.

    x [rows, features] of f32 or f64; the tables are constants; the result is [rows, targets].
    """

    elements = Elements.FLOAT

    targets: int = 1
    aggregate: Aggregate = Aggregate.SUM

    def infer(
        self,
        x: Operand,
        features: Operand,
        thresholds: Operand,
        children: Operand,
        nan_first: Operand,
        roots: Operand,
        weights: Operand,
        columns: Operand,
    ) -> TensorType:
        if x.rank != 2 or x.dtype not in (DType.F32, DType.F64):
            raise ShapeError(f"TreeEnsemble: rows must be f32 or f64 with two dimensions, got {x.type}")
        if not x.dtype is thresholds.dtype is weights.dtype:
            types = f"{x.dtype.value}, {thresholds.dtype.value} and {weights.dtype.value}"
            raise ShapeError(f"TreeEnsemble: rows, thresholds and weights must have one type, got {types}")
        tables = [t.known("TreeEnsemble: tables") for t in (features, thresholds, children, nan_first, roots)]
        last = [t.known("TreeEnsemble: tables") for t in (weights, columns)]
        Forest(*tables, *last).check("TreeEnsemble", _features(x.type), self.targets)
        return TensorType(x.dtype, (x.shape[0], self.targets))

    def decompose(self, build: Builder, x: OutPort, *tables: OutPort) -> OutPort:
        forest = Forest(*(Operand(t.type, t.value).known("TreeEnsemble: tables") for t in tables))
        features = _features(x.type)
        packed, masks = pack(forest, features, GROUP_TREES, self.aggregate.identity)
        nodes = [packed.thresholds, packed.links, packed.roots, packed.weights, packed.columns, packed.depths]
        if masks is not None and features * len(packed.nan_first) <= MAX_TRANSPOSED_COLUMNS:
            nodes += [masks.starts, masks.features, masks.thresholds, masks.bits, masks.weights]
        trees = PackedTrees(self.targets, self.aggregate, packed.complete, packed.depth, packed.nan_first)
        return build(trees, x, *(build.const(n, _dtype(n)) for n in nodes))

    def reference(self, x: Array, *tables: Array) -> Array:
        forest, rows = Forest(*tables), np.arange(len(x))
        totals = np.full((len(x), self.targets), self.aggregate.identity, x.dtype)
        merge = {"sum": np.add, "min": np.minimum, "max": np.maximum}[self.aggregate.value]
        for root, column in zip(forest.roots.tolist(), forest.columns.tolist(), strict=True):
            at = np.full(len(x), root)
            while len(inner := rows[at >= 0]):
                node = at[inner]
                value = x[inner, forest.features[node]]
                first = (value <= forest.thresholds[node]) | (np.isnan(value) & forest.nan_first[node])
                at[inner] = forest.children[node, np.where(first, 0, 1)]
            part = totals[:, column : column + forest.weights.shape[1]]
            part[:] = merge(part, forest.weights[~at])
        return totals


def _dtype(table: Array) -> DType:
    return {"i4": DType.I32, "i8": DType.I64, "f4": DType.F32, "f8": DType.F64}[table.dtype.str[1:]]


def _features(x: TensorType) -> int:
    """Return the number of features of a row; UnsupportedError if it is dynamic."""
    count = x.shape[1]
    if not isinstance(count, int):
        raise UnsupportedError("TreeEnsemble: the number of features must be known at compile time")
    return count


@op()
class PackedTrees(LoopOp):
    """A tree ensemble with tables `tree_tables.Packed` and optionally `tree_tables.Masks`."""

    elements = Elements.FLOAT

    targets: int = 1
    aggregate: Aggregate = Aggregate.SUM
    complete: bool = False
    depth: int = 0
    nan_first: tuple[bool, ...] = (False,)

    def infer(self, x: Operand, *tables: Operand) -> TensorType:
        return TensorType(x.dtype, (x.shape[0], self.targets))

    def nest(self, outs: tuple[Buffer, ...], x: Input, *tables: Input) -> tuple[Work, ...]:
        rows, features = x.shape
        wide = DType.I32 if x.dtype is DType.F32 else DType.I64
        keys = dense("keys", rows, len(self.nan_first) * features, space=Space.ARENA, dtype=wide)
        axes = n, f = Var("n", rows), Var("f", features)
        works = [
            Definition(keys, axes, _ordered(x(n, f), wide, first), (n, f + k * features))
            for k, first in enumerate(self.nan_first)
        ]
        buffers = [t.buffer for t in tables]
        thresholds, links, roots, weights, columns, depths, *masks = buffers
        walks = _Walks(self, keys, thresholds, links, roots, depths, _Leaves(self, columns, weights))
        if not masks:
            return (*works, _evaluate(outs[0], walks, None, rows, self.aggregate.identity))
        starts, features_of, limits, bits, weights = masks
        masked = _Masks(self, keys, starts, features_of, limits, bits, _Leaves(self, columns, weights))
        return (*works, _evaluate(outs[0], walks, masked, rows, self.aggregate.identity))

    def reference(self, x: Array, *tables: Array) -> Array:
        thresholds, links, roots, weights, columns = tables[:5]
        keys = np.concatenate([ordered(x, first) for first in self.nan_first], 1)
        totals = np.full((len(x), self.targets), self.aggregate.identity, x.dtype)
        merge = {"sum": np.add, "min": np.minimum, "max": np.maximum}[self.aggregate.value]
        for tree, (root, column) in enumerate(zip(roots.tolist(), columns.tolist(), strict=True)):
            at = np.full(len(x), 1 if self.complete else root)
            for _ in range(self.depth):
                feature = links[tree, at] if self.complete else links[at, 0]
                limit = thresholds[tree, at] if self.complete else thresholds[at]
                more = keys[np.arange(len(x)), feature] > limit
                at = (2 * at if self.complete else links[at, 1]) + more
            part = totals[:, column : column + weights.shape[1]]
            part[:] = merge(part, weights[at + ((tree - 1) << self.depth) if self.complete else at])
        return totals


def _ordered(x: Expr, wide: DType, nan_first: bool) -> Expr:
    """Return `tree_tables.ordered` as an expression."""
    limits = np.iinfo(np.int32 if wide is DType.I32 else np.int64)
    bits = prim("bits", x, dtype=wide)
    ordered_bits = select(prim("lt", bits, 0), prim("xor", bits, int(limits.max)), bits)
    plain = select(prim("eq", ordered_bits, -1), 0, ordered_bits)
    nan = prim("ne", x, x)
    return select(nan, Const(int(limits.min if nan_first else limits.max), wide), plain)


@dataclass(frozen=True)
class _Leaves:
    """Tables of leaves: weights, and the columns that they add to."""

    op: PackedTrees
    columns: Buffer
    weights: Buffer

    def one(self, out: Buffer, row: Scripted, column: Scripted, value: Scripted) -> Expr:
        return prim(self.op.aggregate.fn, out[row, column], value)


@dataclass(frozen=True)
class _Walks:
    """Tables for walks."""

    op: PackedTrees
    keys: Buffer
    thresholds: Buffer
    links: Buffer
    roots: Buffer
    depths: Buffer
    leaves: _Leaves

    def depth(self, group: Scripted) -> Scripted:
        """Return the number of comparisons that the trees of a group need."""
        return self.op.depth if self.op.complete else cast(self.depths[group], DType.I64)

    def start(self, tree: Scripted) -> Expr:
        return Const(1) if self.op.complete else cast(self.roots[tree], DType.I64)

    def next(self, row: Scripted, tree: Scripted, at: Scripted) -> Expr:
        """Return the slot of the child that follows slot `at`."""
        if self.op.complete:
            more = prim("gt", self.keys[row, cast(self.links[tree, at], DType.I64)], self.thresholds[tree, at])
            return at * 2 + cast(more, DType.I64)
        more = prim("gt", self.keys[row, cast(self.links[at, 0], DType.I64)], self.thresholds[at])
        return cast(self.links[at, 1], DType.I64) + cast(more, DType.I64)

    def leaf(self, tree: Scripted, at: Scripted) -> Expr:
        """Return the row of the weights of the leaf in slot `at`."""
        return at + (tree - 1) * (1 << self.op.depth) if self.op.complete else at


@dataclass(frozen=True)
class _Masks:
    """Tables for masks."""

    op: PackedTrees
    keys: Buffer
    starts: Buffer
    features: Buffer
    thresholds: Buffer
    bits: Buffer
    leaves: _Leaves


@loops
def _evaluate(out: Scripted, walks: Scripted, masks: Scripted, rows: Scripted, start: float) -> None:
    for block in parallel((rows + (BLOCK_ROWS - 1)) // BLOCK_ROWS):
        first = block * BLOCK_ROWS
        end = min(first + BLOCK_ROWS, rows)
        for r in range(first, end):
            for k in range(out.shape[1]):
                out[r, k] = start
        if masks is not None:
            if end - first >= MIN_MASK_ROWS:
                _mask(out, masks, first, end)
            else:
                _walk(out, walks, first, end)
        else:
            _walk(out, walks, first, end)


@loops
def _walk(out: Scripted, walks: Scripted, first: Scripted, end: Scripted) -> None:
    """Walk all trees, group by group: a group stays in L1 for all rows of a block."""
    for group in range(walks.roots.shape[0] // GROUP_TREES):
        for r in range(first, end):
            at = array(GROUP_TREES, dtype=DType.I64)
            for u in tuple(range(GROUP_TREES)):
                at[u] = walks.start(group * GROUP_TREES + u)
            for _ in range(walks.depth(group)):
                for t in tuple(range(GROUP_TREES)):
                    at[t] = walks.next(r, group * GROUP_TREES + t, at[t])
            for u in tuple(range(GROUP_TREES)):
                tree = group * GROUP_TREES + u
                _add(out, walks.leaves, r, walks.leaf(tree, at[u]), tree)


@loops
def _add(out: Scripted, leaves: Scripted, row: Scripted, leaf: Scripted, tree: Scripted) -> None:
    """Add the weights of a leaf to the results of a row; the fixed order of trees keeps sums equal to the bit."""
    width = leaves.weights.shape[1]
    column = 0 if width == out.shape[1] else cast(leaves.columns[tree], DType.I64)
    if width <= MAX_UNROLLED_WEIGHTS:
        for k in tuple(range(width)):
            out[row, column + k] = leaves.one(out, row, column + k, leaves.weights[leaf, k])
    else:
        for k in range(width):
            out[row, column + k] = leaves.one(out, row, column + k, leaves.weights[leaf, k])


@loops
def _mask(out: Scripted, masks: Scripted, first: Scripted, end: Scripted) -> None:
    """Test all nodes of each tree on the rows of a block, in vectors: a local copy holds the features transposed."""
    wide = masks.keys.dtype
    block = array(masks.keys.shape[1], BLOCK_ROWS, dtype=wide)
    for r in range(first, end):
        for f in range(masks.keys.shape[1]):
            block[f, r - first] = masks.keys[r, f]
    leaf = array(BLOCK_ROWS, dtype=DType.I32)
    for tree in range(masks.starts.shape[0] - 1):
        left = array(BLOCK_ROWS, dtype=DType.I32)
        for v in lanes(BLOCK_ROWS):
            left[v] = -1
        start: Scripted = cast(masks.starts[tree], DType.I64)
        end_of: Scripted = cast(masks.starts[tree + 1], DType.I64)
        for node in range(start, end_of):
            feature = cast(masks.features[node], DType.I64)
            for v in lanes(BLOCK_ROWS):
                left[v] = _excluded(block[feature, v], masks.thresholds[node], left[v], masks.bits[node])
        for v in lanes(BLOCK_ROWS):
            leaf[v] = _lowest_bit(left[v])
        for r in range(first, end):
            place = tree * MAX_MASK_LEAVES + cast(leaf[r - first], DType.I64)
            _add(out, masks.leaves, r, place, tree)


def _excluded(key: Expr, threshold: Expr, left: Expr, bits: Expr) -> Expr:
    """Return the leaves that remain after a node."""
    return select(prim("gt", key, threshold), prim("and", left, bits), left)


def _lowest_bit(x: Expr) -> Expr:
    """Return the index of the lowest set bit of x, from the exponent of that bit as a float."""
    exponent = prim("shr", prim("bits", cast(prim("and", x, prim("neg", x)), DType.F32), dtype=DType.I32), 23)
    return prim("and", prim("and", exponent, 255) - 127, MAX_MASK_LEAVES - 1)  # some bit is set
