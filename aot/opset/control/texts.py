"""Operations that read the bytes of strings: comparisons, splits into words, changes of case.

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
from aot.opset.base.row_major import unravel, volume
from aot.opset.control.strings import places_shape
from aot.runtime.abi import DType
from aot.runtime.arrays.strings import texts
from aot.runtime.errors import ShapeError

CODE_POINTS = 1 << 16  # characters of up to three bytes of UTF-8: entries of a table of letters


def _require_rank(name: str, x: Operand, rank: int) -> None:
    if x.rank != rank:
        raise ShapeError(f"{name}: tensors must have one rank, got {x.type} beside rank {rank}")


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

    def nest(self, outs: tuple[Buffer, ...], *strings: Input) -> tuple[Work, ...]:
        buffers = [x.buffer for x in strings]
        return (_equal(outs[0], buffers[:3], buffers[3:], outs[0].shape),)

    def reference(
        self, begins: Array, ends: Array, symbols: Array, firsts: Array, lasts: Array, others: Array
    ) -> Array:
        return np.asarray(texts(begins, ends, symbols) == texts(firsts, lasts, others), bool)


@op()
class StringWords(LoopOp):
    """Begins and ends [.., n] of the first n words of each string, and the number of its words; after the last, none.

    n is the size of the fourth input. Words lie between separators; without one, between white space, which is no word.
    After `most_splits`, unless it is negative, the rest of a string is one word.
    """

    most_splits: int = -1

    def infer(
        self, begins: Operand, ends: Operand, symbols: Operand, positions: Operand, separator: Operand
    ) -> tuple[TensorType, ...]:
        shape = places_shape("StringWords", begins, ends, symbols)
        if not separator.type.is_static:
            raise ShapeError(f"StringWords: the size of the separator must be known, got {separator.type}")
        words = TensorType(DType.I64, (*shape, positions.shape[0]))
        return words, words, TensorType(DType.I64, shape)

    def nest(self, outs: tuple[Buffer, ...], *inputs: Input) -> tuple[Work, ...]:
        *strings, places, separator = (x.buffer for x in inputs)
        sizes = (outs[2].shape, places.shape[0], separator.shape[0])
        if sizes[2] == 0:
            return (_spaced(outs, strings, sizes, self.most_splits),)
        return (_separated(outs, strings, separator, sizes, self.most_splits),)

    def reference(
        self, begins: Array, ends: Array, symbols: Array, positions: Array, separator: Array
    ) -> tuple[Array, ...]:
        counts: Array = np.zeros(begins.shape, np.int64)
        first, last = (np.repeat(begins[..., None], len(positions), -1).astype(np.int64) for _ in range(2))
        for at, begin in np.ndenumerate(begins):
            text, position = symbols[int(begin) : int(ends[at])].tobytes(), 0
            words = text.split(separator.tobytes() or None, self.most_splits)
            counts[at] = len(words)
            for k, word in enumerate(words[: len(positions)]):
                position = text.index(word, position)
                first[(*at, k)], last[(*at, k)] = begin + position, begin + position + len(word)
                position += len(word) + len(separator)
        return first, last, counts


@op()
class StringMatch(LoopOp):
    """True where an automaton accepts a string: tables of next states [states, 256] and of states that accept."""

    def infer(self, begins: Operand, ends: Operand, symbols: Operand, table: Operand, accepts: Operand) -> TensorType:
        _require_rank("StringMatch", table, 2)
        _require_rank("StringMatch", accepts, 1)
        return TensorType(DType.BOOL, places_shape("StringMatch", begins, ends, symbols))

    def nest(self, outs: tuple[Buffer, ...], *inputs: Input) -> tuple[Work, ...]:
        *strings, table, accepts = (x.buffer for x in inputs)
        return (_match(outs[0], strings, table, accepts, outs[0].shape),)

    def reference(self, begins: Array, ends: Array, symbols: Array, table: Array, accepts: Array) -> Array:
        result = np.zeros(begins.shape, bool)
        for at in np.ndindex(begins.shape):
            state = 0
            for symbol in symbols[int(begins[at]) : int(ends[at])]:
                state = int(table[state, symbol])
            result[at] = accepts[state] != 0
        return result


@op()
class StringLetters(LoopOp):
    """UTF-8 with each character replaced by that of a table [65536], where it takes as many bytes; others stay."""

    def infer(self, symbols: Operand, table: Operand) -> TensorType:
        del table
        return symbols.type

    def nest(self, outs: tuple[Buffer, ...], symbols: Input, table: Input) -> tuple[Work, ...]:
        return (_letters(outs[0], symbols.buffer, table.buffer, symbols.shape[0]),)

    def reference(self, symbols: Array, table: Array) -> Array:
        result, at = symbols.copy(), 0
        while at < len(result):
            lead = int(result[at])
            count = 1 if lead < 0xC2 or lead >= 0xF0 else 2 if lead < 0xE0 else 3
            try:
                point = table[ord(result[at : at + count].tobytes().decode())]
                new = chr(int(point)).encode()
            except (UnicodeError, TypeError):
                new = b""
            if len(new) == count:
                result[at : at + count] = list(new)
            at += count
        return result


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
def _separated(outs: Scripted, strings: Scripted, separator: Scripted, sizes: Scripted, most: int) -> None:
    """Words between separators."""
    begins, ends, symbols = strings
    firsts, lasts, counts = outs
    shape, room, size = sizes
    for i in parallel(volume(shape)):
        at = unravel(i, shape)
        place = var(cast(begins[at], DType.I64), DType.I64)
        high: Scripted = cast(ends[at], DType.I64)
        word = var(cast(begins[at], DType.I64), DType.I64)  # where the word begins that is read
        count = var(0, DType.I64)
        while place + size <= high and (most < 0 or count < most):
            same = var(0, DType.I64)
            while same < size and symbols[place + same] == separator[same]:
                same += 1
            if same == size:
                if count < room:
                    firsts[(*at, count)] = word
                    lasts[(*at, count)] = place
                count += 1
                place += size
                word = place
            else:
                place += 1
        if count < room:
            firsts[(*at, count)] = word
            lasts[(*at, count)] = high
        counts[at] = count + 1
        _without_words(outs, begins, at, count + 1, room)


@loops
def _spaced(outs: Scripted, strings: Scripted, sizes: Scripted, most: int) -> None:
    """Words between white space, the bytes 9 to 13 and 32."""
    begins, ends, symbols = strings
    firsts, lasts, counts = outs
    shape, room, _ = sizes
    for i in parallel(volume(shape)):
        at = unravel(i, shape)
        place = var(cast(begins[at], DType.I64), DType.I64)
        high: Scripted = cast(ends[at], DType.I64)
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
                if count < room:
                    firsts[(*at, count)] = word
                    lasts[(*at, count)] = place
                count += 1
        counts[at] = count
        _without_words(outs, begins, at, count, room)


@loops
def _without_words(outs: Scripted, begins: Scripted, at: Scripted, count: Scripted, room: Scripted) -> None:
    """Write empty words after the last one of a string."""
    for k in range(count, room):
        outs[0][(*at, k)] = cast(begins[at], DType.I64)
        outs[1][(*at, k)] = cast(begins[at], DType.I64)


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
