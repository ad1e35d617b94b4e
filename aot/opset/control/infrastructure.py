"""Parameter, Constant, Result: where data enters and leaves a graph."""

from __future__ import annotations

from aot.ir.op import Op
from aot.ir.operand import Operand
from aot.ir.registry import op
from aot.ir.types import Array, Shape, TensorType
from aot.runtime.abi import DType


@op("opset1")
class Parameter(Op):
    """An input of the network. `shape` is None while the rank is unknown."""

    element_type: DType = DType.F32
    shape: Shape | None = ()

    def infer(self) -> TensorType:
        return TensorType(self.element_type, self.shape)


@op("opset1", xml="Const")
class Constant(Op):
    """Known data; the node holds it."""

    element_type: DType = DType.F32


@op("opset1")
class Result(Op):
    """An output of the network."""

    def infer(self, x: Operand) -> TensorType:
        return x.type

    def reference(self, x: Array) -> Array:
        return x
