"""ReadValue, Assign: variables that a request keeps from one inference to the next."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from aot.ir.op import Op, Operand, op
from aot.ir.types import Array, Shape, TensorType, numpy_dtype
from runtime.abi import DType
from runtime.errors import ShapeError


class Stateful(Op):
    """The value is not known before an inference, whatever the inputs are."""

    pure: ClassVar[bool] = False


@op("opset3", type="ReadValue")
class ReadValue_3(Stateful):
    """The variable's value: in the first inference the input, later what the last one assigned."""

    variable_id: str = ""

    def infer(self, initial: Operand) -> TensorType:
        return initial.type

    def reference(self, initial: Array) -> Array:
        return initial


@op("opset6", type="ReadValue")
class ReadValue_6(Stateful):
    """As before, with a declared type; without an input the variable begins with zeros."""

    variable_id: str = ""
    variable_type: DType = DType.F32
    variable_shape: Shape | None = None

    def infer(self, initial: Operand | None = None) -> TensorType:
        if initial is None:
            return TensorType(self.variable_type, self.variable_shape)
        if initial.dtype is not self.variable_type:
            declared = self.variable_type.value
            raise ShapeError(f"ReadValue: variable {self.variable_id!r} is {declared}, got {initial.dtype.value}")
        if self.variable_shape is None:
            return initial.type
        if len(self.variable_shape) != initial.rank:
            rank = len(self.variable_shape)
            raise ShapeError(f"ReadValue: variable {self.variable_id!r} has {rank} dimensions, got {initial.rank}")
        dims = (d if isinstance(d, int) else n for d, n in zip(self.variable_shape, initial.shape, strict=True))
        return TensorType(self.variable_type, tuple(dims))

    def reference(self, initial: Array | None = None) -> Array:
        if initial is not None:
            return initial
        shape = TensorType(self.variable_type, self.variable_shape).static_shape
        return np.zeros(shape, numpy_dtype(self.variable_type))


@op("opset3", "opset6")
class Assign(Stateful):
    """Sets the variable for the next inference; passes its input on."""

    variable_id: str = ""

    def infer(self, x: Operand) -> TensorType:
        return x.type

    def reference(self, x: Array) -> Array:
        return x
