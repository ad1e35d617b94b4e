"""Bytes of compressed constants, computed from the numbers of a file only when a library is written."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.ir.op import Op
from aot.ir.types import Array, TensorType, numpy_dtype
from aot.ir.values.deferred import Deferred, Parts, is_normal
from aot.runtime.abi import DType

PIECE = 1 << 16  # bytes computed together: they stay in the cache


@dataclass(frozen=True)
class Shifted(Op):
    """Numbers of a byte plus offsets that repeat, in `shape`; neighbours along the axis `pairs` share a byte.

    The numbers are seen with the dimensions `seen` at distances `strides`: those of `shape`, one of which may be two.
    """

    shape: tuple[int, ...]
    seen: tuple[int, ...]
    strides: tuple[int, ...]
    signed: bool = False
    pairs: int | None = None

    @property
    def dtype(self) -> DType:
        return DType.I8 if self.signed else DType.U8

    @property
    def stored(self) -> tuple[int, ...]:
        """Return the dimensions of the bytes."""
        return tuple(n // 2 if k == self.pairs else n for k, n in enumerate(self.shape))

    def reference(self, numbers: Array, offsets: NDArray[np.uint8]) -> Array:
        """Return the sums modulo 256."""
        source = as_strided(numbers.view(np.uint8), self.seen, self.strides, writeable=False)
        if self.pairs is None and not offsets.any():
            return np.ascontiguousarray(source).reshape(self.shape).view(numpy_dtype(self.dtype))
        stored, each = np.empty(self.stored, np.uint8), 2 * max(PIECE // max(2 * prod(self.seen[1:]), 1), 1)
        has_offsets = offsets.any()
        rows, lines = max(self.shape[0] // max(self.seen[0], 1), 1), 2 if self.pairs == 0 else 1
        for n in range(0, self.seen[0], each):
            some = source[n : n + each]
            some = some + (offsets if len(offsets) == 1 else offsets[n : n + each]) if has_offsets else some
            part = some.reshape(-1, *self.shape[1:])
            stored[n * rows // lines : n * rows // lines + len(part) // lines] = _paired(part, self.pairs)
        return stored.view(np.int8) if self.signed else stored

    @property
    def is_dense(self) -> bool:
        """True if the numbers are viewed in their order in memory."""
        dense = (prod(self.seen[k + 1 :]) for k in range(len(self.seen)))
        return all(n == 1 or s == d for n, s, d in zip(self.seen, self.strides, dense, strict=True))

    def rows(
        self, begin: int, end: int, numbers: Array | Deferred, offsets: Array | Deferred
    ) -> tuple[Op, Parts] | None:
        """Return the sums of some rows, where these are rows of the numbers, too."""
        lines = 2 if self.pairs == 0 else 1
        own = begin * lines, end * lines
        if not self.is_dense or not self.shape[0] == self.seen[0] == numbers.shape[0]:
            return None
        part = replace(self, shape=(own[1] - own[0], *self.shape[1:]), seen=(own[1] - own[0], *self.seen[1:]))
        return part, (own, None if offsets.shape[0] == 1 else own)


@runtime_checkable
class InHalves(Protocol):
    """An operation that takes numbers out of a file that may have two of 4 bits in a byte."""

    def in_halves(self, count: int) -> tuple[Op, tuple[int, int]] | None:
        """Return the operation that makes rows of `count` numbers two in a byte, and the dimensions of a row.

        These are runs, and bytes of a run, whose low halves come before their high ones. None for other numbers.
        """
        ...


def in_halves(numbers: Deferred) -> Deferred | None:
    """Return rows of two numbers in a byte, as the file stores them."""
    if not isinstance(numbers.op, Shifted) or not numbers.op.is_dense or numbers.op.pairs is not None:
        return None
    source, offsets = numbers.inputs
    rows, count = numbers.shape[0], prod(numbers.shape[1:])
    if not isinstance(source, Deferred) or not isinstance(source.op, InHalves) or source.shape[0] != rows:
        return None
    halves = None if isinstance(offsets, Deferred) or offsets.any() else source.op.in_halves(count)
    if halves is None:
        return None
    op, runs = halves
    return Deferred(op, source.inputs, source.types, TensorType(DType.U8, (rows, *runs)))


@dataclass(frozen=True)
class Rearranged(Op):
    """Numbers in `shape`, as elements of a type that holds them."""

    shape: tuple[int, ...]
    dtype: DType

    def reference(self, numbers: Array) -> Array:
        return numbers.reshape(self.shape).astype(numpy_dtype(self.dtype), copy=False)

    def is_normal(self, numbers: Array | Deferred) -> bool:
        """True if the numbers have no denormal ones among them, and keep their type."""
        return isinstance(numbers, Deferred) and numbers.type.dtype is self.dtype and is_normal(numbers)

    def rows(self, begin: int, end: int, numbers: Array | Deferred) -> tuple[Op, Parts] | None:
        """Return some rows, where these are rows of the numbers, too."""
        if self.shape[0] != numbers.shape[0]:
            return None
        return replace(self, shape=(end - begin, *self.shape[1:])), ((begin, end),)


def rearranged(numbers: Array | Deferred, dtype: DType, shape: tuple[int, ...] | None = None) -> Array | Deferred:
    """Return numbers as elements of a type that holds them, in their own shape if none is given."""
    operation = Rearranged(numbers.shape if shape is None else shape, dtype)
    if not isinstance(numbers, Deferred):
        return operation.reference(numbers)
    return Deferred(operation, (numbers,), (numbers.type,), TensorType(dtype, operation.shape))


def stored_bytes(numbers: Array | Deferred, pairs: int | None) -> Array | Deferred:
    """Return numbers of a byte as they lie in memory: neighbours along the axis `pairs`, of 4 bits, share a byte."""
    if pairs is None:
        return numbers
    if not isinstance(numbers, Deferred):
        return _paired(numbers, pairs)
    assert isinstance(numbers.op, Shifted)
    operation = replace(numbers.op, pairs=pairs)
    return Deferred(operation, numbers.inputs, numbers.types, TensorType(operation.dtype, operation.stored))


def _paired(numbers: NDArray[np.uint8], pairs: int | None) -> NDArray[np.uint8]:
    """Join pairs of numbers of 4 bits, the first in the low bits; return other numbers as they are."""
    if pairs is None:
        return numbers
    if pairs == numbers.ndim - 1 and numbers.flags.c_contiguous:
        both = numbers.view("<u2")
        return (both | both >> np.uint16(4)).astype(np.uint8)
    first, second = (numbers[(*(slice(None),) * pairs, slice(k, None, 2))] for k in (0, 1))
    return first | second << np.uint8(4)
