"""Within: integers that must lie in a range, checked before anything is made of them."""

from __future__ import annotations

from collections.abc import Sequence

from aot.ir.op import Condition, Operand, Piece, ViewOp, in_range, op
from aot.ir.types import Array, Dim, TensorType
from aot.opset.families import has_symbols
from aot.opset.index_maps import same, whole
from runtime.errors import ShapeError


@op()
class Within(ViewOp):
    """x, a few integers, all of them in low..high; `low` and `high` are integers that broadcast to x.

    `operation`: the operation of the user's model that needs it; `rule`: what it needs, in words.
    """

    operation: str = ""
    rule: str = ""

    @property
    def user_type(self) -> str:
        return self.operation

    def infer(self, x: Operand, low: Operand, high: Operand) -> TensorType:
        return x.type

    def conditions(self, x: Operand, low: Operand, high: Operand) -> Sequence[Condition]:
        values = x.dims(f"{self.operation}: {self.rule}")
        ends = [self._spread(o.dims(f"{self.operation}: {self.rule}"), len(values)) for o in (low, high)]
        return [in_range(self.rule, v, a, b) for v, a, b in zip(values, *ends, strict=True)]

    def _spread(self, ends: tuple[Dim, ...], count: int) -> tuple[Dim, ...]:
        if len(ends) not in (1, count):
            raise ShapeError(f"{self.operation}: {self.rule}, got {len(ends)} limits for {count} numbers")
        return ends * count if len(ends) == 1 else ends

    def fold(self, *operands: Operand | None) -> tuple[Array, ...] | None:
        x = operands[0]
        return None if x is None or x.value is None or has_symbols(*operands[1:]) else (x.value,)

    def pieces(self, outs: tuple[TensorType, ...], x: Operand, low: Operand, high: Operand) -> tuple[Piece, ...]:
        return (whole(outs[0], same),)

    def reference(self, x: Array, low: Array, high: Array) -> Array:
        if not ((x >= low) & (x <= high)).all():
            raise ShapeError(f"{self.operation}: {self.rule}, got {x.tolist()}")
        return x.copy()
