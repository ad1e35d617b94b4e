"""Products of rounded data and weights in groups, as a sum of integers for each group.

    w[k, j] = (n[k, j] - z[k // 32, j]) t[k // 32, j]     x[i, k] = q[i, k] s[i, k // 32]     k = 32 g + e

    add[k](x[i, k] w[k, j])  =  add[g, e]((f32(q[i, g, e] n[g, e, j]) + m[i, g] z[g, j]) s[i, g] t[g, j])
    m[i, g] = -add[e](q[i, g, e]) / 32

The numbers n are unsigned. Where they have fewer bits than a factor of the dots, several share an element of u8 or u16
(`PackedField` in `codegen/ir/numbers/dot_forms.py`), and an axis of the sum becomes three: runs r, fields h, elements b
of a word.

    n[g, e, j] = w[g, r, b, j] >> 4 h & 15                e = 8 r + 4 h + b
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from math import prod

import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Reduce, Var, cast
from aot.codegen.ir.numbers.dot_forms import PackedField, centred
from aot.ir.op import Op
from aot.ir.types import Array, TensorType, numpy_dtype
from aot.ir.values.deferred import Deferred, rows_of, value_of
from aot.ir.values.deferred import Parts as Rows
from aot.lowering.ir.steps import Steps
from aot.lowering.storage.scale_groups import Parts
from aot.lowering.storage.stored_bytes import in_halves, rearranged
from aot.opset.base.row_major import ravel
from aot.runtime.abi import DType

EVERY_OTHER = np.uint64(0x000F000F000F000F)  # mask of numbers 0, 2, 4 and 6 of eight numbers of 4 bits, each in a byte
LOW_HALVES = np.uint64(0x0F0F0F0F0F0F0F0F)  # mask of the low half of each of eight bytes
SIDE_BY_SIDE = np.uint64(1 << 48 | 1 << 36 | 1 << 24 | 1 << 12)  # takes them to bits 48 to 63
SWAPS = [  # bits between the halves of bytes that are exchanged, and the lower ones
    (np.uint64(bits), np.uint64(lower))
    for bits, lower in ((28, 0x00000000F0F0F0F0), (8, 0x0000FF000000FF00), (4, 0x00F000F000F000F0))
]
WORDS = 1 << 12  # words that are joined together: they stay in the cache
PIECE = 1 << 16  # zero points that are compared together
LENGTHS = (64, 32, 16)  # numbers of a group of data, in the order in which they are tried


@dataclass(frozen=True, slots=True)
class Data:
    """Rounded data: numbers [.., k], the scale of each group, and the numbers as they are computed, in f32."""

    numbers: Load
    scale: Load
    near: Expr


def group_length(parts: Parts, terms: int) -> int:
    """Return the numbers of a group of data, which divides the groups of weights; 0 if none does."""
    return next((n for n in LENGTHS if (parts.size or terms) % n == 0), 0)


@dataclass(frozen=True)
class Joined(Op):
    """Unsigned numbers in groups of `length`, with dimension `place` last; `fields` numbers share an element.

    `together`: factors of the products that a dot sums, which have 32 bits.
    """

    place: int
    length: int
    fields: int
    together: int
    bits: int

    @property
    def dtype(self) -> DType:
        return DType.U8 if self.together == 4 else DType.I16 if self.fields == 1 else DType.U16

    def shape_of(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the dimensions of the result."""
        others = tuple(n for k, n in enumerate(shape) if k != self.place)
        runs = (self.length // (self.fields * self.together), self.together)
        return (*others, shape[self.place] // self.length, *(runs if self.fields > 1 else (self.length,)))

    def reference(self, x: Array) -> Array:
        """Return the elements."""
        numbers = np.ascontiguousarray(np.moveaxis(x, self.place, -1))
        if self.bits == 8:
            numbers = numbers.view(np.uint8) ^ np.uint8(128)
        shape, dtype = self.shape_of(x.shape), numpy_dtype(self.dtype)
        if self.fields == 1:
            return numbers.reshape(shape).astype(dtype)
        if (self.bits, self.fields, self.together) == (4, 4, 2):
            return _quarters(numbers.reshape(-1).view(np.uint64)).view(dtype).reshape(shape)
        words = numbers.reshape(-1).view(f"<u{self.together}").reshape(-1, self.fields)
        each = 8 // self.bits  # fields of a byte
        fields = np.empty((len(words), self.together, self.fields // each), np.uint8)
        for n in range(self.fields // each):
            joined = words[:, n * each].copy()
            for k in range(1, each):
                joined |= words[:, n * each + k] << joined.dtype.type(k * self.bits)
            fields[:, :, n] = joined.view(np.uint8).reshape(-1, self.together)
        return fields.view(dtype).reshape(shape)

    def rows(self, begin: int, end: int, x: Array | Deferred) -> tuple[Op, Rows] | None:
        """Return some rows of this constant if they are rows of its numbers, too."""
        return None if self.place == 0 or x.shape[0] == 1 else (self, ((begin, end),))


@dataclass(frozen=True)
class JoinedHalves(Op):
    """Numbers of 4 bits in groups of `length`, made of bytes of two: [rows, runs, bytes].

    `together`: 2 for four numbers in an element of u16, 4 for two in one of u8.
    """

    length: int
    together: int

    def reference(self, x: NDArray[np.uint8]) -> Array:
        """Return the elements, as `Joined` makes them of single numbers."""
        rows, runs, size = x.shape
        words = x.reshape(-1, size).view(np.uint64)
        fields = np.empty((len(words), 2, size // 8), np.uint32)
        each = WORDS * 8 // size
        for n in range(0, len(words), each):
            piece = words[n : n + each]
            if self.together == 4:
                fields[n : n + each, 0], fields[n : n + each, 1] = _eights(piece), _eights(piece >> np.uint64(4))
                continue
            joined = _sixteens(piece).view(np.uint32)
            for k in range(2 * size // 8):
                fields[n : n + each, k % 2, k // 2] = joined[:, k]
        dtype = np.uint8 if self.together == 4 else np.uint16
        return fields.view(dtype).reshape(rows, 2 * runs * size // self.length, self.length // 8, self.together)

    def rows(self, begin: int, end: int, x: Array | Deferred) -> tuple[Op, Rows]:
        """Return the same for some rows."""
        return self, ((begin, end),)


def _eights(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Join the low halves of eight bytes in the low half of a word: those of the last four above the first four."""
    low = words & LOW_HALVES
    low |= low >> np.uint64(28)
    return low


def _sixteens(eights: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Join the low halves of eight bytes as `_quarters` does in the low half of a word, and their high ones above it.

    That is a permutation of sixteen halves of bytes: each step exchanges pairs of halves that lie as far apart.
    """
    words = eights.copy()
    for bits, lower in SWAPS:
        differences = words >> bits
        differences ^= words
        differences &= lower
        words ^= differences
        differences <<= bits
        words ^= differences
    return words


def _quarters(eights: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Join each eight numbers of 4 bits: 0, 2, 4 and 6 in the low half of a word, then 1, 3, 5 and 7.

    One product moves four numbers, which lie 16 bits apart, side by side to the upper end; others run over it.
    """
    quarters = np.empty(eights.size, np.uint32)
    for n in range(0, eights.size, WORDS):
        piece = eights[n : n + WORDS]
        words, odd = piece & EVERY_OTHER, piece >> np.uint64(8)
        odd &= EVERY_OTHER
        for part in (words, odd):
            part *= SIDE_BY_SIDE
        words >>= np.uint64(48)
        odd >>= np.uint64(32)
        odd &= np.uint64(0xFFFF0000)
        words |= odd
        quarters[n : n + WORDS] = words
    return quarters


class GroupWeights:
    """Weights of a product, with one axis for their groups and one to three for the elements of a group."""

    def __init__(
        self, steps: Steps, w: Load, axis: Var, parts: Parts, length: int, together: int, signs: bool = False
    ) -> None:
        """`axis`: of the sum, a plain index of `w`. `together`: factors of the products that a dot sums.

        `signs`: dots multiply signed bytes only. Numbers of 8 bits are then less 128 where they are multiplied.
        """
        self.steps, self.w, self.parts, self.length = steps, w, parts, length
        self.place = w.index.index(axis)
        room = 32 // together
        self.centred = signs and parts.bits == 8 and parts.whole  # so that zero points are added exactly either way
        self.fields, self.together, self.bits = room // parts.bits if parts.bits < room else 1, together, parts.bits
        count = parts.numbers.shape[self.place] // length
        self.group = Var(f"{axis.name}g", count)
        self.sizes = (length // (self.fields * together), self.fields, together) if self.fields > 1 else (length,)
        self.inner = tuple(Var(f"{axis.name}{letter}", n) for letter, n in zip("rhb", self.sizes, strict=False))
        self.numbers = steps.constant(f"{w.buffer.name}.whole", self._elements())
        self.factor = steps.constant(f"{w.buffer.name}.factor", self._last(parts.factors))
        self.zero = self._zeros()
        self.parts = replace(parts, held=None)

    @property
    def element(self) -> Expr:
        """Return the index of an element in its group."""
        return ravel(self.inner, self.sizes)

    def sum(self, data: Data, total: Load | None) -> Reduce:
        """Return the product with data. `total`: minus the sums of the groups of data, where zero points are not 0."""
        shared = (*self._others(), self._part())
        x = Load(data.numbers.buffer, (*data.numbers.index[:-1], self.group * self.length + self.element))
        term = cast(cast(x, DType.I32) * self._number(self._others(), self.group, self.inner), DType.F32)
        if isinstance(self.zero, Buffer) and total is not None:
            term = term + total * cast(Load(self.zero, shared), DType.F32) * (1 / self.length)
        elif not isinstance(self.zero, Buffer) and total is not None:
            term = term + total * (self.zero / self.length)
        return Reduce("add", (self.group, *self.inner), term * data.scale * Load(self.factor, shared))

    def element_at(self, index: tuple[Expr, ...]) -> Expr:
        """Return the weight, in f32, at an index of the constant that they were made of."""
        others, whole = tuple(i for k, i in enumerate(index) if k != self.place), index[self.place]
        element, many = whole % self.length, self.fields * self.together
        packed = element // many, element // self.together % self.fields, element % self.together
        inner = packed if self.fields > 1 else (element,)
        number = cast(self._number(others, whole // self.length, inner), DType.F32)
        shared = (*others, whole // self.parts.size if self.parts.size else Const(0))
        if isinstance(self.zero, Buffer):
            number = number - cast(Load(self.zero, shared), DType.F32)
        elif self.zero:
            number = number - self.zero
        return number * Load(self.factor, shared)

    def _number(self, others: tuple[Expr, ...], group: Expr, inner: tuple[Expr, ...]) -> Expr:
        """Return an unsigned number, or one less 128, as an i32."""
        if self.fields == 1:
            number = Load(self.numbers, (*others, group, *inner))
            return centred(number) if self.centred else cast(number, DType.I32)
        run, field, element = inner
        load = Load(self.numbers, (*others, group, run, element))
        return PackedField(load, field * self.bits, (1 << self.bits) - 1).value

    def _others(self) -> tuple[Expr, ...]:
        return tuple(i for k, i in enumerate(self.w.index) if k != self.place)

    def _part(self) -> Expr:
        return self.group // (self.parts.size // self.length) if self.parts.size else Const(0)

    def _last(self, a: Array | Deferred) -> Array | Deferred:
        """Return a constant with the dimension of the sum last."""
        if isinstance(a, Deferred) and self.place == len(a.shape) - 1:
            return a
        return np.ascontiguousarray(np.moveaxis(value_of(a), self.place, -1))

    def _elements(self) -> Array | Deferred:
        """Return unsigned numbers, several in an element where there are fields; deferred as those that they join."""
        numbers = self.parts.numbers
        joined = Joined(self.place, self.length, self.fields, self.together, self.bits)
        if not isinstance(numbers, Deferred):
            return joined.reference(numbers)
        numbers_type = TensorType(joined.dtype, joined.shape_of(numbers.shape))
        whole = self.bits == 4 and self.fields * self.together == 8  # eight numbers, those of 32 bits
        in_rows = whole and self.place == len(numbers.shape) - 1 == 1
        halves = in_halves(numbers) if in_rows else None
        if halves is not None:
            return Deferred(JoinedHalves(self.length, self.together), (halves,), (halves.type,), numbers_type)
        return Deferred(joined, (numbers,), (numbers.type,), numbers_type)

    def _zeros(self) -> Buffer | float:
        """Return zero points of the factors: one that is the same everywhere, or a constant."""
        zero_points = self.parts.zeros
        if self.bits == 8 and not self.centred:
            zero_points = value_of(zero_points) + np.float32(128)
        number = _repeated(zero_points)
        if number is not None:
            return number
        dtype = DType.I8
        if not isinstance(zero_points, Deferred) or zero_points.type.dtype is not dtype:
            zeros = value_of(zero_points)
            low, high = zeros.min(), zeros.max()
            bounds = {DType.I8: (-128, 127), DType.U8: (0, 255)} if self.parts.whole else {}
            dtype = next((k for k, (lowest, highest) in bounds.items() if lowest <= low and high <= highest), DType.F32)
        return self.steps.constant(f"{self.w.buffer.name}.zero", self._last(rearranged(zero_points, dtype)))


def _repeated(numbers: Array | Deferred) -> float | None:
    """Return the number that a constant has everywhere; None for numbers that differ, which the first rows tell."""
    count, each = numbers.shape[0], max(PIECE // max(prod(numbers.shape[1:]), 1), 1)
    first = rows_of(numbers, 0, 1)
    others = (rows_of(numbers, n, min(n + each, count)) for n in range(1, count, each))
    return float(first.flat[0]) if all((part == first.flat[0]).all() for part in chain((first,), others)) else None
