"""Large constants that are decompressed when they are read: the numbers of a file stay as small as they are there.

f32((n - z) s), n: u8[576, 1536]   ->   Deferred(Multiply, Deferred(Subtract, Deferred(Convert, n), z), s)
"""

from __future__ import annotations

from math import prod
from weakref import ref

import numpy as np

from aot.ir.op import Op
from aot.ir.operand import Operand
from aot.ir.types import Array, TensorType, numpy_dtype
from runtime.abi import DType
from runtime.errors import InternalError

LEAST_ELEMENTS = 1 << 16  # smaller constants are made at once
WIDEST = 8  # bits of the integers that a deferred constant is made of
NIBBLE = 4  # bits of codes of any other type, of which there are 16


class Deferred:
    """A constant of type `type` that `op` makes of `inputs`: arrays, and at least one Deferred or array of few bits.

    It never changes. `array` makes it, each time that it is asked for and nothing else holds it any more.
    """

    __slots__ = ("_made", "inputs", "op", "type", "types")

    def __init__(
        self, op: Op, inputs: tuple[Array | Deferred, ...], types: tuple[TensorType, ...], type: TensorType
    ) -> None:
        """`types`: those of the inputs."""
        self.op, self.inputs, self.types, self.type = op, inputs, types, type
        self._made: ref[Array] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.static_shape

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Number of bytes that the elements take once they are made."""
        return self.size * self.type.dtype.stored_bytes

    def array(self) -> Array:
        """Return the elements, as the operation's reference makes them."""
        made = self._made() if self._made is not None else None
        if made is None:
            given = [Operand(t, value_of(x)) for x, t in zip(self.inputs, self.types, strict=True)]
            with np.errstate(all="ignore"):
                found = self.op.fold(*given)
            if found is None:
                raise InternalError(f"{self.op.type}: a deferred constant has no value")
            made = np.ascontiguousarray(found[0], numpy_dtype(self.type.dtype)).reshape(self.shape)
            self._made = ref(made)
        return made


def value_of(constant: Array | Deferred) -> Array:
    """Return the elements of a constant."""
    return constant.array() if isinstance(constant, Deferred) else constant


def is_worth_deferring(inputs: tuple[Array | Deferred, ...], types: tuple[TensorType, ...], out: TensorType) -> bool:
    """True if a large f32 constant of type `out` is made of numbers of few bits."""
    if out.dtype is not DType.F32 or not out.is_static or prod(out.static_shape) < LEAST_ELEMENTS:
        return False
    first, dtype = inputs[0], types[0].dtype
    few = dtype.bits <= (WIDEST if dtype.is_integer else NIBBLE)
    return isinstance(first, Deferred) or (few and first.size >= LEAST_ELEMENTS)
