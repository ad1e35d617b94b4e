"""Bytes that a loop over vectors writes side by side: several vectors become one of bytes, and one store.

vector c in 64 by 16:
  y[c] = u8(min(max(round_even(x[c] / s), 0), 255))      4 vectors of i32, VPACKSSDW twice, VPACKUSWB, VPERMD, a store

Packing saturates, so that the lower bound needs no instruction of its own; the upper one keeps conversions from
overflowing, whose result would be the least number. Alone, each vector takes VPMOVDB: two operations and a store.
"""

from __future__ import annotations

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.expressions import loads
from aot.codegen.ir.loops import Alloc, Buffer, Expr, For, Let, Load, Prim, Stmt, Store
from aot.codegen.ir.numbers.clamps import clamp_of, rounded_of, without_inner_bounds
from aot.codegen.llvm.emit.address import Access
from aot.codegen.llvm.emit.arithmetic.convert import rounded_to_pack, same
from aot.codegen.llvm.emit.arithmetic.shuffle import spread
from aot.codegen.llvm.emit.blocks import vectors
from aot.codegen.llvm.emit.function_text import Value, vector
from aot.codegen.llvm.emit.values import Values
from aot.runtime.abi import DType

LANES = 16  # lanes of an i32 vector that is packed
BOUNDS = {DType.U8: (0.0, 255.0), DType.I8: (-128.0, 127.0)}


@dataclass(frozen=True, slots=True)
class _Level:
    """A number that is rounded, plus a whole number, and clamped to a byte; `table` has the byte stored for each."""

    value: Expr
    zero: int
    dtype: DType
    table: Buffer | None


class ByteStores:
    """Emits the stores of a loop over vectors together, if they are bytes side by side."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self._levels: dict[Store, _Level] = {}  # of the loop whose bytes are packed
        self._kept: dict[Store, list[tuple[Access, Value]]] = {}

    def begin(self, loop: For) -> bool:
        """Begin a loop over vectors; True if its bytes are kept for `write`."""
        stores = _stores(loop.body)
        full = sum(lanes == LANES for _, lanes in vectors(loop.var, loop.lanes))
        levels = {s: _level_of(s) for s in stores} if self.values.abilities.packs_bytes and full > 1 else {}
        self._levels = {s: level for s, level in levels.items() if level is not None}
        self._kept = {s: [] for s in self._levels}
        return bool(self._kept)

    def keep(self, store: Store, target: Access) -> bool:
        """Emit the numbers of a store at `target` and keep them; False if it writes its bytes itself."""
        level = self._levels.get(store)
        if level is None or target.stride != 1 or self.values.width != LANES:
            return False
        if self.values.inside is not None or target.buffer.name in self.values.registers:
            return False
        low, high = BOUNDS[level.dtype]
        v = self.values.wide(self.values.to_round(level.value), LANES)
        name = self.values.abilities.intrinsic("round_to_i32", LANES)
        self._kept[store].append((target, rounded_to_pack(self.values.f, name, v, level.zero, int(low), int(high))))
        return True

    def write(self) -> None:
        """Write the bytes that were kept since `begin`, up to four vectors at a time."""
        for store, bytes_kept in self._kept.items():
            self._write(self._levels[store], bytes_kept)
        self._levels = {}
        self._kept = {}

    def _write(self, level: _Level, kept: list[tuple[Access, Value]]) -> None:
        while kept:
            count = next(n for n in (4, 2, 1) if _are_side_by_side(kept[:n], n))
            target, packed = kept[0][0], self._packed([v for _, v in kept[:count]], level.dtype)
            if level.table is not None:
                packed = self.values.byte_of(level.table, packed)
            self.values.write(target, packed, count * LANES)
            kept = kept[count:]

    def _packed(self, levels: list[Value], dtype: DType) -> Value:
        """Return one, two or four vectors of i32 as one of bytes."""
        f, count = self.values.f, len(levels)
        if count == 1:
            (v,) = levels
            return f.cast("trunc", f.intrinsic("smax", v, same(v, int(BOUNDS[dtype][0]))), "i8")
        pairs = zip(levels[::2], levels[1::2], strict=True)
        intrinsic = self.values.abilities.intrinsic
        words = [f.call(intrinsic("pack_i32", 2 * LANES), "<32 x i16>", a, b) for a, b in pairs]
        name = intrinsic(f"pack_i16_to_{dtype.value}", 4 * LANES)
        packed = f.call(name, "<64 x i8>", words[0], words[-1])
        # each quarter of a vector has four bytes of each operand
        quarters = f.op("<16 x i32>", f"bitcast {packed} to <16 x i32>")
        ordered = spread(f, quarters, [4 * quarter + n for n in range(count) for quarter in range(4)])
        type_ = vector("i8", count * LANES)
        return f.op(type_, f"bitcast {ordered} to {type_}")


def _level_of(store: Store) -> _Level | None:
    """Return the level that a store of bytes writes; None for other stores and for those that read what they write."""
    level, table = _looked_up(store.value)
    clamp = clamp_of(level)
    rereads = any(x.buffer.name == store.buffer.name for x in loads(*store.index, store.value))
    if clamp is None or store.accumulate is not None or rereads or BOUNDS.get(level.dtype) != clamp[1:]:
        return None
    whole = rounded_of(without_inner_bounds(*clamp))
    return _Level(*whole, level.dtype, table) if whole is not None and whole[1] >= 0 else None


def _looked_up(value: Expr) -> tuple[Expr, Buffer | None]:
    """Return the byte that `value` is looked up by, and the table; `value` itself if it is no lookup."""
    match value:
        case Prim("lookup", (Load(table), Prim("bits", (byte,)))) | Prim("lookup", (Load(table), byte)):
            return byte, table
        case _:
            return value, None


def _stores(body: tuple[Stmt, ...]) -> tuple[Store, ...]:
    """Return the stores that a body consists of, below names of values and buffers; () for other bodies."""
    while len(body) == 1 and isinstance(body[0], Let | Alloc):
        body = body[0].body
    stores = tuple(s for s in body if isinstance(s, Store))
    return stores if len(stores) == len(body) else ()


def _are_side_by_side(kept: list[tuple[Access, Value]], count: int) -> bool:
    """True if there are `count` vectors that are contiguous in memory."""
    first = kept[0][0].offset
    ahead = (a.offset.plus(first, -1) for a, _ in kept)
    return len(kept) == count and all(not d.terms and d.const == n * LANES for n, d in enumerate(ahead))
