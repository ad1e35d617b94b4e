"""ReadValue, Assign: variables that a request keeps from one inference to the next.

Variables that bodies use, or whose sizes are dynamic, are threaded through operations by the pass `carry_variables`:
their initial value is read in parts, and their final value is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.op import Stateful
from aot.ir.operand import Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, Shape, TensorType, numpy_dtype
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError

Now = Mapping[str, Array]
Later = dict[str, Array]
DYNAMIC = -1  # a dynamic dimension of a variable


class Read(Stateful):
    """Base of ReadValue: the variable's value if it was set, else the initial one."""

    if TYPE_CHECKING:

        def reference(self, *arrays: Any, **named: Any) -> Array: ...

    def access(self, now: Now, later: Later, *arrays: Array | None) -> Array:
        return now[self.variable_id] if self.variable_id in now else self.reference(*arrays)


@op("opset3", type="ReadValue")
class ReadValue_3(Read):
    """The variable's value: in the first inference the input, later the value last assigned."""

    def infer(self, initial: Operand) -> TensorType:
        return initial.type

    def reference(self, initial: Array) -> Array:
        return initial


@op("opset6", type="ReadValue")
class ReadValue_6(Read):
    """ReadValue with a declared type; without an input the variable is initially zero."""

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
        shape = tuple(n if isinstance(n, int) else 0 for n in TensorType(DType.F32, self.variable_shape).shape)
        return np.zeros(shape, numpy_dtype(self.variable_type))


@op("opset3", "opset6")
class Assign(Stateful):
    """Assignment of the input to the variable for the next inference; returns the input."""

    def infer(self, x: Operand) -> TensorType:
        return x.type

    def reference(self, x: Array) -> Array:
        return x

    def access(self, now: Now, later: Later, *arrays: Array | None) -> Array:
        (x,) = arrays
        assert x is not None
        later[self.variable_id] = x
        return x


@dataclass(frozen=True)
class Carried(Stateful):
    """An operation on a threaded variable, with its type; dynamic dimensions are VARIES."""

    element_type: DType = DType.F32
    dims: tuple[int, ...] = ()

    @property
    def varying(self) -> tuple[int, ...]:
        """Indices of the dynamic dimensions."""
        return tuple(k for k, n in enumerate(self.dims) if n == DYNAMIC)

    def current(self, now: Now) -> Array:
        """Return the kept value; if the variable was never set, zeros, with dynamic dimensions of size 0."""
        nothing = np.zeros([max(n, 0) for n in self.dims], numpy_dtype(self.element_type))
        return now.get(self.variable_id, nothing)


@op()
class IsSet(Carried):
    """True if the variable was set by an earlier inference."""

    def infer(self) -> TensorType:
        return TensorType(DType.BOOL, ())

    def access(self, now: Now, later: Later, *arrays: Array | None) -> Array:
        return np.array(self.variable_id in now)


@op()
class KeptSizes(Carried):
    """[1 + dynamic dimensions]: the variable's byte offset in the request's state, then the sizes of its dimensions."""

    def infer(self) -> TensorType:
        return TensorType(DType.I64, (1 + len(self.varying),))

    def access(self, now: Now, later: Later, *arrays: Array | None) -> Array:
        shape = self.current(now).shape
        return np.array([0, *(shape[k] for k in self.varying)], np.int64)


@op()
class KeptValue(Carried):
    """The kept value of the variable, zeros if it was never set; with dynamic dimensions the input is its KeptSizes."""

    def infer(self, sizes: Operand | None = None) -> TensorType:
        shape: list[Dim] = list(self.dims)
        if sizes is not None:
            for k, n in zip(self.varying, sizes.dims("KeptValue: sizes")[1:], strict=True):
                shape[k] = n
        return TensorType(self.element_type, tuple(shape))

    def access(self, now: Now, later: Later, *arrays: Array | None) -> Array:
        return self.current(now)


@op(type="Assign")
class AssignCarried(Carried):
    """Assignment of x to the variable for the next inference if the second input is true; returns x."""

    def infer(self, x: Operand, condition: Operand) -> TensorType:
        return x.type

    def access(self, now: Now, later: Later, *arrays: Array | None) -> Array:
        x, condition = arrays
        assert x is not None
        assert condition is not None
        if condition.reshape(-1)[0]:
            later[self.variable_id] = x
        return x
