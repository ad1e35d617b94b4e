"""NonZero and Unique: their output sizes depend on the data.

Both fill tensors sized for the worst case, count the entries, and return a prefix of that length.
"""

from __future__ import annotations

import numpy as np

from aot.codegen.ir.loops import Buffer, Expr, Space, cast, dense
from aot.codegen.script.script import Scripted, loops, var
from aot.ir.build import Builder
from aot.ir.conditions import axis_of
from aot.ir.graph import OutPort
from aot.ir.op import DecomposedOp, Elements, LoopOp, Work, late_symbol
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, Shape, TensorType, numpy_dtype
from aot.opset.base.decomposition import numbers
from aot.opset.base.row_major import unravel, volume
from aot.opset.movement.slicing import Prefix
from aot.runtime.abi import DType

COUNT_TYPE = TensorType(DType.I64, ())


@op("opset3")
class NonZero(DecomposedOp):
    """Indices [rank, n] of the n elements that are not 0, in row-major order; a scalar has one dimension here."""

    output_type: DType = DType.I64

    def infer(self, x: Operand) -> TensorType:
        return TensorType(self.output_type, (max(x.rank, 1), late_symbol(self, "count", volume(x.shape), x)))

    def decompose(self, build: Builder, x: OutPort) -> OutPort:
        x = x if x.type.rank else build.Reshape(x, numbers(build, [1]))
        padded = build.node(PaddedNonZero(self.output_type), x, outputs=2)
        return build(Prefix(1), padded.out_port(0), padded.out_port(1))

    def reference(self, x: Array) -> Array:
        return np.array(np.nonzero(np.atleast_1d(x)), numpy_dtype(self.output_type)).reshape(max(x.ndim, 1), -1)


@op()
class PaddedNonZero(LoopOp):
    """Indices [rank, size of x], and the number of columns that are filled."""

    output_type: DType = DType.I64

    def infer(self, x: Operand) -> tuple[TensorType, TensorType]:
        return TensorType(self.output_type, (x.rank, volume(x.shape))), COUNT_TYPE

    def nest(self, outs: tuple[Buffer, ...], x: Input) -> tuple[Work, ...]:
        return (_collect(outs[0], outs[1], x.buffer, x.shape),)

    def reference(self, x: Array) -> tuple[Array, Array]:
        columns = np.array(np.nonzero(x), numpy_dtype(self.output_type)).reshape(x.ndim, -1)
        out = np.zeros((x.ndim, x.size), columns.dtype)
        out[:, : columns.shape[1]] = columns
        return out, np.array(columns.shape[1], np.int64)


@loops
def _collect(out: Scripted, count: Scripted, x: Scripted, shape: Scripted) -> None:
    """Write every index; if its element is 0 the next index overwrites it, which costs less than a branch."""
    last = len(shape) - 1
    total = var(0, DType.I64)
    for o in range(volume(shape[:last])):
        start = var(total, DType.I64)
        row = unravel(o, shape[:last])
        for i in range(shape[last]):
            out[last, total] = i
            total += cast(x[(*row, i)] != 0, DType.I64)
        for d, place in enumerate(row):
            for k in range(start, total):
                out[d, k] = place
    count[()] = total


@op("opset10")
class Unique(DecomposedOp):
    """The distinct elements of x, or its distinct slices along an axis, the second input.

    Outputs: the distinct ones, sorted or in order of first occurrence; the index of the first occurrence of each; for
    each element of x its index among them; the number of occurrences of each.
    """

    sorted: bool = True
    index_element_type: DType = DType.I64
    count_element_type: DType = DType.I64

    def infer(self, x: Operand, axis: Operand | None = None) -> tuple[TensorType, ...]:
        padded = PaddedUnique(**vars(self)).infer(x, axis)
        along = _along(x.rank, axis)
        count = late_symbol(self, "count", padded[1].shape[0], x)
        rows, first, inverse, counts, _ = padded
        cut = TensorType(rows.dtype, (*rows.shape[:along], count, *rows.shape[along + 1 :]))
        return cut, TensorType(first.dtype, (count,)), inverse, TensorType(counts.dtype, (count,))

    def decompose(self, build: Builder, x: OutPort, axis: OutPort | None = None) -> tuple[OutPort, ...]:
        if x.type.dtype is DType.BOOL:
            ports = build.node(self, build.Convert(x, destination_type=DType.U8), axis, outputs=4).out_ports()
            return build.Convert(ports[0], destination_type=DType.BOOL), ports[1], ports[2], ports[3]
        padded = PaddedUnique(**vars(self))
        rows, first, inverse, counts, number = build.node(padded, x, axis, outputs=5).out_ports().values()
        along = _along(x.type.rank, None if axis is None else Operand(axis.type, axis.value))
        return (
            build(Prefix(along), rows, number),
            build(Prefix(0), first, number),
            inverse,
            build(Prefix(0), counts, number),
        )

    def reference(self, x: Array, axis: Array | None = None) -> tuple[Array, ...]:
        along = None if axis is None else int(axis.reshape(-1)[0])
        rows, first, inverse, counts = np.unique(x, True, True, True, axis=along)
        inverse = inverse.reshape(-1)
        if not self.sorted:
            order = np.argsort(first, kind="stable")
            rows, first, counts = np.take(rows, order, along or 0), first[order], counts[order]
            inverse = np.argsort(order)[inverse]
        index, number = numpy_dtype(self.index_element_type), numpy_dtype(self.count_element_type)
        return rows, first.astype(index), inverse.astype(index), counts.astype(number)


