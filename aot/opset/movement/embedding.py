"""Sums of table rows that indices choose: embedding bags and segments."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, Const, Expr, Reduce, as_expr, cast, prim
from aot.codegen.script.script import Scripted, array, lanes, loops, parallel, var
from aot.ir.conditions import Condition, alike
from aot.ir.op import ComputeOp, Element, Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, TensorType
from aot.opset.base.families import axis
from aot.opset.base.row_major import unravel, volume
from aot.opset.movement.gather import guarded
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

COLUMNS_AT_ONCE = 128  # elements of a row that are summed at once


class Bag(StrEnum):
    """Combination of the rows of a bag."""

    SUM = "sum"
    MEAN = "mean"


def _wide(x: Array) -> Array:
    return x.astype(np.float64) if x.dtype.kind in "fV" else x


def _rows(table: Array, indices: Array) -> Array:
    """Return rows of the table in f64 or as integers, for references; zeros for indices out of range."""
    valid = (indices >= 0) & (indices < len(table))
    if not len(table):
        return np.zeros((*indices.shape, *table.shape[1:]), _wide(table).dtype)
    rows = _wide(table)[np.where(valid, indices, 0).astype(np.int64)]
    return np.where(valid.reshape(valid.shape + (1,) * (table.ndim - 1)), rows, 0)


def _paired(indices: Operand, *others: Operand | None) -> list[Condition]:
    """Return the conditions that weights and segments have one entry for each index."""
    shapes = [o.shape for o in others if o is not None]
    return [c for shape in shapes for c in alike("there is one for each index", shape, indices.shape)]


def _check_bags(what: str, table: Operand, indices: Operand, weights: Operand | None, rank: int) -> None:
    if table.rank < 1 or indices.rank != rank:
        raise ShapeError(
            f"{what}: inputs must be a table and indices of rank {rank}, got {table.type} and {indices.type}"
        )
    if weights is not None and weights.dtype is not table.dtype:
        raise ShapeError(f"{what}: weights must be {table.dtype.value}, got {weights.dtype.value}")
    if weights is not None and weights.rank != rank:
        raise ShapeError(f"{what}: weights must have rank {rank}, got {weights.type}")


@dataclass(frozen=True)
class PackedBags(ComputeOp):
    """out[b] = sum over j of table[indices[b, j]] * weights[b, j]."""

    elements = Elements.NUMBER

    @property
    def is_mean(self) -> bool:
        return getattr(self, "reduction", Bag.SUM) is Bag.MEAN

    def infer(self, table: Operand, indices: Operand, weights: Operand | None = None) -> TensorType:
        _check_bags(self.type, table, indices, weights, 2)
        if weights is not None and self.is_mean:
            raise ShapeError(f"{self.type}: the mean cannot have weights, got {weights.type}")
        return TensorType(table.dtype, (indices.shape[0], *table.shape[1:]))

    def conditions(self, table: Operand, indices: Operand, weights: Operand | None = None) -> Sequence[Condition]:
        return _paired(indices, weights)

    def compute(self, out: TensorType, table: Input, indices: Input, weights: Input | None = None) -> Element:
        def element(b: Expr, *rest: Expr) -> Expr:
            j = axis("j", indices.shape[1])
            row = cast(indices(b, j), DType.I64)
            value = guarded(table(row, *rest), [(row, table.shape[0])])
            total = Reduce("add", (j,), value if weights is None else value * weights(b, j))
            return (
                prim("div", total, cast(as_expr(indices.shape[1], DType.I64), total.dtype)) if self.is_mean else total
            )

        return element

    def reference(self, table: Array, indices: Array, weights: Array | None = None) -> Array:
        rows = _rows(table, indices)
        if weights is not None:
            rows = rows * weights.reshape(weights.shape + (1,) * (table.ndim - 1))
        return (rows.mean(1) if self.is_mean else rows.sum(1)).astype(table.dtype)


@op("opset3")
class EmbeddingBagPackedSum(PackedBags):
    """Bags of equal size, summed."""


@op("opset15")
class EmbeddingBagPacked(PackedBags):
    """Bags of equal size, summed or averaged."""

    reduction: Bag = Bag.SUM


@loops
def _one_bag(
    out: Scripted,
    table: Buffer,
    indices: Buffer,
    weights: Buffer | None,
    bag: Scripted,
    default: Scripted,
    row: Scripted,
    mean: bool,
) -> None:
    """Compute `bag`: number, first entry, last + 1. An empty one is row `default`, or zeros if that is negative."""
    size = volume(row)
    width = min(size, COLUMNS_AT_ONCE) if isinstance(size, int) else 1
    for part in range(size // max(width, 1)):
        _columns(out, table, indices, weights, bag, default, (row, part * width, width), mean)
    if width > 1 and size % width:
        _columns(out, table, indices, weights, bag, default, (row, size - size % width, size % width), mean)


@loops
def _columns(
    out: Scripted,
    table: Buffer,
    indices: Buffer,
    weights: Buffer | None,
    bag: Scripted,
    default: Scripted,
    part: Scripted,
    mean: bool,
) -> None:
    """Compute `part` of a bag: row shape, first column, number of columns. Indices out of range add nothing."""
    number, first, last = bag
    row, start, width = part
    total = array(width, dtype=out.dtype.compute)
    for v in lanes(width):
        total[v] = 0
    for j in range(first, last):
        chosen: Scripted = cast(indices[j], DType.I64)
        if chosen >= 0 and chosen < table.shape[0]:
            for v in lanes(width):
                total[v] += _term(table[(chosen, *unravel(start + v, row))], weights, j)
    if mean and last > first:
        for v in lanes(width):
            total[v] = total[v] / cast(last - first, out.dtype)
    if last <= first and default >= 0 and default < table.shape[0]:
        for v in lanes(width):
            total[v] = table[(default, *unravel(start + v, row))]
    for v in lanes(width):
        out[(number, *unravel(start + v, row))] = total[v]


def _term(value: Expr, weights: Buffer | None, j: Scripted) -> Expr:
    return value if weights is None else value * weights[j]


@loops
def _offset_bags(
    out: Scripted,
    table: Buffer,
    indices: Buffer,
    offsets: Scripted,
    default: Buffer | None,
    weights: Buffer | None,
    sizes: Scripted,
    mean: bool,
) -> None:
    bags, count, row = sizes
    for b in parallel(bags):
        start: Scripted = cast(offsets[b], DType.I64)
        first = max(min(start, count), 0)
        last = var(count, DType.I64)
        if b + 1 < bags:
            end: Scripted = cast(offsets[b + 1], DType.I64)
            last = max(min(end, count), 0)
        spare = Const(-1) if default is None else cast(default[(0,) * len(default.shape)], DType.I64)
        _one_bag(out, table, indices, weights, (b, first, last), spare, row, mean)


@dataclass(frozen=True)
class OffsetBags(LoopOp):
    """Bag b holds the indices offsets[b] .. offsets[b + 1] - 1; an empty one is row `default`, or zeros."""

    elements = Elements.NUMBER

    @property
    def is_mean(self) -> bool:
        return getattr(self, "reduction", Bag.SUM) is Bag.MEAN

    def infer(
        self,
        table: Operand,
        indices: Operand,
        offsets: Operand,
        default: Operand | None = None,
        weights: Operand | None = None,
    ) -> TensorType:
        _check_bags(self.type, table, indices, weights, 1)
        if offsets.rank != 1:
            raise ShapeError(f"{self.type}: offsets must have rank 1, got {offsets.type}")
        if weights is not None and self.is_mean:
            raise ShapeError(f"{self.type}: the mean cannot have weights, got {weights.type}")
        return TensorType(table.dtype, (offsets.shape[0], *table.shape[1:]))

    def conditions(self, table: Operand, indices: Operand, *rest: Operand | None) -> Sequence[Condition]:
        return _paired(indices, *rest[2:])

    def nest(
        self, outs: tuple[Buffer, ...], table: Input, indices: Input, offsets: Input, *rest: Input | None
    ) -> tuple[Work, ...]:
        buffers = [None if i is None else i.buffer for i in (*rest, None, None)[:2]]
        sizes = (offsets.shape[0], indices.shape[0], table.shape[1:])
        return (_offset_bags(outs[0], table.buffer, indices.buffer, offsets.buffer, *buffers, sizes, self.is_mean),)

    def reference(
        self, table: Array, indices: Array, offsets: Array, default: Array | None = None, weights: Array | None = None
    ) -> Array:
        starts = [max(0, min(int(o), len(indices))) for o in offsets]
        segments = [np.arange(a, b) for a, b in pairwise([*starts, len(indices)])]
        return _summed(table, indices, segments, default, weights, self.is_mean)


def _summed(
    table: Array, indices: Array, bags: list[Array], default: Array | None, weights: Array | None, mean: bool = False
) -> Array:
    out = np.zeros((len(bags), *table.shape[1:]), _wide(table).dtype)
    spare = -1 if default is None else int(default.reshape(-1)[0])
    for row, entries in zip(out, bags, strict=True):
        if len(entries):
            rows = _rows(table, indices[entries])
            if weights is not None:
                rows = rows * weights[entries].reshape((-1,) + (1,) * (table.ndim - 1))
            row[...] = rows.mean(0) if mean else rows.sum(0)
        elif 0 <= spare < len(table):
            row[...] = table[spare]
    return out.astype(table.dtype)


@op("opset3")
class EmbeddingBagOffsetsSum(OffsetBags):
    """Bags that begin at offsets, summed."""


@op("opset15")
class EmbeddingBagOffsets(OffsetBags):
    """Bags that begin at offsets, summed or averaged."""

    reduction: Bag = Bag.SUM


@loops
def first_not_below(ids: Buffer, count: Scripted, wanted: Scripted) -> Scripted:
    """Return the first place in sorted `ids` with an id of at least `wanted`."""
    low = var(0, DType.I64)
    high = var(count, DType.I64)
    while low < high:
        middle = (low + high) // 2
        if cast(ids[middle], DType.I64) < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@loops
def _segment_bags(
    out: Scripted,
    table: Buffer,
    indices: Buffer,
    ids: Buffer,
    default: Buffer | None,
    weights: Buffer | None,
    sizes: Scripted,
) -> None:
    segments, count, row = sizes
    for s in parallel(segments):
        first = first_not_below(ids, count, s)
        last = first_not_below(ids, count, s + 1)
        spare = Const(-1) if default is None else cast(default[(0,) * len(default.shape)], DType.I64)
        _one_bag(out, table, indices, weights, (s, first, last), spare, row, False)


@op("opset3")
class EmbeddingSegmentsSum(LoopOp):
    """out[s] = sum of table[indices[j]] * weights[j] for all j with segment_ids[j] = s; ids are sorted."""

    elements = Elements.NUMBER

    def infer(
        self,
        table: Operand,
        indices: Operand,
        ids: Operand,
        count: Operand,
        default: Operand | None = None,
        weights: Operand | None = None,
    ) -> TensorType:
        _check_bags(self.type, table, indices, weights, 1)
        if ids.rank != 1:
            raise ShapeError(f"EmbeddingSegmentsSum: segment ids must have rank 1, got {ids.type}")
        return TensorType(table.dtype, (*count.dims("EmbeddingSegmentsSum: number of segments"), *table.shape[1:]))

    def conditions(self, table: Operand, indices: Operand, ids: Operand, *rest: Operand | None) -> Sequence[Condition]:
        return _paired(indices, ids, *rest[2:])

    def nest(
        self, outs: tuple[Buffer, ...], table: Input, indices: Input, ids: Input, *rest: Input | None
    ) -> tuple[Work, ...]:
        buffers = [None if i is None else i.buffer for i in (*rest[1:], None, None)[:2]]
        sizes = (outs[0].shape[0], indices.shape[0], table.shape[1:])
        return (_segment_bags(outs[0], table.buffer, indices.buffer, ids.buffer, *buffers, sizes),)

    def reference(self, table: Array, indices: Array, ids: Array, count: Array, *rest: Array | None) -> Array:
        segments = [np.flatnonzero(ids == s) for s in range(int(count.reshape(-1)[0]))]
        default, weights = (*rest, None, None)[:2]
        return _summed(table, indices, segments, default, weights)
