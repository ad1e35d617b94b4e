"""InRange: integers that must be in a range, checked before they are used."""

from __future__ import annotations

from collections.abc import Sequence

from aot.codegen.ir.loops import Const, as_expr, prim, select
from aot.ir.conditions import Condition, in_range
from aot.ir.op import ViewOp
from aot.ir.operand import Operand, Piece
from aot.ir.registry import op
from aot.ir.types import Array, Dim, TensorType, simplify
from aot.opset.base.index_maps import same, whole
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError


@op()
class InRange(ViewOp):
    """`data`, or x if it is absent, after a check that the few integers x are in low..high, which broadcast to x.

    `different`: if not 0, x must be distinct axes of that many dimensions. `operation`: type of the user's operation
    that requires the range; `rule`: the requirement in words.
    """

    operation: str = ""
    rule: str = ""
    different: int = 0

    @property
    def user_type(self) -> str:
        return self.operation or self.type

    def infer(self, x: Operand, low: Operand, high: Operand, data: Operand | None = None) -> TensorType:
        return (data or x).type

    def conditions(self, x: Operand, low: Operand, high: Operand, data: Operand | None = None) -> Sequence[Condition]:
        what = f"{self.operation}: {self.rule}: how many there are"
        values = x.dims(what)
        ends = [self._spread(o.dims(what), len(values)) for o in (low, high)]
        ranges = [in_range(self.rule, v, a, b) for v, a, b in zip(values, *ends, strict=True)]
        if self.different:
            remainders = [simplify(v % self.different) for v in values]
            ranges += [(_times(v, remainders[:k]), 0, "axes must be different") for k, v in enumerate(remainders) if k]
        return ranges

    def _spread(self, ends: tuple[Dim, ...], count: int) -> tuple[Dim, ...]:
        if len(ends) not in (1, count):
            raise ShapeError(f"{self.operation}: {self.rule}, got {len(ends)} limits for {count} numbers")
        return ends * count if len(ends) == 1 else ends

    def fold(self, *operands: Operand | None) -> tuple[Array, ...] | None:
        x, _, _, data = (*operands, None)[:4]
        shown = x if data is None else data
        return None if shown is None or shown.value is None else (shown.value,)

    def pieces(
        self, outs: tuple[TensorType, ...], x: Operand, low: Operand, high: Operand, data: Operand | None = None
    ) -> tuple[Piece, ...]:
        return (whole(outs[0], same, 0 if data is None else 3),)

    def reference(self, x: Array, low: Array, high: Array, data: Array | None = None) -> Array:
        alike = self.different and len({int(v) % self.different for v in x.reshape(-1)}) < x.size
        if alike or not ((x >= low) & (x <= high)).all():
            raise ShapeError(f"{self.operation}: {self.rule}, got {x.tolist()}")
        return (x if data is None else data).copy()


def _times(value: Dim, others: Sequence[Dim]) -> Dim:
    """Return the number of the others that equal `value`."""
    return simplify(sum((select(prim("eq", as_expr(value, DType.I64), o), 1, 0) for o in others), start=Const(0)))