def _along(rank: int, axis: Operand | None) -> int:
    """Return the axis of the first output that numbers the elements or slices."""
    return 0 if axis is None else axis_of(axis.ints("Unique: axis")[0], rank, "Unique")


@op()
class PaddedUnique(LoopOp):
    """Unique with outputs sized for all elements of x; the last output is the number of distinct ones."""

    elements = Elements.NUMBER

    sorted: bool = True
    index_element_type: DType = DType.I64
    count_element_type: DType = DType.I64

    def infer(self, x: Operand, axis: Operand | None = None) -> tuple[TensorType, ...]:
        number: Dim = volume(x.shape) if axis is None else x.shape[_along(x.rank, axis)]
        rows = TensorType(x.dtype, (number,) if axis is None else x.shape)
        index = TensorType(self.index_element_type, (number,))
        return rows, index, index, TensorType(self.count_element_type, (number,)), COUNT_TYPE

    def nest(self, outs: tuple[Buffer, ...], x: Input, axis: Input | None = None) -> tuple[Work, ...]:
        along = None if axis is None else _along(x.rank, axis.operand())
        number = outs[1].shape[0]
        names = ("order", "spare", "group")
        order, spare, group = (dense(name, number, space=Space.ARENA, dtype=DType.I64) for name in names)
        rows = _Rows(x.buffer, x.shape, along)
        return (_sort(rows, order, spare, number), _list(rows, order, group, spare, outs, number, self.sorted))

    def reference(self, x: Array, axis: Array | None = None) -> tuple[Array, ...]:
        rows, first, inverse, counts = Unique(**vars(self)).reference(x, axis)
        along, number = (0 if axis is None else int(axis.reshape(-1)[0])), inverse.size
        wide = [(0, 0)] * rows.ndim
        wide[along] = (0, number - first.size)
        rest = (0, number - first.size)
        return np.pad(rows, wide), np.pad(first, rest), inverse, np.pad(counts, rest), np.array(first.size, np.int64)


class _Rows:
    """Elements, or slices along an axis, by number; each has `size` elements."""

    def __init__(self, buffer: Buffer, shape: Shape, along: int | None) -> None:
        self.buffer, self.shape, self.along = buffer, shape, along
        self.others = () if along is None else (*shape[:along], *shape[along + 1 :])
        self.size = volume(self.others)

    def place(self, row: Expr, e: Expr) -> tuple[Expr, ...]:
        """Return the index of element `e` of a row."""
        if self.along is None:
            return unravel(row, self.shape)
        at = unravel(e, self.others)
        return (*at[: self.along], row, *at[self.along :])


@loops
def _order_of(rows: Scripted, a: Scripted, b: Scripted) -> Scripted:
    """Return -1, 0 or 1: row a is before, equal to or after row b."""
    found = var(0, DType.I64)
    e = var(0, DType.I64)
    while found == 0 and e < rows.size:
        p = rows.buffer[rows.place(a, e)]
        q = rows.buffer[rows.place(b, e)]
        if p < q:
            found = -1
        if p > q:
            found = 1
        e += 1
    return found


@loops
def _sort(rows: Scripted, order: Scripted, spare: Scripted, number: Scripted) -> None:
    """Sort row numbers by a stable bottom-up merge sort: the length of the merged runs doubles each time."""
    for i in range(number):
        order[i] = i
    width = var(1, DType.I64)
    while width < number:
        start = var(0, DType.I64)
        while start < number:
            a = var(start, DType.I64)
            b = var(start + width, DType.I64)
            k = var(start, DType.I64)
            while k < number and k < start + 2 * width:
                second = var(0, DType.I64)
                if a >= start + width:
                    second = 1
                if a < start + width and b < number and b < start + 2 * width:
                    relation = _order_of(rows, order[b], order[a])
                    if relation < 0:
                        second = 1
                if second == 1:
                    spare[k] = order[b]
                    b += 1
                else:
                    spare[k] = order[a]
                    a += 1
                k += 1
            start += 2 * width
        for i in range(number):
            order[i] = spare[i]
        width = 2 * width


@loops
def _list(
    rows: Scripted, order: Scripted, group: Scripted, name: Scripted, outs: Scripted, number: Scripted, ordered: bool
) -> None:
    """Group equal rows and write the outputs; `name[i]`: output index of the group with first row i."""
    found, first, inverse, counts, total = outs
    many = var(0, DType.I64)
    for k in range(number):
        same = var(0, DType.I64)
        if k > 0:
            relation = _order_of(rows, order[k - 1], order[k])
            if relation == 0:
                same = 1
        if same == 1:
            group[order[k]] = group[order[k - 1]]
        else:
            group[order[k]] = order[k]
            if ordered:
                name[order[k]] = many
                many += 1
    for i in range(number):
        if group[i] == i:
            if not ordered:
                name[i] = many
                many += 1
            first[name[i]] = i
            counts[name[i]] = 0
            for e in range(rows.size):
                found[_target(rows, name[i], e)] = rows.buffer[rows.place(i, e)]
        inverse[i] = name[group[i]]
        counts[name[group[i]]] += 1
    total[()] = many


def _target(rows: _Rows, row: Expr, e: Scripted) -> tuple[Expr, ...]:
    return (row,) if rows.along is None else rows.place(row, e)
