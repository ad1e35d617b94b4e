"""Suppressions with a data-dependent number of rows: an operation with room for all, then the filled rows only."""

from __future__ import annotations

from abc import ABC, abstractmethod

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.op import DecomposedOp, LoopOp, late_symbol
from aot.ir.operand import Operand
from aot.ir.types import Array, TensorType
from aot.opset.movement.slicing import Prefix


@dataclass(frozen=True)
class SelectedRows(DecomposedOp, ABC):
    """Base of suppressions: rows (image, class, box) and (image, class, score) of the kept boxes, and their number."""

    @property
    @abstractmethod
    def padded(self) -> LoopOp:
        """Operation with room for the maximum number of rows."""

    def row_types(self, boxes: Operand, scores: Operand, *limits: Operand | None) -> tuple[TensorType, ...]:
        """Return the types of the outputs; the number of rows is a symbol."""
        rows, scored, number = self.padded.outputs(boxes, scores, *limits)
        count = late_symbol(self, "count", rows.shape[0], boxes, scores, *limits)
        return TensorType(rows.dtype, (count, 3)), TensorType(scored.dtype, (count, 3)), number

    def decompose(self, build: Builder, *inputs: OutPort | None) -> tuple[OutPort, ...]:
        rows, scored, number = build.node(self.padded, *inputs, outputs=3).out_ports().values()
        return build(Prefix(0), rows, number), build(Prefix(0), scored, number), number

    def reference(self, boxes: Array, scores: Array, *limits: Array | None) -> tuple[Array, ...]:
        rows, scored, number = self.padded.evaluate(boxes, scores, *limits)
        return rows[: number[0]], scored[: number[0]], number
