"""Rounded numbers of large matrices, in a file without a name until a library is written: memory holds none of them."""

from __future__ import annotations

import mmap
import tempfile
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.ir.op import Op
from aot.ir.types import Array, TensorType, numpy_dtype
from aot.ir.values.deferred import NIBBLE, Deferred, Parts
from aot.runtime.abi import DType

LEAST_NUMBERS = 1 << 22  # numbers of a matrix that are kept so


@dataclass(frozen=True)
class Kept(Op):
    """Numbers in `shape`, of bytes that hold one each, or two of 4 bits, the first in the low half."""

    shape: tuple[int, ...]
    dtype: DType

    def reference(self, raw: NDArray[np.uint8]) -> Array:
        if self.dtype is not DType.U4:
            return raw.reshape(self.shape)
        nibbles = np.empty((raw.size, 2), np.uint8)
        flat = raw.reshape(-1)
        np.bitwise_and(flat, np.uint8(15), out=nibbles[:, 0])
        np.right_shift(flat, np.uint8(NIBBLE), out=nibbles[:, 1])
        return nibbles.reshape(self.shape).view(numpy_dtype(DType.U4))

    def rows(self, begin: int, end: int, raw: Array | Deferred) -> tuple[Op, Parts]:
        """Return the numbers of some rows."""
        del raw
        return replace(self, shape=(end - begin, *self.shape[1:])), ((begin, end),)


class Numbers:
    """Unsigned numbers of 4 or 8 bits in `shape`, that are added row by row."""

    def __init__(self, shape: tuple[int, ...], bits: int) -> None:
        self.shape, self.is_paired = shape, bits == NIBBLE and shape[-1] % 2 == 0
        self._pieces: list[Array] = []
        self._file = tempfile.TemporaryFile(prefix=".aot-") if prod(shape) >= LEAST_NUMBERS else None  # noqa: SIM115, `constant` closes it

    def add(self, rows: NDArray[np.uint8]) -> None:
        if self._file is None:
            self._pieces.append(rows)
        else:
            self._file.write(
                (rows[..., ::2] | rows[..., 1::2] << np.uint8(NIBBLE) if self.is_paired else rows).tobytes()
            )

    def constant(self) -> Array | Deferred:
        """Return all numbers, as u8 in memory or deferred."""
        if self._file is None:
            return np.concatenate(self._pieces)
        with self._file as stream:
            stream.flush()
            raw = np.frombuffer(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
        lines, dtype = raw.reshape(self.shape[0], -1), DType.U4 if self.is_paired else DType.U8
        op = Kept(self.shape, dtype)
        return Deferred(op, (lines,), (TensorType(DType.U8, lines.shape),), TensorType(dtype, self.shape))
