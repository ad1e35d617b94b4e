"""Dot products of bytes or i16: the processor's instructions that add a word's products to each 32-bit lane."""

from __future__ import annotations

from codegen.ir.dot_widths import word
from codegen.ir.loops import Load
from codegen.llvm.emit.address import Access
from codegen.llvm.emit.convert import MEMORY
from codegen.llvm.emit.function_text import Function, Value, integer, lanes_of, vector
from codegen.llvm.emit.values import Values
from runtime.errors import InternalError

SHORTEST = 4  # lanes of the instructions, at least
PAIRS = {4: "sse2.pmadd.wd", 8: "avx2.pmadd.wd", 16: "avx512.pmaddw.d.512"}  # by lanes


class DotEmitter:
    """Emits dot products that are added to an accumulator."""

    def __init__(self, values: Values) -> None:
        self.values = values

    def dot(self, x: Load, w: Load, n: int, total: Value) -> Value:
        """Return `total` + `n` products in every lane: `x` has one word for all lanes, `w` a word for each."""
        values = self.values
        one, each = values.at.access(x.buffer, x.index), values.at.access(w.buffer, w.index)
        size = word(w.dtype)
        if values.width > 1 and (one.step != 0 or each.step != size or values.mixed):
            steps = f"{x.buffer.name} by {one.step}, {w.buffer.name} by {each.step}"
            raise InternalError(f"dot: factors move by 0 and by {size} from lane to lane, got {steps}")
        key = ("dot", one.offset.key, n, values.width)
        data = values.known(x.buffer, key)
        if data is None:
            data = values.wide(self._word(one, n), values.width)
            values.loaded.setdefault(x.buffer.name, {})[key, values.at.guard] = data
        key = ("dot", each.offset.key, size, values.width)
        weights = values.known(w.buffer, key)
        if weights is None:
            weights = values.f.load(vector("i32", values.width), values.at.pointer(each), values.at.align(each))
            values.loaded.setdefault(w.buffer.name, {})[key, values.at.guard] = weights
        return _added(values.f, total, data, weights, size)

    def _word(self, a: Access, n: int) -> Value:
        """Load `n` elements as one number, padded with zeros: nothing behind them is read."""
        values = self.values
        pointer, size = values.at.pointer(a), a.buffer.dtype.stored_bytes
        if n == word(a.buffer.dtype):
            return values.f.load("i32", pointer, size)
        found, element = integer(0, "i32"), MEMORY[a.buffer.dtype]
        for k in range(n):
            one = values.f.load(element, values.f.gep(element, pointer, integer(k)), size)
            whole = values.f.cast("zext", one, "i32")
            found = values.f.binary("or", found, values.f.binary("shl", whole, integer(8 * size * k, "i32")))
        return found


def _added(f: Function, total: Value, data: Value, weights: Value, size: int) -> Value:
    lanes = lanes_of(total.type)
    if lanes < SHORTEST:
        total, data, weights = (_widened(f, v) for v in (total, data, weights))
        return f.part(_added(f, total, data, weights, size), 0, lanes)
    type_ = vector(f"i{32 // size}", size * lanes)
    factors = (f.op(type_, f"bitcast {v} to {type_}") for v in (data, weights))
    if size == 2:
        return f.binary("add", total, f.call(f"llvm.x86.{PAIRS[lanes]}", total.type, *factors))
    return f.call(f"llvm.x86.avx512.vpdpbusd.{32 * lanes}", total.type, total, *factors)


def _widened(f: Function, v: Value) -> Value:
    whole = Value(vector("i32", SHORTEST), "zeroinitializer")
    for lane in range(lanes_of(v.type)):
        whole = f.insert(whole, f.extract(v, lane), lane)
    return whole
