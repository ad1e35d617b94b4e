"""Broadcast and Tile: elements repeated along dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from aot.codegen.ir.loops import Const, Expr, prim
from aot.ir.conditions import at_least
from aot.ir.dims import can_be_negative
from aot.ir.op import ViewOp
from aot.ir.operand import Operand, Piece
from aot.ir.registry import attr, op
from aot.ir.types import Array, Dim, Shape, TensorType, dtype_of
from aot.opset.base.families import broadcast, pdpd_shape
from aot.opset.base.index_maps import whole
from aot.runtime.errors import ShapeError


class BroadcastMode(StrEnum):
    NUMPY = "numpy"
    EXPLICIT = "explicit"
    NONE = "none"  # spelling of `explicit` in model files
    PDPD = "pdpd"
    BIDIRECTIONAL = "bidirectional"


@op("opset1", "opset3")
class Broadcast(ViewOp):
    """The input stretched to a target shape.

    numpy: aligned at the end; explicit: input dimension k is output dimension axes_mapping[k]; pdpd: aligned at
    `start_axis`; bidirectional: input and target stretch each other.
    """

    mode: BroadcastMode = BroadcastMode.NUMPY
    start_axis: int = attr(default=-1, only=("mode", BroadcastMode.PDPD))

    def infer(self, x: Operand, target: Operand, mapping: Operand | None = None) -> TensorType:
        target_dims = target.dims("Broadcast: target shape")
        if self.mode is BroadcastMode.BIDIRECTIONAL:
            return TensorType(x.dtype, broadcast(x.shape, target_dims, what="Broadcast"))
        aligned = self._aligned(x.shape, target_dims, mapping)
        for k, (n, m) in enumerate(zip(aligned, target_dims, strict=True)):
            if isinstance(n, int) and isinstance(m, int) and n not in (1, m):
                raise ShapeError(f"Broadcast: dimension {k} cannot be broadcast to {m}, got {n}")
        return TensorType(x.dtype, target_dims)

    def conditions(self, *operands: Operand | None) -> Sequence[tuple[Dim, Dim, str]]:
        x, target, mapping = (*operands, None)[:3]
        assert x is not None and target is not None
        target_dims = target.dims("Broadcast: target shape")
        if self.mode is BroadcastMode.BIDIRECTIONAL:
            pairs = list(zip(reversed(x.shape), reversed(target_dims), strict=False))
        else:
            pairs = list(zip(self._aligned(x.shape, target_dims, mapping), target_dims, strict=True))
        unknown = [(n, m) for n, m in pairs if n not in (1, m) and not (isinstance(n, int) and isinstance(m, int))]
        either = self.mode is BroadcastMode.BIDIRECTIONAL
        rule = "sizes must be equal, or 1 to be stretched"
        signs = [at_least("sizes must not be negative", m, 0) for m in target_dims if can_be_negative(m)]
        return [*signs, *(((n - m) * (n - 1) * ((m - 1) if either else 1), 0, rule) for n, m in unknown)]

    def _aligned(self, shape: Shape, target: Shape, mapping: Operand | None) -> Shape:
        """Return the input's shape, extended by ones to the output's rank."""
        if self.mode in (BroadcastMode.EXPLICIT, BroadcastMode.NONE):
            assert mapping is not None
            positions = mapping.ints("Broadcast: axes_mapping")
            if (
                len(positions) != len(shape)
                or len(set(positions)) < len(positions)
                or not set(positions) <= {*range(len(target))}
            ):
                rule = f"axes_mapping has a dimension of the output, {len(target)} in all, for each of {len(shape)}"
                raise ShapeError(f"Broadcast: {rule}, got {list(positions)}")
            return tuple(shape[positions.index(k)] if k in positions else 1 for k in range(len(target)))
        if self.mode is BroadcastMode.PDPD:
            return pdpd_shape(target, shape, self.start_axis)
        if len(shape) > len(target):
            raise ShapeError(f"Broadcast: rank {len(shape)} cannot be broadcast to rank {len(target)}")
        return (1,) * (len(target) - len(shape)) + shape

    def pieces(
        self, outs: tuple[TensorType, ...], x: Operand, target: Operand, mapping: Operand | None = None
    ) -> tuple[Piece, ...]:
        rank = outs[0].rank
        positions = self._places(x.rank, rank, mapping)

        def index(*at: Expr) -> tuple[Expr, ...]:
            dims = zip(positions, x.shape, strict=True)
            return tuple(self._place(at[place], n, outs[0].shape[place]) for place, n in dims)

        return (whole(outs[0], index),)

    @staticmethod
    def _place(i: Expr, n: Dim, target: Dim) -> Expr:
        """Return the index into a dimension of n, which is 1 or `wanted`; a dynamic n may be either."""
        if n == 1:
            return Const(0)
        return i if n == target or isinstance(n, int) else prim("min", i, n - 1)

    def _places(self, own: int, rank: int, mapping: Operand | None) -> list[int]:
        """Return the output dimension of each input dimension."""
        if self.mode in (BroadcastMode.EXPLICIT, BroadcastMode.NONE):
            assert mapping is not None
            return list(mapping.ints("Broadcast: axes_mapping"))
        start = rank - own
        if self.mode is BroadcastMode.PDPD and self.start_axis != -1:
            start = self.start_axis
        return [min(start + k, rank - 1) for k in range(own)]

    def reference(self, x: Array, target: Array, mapping: Array | None = None) -> Array:
        target_shape = tuple(int(n) for n in target.reshape(-1))
        if self.mode is BroadcastMode.BIDIRECTIONAL:
            return np.array(np.broadcast_to(x, np.broadcast_shapes(x.shape, target_shape)))
        axes = None if mapping is None else Operand(TensorType(dtype_of(mapping), mapping.shape), mapping)
        aligned = TensorType(dtype_of(x), self._aligned(x.shape, target_shape, axes)).static_shape
        return np.array(np.broadcast_to(x.reshape(aligned), target_shape))


@op("opset1")
class Tile(ViewOp):
    """The input repeated along each dimension; shape and repeats are aligned at the end."""

    def infer(self, x: Operand, repeats: Operand) -> TensorType:
        shape, times = self._aligned(x.shape, repeats.dims("Tile: repeats"))
        return TensorType(x.dtype, tuple(n * r for n, r in zip(shape, times, strict=True)))

    @staticmethod
    def _aligned(shape: Shape, times: tuple[Dim, ...]) -> tuple[Shape, Shape]:
        rank = max(len(shape), len(times))
        return (1,) * (rank - len(shape)) + shape, (1,) * (rank - len(times)) + times

    def pieces(self, outs: tuple[TensorType, ...], x: Operand, repeats: Operand) -> tuple[Piece, ...]:
        def index(*at: Expr) -> tuple[Expr, ...]:
            skip = len(at) - x.rank
            dims = zip(at[skip:], x.shape, outs[0].shape[skip:], strict=True)
            return tuple(i % n if m != n else i for i, n, m in dims)

        return (whole(outs[0], index),)

    def reference(self, x: Array, repeats: Array) -> Array:
        return np.tile(x, [int(r) for r in repeats.reshape(-1)])
