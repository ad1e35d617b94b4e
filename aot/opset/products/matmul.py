"""Products of matrices."""

from __future__ import annotations

from aot.codegen.ir.loops import Expr, Reduce
from aot.ir.op import ComputeOp, Element, Elements
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Shape, TensorType, dim_text
from aot.opset.base.decomposition import wide
from aot.opset.base.families import axis, broadcast, stretched
from aot.runtime.errors import ShapeError


@op("opset1")
class MatMul(ComputeOp):
    """out[.., i, j] = sum_k a[.., i, k] b[.., k, j], after optional transposition; a 1-D input is a row or a column."""

    elements = Elements.NUMBER

    transpose_a: bool = False
    transpose_b: bool = False

    def infer(self, a: Operand, b: Operand) -> TensorType:
        if a.dtype is not b.dtype:
            raise ShapeError(f"MatMul: element types must be equal, got {a.dtype.value} and {b.dtype.value}")
        rows, columns = self._matrix(a.shape, self.transpose_a, False), self._matrix(b.shape, self.transpose_b, True)
        if rows[-1] != columns[-2] and isinstance(rows[-1], int) and isinstance(columns[-2], int):
            raise ShapeError(
                f"MatMul: inner dimensions must be equal, got {dim_text(rows[-1])} and {dim_text(columns[-2])}"
            )
        batch = broadcast(rows[:-2], columns[:-2], what="MatMul") if a.rank > 2 or b.rank > 2 else ()
        own = ([rows[-2]] if a.rank > 1 else []) + ([columns[-1]] if b.rank > 1 else [])
        return TensorType(a.dtype, (*batch, *own))

    @staticmethod
    def _matrix(shape: Shape, transpose: bool, column: bool) -> Shape:
        if len(shape) == 1:
            return (shape[0], 1) if column else (1, shape[0])
        return (*shape[:-2], shape[-1], shape[-2]) if transpose else shape

    def compute(self, out: TensorType, a: Input, b: Input) -> Element:
        k = axis("k", self._matrix(a.shape, self.transpose_a, False)[-1])

        def element(*index: Expr) -> Expr:
            rest = list(index)
            j = rest.pop() if b.rank > 1 else None
            i = rest.pop() if a.rank > 1 else None
            left = (k,) if i is None else (k, i) if self.transpose_a else (i, k)
            right = (k,) if j is None else (j, k) if self.transpose_b else (k, j)
            return Reduce("add", (k,), self._read(a, rest, left) * self._read(b, rest, right))

        return element

    @staticmethod
    def _read(x: Input, batch: list[Expr], last: tuple[Expr, ...]) -> Expr:
        outer = x.shape[: x.rank - len(last)]
        at = batch[len(batch) - len(outer) :] if outer else []
        return x(*(stretched(i, n) for i, n in zip(at, outer, strict=True)), *last)

    def reference(self, a: Array, b: Array) -> Array:
        left = a.swapaxes(-1, -2) if self.transpose_a and a.ndim > 1 else a
        right = b.swapaxes(-1, -2) if self.transpose_b and b.ndim > 1 else b
        return left @ right if a.dtype.kind in "iu" else (wide(left) @ wide(right)).astype(a.dtype)
