"""SparseFillEmptyRows: a sparse matrix with an entry in every row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.codegen.ir.loops import Buffer, Space, cast, dense
from aot.codegen.script.script import Scripted, loops, var
from aot.ir.build import Builder
from aot.ir.conditions import Condition, alike
from aot.ir.graph import OutPort
from aot.ir.op import DecomposedOp, Elements, LoopOp, Work, late_symbol
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, TensorType
from aot.opset.movement.slicing import Prefix
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


@op("opset16")
class SparseFillEmptyRows(DecomposedOp):
    """Entries of a matrix sorted by row, with `default` at column 0 of each row that has none.

    Inputs: values [M], shape [2], indices [M, 2], default. Outputs: indices [N, 2], values [N], flags of empty rows.
    """

    elements = Elements.NUMBER

    def infer(self, values: Operand, shape: Operand, indices: Operand, default: Operand) -> tuple[TensorType, ...]:
        positions, filled, empty, _ = PaddedSparseFill().infer(values, shape, indices, default)
        count = late_symbol(self, "count", None, values, shape, indices)
        return TensorType(positions.dtype, (count, 2)), TensorType(filled.dtype, (count,)), empty

    def decompose(
        self, build: Builder, values: OutPort, shape: OutPort, indices: OutPort, default: OutPort
    ) -> tuple[OutPort, ...]:
        padded = build.node(PaddedSparseFill(), values, shape, indices, default, outputs=4)
        positions, filled, empty, count = padded.out_ports().values()
        return build(Prefix(0), positions, count), build(Prefix(0), filled, count), empty

    def reference(self, values: Array, shape: Array, indices: Array, default: Array) -> tuple[Array, ...]:
        positions, filled, empty, count = PaddedSparseFill().reference(values, shape, indices, default)
        return positions[: int(count)], filled[: int(count)], empty


@op()
class PaddedSparseFill(LoopOp):
    """SparseFillEmptyRows with outputs sized for one more entry per row; the last output is the number of entries."""

    elements = Elements.NUMBER
    stands_for = "SparseFillEmptyRows"

    def infer(self, values: Operand, shape: Operand, indices: Operand, default: Operand) -> tuple[TensorType, ...]:
        if values.rank != 1 or indices.rank != 2:
            types = f"{values.type} and {indices.type}"
            raise ShapeError(f"SparseFillEmptyRows: inputs must be values [M] and indices [M, 2], got {types}")
        rows = shape.dims("SparseFillEmptyRows: shape")[0]
        most = values.shape[0] + rows
        single = TensorType(DType.I64, ())
        empty = TensorType(DType.BOOL, (rows,))
        return TensorType(indices.dtype, (most, 2)), TensorType(values.dtype, (most,)), empty, single

    def conditions(self, values: Operand, shape: Operand, indices: Operand, default: Operand) -> Sequence[Condition]:
        return alike("there is a pair of indices for each value", indices.shape, (values.shape[0], 2))

    def nest(
        self, outs: tuple[Buffer, ...], values: Input, shape: Input, indices: Input, default: Input
    ) -> tuple[Work, ...]:
        ends = dense("ends", outs[2].shape[0], space=Space.ARENA, dtype=DType.I64)
        sizes = (outs[2].shape[0], values.shape[0])
        return (_fill(outs, ends, values.buffer, indices.buffer, default(*[0] * default.rank), sizes),)

    def reference(self, values: Array, shape: Array, indices: Array, default: Array) -> tuple[Array, ...]:
        rows, number = int(shape.reshape(-1)[0]), default.reshape(-1)[0]
        entries = [(int(r), int(c), v) for (r, c), v in zip(indices, values, strict=True) if 0 <= r < rows]
        empty = np.array([all(r != row for r, _, _ in entries) for row in range(rows)], np.bool_)
        entries += [(row, 0, number) for row in np.flatnonzero(empty)]
        entries.sort(key=lambda e: e[0])
        positions, filled = np.zeros((len(values) + rows, 2), indices.dtype), np.zeros(len(values) + rows, values.dtype)
        for k, (r, c, v) in enumerate(entries):
            positions[k], filled[k] = (r, c), v
        return positions, filled, empty, np.array(len(entries), np.int64)


@loops
def _fill(
    outs: Scripted, ends: Scripted, values: Scripted, indices: Scripted, default: Scripted, sizes: Scripted
) -> None:
    """Counting sort by row: count entries to find the end of each row, then place them, the last one first."""
    places, filled, empty, number = outs
    rows, count = sizes
    for r in range(rows):
        ends[r] = 0
    for j in range(count):
        row: Scripted = cast(indices[j, 0], DType.I64)
        if row >= 0 and row < rows:
            ends[row] += 1
    total = var(0, DType.I64)
    for r in range(rows):
        empty[r] = ends[r] == 0
        if ends[r] == 0:
            places[total, 0] = r
            places[total, 1] = 0
            filled[total] = default
            total += 1
        else:
            total += ends[r]
        ends[r] = total
    for k in range(count):
        j = count - 1 - k
        row: Scripted = cast(indices[j, 0], DType.I64)
        if row >= 0 and row < rows:
            ends[row] -= 1
            places[ends[row], 0] = row
            places[ends[row], 1] = indices[j, 1]
            filled[ends[row]] = values[j]
    number[()] = total
