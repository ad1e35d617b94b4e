"""Inverses and determinants of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from aot.codegen.ir.loops import Buffer, Space, dense, prim
from aot.codegen.script.script import Scripted, cast, loops, parallel, var
from aot.ir.conditions import Condition
from aot.ir.op import Elements, LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, TensorType
from aot.opset.base.row_major import unravel, volume
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


@op("opset14")
class Inverse(LoopOp):
    """The inverse of each matrix of x [.., M, M], or of its transpose; by elimination with partial pivoting.

    All elements of the inverse of a singular matrix are NaN.
    """

    elements = Elements.FLOAT

    adjoint: bool = False

    def infer(self, x: Operand) -> TensorType:
        if x.rank < 2:
            raise ShapeError(f"Inverse: the rank must be at least 2, got {x.rank}")
        return x.type

    def conditions(self, x: Operand) -> Sequence[Condition]:
        return [(x.shape[-2], x.shape[-1], "matrices must be square")]

    def nest(self, outs: tuple[Buffer, ...], x: Input) -> tuple[Work, ...]:
        batch = volume(x.shape[:-2])
        left, right = (dense(n, batch, *x.shape[-2:], space=Space.ARENA, dtype=DType.F64) for n in ("left", "right"))
        return (_invert(outs[0], x.buffer, left, right, x.shape, self.adjoint),)

    def reference(self, x: Array) -> Array:
        wide = x.astype(np.float64)
        matrices = wide.swapaxes(-1, -2) if self.adjoint else wide
        return np.reshape([_inverse(m) for m in matrices.reshape(-1, *x.shape[-2:])], x.shape).astype(x.dtype)


def _inverse(matrix: Array) -> Array:
    """Compute the inverse of a matrix of f64, or NaN if it is singular."""
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return np.full_like(matrix, np.nan)


@loops
def _invert(out: Scripted, x: Scripted, left: Scripted, right: Scripted, shape: Scripted, adjoint: bool) -> None:
    """Transform [left | right] from [x | 1] to [1 | inverse] by operations on rows."""
    size = shape[-1]
    for o in parallel(volume(shape[:-2])):
        before = unravel(o, shape[:-2])
        for i in range(size):
            for j in range(size):
                left[o, i, j] = cast(x[(*before, j, i)] if adjoint else x[(*before, i, j)], DType.F64)
                right[o, i, j] = cast(prim("eq", i, j), DType.F64)
        for k in range(size):
            _eliminate(left, right, size, o, k)
        for i in range(size):
            for j in range(size):
                out[(*before, i, j)] = cast(right[o, i, j], out.dtype)


@loops
def _eliminate(left: Scripted, right: Scripted, size: Scripted, o: Scripted, k: Scripted) -> None:
    """Make column `k` of the left side that of the unit matrix; the pivot is its largest element from row `k` on."""
    best = var(k, DType.I64)
    for i in range(k + 1, size):
        if abs(left[o, i, k]) > abs(left[o, best, k]):
            best = i
    pivot = var(left[o, best, k], DType.F64)
    if pivot == 0.0:
        pivot = math.nan
    for j in range(size):
        for side in (left, right):
            upper = var(side[o, k, j], DType.F64)
            side[o, k, j] = side[o, best, j] / pivot
            if best != k:
                side[o, best, j] = upper
    for i in range(size):
        if i != k:
            factor = var(left[o, i, k], DType.F64)
            for j in range(size):
                for side in (left, right):
                    side[o, i, j] = side[o, i, j] - factor * side[o, k, j]


@op()
class Cholesky(LoopOp):
    """The lower triangle L of each matrix L L' of x [.., M, M]; the upper triangle of x is not read.

    Elements are NaN from the first pivot on that is not positive.
    """

    elements = Elements.FLOAT

    def infer(self, x: Operand) -> TensorType:
        if x.rank < 2:
            raise ShapeError(f"Cholesky: the rank must be at least 2, got {x.rank}")
        return x.type

    def conditions(self, x: Operand) -> Sequence[Condition]:
        return [(x.shape[-2], x.shape[-1], "matrices must be square")]

    def nest(self, outs: tuple[Buffer, ...], x: Input) -> tuple[Work, ...]:
        root = dense("root", volume(x.shape[:-2]), *x.shape[-2:], space=Space.ARENA, dtype=DType.F64)
        return (_take_root(outs[0], x.buffer, root, x.shape),)

    def reference(self, x: Array) -> Array:
        root = np.zeros(x.shape)
        wide = x.astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            for k in range(x.shape[-1]):
                rest = wide[..., k:, k] - (root[..., k:, :k] * root[..., k : k + 1, :k]).sum(-1)
                root[..., k:, k] = rest / np.sqrt(np.where(rest[..., :1] > 0, rest[..., :1], np.nan))
        return root.astype(x.dtype)


@loops
def _take_root(out: Scripted, x: Scripted, root: Scripted, shape: Scripted) -> None:
    """Compute the columns of L from the left to the right."""
    size = shape[-1]
    for o in parallel(volume(shape[:-2])):
        before = unravel(o, shape[:-2])
        for k in range(size):
            pivot = var(cast(x[(*before, k, k)], DType.F64), DType.F64)
            for j in range(k):
                pivot -= root[o, k, j] * root[o, k, j]
            if not pivot > 0.0:
                pivot = math.nan
            for i in range(size):
                rest = var(cast(x[(*before, i, k)], DType.F64), DType.F64)
                if i < k:
                    rest = 0.0
                else:
                    for j in range(k):
                        rest -= root[o, i, j] * root[o, k, j]
                    rest = rest / prim("sqrt", pivot)
                root[o, i, k] = rest
                out[(*before, i, k)] = cast(rest, out.dtype)


@op()
class Det(LoopOp):
    """The determinant of each matrix of x [.., M, M]; by elimination with partial pivoting."""

    def infer(self, x: Operand) -> TensorType:
        if x.rank < 2:
            raise ShapeError(f"Det: the rank must be at least 2, got {x.rank}")
        return TensorType(x.dtype, x.shape[:-2])

    def conditions(self, x: Operand) -> Sequence[Condition]:
        return [(x.shape[-2], x.shape[-1], "matrices must be square")]

    def nest(self, outs: tuple[Buffer, ...], x: Input) -> tuple[Work, ...]:
        left = dense("left", volume(x.shape[:-2]), *x.shape[-2:], space=Space.ARENA, dtype=DType.F64)
        return (_determine(outs[0], x.buffer, left, x.shape),)

    def reference(self, x: Array) -> Array:
        return np.asarray(np.linalg.det(x.astype(np.float64))).astype(x.dtype)


@loops
def _determine(out: Scripted, x: Scripted, left: Scripted, shape: Scripted) -> None:
    """Compute the product of the pivots; each exchange of rows flips the sign."""
    size = shape[-1]
    for o in parallel(volume(shape[:-2])):
        before = unravel(o, shape[:-2])
        for i in range(size):
            for j in range(size):
                left[o, i, j] = cast(x[(*before, i, j)], DType.F64)
        total = var(1.0, DType.F64)
        for k in range(size):
            best = var(k, DType.I64)
            for i in range(k + 1, size):
                if abs(left[o, i, k]) > abs(left[o, best, k]):
                    best = i
            pivot = var(left[o, best, k], DType.F64)
            if best != k:
                total = -total
                for j in range(size):
                    upper = var(left[o, k, j], DType.F64)
                    left[o, k, j] = left[o, best, j]
                    left[o, best, j] = upper
            total *= pivot
            if pivot != 0.0:
                for i in range(k + 1, size):
                    factor = var(left[o, i, k] / pivot, DType.F64)
                    for j in range(k, size):
                        left[o, i, j] = left[o, i, j] - factor * left[o, k, j]
        out[before] = cast(total, out.dtype)
