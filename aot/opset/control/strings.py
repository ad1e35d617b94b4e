"""Strings: packed from bytes by one operation, unpacked by another, and only moved in between.

Kernels handle numbers only: `aot.passes.middle.lower_strings` replaces a tensor of strings by three tensors.

    string k is the UTF-8 text in bytes begins[k] to ends[k] of symbols
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.ir.op import Elements, Input, LoopOp, Op, Operand, Work, fresh, op
from aot.ir.types import Array, Dim, Shape, TensorType
from aot.opset.reduction.bucketing import unravel, volume
from codegen.ir.loops import Buffer, cast
from codegen.script.script import Scripted, loops, var
from runtime.abi import DType
from runtime.arrays.strings import encode, texts
from runtime.errors import ModelError, ShapeError

MAX_TEXT_BYTES = (1 << 31) - 1  # largest byte offset that i32 can hold


@op("opset15")
class StringTensorPack(Op):
    """Strings from bytes `begins` to `ends` of the symbols, which are UTF-8."""

    elements = Elements.INTEGER

    def infer(self, begins: Operand, ends: Operand, symbols: Operand) -> TensorType:
        return TensorType(DType.STRING, _places_shape("StringTensorPack", begins, ends, symbols))

    def reference(self, begins: Array, ends: Array, symbols: Array) -> Array:
        return texts(begins, ends, symbols)


@op("opset15")
class StringTensorUnpack(Op):
    """Begin and end of each string in the third output, which holds the bytes of all strings in order."""

    def infer(self, x: Operand) -> tuple[TensorType, ...]:
        if x.dtype is not DType.STRING:
            raise ModelError(f"StringTensorUnpack: elements must be of type string, got {x.dtype.value}")
        places = TensorType(DType.I32, x.shape)
        return places, places, TensorType(DType.U8, (fresh(self, "bytes", None, x),))

    def reference(self, x: Array) -> tuple[Array, ...]:
        return encode(x)


@op()
class StringPlaces(LoopOp):
    """Begins and ends of strings stored contiguously; the number of their bytes, and of strings with invalid places."""

    def infer(self, begins: Operand, ends: Operand, symbols: Operand) -> tuple[TensorType, ...]:
        places = TensorType(DType.I32, _places_shape("StringPlaces", begins, ends, symbols))
        return places, places, TensorType(DType.I64, (2,))

    def conditions(self, *operands: Operand | None) -> Sequence[tuple[Dim, Dim, str]]:
        begins, ends = operands[:2]
        assert begins is not None and ends is not None
        pairs = zip(begins.shape, ends.shape, strict=True)
        return [(a, b, f"dimensions {k} of begins and ends must be equal") for k, (a, b) in enumerate(pairs)]

    def nest(self, outs: tuple[Buffer, ...], begins: Input, ends: Input, symbols: Input) -> tuple[Work, ...]:
        return (_places(outs, begins.buffer, ends.buffer, outs[0].shape, symbols.shape[0]),)

    def reference(self, begins: Array, ends: Array, symbols: Array) -> tuple[Array, ...]:
        low, high = begins.astype(np.int64), ends.astype(np.int64)
        right = (low >= 0) & (low <= high) & (high <= symbols.size)
        last = np.cumsum(np.where(right, high - low, 0)).reshape(low.shape)
        counts = np.array([last.max(initial=0), np.count_nonzero(~right)])
        return (last - np.where(right, high - low, 0)).astype(np.int32), last.astype(np.int32), counts


@op()
class StringSymbols(LoopOp):
    """The bytes of strings, one string after another; the last input: number of bytes, number of invalid strings."""

    def infer(self, begins: Operand, ends: Operand, symbols: Operand, counts: Operand) -> TensorType:
        return TensorType(DType.U8, (counts.dims("StringTensorUnpack: number of bytes")[0],))

    def conditions(self, *operands: Operand | None) -> Sequence[tuple[Dim, Dim, str]]:
        counts = operands[3]
        assert counts is not None
        wrong = counts.dims("StringTensorUnpack: number of wrong strings")[1]
        return ((wrong, 0, "strings without 0 <= begin <= end <= number of symbols: there must be none"),)

    def nest(
        self, outs: tuple[Buffer, ...], begins: Input, ends: Input, symbols: Input, counts: Input
    ) -> tuple[Work, ...]:
        return (_symbols(outs[0], begins.buffer, ends.buffer, symbols.buffer, begins.shape),)

    def reference(self, begins: Array, ends: Array, symbols: Array, counts: Array) -> Array:
        pairs = zip(begins.flat, ends.flat, strict=True)
        return np.concatenate([np.zeros(0, np.uint8), *(symbols[a:b] for a, b in pairs)])


@loops
def _places(outs: Scripted, begins: Scripted, ends: Scripted, shape: Scripted, most: Scripted) -> None:
    """Write the places; a string is empty if its places are invalid or if it exceeds the limit of bytes."""
    first, last, counts = outs
    total = var(0, DType.I64)
    wrong = var(0, DType.I64)
    for i in range(volume(shape)):
        at = unravel(i, shape)
        low: Scripted = cast(begins[at], DType.I64)
        high: Scripted = cast(ends[at], DType.I64)
        first[at] = total
        if low < 0 or high < low or high > most or total + (high - low) > MAX_TEXT_BYTES:
            wrong += 1
        else:
            total += high - low
        last[at] = total
    counts[0] = total
    counts[1] = wrong


@loops
def _symbols(out: Scripted, begins: Scripted, ends: Scripted, symbols: Scripted, shape: Scripted) -> None:
    place = var(0, DType.I64)
    for i in range(volume(shape)):
        at = unravel(i, shape)
        low: Scripted = cast(begins[at], DType.I64)
        high: Scripted = cast(ends[at], DType.I64)
        for j in range(low, high):
            out[place] = symbols[j]
            place += 1


def _places_shape(name: str, begins: Operand, ends: Operand, symbols: Operand) -> Shape:
    """Return the shape of the strings; a static dimension of either tensor stands for a dynamic one of the other."""
    if begins.dtype is not ends.dtype or begins.dtype not in (DType.I32, DType.I64):
        raise ModelError(f"{name}: begins and ends are both i32 or both i64, got {begins.type} and {ends.type}")
    if symbols.dtype is not DType.U8 or symbols.rank != 1:
        raise ShapeError(f"{name}: symbols are u8 with one dimension, got {symbols.type}")
    pairs = list(zip(begins.shape, ends.shape, strict=False))
    if begins.rank != ends.rank or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
        raise ShapeError(f"{name}: begins and ends have one shape, got {begins.type} and {ends.type}")
    return tuple(a if isinstance(a, int) else b for a, b in pairs)
