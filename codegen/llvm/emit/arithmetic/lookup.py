"""Tables of up to 16 floats that are read by an index in each lane: they lie in registers, which permutations read."""

from __future__ import annotations

from collections.abc import Sequence

from codegen.ir.expressions import rewrite
from codegen.ir.loops import Buffer, Const, Expr, Prim, Space
from codegen.llvm.emit.arithmetic.shuffle import shuffle, spread
from codegen.llvm.emit.function_text import Function, Value, constants, integer, lanes_of, number
from runtime.abi import DType

MOST_NUMBERS = 16  # numbers of a table
LEAST_LANES = 8  # lanes of the shortest permutation
PERMUTE = {8: "llvm.x86.avx2.permps", 16: "llvm.x86.avx512.permvar.sf.512"}  # these ignore higher bits of indices
HALF = 28  # shift that moves bit 3 of an index, which chooses between two permutations of 8, to the sign


def is_short_table(buffer: Buffer) -> bool:
    return buffer.space is Space.TABLE and buffer.dtype is DType.F32 and len(buffer.values) <= MOST_NUMBERS


def looked_up(f: Function, values: Sequence[float], index: Value, permutes: int) -> Value:
    """Return `values[i % 16]` for each i of a vector of i32. `permutes`: lanes of the longest permutation, 8 or 16."""
    lanes = lanes_of(index.type)
    if lanes > permutes:
        parts = [looked_up(f, values, f.part(index, i, permutes), permutes) for i in range(0, lanes, permutes)]
        while len(parts) > 1:
            both = list(range(2 * lanes_of(parts[0].type)))
            parts = [shuffle(f, a, b, both) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]
    if lanes < LEAST_LANES:
        wide = spread(f, index, [*range(lanes), *[-1] * (LEAST_LANES - lanes)])
        return f.part(looked_up(f, values, wide, permutes), 0, lanes)
    found = [_permuted(f, values[i : i + lanes], index) for i in range(0, len(values), lanes)]
    if len(found) == 1:
        return found[0]
    high = f.binary("shl", index, integer(HALF, index.type))
    return f.select(f.compare("icmp slt", high, integer(0, index.type)), found[1], found[0])


def without_mask(index: Expr) -> Expr:
    """Return an index without the masks that `looked_up` implies."""
    return rewrite(index, _unmasked)


def _unmasked(e: Expr) -> Expr | None:
    match e:
        case Prim("and", (x, Const(value))) if value == MOST_NUMBERS - 1:
            return x
        case Prim("cast" | "select"):
            return None
        case _:
            return e


def _permuted(f: Function, values: Sequence[float], index: Value) -> Value:
    lanes = lanes_of(index.type)
    padded = [*values, *[0.0] * (lanes - len(values))]
    table = constants([number(v, "float").name for v in padded], "float")
    return f.call(PERMUTE[lanes], table.type, table, index)
