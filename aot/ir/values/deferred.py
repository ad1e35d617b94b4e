"""Large constants that are decompressed when they are read: the numbers of a file stay as small as they are there.

f32((n - z) s), n: u8[576, 1536]   ->   Deferred(Multiply, Deferred(Subtract, Deferred(Convert, n), z), s)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Protocol, runtime_checkable
from weakref import ref

import numpy as np

from aot.ir.op import Op
from aot.ir.operand import Operand
from aot.ir.types import Array, TensorType, numpy_dtype
from aot.runtime.abi import DType
from aot.runtime.arrays import pages
from aot.runtime.errors import InternalError

LEAST_ELEMENTS = 1 << 16  # smaller constants are made at once
WIDEST = 8  # bits of the integers that a deferred constant is made of
NIBBLE = 4  # bits of codes of any other type, of which there are 16


Parts = tuple[tuple[int, int] | None, ...]


class Deferred:
    """A constant of type `type` that `op` makes of `inputs`: arrays, and at least one Deferred or array of few bits.

    It never changes. `array` makes it, each time that it is asked for and nothing else holds it any more.
    """

    __slots__ = ("_made", "inputs", "op", "type", "types")

    def __init__(
        self, op: Op, inputs: tuple[Array | Deferred, ...], types: tuple[TensorType, ...], type: TensorType
    ) -> None:
        """`types`: the inputs' types."""
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

    @property
    def origin(self) -> DType:
        """Type of the numbers that it is made of, which a file has."""
        if self.type.dtype.bits <= WIDEST:
            return self.type.dtype
        first = self.inputs[0]
        return first.origin if isinstance(first, Deferred) else self.types[0].dtype

    def array(self) -> Array:
        """Return the elements, as the operation's reference makes them."""
        result = self._made() if self._made is not None else None
        if result is None:
            result = self._computed(self.op, [value_of(x) for x in self.inputs]).reshape(self.shape)
            self._made = ref(result)
        return result

    @property
    def is_in_rows(self) -> bool:
        """True if `rows` makes no others."""
        rows = self.op.rows(0, 1, *self.inputs) if isinstance(self.op, InRows) else None
        if rows is None:
            return False
        taken = (x for x, part in zip(self.inputs, rows[1], strict=True) if part is not None)
        return all(x.is_in_rows for x in taken if isinstance(x, Deferred))

    def rows(self, begin: int, end: int) -> Array:
        """Return elements `begin` to `end` of the first dimension."""
        values = self._made() if self._made is not None else None
        computed = self.op.rows(begin, end, *self.inputs) if values is None and isinstance(self.op, InRows) else None
        if computed is None:
            return (self.array() if values is None else values)[begin:end]
        op, parts = computed
        pairs = zip(self.inputs, parts, strict=True)
        arrays = [value_of(x) if part is None else rows_of(x, *part) for x, part in pairs]
        return self._computed(op, arrays).reshape(end - begin, *self.shape[1:])

    def _computed(self, op: Op, arrays: Sequence[Array]) -> Array:
        operands = [Operand(TensorType(t.dtype, x.shape), x) for x, t in zip(arrays, self.types, strict=True)]
        with np.errstate(all="ignore"):
            folded = op.fold(*operands)
        if folded is None:
            raise InternalError(f"{op.type}: a deferred constant has no value")
        return np.ascontiguousarray(folded[0], numpy_dtype(self.type.dtype))


@runtime_checkable
class InRows(Protocol):
    """An operation that can make some rows of its result."""

    def rows(self, begin: int, end: int, *inputs: Array | Deferred) -> tuple[Op, Parts] | None:
        """Return the operation that makes rows `begin` to `end`, and the rows of each input that it takes (None: all).

        None if it needs all of them.
        """
        ...


@runtime_checkable
class OfNormals(Protocol):
    """An operation that may make no denormal numbers, whatever a file holds."""

    def is_normal(self, *inputs: Array | Deferred) -> bool:
        """True if it makes none."""
        ...


@runtime_checkable
class OfWholes(Protocol):
    """An operation with floats that may be whole numbers of 8 bits."""

    @property
    def in_bytes(self) -> Op | None:
        """The operation that makes the same numbers in I8; None if a file may hold others."""
        ...


def in_bytes(constant: Array | Deferred) -> Array | Deferred:
    """Return a constant of floats in I8 where its operation says that they are whole numbers; others as they are."""
    op = constant.op.in_bytes if isinstance(constant, Deferred) and isinstance(constant.op, OfWholes) else None
    if op is None or not isinstance(constant, Deferred):
        return constant
    return Deferred(op, constant.inputs, constant.types, TensorType(DType.I8, constant.shape))


def is_normal(constant: Array | Deferred) -> bool:
    """True if the producer of a constant guarantees that it has no denormal numbers; stored values are not searched."""
    return (
        isinstance(constant, Deferred)
        and isinstance(constant.op, OfNormals)
        and constant.op.is_normal(*constant.inputs)
    )


def value_of(constant: Array | Deferred) -> Array:
    """Return the elements of a constant."""
    return constant.array() if isinstance(constant, Deferred) else constant


def rows_of(constant: Array | Deferred, begin: int, end: int) -> Array:
    """Return elements `begin` to `end` of the first dimension of a constant."""
    return constant.rows(begin, end) if isinstance(constant, Deferred) else constant[begin:end]


def release(constant: Array | Deferred) -> None:
    """Release the pages of mapped files that hold a constant, or its sources."""
    for one in stored_arrays(constant):
        pages.release(one)


def stored_arrays(constant: Array | Deferred) -> Iterator[Array]:
    """Yield a constant, or the arrays that it is computed from."""
    if isinstance(constant, Deferred):
        for one in constant.inputs:
            yield from stored_arrays(one)
    else:
        yield constant


def is_worth_deferring(inputs: tuple[Array | Deferred, ...], types: tuple[TensorType, ...], out: TensorType) -> bool:
    """True if a large f32 constant of type `out` is made of numbers of few bits."""
    if out.dtype is not DType.F32 or not out.is_static or prod(out.static_shape) < LEAST_ELEMENTS:
        return False
    first, dtype = inputs[0], types[0].dtype
    few = dtype.bits <= (WIDEST if dtype.is_integer else NIBBLE)
    return isinstance(first, Deferred) or (few and first.size >= LEAST_ELEMENTS)
