"""Operations that only rename or return dimensions: Reshape, Squeeze, Unsqueeze, ShapeOf."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from aot.codegen.ir.loops import Const, Expr, as_expr, cast, prim, select
from aot.ir.conditions import Condition, axis_of
from aot.ir.dims import is_data
from aot.ir.op import ComputeOp, Element, ViewOp
from aot.ir.operand import Input, Operand, Piece
from aot.ir.registry import op
from aot.ir.types import INTS, Array, Dim, Shape, TensorType, dim_text, numpy_dtype, simplify
from aot.opset.base.index_maps import reshaped, whole
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

D = TypeVar("D")


class Renaming(ViewOp):
    """A view that keeps the row-major order; `pieces` and `reference` follow from the output's shape."""

    def pieces(self, outs: tuple[TensorType, ...], x: Operand, *rest: Operand | None) -> tuple[Piece, ...]:
        return (whole(outs[0], reshaped(x.shape, outs[0].shape)),)


def volume(shape: Iterable[Dim]) -> Dim:
    """Return the number of elements of a shape, simplified."""
    dims: list[Any] = list(shape)
    total: Dim = 1
    if set(map(type, dims)) <= INTS:
        return math.prod(dims)
    for n in dims:
        total = total * n
    return simplify(total)


@op("opset1")
class Reshape(Renaming):
    """The same elements in another shape; -1 stands for the remaining size, with `special_zero` 0 for the input's."""

    special_zero: bool = False

    def infer(self, x: Operand, target: Operand) -> TensorType:
        target_dims, copied = list(target.dims("Reshape: target shape")), set[int]()
        for k, n in enumerate(target_dims):
            if isinstance(n, int) and n == 0 and self.special_zero:
                if k >= x.rank:
                    raise ShapeError(f"Reshape: 0 must stand at an input dimension, got position {k} of rank {x.rank}")
                target_dims[k] = x.shape[k]
                copied.add(k)
            elif self.special_zero and k < x.rank and is_data(n):
                target_dims[k] = select(prim("eq", n, 0), x.shape[k], n)
        return TensorType(x.dtype, self._completed(x.shape, target_dims, copied))

    def conditions(self, *operands: Operand | None) -> Sequence[tuple[Dim, Dim, str]]:
        x, target = operands
        assert x is not None and target is not None
        if x.type.is_static and target.value is not None and target.value.dtype != object:
            return ()  # `infer` compares numbers
        return ((volume(self.infer(x, target).shape), volume(x.shape), "element counts must be equal"),)

    @staticmethod
    def _completed(shape: Shape, sizes: list[Dim], copied: set[int]) -> Shape:
        """Replace -1 by the input size over the product of the other dimensions; copied ones count for neither."""
        open_ = [k for k, n in enumerate(sizes) if isinstance(n, int) and n == -1]
        if len(open_) > 1 or any(isinstance(n, int) and n < -1 for n in sizes):
            raise ShapeError(
                f"Reshape: there can be at most one -1 and nothing below, got {[dim_text(n) for n in sizes]}"
            )
        total = volume(n for k, n in enumerate(shape) if k not in copied)
        rest = volume(n for k, n in enumerate(sizes) if k not in open_ and k not in copied)
        unknown = [k for k, n in enumerate(sizes) if is_data(n)] if not open_ else []
        if unknown:  # any one of them may be -1, and then none of the others is
            others = {k: volume(n for i, n in enumerate(sizes) if i != k and i not in copied) for k in unknown}
            for k, other in others.items():
                sizes[k] = select(prim("eq", sizes[k], -1), total // as_expr(other, DType.I64), sizes[k])
        elif open_:
            if isinstance(total, int) and isinstance(rest, int) and (total % rest if rest else total):
                raise ShapeError(f"Reshape: {total} elements must divide by {rest}")
            sizes[open_[0]] = 0 if rest == 0 else simplify(total // rest)
        elif isinstance(total, int) and isinstance(rest, int) and (have := volume(shape)) != (want := volume(sizes)):
            raise ShapeError(f"Reshape: numbers of elements must be equal, got {dim_text(have)} and {dim_text(want)}")
        return tuple(sizes)

    def reference(self, x: Array, target: Array) -> Array:
        sizes = [int(n) for n in target.reshape(-1)]
        copied = {k for k, n in enumerate(sizes) if n == 0 and self.special_zero}
        target_dims = [x.shape[k] if k in copied else n for k, n in enumerate(sizes)]
        if -1 in target_dims:
            left = math.prod(n for k, n in enumerate(x.shape) if k not in copied)
            rest = math.prod(n for k, n in enumerate(target_dims) if k not in copied and n != -1)
            target_dims[target_dims.index(-1)] = left // rest if rest else 0
        return x.reshape(target_dims)


@op("opset1")
class Squeeze(Renaming):
    """The same elements without dimensions of size 1: those of `axes`, or all."""

    def infer(self, x: Operand, axes: Operand | None = None) -> TensorType:
        gone = self._gone(x.shape, None if axes is None else axes.ints("Squeeze: axes"))
        return TensorType(x.dtype, tuple(n for k, n in enumerate(x.shape) if k not in gone))

    def conditions(self, x: Operand, axes: Operand | None = None) -> Sequence[Condition]:
        """Require that removed dimensions have size 1, unless they may be skipped."""
        if axes is None:
            return ()
        gone = self._gone(x.shape, axes.ints("Squeeze: axes"))
        return [(x.shape[k], 1, f"dimension {k} must be 1") for k in sorted(gone)]

    def _gone(self, shape: Shape, axes: tuple[int, ...] | None) -> set[int]:
        if not axes:
            return {k for k, n in enumerate(shape) if n == 1}
        gone = {axis_of(a, len(shape), "Squeeze") for a in axes}
        for k in sorted(gone):
            if isinstance(n := shape[k], int) and n != 1:
                if not self.skips_axes():
                    raise ShapeError(f"Squeeze: dimension {k} must be 1, got {n}")
                gone.discard(k)
        return gone

    def skips_axes(self) -> bool:
        """True if axes of a size other than 1 are skipped."""
        return False

    def reference(self, x: Array, axes: Array | None = None) -> Array:
        gone = self._gone(x.shape, None if axes is None else tuple(int(a) for a in np.reshape(axes, -1)))
        return x.reshape([n for k, n in enumerate(x.shape) if k not in gone])


@op("opset15", type="Squeeze")
class Squeeze_15(Squeeze):
    """Squeeze; with `allow_axis_skip`, axes of a size other than 1 stay."""

    allow_axis_skip: bool = False

    def skips_axes(self) -> bool:
        return self.allow_axis_skip


@op("opset1")
class Unsqueeze(Renaming):
    """The same elements with dimensions of size 1 inserted at the given positions of the output."""

    def infer(self, x: Operand, axes: Operand) -> TensorType:
        return TensorType(x.dtype, tuple(self._shape(x.shape, axes.ints("Unsqueeze: axes"))))

    @staticmethod
    def _shape(shape: tuple[D, ...], axes: tuple[int, ...]) -> list[D | int]:
        rank = len(shape) + len(set(axes))
        positions = {axis_of(a, rank, "Unsqueeze") for a in axes}
        if len(shape) + len(positions) < rank:
            raise ShapeError(f"Unsqueeze: axes must be different ones of {rank} dimensions, got {list(axes)}")
        rest = iter(shape)
        return [1 if k in positions else next(rest) for k in range(rank)]

    def reference(self, x: Array, axes: Array) -> Array:
        return x.reshape(self._shape(x.shape, tuple(int(a) for a in np.reshape(axes, -1))))


@op("opset3", type="ShapeOf")
class ShapeOf(ComputeOp):
    """The dimensions of x as integers."""

    output_type: DType = DType.I64

    def infer(self, x: Operand) -> TensorType:
        return TensorType(self.output_type, (x.rank,))

    def fold(self, *operands: Operand | None) -> tuple[Array, ...] | None:
        """Fold by the type alone; symbolic dimensions give an array of expressions."""
        x = operands[0]
        if x is None or x.type.dims is None:
            return None
        if x.type.is_static:
            return (np.array(x.shape, numpy_dtype(self.output_type)),)
        return (np.array([*x.shape, None], object)[:-1],)

    def compute(self, out: TensorType, x: Input) -> Element:
        def element(i: Expr) -> Expr:
            size: Expr = Const(0)
            for k, n in enumerate(x.shape):
                size = select(prim("eq", i, k), n, size)
            return cast(size, self.output_type)

        return element

    def reference(self, x: Array) -> Array:
        return np.array(x.shape, numpy_dtype(self.output_type))


@op("opset1", type="ShapeOf")
class ShapeOf_1(ShapeOf):
    """The dimensions of x as i64."""
