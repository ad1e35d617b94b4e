"""Tables that are read by an index in each lane: they lie in registers, which permutations read."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import Buffer, Const, Expr, Prim, Space
from aot.codegen.llvm.emit.arithmetic.shuffle import shuffle, spread
from aot.codegen.llvm.emit.function_text import Function, Value, constants, integer, lanes_of, number
from aot.codegen.machines import Abilities
from aot.runtime.abi import DType

MAX_NUMBERS = 16  # numbers of a table
LEAST_LANES = 8  # lanes of the shortest permutation
MAX_PERMUTED = 128  # bytes among which VPERMI2B chooses
SHORTEST_BYTES = 16  # bytes of the shortest vector that VPSHUFB looks up: of fewer, loads one by one are faster
LONGEST_BYTES = 32  # bytes of the longest one
WORDS = 16  # numbers of 32 bits in a vector of AVX-512, two of which VPERMI2D chooses from
HALF = 28  # shift that moves bit 3 of an index, which chooses between two permutations of 8, to the sign


def is_short_table(buffer: Buffer) -> bool:
    return buffer.space is Space.TABLE and buffer.dtype is DType.F32 and len(buffer.values) <= MAX_NUMBERS


def looked_up(f: Function, values: Sequence[float], index: Value, abilities: Abilities) -> Value:
    """Return `values[i % 16]` for each i of a vector of i32; the longest permutation has 8 or 16 lanes."""
    lanes, permutes = lanes_of(index.type), abilities.permutes
    if lanes > permutes:
        parts = [looked_up(f, values, f.part(index, i, permutes), abilities) for i in range(0, lanes, permutes)]
        return _joined(f, parts)
    if lanes < LEAST_LANES:
        wide = spread(f, index, [*range(lanes), *[-1] * (LEAST_LANES - lanes)])
        return f.part(looked_up(f, values, wide, abilities), 0, lanes)
    chunks = [_permuted(f, values[i : i + lanes], index, abilities) for i in range(0, len(values), lanes)]
    if len(chunks) == 1:
        return chunks[0]
    high = f.binary("shl", index, integer(HALF, index.type))
    return f.select(f.compare("icmp slt", high, integer(0, index.type)), chunks[1], chunks[0])


def looks_up_bytes(lanes: int, abilities: Abilities) -> bool:
    """True if permutations look up a vector of bytes faster than a load for each of them."""
    return abilities.permutes_bytes > 0 and lanes >= (2 if abilities.permutes == WORDS else SHORTEST_BYTES)


def bytes_looked_up(f: Function, table: bytes, index: Value, abilities: Abilities) -> Value:
    """Return `table[i]` of 256 bytes for each u8 i of a vector."""
    if abilities.permutes_bytes == MAX_PERMUTED:
        width, look = 64, _by_halves
    elif abilities.permutes == WORDS:
        width, look = WORDS, _by_words
    else:
        width, look = min(lanes_of(index.type), LONGEST_BYTES), _by_rows
    lanes = lanes_of(index.type)
    if lanes > width:
        return _joined(f, [look(f, table, f.part(index, i, width), abilities) for i in range(0, lanes, width)])
    elements = look(f, table, spread(f, index, [*range(lanes), *[-1] * (width - lanes)]), abilities)
    return f.part(elements, 0, lanes)


def _joined(f: Function, parts: list[Value]) -> Value:
    """Concatenate as many vectors as a power of two."""
    while len(parts) > 1:
        both = list(range(2 * lanes_of(parts[0].type)))
        parts = [shuffle(f, a, b, both) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _by_words(f: Function, table: bytes, index: Value, abilities: Abilities) -> Value:
    """Permute words of four bytes: the highest bit of an index chooses one of two, the lowest two a byte of it."""
    lane_number = f.cast("zext", index, "i32")
    rows = [constants([str(w) for w in row], "i32") for row in struct.iter_unpack(f"<{WORDS}i", table)]
    at = f.binary("lshr", lane_number, integer(2, lane_number.type))
    name = abilities.intrinsic("permute_two_words", WORDS)
    low, high = (f.call(name, at.type, rows[i], at, rows[i + 1]) for i in (0, 2))
    word = f.select(f.compare("icmp slt", index, integer(0, index.type)), high, low)
    shift = f.binary("shl", f.binary("and", lane_number, integer(3, lane_number.type)), integer(3, lane_number.type))
    return f.cast("trunc", f.binary("lshr", word, shift), "i8")


def _by_halves(f: Function, table: bytes, index: Value, abilities: Abilities) -> Value:
    """Permute both halves of a table, each of two registers, and choose by the highest bit of an index."""
    rows = [_constant(table[i : i + 64]) for i in range(0, 256, 64)]
    name = abilities.intrinsic("permute_two_bytes", lanes_of(index.type))
    low, high = (f.call(name, index.type, rows[i], index, rows[i + 1]) for i in (0, 2))
    return f.select(f.compare("icmp slt", index, integer(0, index.type)), high, low)


def _by_rows(f: Function, table: bytes, index: Value, abilities: Abilities) -> Value:
    """Shuffle 16 rows of 16 bytes; each row adds the difference from the row before it.

    A shuffle gives 0 for an index below 0, so row n of a half of the table takes part from index 16 n on.
    """
    lanes = lanes_of(index.type)
    name = abilities.intrinsic("shuffle_bytes", lanes)
    result: Value | None = None
    for half in (0, 128):
        at = f.binary("xor", index, integer(-128, index.type)) if half else index
        before = bytes(16)
        for start in range(half, half + 128, 16):
            row = table[start : start + 16]
            added = _constant(bytes(a ^ b for a, b in zip(row, before, strict=True)) * (lanes // 16))
            part = f.call(name, index.type, added, at)
            result = part if result is None else f.binary("xor", result, part)
            at = f.intrinsic("ssub.sat", at, integer(16, index.type))
            before = row
    assert result is not None
    return result


def _constant(data: bytes) -> Value:
    return constants([str(b) for b in data], "i8")


def without_mask(index: Expr) -> Expr:
    """Return an index without the masks that `looked_up` implies."""
    return rewrite(index, _unmasked)


def _unmasked(e: Expr) -> Expr | None:
    match e:
        case Prim("and", (x, Const(value))) if value == MAX_NUMBERS - 1:
            return x
        case Prim("cast" | "select"):
            return None
        case _:
            return e


def _permuted(f: Function, values: Sequence[float], index: Value, abilities: Abilities) -> Value:
    lanes = lanes_of(index.type)
    padded = [*values, *[0.0] * (lanes - len(values))]
    table = constants([number(v, "float").name for v in padded], "float")
    return f.call(abilities.intrinsic("permute_floats", lanes), table.type, table, index)
