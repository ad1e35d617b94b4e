"""Strings whose bytes are read: compared, split into words, in capital or small letters.

A tensor of strings comes as begins, ends and symbols (`aot.opset.control.strings`), as StringTensorUnpack gives it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aot.codegen.ir.loops import Buffer, cast
from aot.codegen.script.script import Scripted, loops, parallel, var
from aot.ir.conditions import Condition, alike
from aot.ir.op import LoopOp, Work
from aot.ir.operand import Input, Operand
from aot.ir.registry import op
from aot.ir.types import Array, TensorType
from aot.opset.control.strings import places_shape
from aot.opset.reduction.bucketing import unravel, volume
from aot.runtime.abi import DType
from aot.runtime.arrays.strings import texts
from aot.runtime.errors import ShapeError

CODE_POINTS = 1 << 16  # of UTF-8 in up to three bytes: entries of a table of letters


def _require_rank(name: str, x: Operand, rank: int) -> None:
    if x.rank != rank:
        raise ShapeError(f"{name}: tensors have one rank, got {x.type} beside rank {rank}")


@op()
class StringEqual(LoopOp):
    """True where a string equals the string of the other tensor at its place."""

    def infer(
        self, begins: Operand, ends: Operand, symbols: Operand, firsts: Operand, lasts: Operand, others: Operand
    ) -> TensorType:
        shape = places_shape("StringEqual", begins, ends, symbols)
        places_shape("StringEqual", firsts, lasts, others)
        _require_rank("StringEqual", firsts, len(shape))
        return TensorType(DType.BOOL, shape)

    def conditions(self, *operands: Operand | None) -> Sequence[Condition]:
        begins, firsts = operands[0], operands[3]
        assert begins is not None and firsts is not None
        return alike("dimensions of two tensors of strings must be equal", begins.shape, firsts.shape)

    def nest(
        self,
        outs: tuple[Buffer, ...],
        begins: Input,
        ends: Input,
        symbols: Input,
        firsts: Input,
        lasts: Input,
        others: Input,
    ) -> tuple[Work, ...]:
        one = (begins.buffer, ends.buffer, symbols.buffer)
        other = (firsts.buffer, lasts.buffer, others.buffer)
        return (_equal(outs[0], one, other, outs[0].shape),)

    def reference(
        self, begins: Array, ends: Array, symbols: Array, firsts: Array, lasts: Array, others: Array
    ) -> Array:
        return np.asarray(texts(begins, ends, symbols) == texts(firsts, lasts, others), bool)


@op()
class StringWord(LoopOp):
    """Begin and end of one word of each string, counted from 0, and the number of its words; behind the last, none.

    Words lie between separators; without one, between white space, which is no word. After `most_splits`, unless it is
    negative, the rest of a string is one word.
    """

    most_splits: int = -1

    def infer(
        self, begins: Operand, ends: Operand, symbols: Operand, wanted: Operand, separator: Operand
    ) -> tuple[TensorType, ...]:
        shape = places_shape("StringWord", begins, ends, symbols)
        _require_rank("StringWord", wanted, len(shape))
        if not separator.type.is_static:
            raise ShapeError(f"StringWord: the size of the separator must be known, got {separator.type}")
        return (TensorType(DType.I64, shape),) * 3

    def conditions(self, *operands: Operand | None) -> Sequence[Condition]:
        begins, wanted = operands[0], operands[3]
        assert begins is not None and wanted is not None
        return alike("dimensions of strings and of places of words must be equal", begins.shape, wanted.shape)

    def nest(
        self, outs: tuple[Buffer, ...], begins: Input, ends: Input, symbols: Input, wanted: Input, separator: Input
    ) -> tuple[Work, ...]:
        strings, splits = (begins.buffer, ends.buffer, symbols.buffer), self.most_splits
        if separator.shape == (0,):
            return (_spaced(outs, strings, wanted.buffer, outs[0].shape, splits),)
        return (_separated(outs, strings, separator.buffer, wanted.buffer, outs[0].shape, separator.shape[0], splits),)

    def reference(
        self, begins: Array, ends: Array, symbols: Array, wanted: Array, separator: Array
    ) -> tuple[Array, ...]:
        found: Array = np.zeros((3, *begins.shape), np.int64)
        for at, number in np.ndenumerate(wanted):
            low = place = int(begins[at])
            words = symbols[low : int(ends[at])].tobytes().split(separator.tobytes() or None, self.most_splits)
            found[0][at], found[1][at], found[2][at] = low, low, len(words)
            for word in words[: max(number + 1, 0)] if number < len(words) else ():
                place = symbols.tobytes().index(word, place)
                found[0][at], found[1][at] = place, place + len(word)
                place += len(word) + len(separator)
        return found[0], found[1], found[2]


@op()
class StringMatch(LoopOp):
    """True where an automaton accepts a string: tables of next states [states, 256] and of states that accept."""

    def infer(self, begins: Operand, ends: Operand, symbols: Operand, table: Operand, accepts: Operand) -> TensorType:
        _require_rank("StringMatch", table, 2)
        _require_rank("StringMatch", accepts, 1)
        return TensorType(DType.BOOL, places_shape("StringMatch", begins, ends, symbols))

    def nest(
        self, outs: tuple[Buffer, ...], begins: Input, ends: Input, symbols: Input, table: Input, accepts: Input
    ) -> tuple[Work, ...]:
        strings = (begins.buffer, ends.buffer, symbols.buffer)
        return (_match(outs[0], strings, table.buffer, accepts.buffer, outs[0].shape),)

    def reference(self, begins: Array, ends: Array, symbols: Array, table: Array, accepts: Array) -> Array:
        found = np.zeros(begins.shape, bool)
        for at in np.ndindex(begins.shape):
            state = 0
            for symbol in symbols[int(begins[at]) : int(ends[at])]:
                state = int(table[state, symbol])
            found[at] = accepts[state] != 0
        return found


@op()
class StringLetters(LoopOp):
    """UTF-8 with each character replaced by that of a table [65536], where it takes as many bytes; others stay."""

    def infer(self, symbols: Operand, table: Operand) -> TensorType:
        del table
        return symbols.type

    def nest(self, outs: tuple[Buffer, ...], symbols: Input, table: Input) -> tuple[Work, ...]:
        return (_letters(outs[0], symbols.buffer, table.buffer, symbols.shape[0]),)

    def reference(self, symbols: Array, table: Array) -> Array:
        made, at = symbols.copy(), 0
        while at < len(made):
            lead = int(made[at])
            count = 1 if lead < 0xC2 or lead >= 0xF0 else 2 if lead < 0xE0 else 3
            try:
                point = table[ord(made[at : at + count].tobytes().decode())]
                new = chr(int(point)).encode()
            except (UnicodeError, TypeError):
                new = b""
            if len(new) == count:
                made[at : at + count] = list(new)
            at += count
        return made


@loops
def _equal(out: Scripted, one: Scripted, other: Scripted, shape: Scripted) -> None:
    begins, ends, symbols = one
    firsts, lasts, others = other
    for i in parallel(volume(shape)):
        at = unravel(i, shape)
        start: Scripted = cast(begins[at], DType.I64)
        first: Scripted = cast(firsts[at], DType.I64)
        length = cast(ends[at], DType.I64) - start
        same = var(0, DType.I64)
        if cast(lasts[at], DType.I64) - first != length:
            same = -1
        while same >= 0 and same < length and symbols[start + same] == others[first + same]:
            same += 1
        out[at] = same == length


@loops
def _separated(
    outs: Scripted, strings: Scripted, separator: Scripted, wanted: Scripted, shape: Scripted, size: Scripted, most: int
) -> None:
    """Words between separators of `size` bytes."""
    begins, ends, symbols = strings
    firsts, lasts, counts = outs
    for i in parallel(volume(shape)):
        at = unravel(i, shape)
        place = var(cast(begins[at], DType.I64), DType.I64)
        high: Scripted = cast(ends[at], DType.I64)
        first = var(cast(begins[at], DType.I64), DType.I64)
        last = var(cast(begins[at], DType.I64), DType.I64)
        word = var(cast(begins[at], DType.I64), DType.I64)  # where the word begins that is read
        count = var(0, DType.I64)
        while place + size <= high and (most < 0 or count < most):
            same = var(0, DType.I64)
            while same < size and symbols[place + same] == separator[same]:
                same += 1
            if same == size:
                if count == wanted[at]:
                    first = word
                    last = place
                count += 1
                place += size
                word = place
            else:
                place += 1
        if count == wanted[at]:
            first = word
            last = high
        firsts[at] = first
        lasts[at] = last
        counts[at] = count + 1


@loops
def _spaced(outs: Scripted, strings: Scripted, wanted: Scripted, shape: Scripted, most: int) -> None:
    """Words between white space, the bytes 9 to 13 and 32."""
    begins, ends, symbols = strings
    firsts, lasts, counts = outs
    for i in parallel(volume(shape)):
        at = unravel(i, shape)
        place = var(cast(begins[at], DType.I64), DType.I64)
        high: Scripted = cast(ends[at], DType.I64)
        first = var(cast(begins[at], DType.I64), DType.I64)
        last = var(cast(begins[at], DType.I64), DType.I64)
        count = var(0, DType.I64)
        while place < high:
            symbol: Scripted = cast(symbols[place], DType.I64)
            if symbol == 32 or (symbol >= 9 and symbol <= 13):
                place += 1
            else:
                word = var(place, DType.I64)
                place += 1
                if most >= 0 and count >= most:
                    place = high
                while place < high and symbols[place] != 32 and (symbols[place] < 9 or symbols[place] > 13):
                    place += 1
                if count == wanted[at]:
                    first = word
                    last = place
                count += 1
        firsts[at] = first
        lasts[at] = last
        counts[at] = count


@loops
def _match(out: Scripted, strings: Scripted, table: Scripted, accepts: Scripted, shape: Scripted) -> None:
    begins, ends, symbols = strings
    for i in parallel(volume(shape)):
        at = unravel(i, shape)
        low: Scripted = cast(begins[at], DType.I64)
        high: Scripted = cast(ends[at], DType.I64)
        state = var(0, DType.I64)
        for j in range(low, high):
            state = cast(table[state, cast(symbols[j], DType.I64)], DType.I64)
        out[at] = accepts[state] != 0


@loops
def _letters(out: Scripted, symbols: Scripted, table: Scripted, size: Scripted) -> None:
    place = var(0, DType.I64)
    while place < size:
        lead: Scripted = cast(symbols[place], DType.I64)
        if lead < 0xC2 or lead >= 0xF0 or place + 1 >= size or (lead >= 0xE0 and place + 2 >= size):
            out[place] = symbols[place]
            if lead < 0x80 and table[lead] < 0x80:
                out[place] = cast(table[lead], DType.U8)
            place += 1
        elif lead < 0xE0:
            second: Scripted = cast(symbols[place + 1], DType.I64) % 64
            found: Scripted = table[lead % 32 * 64 + second]
            out[place] = symbols[place]
            out[place + 1] = symbols[place + 1]
            if found >= 0x80 and found < 0x800:
                out[place] = cast(found // 64 + 0xC0, DType.U8)
                out[place + 1] = cast(found % 64 + 0x80, DType.U8)
            place += 2
        else:
            middle: Scripted = cast(symbols[place + 1], DType.I64) % 64
            end: Scripted = cast(symbols[place + 2], DType.I64) % 64
            wide: Scripted = table[lead % 16 * 4096 + middle * 64 + end]
            out[place] = symbols[place]
            out[place + 1] = symbols[place + 1]
            out[place + 2] = symbols[place + 2]
            if wide >= 0x800:
                out[place] = cast(wide // 4096 + 0xE0, DType.U8)
                out[place + 1] = cast(wide // 64 % 64 + 0x80, DType.U8)
                out[place + 2] = cast(wide % 64 + 0x80, DType.U8)
            place += 3
