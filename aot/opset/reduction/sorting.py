"""TopK: the k best elements along an axis, and their indices.

Small k: a sorted list into which each element is inserted, vectorised across adjacent rows. Large k: a heap of the k
best with the worst at the root, then taken apart. Of equal elements the one with the lower index is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, Const, Expr, as_expr, cast, prim, select
from aot.codegen.script.script import MAX_LANES, Scripted, array, lanes, loops, parallel, var
from aot.ir.conditions import axis_of
from aot.ir.dims import is_data
from aot.ir.op import Elements, LoopOp, Op, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType, numpy_dtype, simplify
from aot.opset.base.row_major import unravel, volume
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

MIN_VECTOR_ROWS = 4  # adjacent rows from which on they are vectorised
MAX_LIST_LENGTH = 8  # up to this k a sorted list is faster than a heap


class Mode(StrEnum):
    """Direction of the comparison."""

    MAX = "max"
    MIN = "min"


class Order(StrEnum):
    """Order of the outputs: best first, by index, or unspecified (here: best first)."""

    VALUE = "value"
    INDEX = "index"
    NONE = "none"


@dataclass(frozen=True)
class Selection(LoopOp):
    """Base of TopK: outputs values and indices."""

    elements = Elements.NUMBER

    axis: int = 0
    mode: Mode = Mode.MAX
    sort: Order = Order.NONE
    index_element_type: DType = DType.I32

    def infer(self, x: Operand, k: Operand) -> tuple[TensorType, TensorType]:
        along = axis_of(self.axis, x.rank, "TopK")
        count, extent = k.dims("TopK: k")[0], x.shape[along]
        if isinstance(count, int) and (count < 0 or (isinstance(extent, int) and count > extent)):
            raise ShapeError(f"TopK: k must be in 0..{extent}, got {count}")
        if is_data(count):
            count = prim("min", as_expr(count, DType.I64), extent)
        shape = (*x.shape[:along], count, *x.shape[along + 1 :])
        return TensorType(x.dtype, shape), TensorType(self.index_element_type, shape)

    def conditions(self, *operands: Operand | None) -> Sequence[tuple[Dim, Dim, str]]:
        x, k = operands
        assert x is not None and k is not None
        count, extent = k.dims("TopK: k")[0], x.shape[axis_of(self.axis, x.rank, "TopK")]
        least = simplify(prim("min", as_expr(count, DType.I64), extent))
        return () if least == count else ((least, count, "k must not be above how many there are"),)

    def nest(self, outs: tuple[Buffer, ...], x: Input, k: Input) -> tuple[Work, ...]:
        along = axis_of(self.axis, x.rank, "TopK")
        count, larger, by_index = outs[0].shape[along], self.mode is Mode.MAX, self.sort is Order.INDEX
        few = isinstance(count, int) and count <= MAX_LIST_LENGTH
        last = x.shape[-1] if along < x.rank - 1 else 1
        beside = few and count and (not isinstance(last, int) or last >= MIN_VECTOR_ROWS)
        choose = _beside if beside else _few if few else _many
        return (choose(outs[0], outs[1], x.buffer, x.shape, along, count, larger, by_index),)

    def reference(self, x: Array, k: Array) -> tuple[Array, Array]:
        wide = np.moveaxis(x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x, self.axis, -1)
        if self.mode is Mode.MIN:
            order = np.argsort(wide, -1, kind="stable")
        else:
            order = wide.shape[-1] - 1 - np.argsort(wide[..., ::-1], -1, kind="stable")[..., ::-1]
        indices = order[..., : int(k.reshape(-1)[0])]
        if self.sort is Order.INDEX:
            indices = np.sort(indices, -1)
        indices = np.moveaxis(indices, -1, self.axis)
        return np.take_along_axis(x, indices, self.axis), indices.astype(numpy_dtype(self.index_element_type))


@op("opset11")
class TopK(Selection):
    """The k largest or smallest elements along an axis; equal ones keep their order, with or without `stable`."""

    stable: bool = False

    def written_out(self) -> Op:
        order = Order.VALUE if self.stable and self.sort is Order.NONE else self.sort  # NONE cannot be stable there
        return replace(self, sort=order)


@op("opset3", type="TopK")
class TopK_3(Selection):
    """The k largest or smallest elements along an axis."""


@op("opset1", type="TopK")
class TopK_1(Selection):
    """The k largest or smallest elements along an axis."""


@dataclass(frozen=True)
class _Best:
    """One row of the outputs, and the comparison of its elements.

    `total`: NaN is larger than every number and equal to NaN, as in ONNX Runtime and NumPy; else no element may be NaN.
    """

    values: Buffer
    places: Buffer
    row: tuple[Expr, ...]
    along: int
    larger: bool
    total: bool = True

    def at(self, place: Scripted) -> tuple[Scripted, ...]:
        """Return the index of an element along the axis."""
        return (*self.row[: self.along], place, *self.row[self.along :])

    def element(self, place: Scripted) -> tuple[Expr, Expr]:
        """Return a value and its index in the input."""
        return self.values[self.at(place)], self.places[self.at(place)]

    def better(self, a: Scripted, b: Scripted) -> Expr:
        """True if element `a` is ordered before element `b`, whatever their indices are."""
        if not (self.total and self.values.dtype.is_float):
            return prim("gt" if self.larger else "lt", a, b)
        number = b if self.larger else a
        return prim("and", self.can_be_better(a, b), prim("eq", number, number))

    def can_be_better(self, a: Scripted, b: Scripted) -> Expr:
        """True if `a` is better than `b`, or one of them is NaN: one comparison."""
        if not self.values.dtype.is_float:
            return self.better(a, b)
        return prim("not", prim("le" if self.larger else "ge", a, b))

    def worse(self, a: tuple[Expr, Expr], b: tuple[Expr, Expr], by_index: bool) -> Expr:
        """True if element `a` is ordered after element `b`."""
        later = prim("gt", cast(a[1], DType.I64), cast(b[1], DType.I64))
        if by_index:
            return later
        total = self.total and self.values.dtype.is_float
        equal = prim("not", self.better(a[0], b[0])) if total else prim("eq", a[0], b[0])
        return prim("or", self.better(b[0], a[0]), prim("and", equal, later))


@loops
def _few(
    values: Scripted, places: Scripted, x: Buffer, shape: Scripted, along: int, k: int, larger: bool, by_index: bool
) -> None:
    others = shape[:along] + shape[along + 1 :]
    for o in parallel(volume(others)):
        _row(_list, _Best(values, places, unravel(o, others), along, larger), x, (k, shape[along]), by_index)


@loops
def _row(choose: Scripted, best: Scripted, x: Buffer, sizes: Scripted, by_index: bool) -> None:
    """Run `choose` as if no element were NaN, and again if one is: to compare NaN takes 1.1 to 2 times as long."""
    if best.values.dtype.is_float:
        unordered = array(1, dtype=DType.BOOL)
        unordered[0] = Const(0, DType.BOOL)
        choose(replace(best, total=False), x, sizes, by_index, unordered)
        if unordered[0]:
            choose(best, x, sizes, by_index, unordered)
    else:
        choose(best, x, sizes, by_index, ())


@loops
def _list(best: Scripted, x: Buffer, sizes: Scripted, by_index: bool, unordered: Scripted) -> None:
    """Write the best `sizes[0]` of `sizes[1]` elements, for few; set `unordered` if `best` cannot compare one."""
    k, extent = sizes
    count = var(0, DType.I64)
    for j in range(extent if k else 0):
        item = x[best.at(j)]
        if count < k or best.can_be_better(item, best.values[best.at(k - 1)]):
            if not best.total:
                unordered[0] = prim("or", unordered[0], prim("ne", item, item))
            if count < k or not best.total or best.better(item, best.values[best.at(k - 1)]):
                count = min(count + 1, k)
                hole = var(count - 1, DType.I64)
                while hole > 0 and best.better(item, best.values[best.at(hole - 1)]):
                    best.values[best.at(hole)] = best.values[best.at(hole - 1)]
                    best.places[best.at(hole)] = best.places[best.at(hole - 1)]
                    hole -= 1
                best.values[best.at(hole)] = item
                best.places[best.at(hole)] = j
    if by_index:
        _order(best, k)


@loops
def _beside(
    values: Scripted, places: Scripted, x: Buffer, shape: Scripted, along: int, k: int, larger: bool, by_index: bool
) -> None:
    others, length = (*shape[:along], *shape[along + 1 : -1]), shape[-1]
    for o in parallel(volume(others)):
        row = unravel(o, others)
        pieces, alone = _pieces(length)
        for first, count, width in pieces:
            for c in range(count):
                part = (first + c * width, width)
                _side(_Best(values, places, row, along, larger), x, part, shape[along], k, by_index)
        for v in range(alone):
            best = _Best(values, places, (*row, length - alone + v), along, larger)
            _row(_list, best, x, (k, shape[along]), by_index)


def _pieces(length: Scripted) -> tuple[tuple[tuple[Scripted, Scripted, int], ...], Scripted]:
    """Split adjacent rows into vectors: first row, number of vectors and their width; and the number of rows left."""
    if isinstance(length, int):
        width, left = min(length, MAX_LANES), length % min(length, MAX_LANES)
        return ((0, length // width, width), *(((length - left, 1, left),) if left else ())), 0
    rest = length % MAX_LANES
    return (
        (0, length // MAX_LANES, MAX_LANES),
        (length - rest, rest // MIN_VECTOR_ROWS, MIN_VECTOR_ROWS),
    ), length % MIN_VECTOR_ROWS


@loops
def _side(best: Scripted, x: Buffer, part: tuple[Expr, int], extent: Scripted, k: int, by_index: bool) -> None:
    """Process the adjacent rows `part`: (first row, number of rows)."""
    start, width = part
    top = array(k, width, dtype=best.values.dtype.compute)
    at = array(k, width, dtype=best.places.dtype.compute)
    later = array(k + 1, width, dtype=DType.BOOL)
    item = array(width, dtype=best.values.dtype.compute)
    place = array(width, dtype=best.places.dtype.compute)
    for v in lanes(width):
        for j in tuple(range(k)):
            item[v] = x[(*best.at(j), start + v)]
            _insert(best, (top, at, later), (item[v], j), v, j, k)
        for j in range(k, extent):
            item[v] = x[(*best.at(j), start + v)]
            _insert(best, (top, at, later), (item[v], j), v, k, k)
        if by_index:
            for last in tuple(range(k - 1, 0, -1)):
                for t in tuple(range(last)):
                    later[t, v] = at[t, v] > at[t + 1, v]
                    _swap(top, item, later, t, v)
                    _swap(at, place, later, t, v)
        for t in tuple(range(k)):
            best.values[(*best.at(t), start + v)] = top[t, v]
            best.places[(*best.at(t), start + v)] = at[t, v]


@loops
def _insert(best: Scripted, lists: Scripted, item: Scripted, v: Expr, count: int, k: int) -> None:
    """Insert `item` into the first `count` of `k` entries; entries that it beats move one place towards the end."""
    top, at, later = lists
    if count < k:
        later[count, v] = Const(1, DType.BOOL)  # the first free place
    for t in tuple(range(count - 1, -1, -1)):
        later[t, v] = best.better(item[0], top[t, v])
        if t < count - 1:
            later[t, v] = prim("and", later[t, v], later[t + 1, v])
    for t in tuple(range(min(count, k - 1), -1, -1)):
        _shift(top, later, item[0], v, t)
        _shift(at, later, cast(item[1], at.dtype), v, t)


@loops
def _shift(kept: Scripted, later: Scripted, new: Scripted, v: Expr, t: int) -> None:
    """Set entry `t` to its predecessor, to the new element, or leave it."""
    if t:
        kept[t, v] = select(later[t, v], select(later[t - 1, v], kept[t - 1, v], new), kept[t, v])
    else:
        kept[t, v] = select(later[t, v], new, kept[t, v])


@loops
def _swap(kept: Scripted, spare: Scripted, where: Scripted, t: int, v: Expr) -> None:
    spare[v] = kept[t, v]
    kept[t, v] = select(where[t, v], kept[t + 1, v], kept[t, v])
    kept[t + 1, v] = select(where[t, v], spare[v], kept[t + 1, v])


@loops
def _order(best: Scripted, k: int) -> None:
    for j in range(1, k):
        item = best.values[best.at(j)]
        place = var(cast(best.places[best.at(j)], DType.I64), DType.I64)
        hole = var(j, DType.I64)
        while hole > 0 and place < best.places[best.at(hole - 1)]:
            best.values[best.at(hole)] = best.values[best.at(hole - 1)]
            best.places[best.at(hole)] = best.places[best.at(hole - 1)]
            hole -= 1
        best.values[best.at(hole)] = item
        best.places[best.at(hole)] = place


@loops
def _many(
    values: Scripted, places: Scripted, x: Buffer, shape: Scripted, along: int, k: Dim, larger: bool, by_index: bool
) -> None:
    others = shape[:along] + shape[along + 1 :]
    for o in parallel(volume(others)):
        sizes: Scripted = (min(k, shape[along]), shape[along])  # pyrefly: ignore[bad-specialization]  of a script
        _row(_select, _Best(values, places, unravel(o, others), along, larger), x, sizes, by_index)


@loops
def _select(best: Scripted, x: Buffer, sizes: Scripted, by_index: bool, unordered: Scripted) -> None:
    """Write the best `sizes[0]` of `sizes[1]` elements; set `unordered` if `best` cannot compare one."""
    size, extent = sizes
    for j in range(size):
        item = x[best.at(j)]
        if not best.total:
            unordered[0] = prim("or", unordered[0], prim("ne", item, item))
        best.values[best.at(j)] = item
        best.places[best.at(j)] = j
    _heapify(best, size, False)
    if size > 0:
        for j in range(size, extent):
            item = x[best.at(j)]
            if best.can_be_better(item, best.values[best.at(0)]):
                if not best.total:
                    unordered[0] = prim("or", unordered[0], prim("ne", item, item))
                if not best.total or best.better(item, best.values[best.at(0)]):
                    _sift(best, 0, size, (item, j), False)
    if by_index:
        _heapify(best, size, True)
    for t in range(size - 1):
        end = size - 1 - t
        item = best.values[best.at(end)]
        place = var(cast(best.places[best.at(end)], DType.I64), DType.I64)
        best.values[best.at(end)] = best.values[best.at(0)]
        best.places[best.at(end)] = best.places[best.at(0)]
        _sift(best, 0, end, (item, place), by_index)


@loops
def _heapify(best: Scripted, size: Scripted, by_index: bool) -> None:
    for t in range(size // 2):
        start = size // 2 - 1 - t
        item = best.values[best.at(start)]
        place = var(cast(best.places[best.at(start)], DType.I64), DType.I64)
        _sift(best, start, size, (item, place), by_index)


@loops
def _sift(best: Scripted, start: Scripted, end: Scripted, item: Scripted, by_index: bool) -> None:
    hole = var(start, DType.I64)
    child = var(2 * start + 1, DType.I64)
    while child < end:
        if child + 1 < end and best.worse(best.element(child + 1), best.element(child), by_index):
            child += 1
        if best.worse(best.element(child), item, by_index):
            best.values[best.at(hole)] = best.values[best.at(child)]
            best.places[best.at(hole)] = best.places[best.at(child)]
            hole = child
            child = 2 * child + 1
        else:
            child = end
    best.values[best.at(hole)] = item[0]
    best.places[best.at(hole)] = item[1]
