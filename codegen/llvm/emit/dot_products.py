"""Dot products of bytes, i16 or bf16: the instructions that add a word's products to each 32-bit lane."""

from __future__ import annotations

from collections.abc import Sequence

from aot.codegen.ir.loops import Expr, Load, Prim, Space
from aot.codegen.ir.numbers.dot_forms import (
    BLOCK_BYTES,
    BLOCK_COLUMNS,
    CENTRES,
    PackedField,
    elements_per_dot,
    packed_field_of,
)
from aot.codegen.llvm.emit.address import Access, moved
from aot.codegen.llvm.emit.arithmetic.convert import MEMORY
from aot.codegen.llvm.emit.arithmetic.shuffle import shuffle, shuffled, spread
from aot.codegen.llvm.emit.function_text import Function, Value, integer, lanes_of, scalar_of, vector
from aot.codegen.llvm.emit.replaced import replaced
from aot.codegen.llvm.emit.values import Values
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError

FIRST_NEGATIVE = 128  # the u8 whose bits are the least i8
LARGEST = 255  # the largest u8
SHORTEST = 4  # lanes of the instructions, at least


class DotEmitter:
    """Emits dot products that are added to an accumulator."""

    def __init__(self, values: Values) -> None:
        self.values = values

    def dot(self, x: Expr, w: Expr, n: int, total: Value, rows: Sequence[Expr] = ()) -> Value:
        """Return `total` + `n` products in every lane: `x` has one word for all lanes, or one for each, as `w` has.

        `x` and `w` may be sums of both, of i16, and `w` may be a field. `rows`: the other elements of the words of `w`,
        where the terms of a lane are no neighbours in memory: loads, or zero.
        """
        match x, w:
            case Load(), Load() if x.buffer.space is Space.REGISTERS:
                return self._by_lane(total, w.buffer.dtype, self._weights(w), x)
            case Load(), Prim("and") if x.buffer.space is Space.REGISTERS and (field := packed_field_of(w)) is not None:
                return self._by_lane(total, DType.U8, self._field(field), x)
            case Load(), Prim("centred", (Load() as number,)) if x.buffer.space is Space.REGISTERS:
                return self._signed(total, self._centred(self._weights(number)), self._lane(x))
            case Prim("centred", (Load() as data,)), Load():
                return self._signed(total, self._weights(w, rows), self._centred(self._data(data, n)))
            case Load(), Prim("centred", (Load() as number,)):
                return self._signed(total, self._centred(self._weights(number, rows)), self._data(x, n))
            case Load(), Load():
                return self._products(x, n, w.buffer.dtype, self._weights(w, rows), total)
            case Load(), Prim("and") if (field := packed_field_of(w)) is not None:
                if self.values.abilities.signs_dots and field.mask < FIRST_NEGATIVE and x.buffer.dtype is DType.I8:
                    return self._signed(total, self._field(field), self._data(x, n))
                return self._products(x, n, field.load.buffer.dtype, self._field(field), total)
            case Prim("add", (Load() as x1, Load() as w2)), Prim("add", (Load() as x2, Load() as w1)):
                f = self.values.f
                one = _pairs_added(f, self._data(x1, n), self._weights(w2))
                return self._added(w.dtype, total, one, _pairs_added(f, self._data(x2, n), self._weights(w1)))
            case _:
                raise InternalError(f"dot: factors are loads, or sums of two loads, got {x} and {w}")

    def block_dot(self, x: Load, w: Load, half: int, total: Value) -> Value:
        """Return `total` + the products of a block of data in registers and a block of two columns of weights."""
        values, at = self.values, self.values.at
        block, each = at.access(x.buffer, x.index), at.access(w.buffer, w.index)
        if lanes_of(total.type) != BLOCK_COLUMNS or each.stride != BLOCK_BYTES or values.is_mixed:
            raise InternalError(f"dot: columns of blocks lie side by side, got {w.buffer.name} by {each.stride}")
        data = values.registers[x.buffer.name].read(values.f, block.offset.const, BLOCK_COLUMNS)
        access = moved(each, half * 2 * BLOCK_BYTES)
        key = ("block", access.offset.key)
        weights = values.known(w.buffer, key)
        if weights is None:
            weights = values.f.load(total.type, at.pointer(access), 1)
            values.loaded.setdefault(w.buffer.name, {})[key, at.guard] = weights
        type_ = vector("i8", 2 * BLOCK_BYTES)
        factors = [values.f.op(type_, f"bitcast {v} to {type_}") for v in (data, weights)]
        name = values.abilities.intrinsic("dot_blocks", BLOCK_COLUMNS)
        return values.f.call(name, total.type, total, *factors)

    def add_part(self, name: str, odd: bool, x: Load, w: Load, total: Value) -> Value:
        """Return `total` + the product of one bf16 number of each word, by an instruction that rounds as others do."""
        lanes = lanes_of(total.type)
        return self.values.f.call(name, total.type, total, *(self._pairs(e, odd, lanes) for e in (w, x)))

    def _pairs(self, x: Load, odd: bool, lanes: int) -> Value:
        """Return pairs of bf16. Of a word for all lanes one number is spread, which the instruction does by itself."""
        values, f, type_ = self.values, self.values.f, vector("bfloat", 2 * lanes)
        words = values.word(x, spread=False)
        if lanes_of(words.type) == lanes:
            return f.op(type_, f"bitcast {words} to {type_}")
        key = ("pairs", words.name, odd)
        if key not in values.splats:
            words_vector = f.insert(Value(vector("i32", lanes), "poison"), words, 0)
            pairs = f.op(type_, f"bitcast {words_vector} to {type_}")
            values.splats[key] = shuffle(f, pairs, Value(type_, "poison"), [int(odd)] * 2 * lanes)
        return values.splats[key]

    def _products(self, x: Load, n: int, dtype: DType, weights: Value, total: Value) -> Value:
        """Return `total` + `n` products of data and `weights`; their elements have type `dtype`."""
        factors = self._data(x, n), weights
        return self._added(dtype, total, *(factors[::-1] if dtype is DType.U8 else factors))

    def _added(self, dtype: DType, total: Value, one: Value, other: Value) -> Value:
        """Return `total` + products of words; of bytes, `one` are the unsigned ones."""
        f, lanes, size = self.values.f, lanes_of(total.type), elements_per_dot(dtype)
        if lanes < SHORTEST:
            total, one, other = (_widened(f, v) for v in (total, one, other))
            return f.part(self._added(dtype, total, one, other), 0, lanes)
        kind = "dot_bf16" if dtype is DType.BF16 else "dot_pairs" if size == 2 else "dot_bytes"
        type_ = vector("bfloat" if dtype is DType.BF16 else f"i{32 // size}", size * lanes)
        abilities = self.values.abilities
        if kind == "dot_bytes" and "dot_signed_bytes" in abilities.intrinsics:
            return self._by_signed(total, one, other)
        factors = [f.op(type_, f"bitcast {v} to {type_}") for v in (one, other)]
        name = abilities.intrinsic(kind, lanes)
        if kind == "dot_pairs":
            return f.binary("add", total, f.call(name, total.type, *factors))
        return f.call(name, total.type, total, *factors)

    def _signed(self, total: Value, one: Value, other: Value) -> Value:
        """Return `total` + products of words of signed bytes."""
        f, lanes = self.values.f, lanes_of(total.type)
        if lanes < SHORTEST:
            total, one, other = (_widened(f, v) for v in (total, one, other))
            return f.part(self._signed(total, one, other), 0, lanes)
        type_ = vector("i8", 4 * lanes)
        factors = [f.op(type_, f"bitcast {v} to {type_}") for v in (one, other)]
        return f.call(self.values.abilities.intrinsic("dot_signed_bytes", lanes), total.type, total, *factors)

    def _centred(self, words: Value) -> Value:
        """Return words of u8 less 128."""
        key = ("centred", words.name)
        if key not in self.values.splats:
            self.values.splats[key] = self.values.f.binary("xor", words, integer(CENTRES, words.type))
        return self.values.splats[key]

    def _by_lane(self, total: Value, dtype: DType, weights: Value, x: Load) -> Value:
        """Return `total` + products of weights and a word in a register: of signed bytes if instructions ask so."""
        if self.values.abilities.signs_dots:
            return self._signed(total, weights, self._lane(x))
        factors = weights, self._lane(x)
        return self._added(dtype, total, *(factors if dtype is DType.U8 else factors[::-1]))

    def _lane(self, x: Load) -> Value:
        """Return one of four words that lie in a vector register, in every lane."""
        values, offset = self.values, self.values.at.access(x.buffer, x.index).offset.const
        first, lane = offset // SHORTEST * SHORTEST, offset % SHORTEST
        words = values.registers[x.buffer.name].read(values.f, first, SHORTEST)
        key = ("lane", words.name, lane, values.width)
        if key not in values.splats:
            values.splats[key] = values.wide(values.f.part(words, lane, 1), values.width)
        return values.splats[key]

    def _by_signed(self, total: Value, one: Value, other: Value) -> Value:
        """Return `total` + products of words, by an instruction for signed bytes: x w = (x - 128) w + 128 w.

        `one` are unsigned. Sums wrap, so the result is exact. Products with a factor share what depends on it alone.
        """
        f, lanes = self.values.f, lanes_of(total.type)
        name, type_ = self.values.abilities.intrinsic("dot_signed_bytes", lanes), vector("i8", 4 * lanes)
        signed, excess = self.values.splats.get(("signed", one.name)), self.values.splats.get(("excess", other.name))
        w = f.op(type_, f"bitcast {other} to {type_}")
        if signed is None:
            x = f.op(type_, f"bitcast {one} to {type_}")
            signed = self.values.splats["signed", one.name] = f.binary("xor", x, integer(-128, type_))
        if excess is None:
            zeros = Value(total.type, "zeroinitializer")
            excess = self.values.splats["excess", other.name] = f.call(name, total.type, zeros, integer(-128, type_), w)
        return f.binary("sub", f.call(name, total.type, total, signed, w), excess)

    def _field(self, w: PackedField) -> Value:
        """Return a word of fields for each lane."""
        values, f = self.values, self.values.f
        shift = values.at.normal(w.shift)
        if not shift.is_const:
            raise InternalError(f"dot: the shift of a field is constant, got {w.shift}")
        key = ("field", values.at.access(w.load.buffer, w.load.index).offset.key, shift.const, w.mask, values.width)
        field = values.known(w.load.buffer, key)
        if field is None:
            elements = self._weights(w.load)
            mask = sum(w.mask << n for n in range(0, 32, w.load.dtype.bits))
            bits = vector("i8", 4 * lanes_of(elements.type))
            if values.abilities.multiplies_lanes and shift.const and w.mask == LARGEST >> shift.const:
                bytes_ = f.binary("lshr", f.op(bits, f"bitcast {elements} to {bits}"), integer(shift.const, bits))
                field = f.op(elements.type, f"bitcast {bytes_} to {elements.type}")
            else:
                field = f.binary("lshr", elements, integer(shift.const, elements.type)) if shift.const else elements
                field = f.binary("and", field, integer(mask, elements.type))
            values.loaded.setdefault(w.load.buffer.name, {})[key, values.at.guard] = field
        return field

    def _data(self, x: Load, n: int) -> Value:
        """Return the word at `x` in every lane, or one for each lane."""
        values, one = self.values, self.values.at.access(x.buffer, x.index)
        if one.stride == elements_per_dot(x.buffer.dtype):
            return self._weights(x)
        if one.stride is None:
            return self._spread(x, one)
        if values.width > 1 and (one.stride != 0 or values.is_mixed):
            raise InternalError(f"dot: all lanes have one word of data, got {x.buffer.name} by {one.stride}")
        key = ("dot", one.offset.key, n, values.width)
        data = values.known(x.buffer, key)
        if data is None:
            data = values.wide(self._word(one, n), values.width)
            values.loaded.setdefault(x.buffer.name, {})[key, values.at.guard] = data
        return data

    def _spread(self, x: Load, a: Access) -> Value:
        """Return a word for each lane, where several lanes have one: words that other loads share, chosen by lane."""
        values, at, size = self.values, self.values.at, elements_per_dot(x.buffer.dtype)
        distances = values.places(a.whole)
        if distances is None or values.is_mixed or any(p % size for p in distances):
            raise InternalError(f"dot: lanes have whole words of data, got {x.buffer.name} by {distances}")
        key = ("spread", a.whole.key, at.lane)
        words = values.known(x.buffer, key)
        if words is not None:
            return words
        span = 1 << (max(distances) // size).bit_length()
        block = values.block(x, a, span * size)
        first = at.in_lane(a, 0)
        with replaced(at, lane=None):
            if block is not None and not any(p % size for p in block[1]):
                words = spread(values.f, self._row(block[0], span), [p // size for p in block[1]])
            else:
                numbers = [p // size for p in distances]
                words = shuffled(values.f, numbers, lambda start, n: self._row(moved(first, start * size), n))
        values.loaded.setdefault(x.buffer.name, {})[key, at.guard] = words
        return words

    def _row(self, a: Access, n: int) -> Value:
        """Load `n` words that lie side by side."""
        values, key = self.values, ("row", a.offset.key, n)
        row = values.known(a.buffer, key)
        if row is None:
            pointer = values.at.pointer(a)
            if values.inside is not None:
                pointer = values.f.select(values.inside, pointer, values.nothing())
            row = values.f.load(vector("i32", n), pointer, values.at.align(a))
            values.loaded.setdefault(a.buffer.name, {})[key, values.at.guard] = row
        return row

    def _weights(self, w: Load, rows: Sequence[Expr] = ()) -> Value:
        """Return a word for each lane."""
        values, each = self.values, self.values.at.access(w.buffer, w.index)
        size = elements_per_dot(w.buffer.dtype)
        if values.width > 1 and (each.stride != (1 if rows else size) or values.is_mixed):
            raise InternalError(f"dot: words of weights lie side by side, got {w.buffer.name} by {each.stride}")
        count = 1 + sum(isinstance(row, Load) for row in rows) if rows else size
        key = ("dot", each.offset.key, count, values.width)
        weights = values.known(w.buffer, key)
        if weights is None:
            weights = self._of_rows(each, rows) if rows else self._words(each)
            values.loaded.setdefault(w.buffer.name, {})[key, values.at.guard] = weights
        return weights

    def _word(self, a: Access, n: int) -> Value:
        """Load `n` elements as one number, padded with zeros: nothing after them is read."""
        values = self.values
        pointer, size = values.at.pointer(a), a.buffer.dtype.stored_bytes
        if values.inside is not None:
            pointer = values.f.select(values.inside, pointer, values.nothing())
        if n == elements_per_dot(a.buffer.dtype):
            return values.f.load("i32", pointer, size)
        word, element = integer(0, "i32"), MEMORY[a.buffer.dtype]
        for k in range(n):
            one = values.f.load(element, values.f.gep(element, pointer, integer(k)), size)
            extended = values.f.cast("zext", one, "i32")
            word = values.f.binary("or", word, values.f.binary("shl", extended, integer(8 * size * k, "i32")))
        return word

    def _words(self, a: Access) -> Value:
        """Load a word for each lane."""
        at = self.values.at
        return self.values.f.load(vector("i32", self.values.width), at.pointer(a), at.align(a))

    def _of_rows(self, a: Access, rows: Sequence[Expr]) -> Value:
        """Return a word for each lane, of the elements at `a` and in `rows`: loads, or zero, which fills the word.

        A word of bytes may be filled by any others: products of integers with the zeros of the other factor are zero.
        """
        f, at, lanes = self.values.f, self.values.at, self.values.width
        element = vector(MEMORY[a.buffer.dtype], lanes)
        accesses = [a, *(at.access(row.buffer, row.index) for row in rows if isinstance(row, Load))]
        loaded = [f.load(element, at.pointer(p), at.align(p)) for p in accesses]
        word_type = vector("i32", lanes)
        if lanes > 1:
            filler = loaded[0] if a.buffer.dtype.stored_bytes == 1 else Value(element, "zeroinitializer")
            loaded += [filler] * (elements_per_dot(a.buffer.dtype) - len(loaded))
            return f.op(word_type, f"bitcast {_interleaved(f, loaded)} to {word_type}")
        words = f.cast("zext", loaded[0], "i32")
        for n, row in enumerate(loaded[1:], 1):
            shift = integer(8 * a.buffer.dtype.stored_bytes * n, word_type)
            words = f.binary("or", words, f.binary("shl", f.cast("zext", row, "i32"), shift))
        return words


def _interleaved(f: Function, rows: Sequence[Value]) -> Value:
    """Return the first elements of two or four rows, then their second ones, and so on."""
    lanes, first_equal = lanes_of(rows[0].type), [rows.index(row) for row in rows]
    order = [row_index * lanes + lane for lane in range(lanes) for row_index in first_equal]
    if len(rows) == 2:
        return shuffle(f, rows[0], rows[1], order)
    # One vector, into which rows are inserted, since a permutation of two takes longer.
    rows = [row if first_equal[n] == n else Value(row.type, "poison") for n, row in enumerate(rows)]
    halves = [shuffle(f, rows[n], rows[n + 1], range(2 * lanes)) for n in (0, 2)]
    joined = shuffle(f, halves[0], halves[1], range(4 * lanes))
    return shuffle(f, joined, Value(joined.type, "poison"), order)


def _pairs_added(f: Function, a: Value, b: Value) -> Value:
    """Add two words of i16 in every lane, which do not overflow."""
    pairs = vector("i16", 2 * lanes_of(a.type))
    one, other = (f.op(pairs, f"bitcast {v} to {pairs}") for v in (a, b))
    return f.op(a.type, f"bitcast {f.binary('add', one, other)} to {a.type}")


def _widened(f: Function, v: Value) -> Value:
    padded = Value(vector(scalar_of(v.type), SHORTEST), "zeroinitializer")
    for lane in range(lanes_of(v.type)):
        padded = f.insert(padded, f.extract(v, lane), lane)
    return padded
