"""Strings: packed from bytes by one operation, unpacked by another, and only moved in between.

Kernels handle numbers only: `aot.passes.middle.lower_strings` replaces a tensor of strings by three tensors.

    string k is the UTF-8 text in bytes begins[k] to ends[k] of symbols
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.codegen.ir.loops import Buffer, cast
from aot.codegen.script.script import Scripted, loops, parallel, var
from aot.ir.op import Elements, LoopOp, Op, Work, late_symbol
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, Dim, Shape, TensorType
from aot.opset.base.row_major import unravel, volume
from aot.runtime.abi import DType
from aot.runtime.arrays.strings import encode, texts
from aot.runtime.errors import ModelError, ShapeError

MAX_TEXT_BYTES = (1 << 31) - 1  # largest byte offset that i32 can hold


@op("opset15")
class StringTensorPack(Op):
    """Strings from bytes `begins` to `ends` of the symbols, which are UTF-8."""

    elements = Elements.INTEGER

    def infer(self, begins: Operand, ends: Operand, symbols: Operand) -> TensorType:
        return TensorType(DType.STRING, places_shape("StringTensorPack", begins, ends, symbols))

    def reference(self, begins: Array, ends: Array, symbols: Array) -> Array:
        return texts(begins, ends, symbols)


@op("opset15")
class StringTensorUnpack(Op):
    """Begin and end of each string in the third output, which holds the bytes of all strings in order."""

    def infer(self, x: Operand) -> tuple[TensorType, ...]:
        if x.dtype is not DType.STRING:
            raise ModelError(f"StringTensorUnpack: elements must be of type string, got {x.dtype.value}")
        positions = TensorType(DType.I32, x.shape)
        return positions, positions, TensorType(DType.U8, (late_symbol(self, "bytes", None, x),))

    def reference(self, x: Array) -> tuple[Array, ...]:
        return encode(x)


@op()
class StringPlaces(LoopOp):
    """Begins and ends of strings stored contiguously; the number of their bytes, and of strings with invalid places."""

    def infer(self, begins: Operand, ends: Operand, symbols: Operand) -> tuple[TensorType, ...]:
        positions = TensorType(DType.I32, places_shape("StringPlaces", begins, ends, symbols))
        return positions, positions, TensorType(DType.I64, (2,))

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


@op()
class StringSearch(LoopOp):
    """Place of each string among keys that are sorted by their bytes; the number of keys for a string that is none."""

    def infer(
        self, begins: Operand, ends: Operand, symbols: Operand, firsts: Operand, lasts: Operand, keys: Operand
    ) -> TensorType:
        shape = places_shape("StringSearch", begins, ends, symbols)
        if len(places_shape("StringSearch", firsts, lasts, keys)) != 1:
            raise ShapeError(f"StringSearch: keys must have one dimension, got {firsts.type}")
        return TensorType(DType.I64, shape)

    def nest(self, outs: tuple[Buffer, ...], *strings: Input) -> tuple[Work, ...]:
        buffers = [x.buffer for x in strings]
        return (_search(outs[0], buffers[:3], buffers[3:], outs[0].shape, strings[3].shape[0]),)

    def reference(self, begins: Array, ends: Array, symbols: Array, firsts: Array, lasts: Array, keys: Array) -> Array:
        text, key = symbols.tobytes(), keys.tobytes()
        positions = {key[a:b]: k for k, (a, b) in enumerate(zip(firsts.tolist(), lasts.tolist(), strict=True))}
        pairs = zip(begins.reshape(-1).tolist(), ends.reshape(-1).tolist(), strict=True)
        keys_of_pairs = [positions.get(text[a:b], len(positions)) for a, b in pairs]
        return np.array(keys_of_pairs, np.int64).reshape(begins.shape)


@loops
def _search(out: Scripted, texts: Scripted, keys: Scripted, shape: Scripted, count: Scripted) -> None:
    """Search each text among the sorted keys, both as (begins, ends, symbols)."""
    begins, ends, symbols = texts
    firsts, lasts, key_symbols = keys
    for i in parallel(volume(shape)):
        at = unravel(i, shape)
        start: Scripted = cast(begins[at], DType.I64)
        length = cast(ends[at], DType.I64) - start
        found = var(count, DType.I64)
        low = var(0, DType.I64)
        high = var(count, DType.I64)
        while low < high:
            middle = (low + high) // 2
            first: Scripted = cast(firsts[middle], DType.I64)
            size = cast(lasts[middle], DType.I64) - first
            same = var(0, DType.I64)
            while same < length and same < size and symbols[start + same] == key_symbols[first + same]:
                same += 1
            if same == length and same == size:
                found = middle
                high = low
            elif same == size or (same < length and key_symbols[first + same] < symbols[start + same]):
                low = middle + 1
            else:
                high = middle
        out[at] = found


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


def places_shape(name: str, begins: Operand, ends: Operand, symbols: Operand) -> Shape:
    """Return the shape of the strings; a static dimension of either tensor stands for a dynamic one of the other."""
    if begins.dtype is not ends.dtype or begins.dtype not in (DType.I32, DType.I64):
        raise ModelError(f"{name}: begins and ends must be both i32 or both i64, got {begins.type} and {ends.type}")
    if symbols.dtype is not DType.U8 or symbols.rank != 1:
        raise ShapeError(f"{name}: symbols must be u8 with one dimension, got {symbols.type}")
    pairs = list(zip(begins.shape, ends.shape, strict=False))
    if begins.rank != ends.rank or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
        raise ShapeError(f"{name}: begins and ends must have one shape, got {begins.type} and {ends.type}")
    return tuple(a if isinstance(a, int) else b for a, b in pairs)
