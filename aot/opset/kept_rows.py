"""Suppressions whose number of rows data decides: an operation with room for all, then only what is filled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.op import DecomposedOp, LoopOp, Operand, fresh
from aot.ir.types import Array, TensorType
from aot.opset.slicing import Prefix


@dataclass(frozen=True)
class KeptRows(DecomposedOp, ABC):
    """Rows (image, class, box) of the boxes that are kept, rows (image, class, score), and their number."""

    @property
    @abstractmethod
    def within(self) -> LoopOp:
        """The operation that has room for all."""

    def kept(self, boxes: Operand, scores: Operand, *limits: Operand | None) -> tuple[TensorType, ...]:
        """The types; the number of rows is a symbol."""
        rows, scored, number = self.within.outputs(boxes, scores, *limits)
        count = fresh(self, "count", rows.shape[0], boxes, scores, *limits)
        return TensorType(rows.dtype, (count, 3)), TensorType(scored.dtype, (count, 3)), number

    def decompose(self, build: Builder, *inputs: OutPort | None) -> tuple[OutPort, ...]:
        rows, scored, number = build.node(self.within, *inputs, outputs=3).out_ports().values()
        return build(Prefix(0), rows, number), build(Prefix(0), scored, number), number

    def reference(self, boxes: Array, scores: Array, *limits: Array | None) -> tuple[Array, ...]:
        rows, scored, number = self.within.evaluate(boxes, scores, *limits)
        return rows[: number[0]], scored[: number[0]], number
