"""Sums of products of bytes: the processor's instruction for four of them in each lane of 32 bits."""

from __future__ import annotations

from codegen.dots import FOUR
from codegen.llvm.address import Access
from codegen.llvm.text import Function, Value, integer, lanes_of, vector
from codegen.llvm.values import Values
from codegen.loops import Load
from runtime.errors import InternalError

SHORTEST = 4  # lanes of the instruction


class Dots(Values):
    """Adds dot products to what has been summed."""

    def dot(self, x: Load, w: Load, n: int, total: Value) -> Value:
        """`total` + `n` products, in every lane: `x` is the same in all, `w` has four bytes in each."""
        one, each = self.at.access(x.buffer, x.index), self.at.access(w.buffer, w.index)
        if self.width > 1 and (one.step != 0 or each.step != FOUR or self.mixed):
            steps = f"{x.buffer.name} by {one.step}, {w.buffer.name} by {each.step}"
            raise InternalError(f"dot: bytes move by 0 and by 4 from lane to lane, got {steps}")
        key = ("dot", one.offset.key, n, self.width)
        data = self.known(x.buffer, key)
        if data is None:
            data = self.wide(self._bytes(one, n), self.width)
            self.loaded.setdefault(x.buffer.name, {})[key, self.at.guard] = data
        key = ("dot", each.offset.key, FOUR, self.width)
        weights = self.known(w.buffer, key)
        if weights is None:
            weights = self.f.load(vector("i32", self.width), self.at.pointer(each), self.at.align(each))
            self.loaded.setdefault(w.buffer.name, {})[key, self.at.guard] = weights
        return _added(self.f, total, data, weights)

    def _bytes(self, a: Access, n: int) -> Value:
        """`n` of them and zeros, as a number: nothing behind them is read."""
        pointer = self.at.pointer(a)
        if n == FOUR:
            return self.f.load("i32", pointer, 1)
        found = integer(0, "i32")
        for k in range(n):
            byte = self.f.cast("zext", self.f.load("i8", self.f.gep("i8", pointer, integer(k)), 1), "i32")
            found = self.f.binary("or", found, self.f.binary("shl", byte, integer(8 * k, "i32")))
        return found


def _added(f: Function, total: Value, data: Value, weights: Value) -> Value:
    lanes = lanes_of(total.type)
    if lanes < SHORTEST:
        return f.part(_added(f, *(_widened(f, v) for v in (total, data, weights))), 0, lanes)
    type_ = vector("i8", FOUR * lanes)
    pairs = (f.op(type_, f"bitcast {v} to {type_}") for v in (data, weights))
    return f.call(f"llvm.x86.avx512.vpdpbusd.{32 * lanes}", total.type, total, *pairs)


def _widened(f: Function, v: Value) -> Value:
    whole = Value(vector("i32", SHORTEST), "zeroinitializer")
    for lane in range(lanes_of(v.type)):
        whole = f.insert(whole, f.extract(v, lane), lane)
    return whole
