"""Operations that only move data: Transpose, Concat, Split, VariadicSplit, Reverse, ReverseSequence, Roll."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from aot.codegen.ir.loops import Const, Expr, as_expr, cast, prim, select
from aot.ir.build import Builder
from aot.ir.conditions import Condition, alike, at_least, axis_of
from aot.ir.dims import can_be_negative, is_data
from aot.ir.graph import OutPort
from aot.ir.op import ComputeOp, DecomposedOp, Element, ViewOp
from aot.ir.operand import Input, Operand, Piece, has_symbols
from aot.ir.registry import op
from aot.ir.types import Array, Dim, Shape, TensorType, differs, dim_text, simplify
from aot.opset.base.index_maps import permuted, same, shifted, whole
from aot.opset.movement.shape import volume
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


def _equals(k: Dim, position: int) -> Expr:
    """Return 1 if k is `position`, else 0."""
    return select(prim("eq", as_expr(k, DType.I64), position), 1, 0)


def _chosen(shape: Shape, k: Dim) -> Dim:
    """Return shape[k]; k may be dynamic."""
    if isinstance(k, int):
        return shape[k]
    size = as_expr(shape[0], DType.I64)
    for d, n in enumerate(shape[1:], 1):
        size = select(prim("eq", k, d), n, size)
    return simplify(size)


@op("opset1")
class Transpose(ViewOp):
    """Dimension k of the output is dimension order[k] of the input; an empty order reverses."""

    def infer(self, x: Operand, order: Operand) -> TensorType:
        return TensorType(x.dtype, tuple(_chosen(x.shape, k) for k in self._order(x, order)))

    @staticmethod
    def _order(x: Operand, order: Operand) -> tuple[Dim, ...]:
        dims = order.dims("Transpose: order") or tuple(reversed(range(x.rank)))
        known = [k for k in dims if isinstance(k, int)]
        if len(dims) != x.rank or len({*known}.intersection(range(x.rank))) != len(known):
            got = [dim_text(k) for k in dims]
            raise ShapeError(f"Transpose: order must be a permutation of {x.rank} dimensions, got {got}")
        return dims

    def conditions(self, x: Operand, order: Operand) -> Sequence[Condition]:
        """Return the conditions that a data-dependent order is a permutation, which keeps the number of elements."""
        positions = self._order(x, order)
        if all(isinstance(k, int) for k in positions):
            return ()
        named = [sum((_equals(k, d) for k in positions), start=Const(0)) for d in range(x.rank)]
        rule = f"order must be a permutation of {x.rank} dimensions"
        return [*((n, 1, rule) for n in named), (volume(self.infer(x, order).shape), volume(x.shape), rule)]

    def pieces(self, outs: tuple[TensorType, ...], x: Operand, order: Operand) -> tuple[Piece, ...]:
        positions = self._order(x, order)
        known = [k for k in positions if isinstance(k, int)]
        if len(known) == len(positions):
            return (whole(outs[0], permuted(known)),)

        def index(*at: Expr) -> tuple[Expr, ...]:
            turns = range(x.rank)
            return tuple(sum((_equals(positions[k], d) * at[k] for k in turns), start=Const(0)) for d in turns)

        return (whole(outs[0], index),)

    def reference(self, x: Array, order: Array) -> Array:
        return x.transpose([int(k) for k in order.reshape(-1)] if order.size else None)


@op("opset1")
class Concat(ViewOp):
    """Inputs one after another along `axis`."""

    axis: int = 0

    def infer(self, *xs: Operand) -> TensorType:
        first, axis = xs[0], axis_of(self.axis, xs[0].rank, "Concat")
        total: Dim = 0
        for x in xs:
            if x.rank != first.rank or x.dtype is not first.dtype:
                raise ShapeError(f"Concat: inputs must have one rank and element type, got {first.type} and {x.type}")
            for k, (m, n) in enumerate(zip(first.shape, x.shape, strict=True)):
                if k != axis and m != n and isinstance(m, int) and isinstance(n, int):
                    raise ShapeError(f"Concat: inputs must have one size in dimension {k}, got {m} and {n}")
            total = total + x.shape[axis]
        extents = [min((x.shape[k] for x in xs), key=lambda n: not isinstance(n, int)) for k in range(first.rank)]
        extents[axis] = total
        return TensorType(first.dtype, tuple(extents))

    def conditions(self, *xs: Operand | None) -> Sequence[Condition]:
        shapes = [list(x.shape) for x in xs if x is not None]
        for shape in shapes:
            del shape[axis_of(self.axis, len(shape), "Concat")]
        extents = [min(sizes, key=lambda n: not isinstance(n, int)) for sizes in zip(*shapes, strict=True)]
        return [c for shape in shapes for c in alike("dimensions beside the axis must be equal", shape, extents)]

    def pieces(self, outs: tuple[TensorType, ...], *xs: Operand) -> tuple[Piece, ...]:
        axis = axis_of(self.axis, xs[0].rank, "Concat")
        pieces: list[Piece] = []
        position: Dim = 0
        for n, x in enumerate(xs):
            start: list[Dim] = [0] * x.rank
            start[axis] = position
            pieces.append(Piece(n, tuple(start), x.shape, same))
            position = position + x.shape[axis]
        return tuple(pieces)

    def reference(self, *xs: Array) -> Array:
        return np.concatenate(xs, self.axis)


class _Parts(ViewOp, ABC):
    """Base of operations that cut the first input into parts along an axis."""

    @abstractmethod
    def sizes(self, x: Operand, axis: int, *rest: Operand) -> list[Dim]: ...

    def _axis(self, x: Operand, axis: Operand) -> int:
        return axis_of(axis.ints(f"{self.type}: axis")[0], x.rank, self.type)

    def infer(self, x: Operand, axis: Operand, *rest: Operand) -> tuple[TensorType, ...]:
        k = self._axis(x, axis)
        return tuple(TensorType(x.dtype, (*x.shape[:k], n, *x.shape[k + 1 :])) for n in self.sizes(x, k, *rest))

    def pieces(self, outs: tuple[TensorType, ...], x: Operand, axis: Operand, *rest: Operand) -> tuple[Piece, ...]:
        k = self._axis(x, axis)
        pieces: list[Piece] = []
        at: Dim = 0
        for n, out in enumerate(outs):
            offsets: list[Dim] = [0] * x.rank
            offsets[k] = at
            pieces.append(whole(out, shifted(offsets), output=n))
            at = at + out.shape[k]
        return tuple(pieces)


@op("opset1")
class Split(_Parts):
    """`num_splits` equal parts along the axis that the second input names."""

    num_splits: int = 1

    def sizes(self, x: Operand, axis: int, *rest: Operand) -> list[Dim]:
        n = x.shape[axis]
        if self.num_splits < 1 or (isinstance(n, int) and n % self.num_splits):
            raise ShapeError(f"Split: {dim_text(n)} must divide into {self.num_splits} parts")
        return [n // self.num_splits] * self.num_splits

    def conditions(self, x: Operand, axis: Operand) -> Sequence[Condition]:
        n = x.shape[self._axis(x, axis)]
        rule = f"the dimension must divide into {self.num_splits} parts"
        return [(simplify(n // self.num_splits * self.num_splits), n, rule)]

    def reference(self, x: Array, axis: Array) -> tuple[Array, ...]:
        return tuple(np.split(x, self.num_splits, int(axis.reshape(-1)[0])))


@op("opset1")
class VariadicSplit(_Parts):
    """Parts along an axis with the lengths of the third input; one may be -1: the rest."""

    def sizes(self, x: Operand, axis: int, *rest: Operand) -> list[Dim]:
        size = x.shape[axis]
        lengths = self._lengths(size, rest[0])
        return [prim("min", as_expr(n, DType.I64), size) if is_data(n) else n for n in lengths]

    @staticmethod
    def _lengths(size: Dim, lengths: Operand) -> list[Dim]:
        """Return the lengths with any -1 replaced. A data-dependent length may be -1 too, if it is the only one."""
        sizes = list(lengths.dims("VariadicSplit: lengths"))
        open_ = [k for k, n in enumerate(sizes) if isinstance(n, int) and n == -1]
        if len(open_) > 1 or any(isinstance(n, int) and n < -1 for n in sizes):
            raise ShapeError(
                f"VariadicSplit: there can be at most one -1 and nothing below, got {[dim_text(n) for n in sizes]}"
            )
        total: Dim = sum((n for k, n in enumerate(sizes) if k not in open_), start=0)
        if open_:
            sizes[open_[0]] = simplify(size - total)
            return sizes
        return [select(prim("eq", n, -1), size - total + n, n) if is_data(n) else n for n in sizes]

    def conditions(self, x: Operand, axis: Operand, lengths: Operand) -> Sequence[Condition]:
        size = x.shape[self._axis(x, axis)]
        sizes = self._lengths(size, lengths)
        total: Dim = simplify(sum(sizes, start=0))
        parts = f"lengths of the {len(sizes)} parts must"
        signs = [at_least(f"{parts} not be negative", n, 0) for n in sizes if can_be_negative(n)]
        return [*signs, (total, size, f"{parts} add up to the dimension")]

    def reference(self, x: Array, axis: Array, lengths: Array) -> tuple[Array, ...]:
        k = int(axis.reshape(-1)[0])
        sizes = [int(n) for n in lengths.reshape(-1)]
        if -1 in sizes:
            sizes[sizes.index(-1)] = x.shape[k] - sum(n for n in sizes if n != -1)
        if min(sizes, default=0) < 0 or sum(sizes) != x.shape[k]:
            raise ShapeError(f"VariadicSplit: lengths must add up to {x.shape[k]}, got {lengths.tolist()}")
        return tuple(np.split(x, np.cumsum(sizes)[:-1], k))


class ReverseMode(StrEnum):
    INDEX = "index"
    MASK = "mask"


@op("opset1")
class Reverse(ViewOp):
    """Reverse along the given axes, or along those with a set mask."""

    mode: ReverseMode = ReverseMode.INDEX

    def infer(self, x: Operand, axes: Operand) -> TensorType:
        self._axes(x.rank, axes.ints("Reverse: axes"))
        return x.type

    def _axes(self, rank: int, axes: tuple[int, ...]) -> set[int]:
        if self.mode is ReverseMode.MASK:
            if len(axes) != rank:
                raise ShapeError(f"Reverse: the mask must have one entry a dimension, got {len(axes)} for rank {rank}")
            return {k for k, on in enumerate(axes) if on}
        return {axis_of(a, rank, "Reverse") for a in axes}

    def pieces(self, outs: tuple[TensorType, ...], x: Operand, axes: Operand) -> tuple[Piece, ...]:
        reversed_axes = self._axes(x.rank, axes.ints("Reverse: axes"))

        def index(*at: Expr) -> tuple[Expr, ...]:
            return tuple(
                (n - 1) - i if k in reversed_axes else i for k, (i, n) in enumerate(zip(at, x.shape, strict=True))
            )

        return (whole(outs[0], index),)

    def reference(self, x: Array, axes: Array) -> Array:
        return np.flip(x, tuple(self._axes(x.ndim, tuple(int(a) for a in axes.reshape(-1)))))


@op("opset1")
class ReverseSequence(ComputeOp):
    """The first `lengths[b]` elements along `seq_axis` reversed, for each b along `batch_axis`; the others stay."""

    batch_axis: int = 0
    seq_axis: int = 1

    def infer(self, x: Operand, lengths: Operand) -> TensorType:
        if lengths.rank != 1:
            raise ShapeError(f"ReverseSequence: lengths must have rank 1, got {lengths.type}")
        axis_of(self.batch_axis, x.rank, "ReverseSequence")
        axis_of(self.seq_axis, x.rank, "ReverseSequence")
        return x.type

    def conditions(self, x: Operand, lengths: Operand) -> Sequence[Condition]:
        rows = x.shape[axis_of(self.batch_axis, x.rank, "ReverseSequence")]
        return [(n, rows, "there is a length for each row of the batch") for n in lengths.shape]

    def compute(self, out: TensorType, x: Input, lengths: Input) -> Element:
        batch, seq = axis_of(self.batch_axis, x.rank, self.type), axis_of(self.seq_axis, x.rank, self.type)

        def element(*at: Expr) -> Expr:
            length = prim("min", cast(lengths(at[batch]), DType.I64), x.shape[seq])
            position = select(prim("lt", at[seq], length), length - 1 - at[seq], at[seq])
            return x(*(position if k == seq else i for k, i in enumerate(at)))

        return element

    def reference(self, x: Array, lengths: Array) -> Array:
        out = x.copy()
        batch_first = np.moveaxis(out, (self.batch_axis, self.seq_axis), (0, 1))
        for b, n in enumerate(np.clip(np.nan_to_num(lengths.reshape(-1)), 0, batch_first.shape[1])):
            batch_first[b, : int(n)] = batch_first[b, : int(n)][::-1].copy()
        return out


@op("opset7")
class Roll(DecomposedOp):
    """Cyclic shift along the given axes; shifts of one axis add up."""

    def infer(self, x: Operand, shift: Operand, axes: Operand) -> TensorType:
        where = self._axes(x, axes)
        if shift.rank > 1 or (shift.rank and differs(shift.shape[0], len(where)) and differs(shift.shape[0], 1)):
            raise ShapeError(f"Roll: there must be one shift, or one for each of {len(where)} axes, got {shift.type}")
        return x.type

    @staticmethod
    def _axes(x: Operand, axes: Operand) -> list[int]:
        return [axis_of(a, x.rank, "Roll") for a in axes.ints("Roll: axes")]

    def decompose(self, build: Builder, x: OutPort, shift: OutPort, axes: OutPort) -> OutPort:
        where = self._axes(Operand(x.type), Operand(axes.type, axes.value))
        if shift.value is None or has_symbols(Operand(shift.type, shift.value)):
            return build(RolledAt(tuple(where)), x, shift)
        by = [int(s) for s in shift.value.reshape(-1)]
        shifts = [0] * x.type.rank
        for k, s in zip(where, by * len(where) if len(by) == 1 else by, strict=True):
            shifts[k] += s
        if not any(shifts):
            return x
        return build(Rolled(tuple(shifts)), x)

    def reference(self, x: Array, shift: Array, axes: Array) -> Array:
        where = tuple(int(a) for a in axes.reshape(-1))
        by = [int(s) for s in shift.reshape(-1)]
        return np.roll(x, tuple(by * len(where) if len(by) == 1 else by), where)


@op()
class Rolled(ViewOp):
    """Cyclic shift of each dimension by `shifts`; it is two parts if the last dimension wraps."""

    shifts: tuple[int, ...] = ()

    def infer(self, x: Operand) -> TensorType:
        return x.type

    def pieces(self, outs: tuple[TensorType, ...], x: Operand) -> tuple[Piece, ...]:
        (*_, last), extent = self.shifts, x.shape[-1]
        last_shift = simplify(last % as_expr(simplify(prim("max", as_expr(extent, DType.I64), 1)), DType.I64))

        def part(start: Dim, count: Dim, by: Dim) -> Piece:
            def index(*at: Expr) -> tuple[Expr, ...]:
                outer = zip(at[:-1], self.shifts, x.shape, strict=False)
                return (*((i - s) % n if s else i for i, s, n in outer), at[-1] + by)

            return Piece(0, (*[0] * (x.rank - 1), start), (*x.shape[:-1], count), index)

        if isinstance(last_shift, int) and not last_shift:
            return (part(0, extent, 0),)
        return part(0, last_shift, extent - last_shift), part(last_shift, extent - last_shift, 0)

    def reference(self, x: Array) -> Array:
        return np.roll(x, self.shifts, tuple(range(x.ndim)))


@op()
class RolledAt(ComputeOp):
    """Cyclic shift along axes by data-dependent numbers: one for all, or one for each."""

    axes: tuple[int, ...] = ()

    def infer(self, x: Operand, shift: Operand) -> TensorType:
        return x.type

    def conditions(self, x: Operand, shift: Operand) -> Sequence[Condition]:
        if shift.rank == 0 or isinstance(size := shift.shape[0], int):
            return ()
        several = (size - 1) * (size - len(self.axes))
        return ((several, 0, f"one shift, or one for each of {len(self.axes)} axes"),)

    def compute(self, out: TensorType, x: Input, shift: Input) -> Element:
        size = shift.shape[0] if shift.rank else 1
        step: Dim = min(size - 1, 1) if isinstance(size, int) else prim("min", size - 1, 1)  # 0: one shift for all axes

        def element(*at: Expr) -> Expr:
            index = list(at)
            for n, k in enumerate(self.axes):
                by = shift(*([] if shift.rank == 0 else [as_expr(step * n, DType.I64)]))
                index[k] = (index[k] - cast(by, DType.I64)) % x.shape[k]
            return x(*index)

        return element

    def reference(self, x: Array, shift: Array) -> Array:
        by = [int(s) for s in shift.reshape(-1)]
        return np.roll(x, tuple(by * len(self.axes) if len(by) == 1 else by), self.axes)
