"""Rows in groups: the maximum of each segment, and rows times the matrix of their group."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise

import numpy as np

from aot.codegen.ir.definition import Definition, identity
from aot.codegen.ir.loops import Buffer, Const, Expr, Reduce, Var, cast
from aot.codegen.script.script import Scripted, array, lanes, loops, parallel, unrolled, var
from aot.ir.conditions import Condition, alike
from aot.ir.op import Elements, LoopOp, Work, late_symbol
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType, dtype_of
from aot.opset.base.decomposition import wide
from aot.opset.base.row_major import unravel, volume
from aot.opset.movement.embedding import first_not_below
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

# A tile of GroupedMatMul, whose sums stay in registers: 8 vectors of 512 bits, 16 of 256 bits
ROWS, COLUMNS, LANES = 2, 4, 16


class Fill(StrEnum):
    """Value of an empty segment."""

    ZERO = "zero"
    LOWEST = "lowest"


@loops
def _segment_max(out: Scripted, x: Buffer, ids: Buffer, sizes: Scripted, empty: Scripted, lowest: Scripted) -> None:
    segments, count, row = sizes
    for s in parallel(segments):
        first = first_not_below(ids, count, s)
        last = first_not_below(ids, count, s + 1)
        for e in range(volume(row)):
            at = unravel(e, row)
            best = var(lowest, out.dtype.compute)
            for j in range(first, last):
                best = max(best, x[(j, *at)])  # pyrefly: ignore[bad-specialization]  of a script
            if first >= last:
                best = empty
            out[(s, *at)] = best


@op("opset16")
class SegmentMax(LoopOp):
    """out[s] = max of x[j] over all j with segment_ids[j] = s; ids are sorted."""

    elements = Elements.NUMBER

    fill_mode: Fill = Fill.ZERO

    def infer(self, x: Operand, ids: Operand, count: Operand | None = None) -> TensorType:
        if x.rank < 1 or ids.rank != 1:
            raise ShapeError(f"SegmentMax: inputs must be data and segment ids of rank 1, got {x.type} and {ids.type}")
        return TensorType(x.dtype, (self._segments(ids, count), *x.shape[1:]))

    def _segments(self, ids: Operand, count: Operand | None) -> Dim:
        if count is not None:
            return count.dims("SegmentMax: number of segments")[0]
        if ids.value is None:
            return late_symbol(self, "count", None, ids)  # `decompose` computes their number
        return max(ids.ints("SegmentMax: segment ids"), default=-1) + 1

    def conditions(self, x: Operand, ids: Operand, *_: Operand | None) -> Sequence[Condition]:
        return alike("there is a segment id for each row", ids.shape, x.shape[:1])

    def nest(self, outs: tuple[Buffer, ...], x: Input, ids: Input, count: Input | None = None) -> tuple[Work, ...]:
        lowest = _lowest(x.dtype)
        empty = lowest if self.fill_mode is Fill.LOWEST else Const(0 if lowest.dtype.is_integer else 0.0, lowest.dtype)
        start = identity("max", x.dtype.compute)
        return (_segment_max(outs[0], x.buffer, ids.buffer, (outs[0].shape[0], x.shape[0], x.shape[1:]), empty, start),)

    def reference(self, x: Array, ids: Array, count: Array | None = None) -> Array:
        segments = int(ids.max(initial=-1)) + 1 if count is None else int(count.reshape(-1)[0])
        out = np.zeros((segments, *x.shape[1:]), x.dtype)
        for s in range(segments):
            rows = x[ids == s]
            if len(rows):
                out[s] = rows.max(0)
            elif self.fill_mode is Fill.LOWEST:
                out[s] = np.array(_lowest(dtype_of(x)).value).astype(x.dtype)
        return out


def _lowest(dtype: DType) -> Const:
    """Return the least finite number of a type."""
    if dtype.is_float:
        least = {DType.F16: -65504.0, DType.BF16: -3.3895313892515355e38, DType.F64: -1.7976931348623157e308}
        return Const(least.get(dtype, -3.4028234663852886e38), dtype.compute)
    return identity("max", dtype.compute)


@loops
def _grouped(out: Scripted, a: Buffer, b: Buffer, offsets: Buffer, sizes: Scripted) -> None:
    """A few columns of each matrix stay in cache while the rows of its group pass."""
    rows, groups, columns, inner = sizes
    for n in parallel((columns + COLUMNS - 1) // COLUMNS):
        first = var(0, DType.I64)
        for g in range(groups):
            end: Scripted = cast(offsets[g], DType.I64)
            last = max(min(end, rows), first)
            for t in range(first, last, ROWS):
                _tile(out, a, b, (t, last - 1, g, n * COLUMNS, columns - 1), inner)
            first = last
        for t in range(first, rows):
            for j in unrolled(COLUMNS):
                out[t, min(n * COLUMNS + j, columns - 1)] = 0


def _product(x: Expr, y: Expr, dtype: DType) -> Expr:
    return cast(x, dtype) * cast(y, dtype)


@loops
def _tile(out: Scripted, a: Buffer, b: Buffer, place: Scripted, inner: Scripted) -> None:
    """Compute a few rows and columns. `place`: first and last row, group, first and last column.

    The last one stands in for those after it.
    """
    t, last, g, n, end = place
    dtype = out.dtype.compute
    total = array(ROWS, COLUMNS, LANES, dtype=dtype)
    for i in unrolled(ROWS):
        for j in unrolled(COLUMNS):
            for v in lanes(LANES):
                total[i, j, v] = 0
    for k in range(inner // LANES):
        for i in unrolled(ROWS):
            for j in unrolled(COLUMNS):
                for v in lanes(LANES):
                    total[i, j, v] += _product(
                        a[min(t + i, last), k * LANES + v], b[g, min(n + j, end), k * LANES + v], dtype
                    )
    for i in unrolled(ROWS):
        for j in unrolled(COLUMNS):
            _sum(out, a, b, (min(t + i, last), g, min(n + j, end)), inner, [total[i, j, v] for v in range(LANES)])


@loops
def _sum(out: Scripted, a: Buffer, b: Buffer, place: Scripted, inner: Scripted, parts: Scripted) -> None:
    """Compute the element at `place` from sums over every 16th term and the terms after the last 16."""
    t, g, n = place
    dtype = out.dtype.compute
    total = var(0, dtype)
    for part in parts:
        total += part
    for k in range(inner // LANES * LANES, inner):
        total += _product(a[t, k], b[g, n, k], dtype)
    out[t, n] = total


@op("opset17")
class GroupedMatMul(LoopOp):
    """Rows [T, K] times transposed matrices [G, N, K]: rows before offsets[g] belong to group g, further rows give 0.

    Offsets ascend; one that does not is the one before it.

    Without offsets: [G, M, K] times [G, N, K], matrix by matrix.
    """

    elements = Elements.NUMBER

    def infer(self, a: Operand, b: Operand, offsets: Operand | None = None) -> TensorType:
        if b.rank != 3 or a.rank != (3 if offsets is None else 2) or a.dtype is not b.dtype:
            types = f"{a.type} and {b.type}"
            raise ShapeError(f"GroupedMatMul: [T, K] with offsets or [G, M, K], and [G, N, K], got {types}")
        return TensorType(a.dtype, (*a.shape[:-1], b.shape[1]))

    def conditions(self, a: Operand, b: Operand, offsets: Operand | None = None) -> Sequence[Condition]:
        groups = a.shape[0] if offsets is None else offsets.shape[0]
        inner = (a.shape[-1], b.shape[2], "inner dimensions must be equal")
        return [inner, (groups, b.shape[0], "there is a matrix for each group")]

    def nest(self, outs: tuple[Buffer, ...], a: Input, b: Input, offsets: Input | None = None) -> tuple[Work, ...]:
        (out,) = outs
        n, k = Var("n", b.shape[1]), Var("k", b.shape[2])
        if offsets is None:
            g, m = Var("g", out.shape[0]), Var("m", out.shape[1])
            return (Definition(out, (g, m, n), Reduce("add", (k,), a(g, m, k) * b(g, n, k))),)
        sizes = (out.shape[0], *b.shape)
        return (_grouped(out, a.buffer, b.buffer, offsets.buffer, sizes),)

    def reference(self, a: Array, b: Array, offsets: Array | None = None) -> Array:
        dtype = a.dtype
        a, b = (x if x.dtype.kind in "iu" else wide(x) for x in (a, b))  # integers wrap
        transposed = b.swapaxes(-1, -2)
        if offsets is None:
            return (a @ transposed).astype(dtype)
        out = np.zeros((a.shape[0], b.shape[1]), dtype)
        ends = np.maximum.accumulate(np.clip(offsets.astype(np.int64), 0, len(a)))
        for g, (first, last) in enumerate(pairwise([0, *ends])):
            out[first:last] = (a[first:last] @ transposed[g]).astype(dtype)
        return out
