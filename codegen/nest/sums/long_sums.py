"""Long sums of f32: after a few hundred terms one after the other, they go into a sum of f64 and begin anew.

acc += body                       in blocks of an axis
far += f64(acc); acc = 0          after each whole block
acc = f32(far + f64(acc))         at the end

One chain of 10^7 equal terms errs by 10^-3, because terms are small beside their sum. Blocks begin at fixed terms, so
that the order of a sum does not depend on its length; sums of less than a block keep their bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from math import prod

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import (
    Buffer,
    Const,
    Expr,
    For,
    If,
    Load,
    Prim,
    Reduce,
    Size,
    Space,
    Store,
    Var,
    as_expr,
    cast,
    dense,
    prim,
)
from aot.codegen.ir.numbers.bf16_chains import is_chain_sum
from aot.codegen.nest.points import Points, Stmts, size_of
from aot.runtime.abi import DType

Run = Callable[[Expr, Size], Stmts]

CHAIN = 512  # terms of a block, one after the other: errors of up to 5e-6 where all terms are equal
FEW = CHAIN // 16  # terms of a block of an inner axis whose size varies, and elements of one of the axis around it
# Most terms, one after the other, of a sum of static length that stays one chain:
LONG = 1 << 12  # terms of a partial result in a lane
LONG_CHAIN = 1 << 16  # terms of an accumulator of one output: layers with many channels have long ones


@dataclass(frozen=True, slots=True)
class LongSum:
    """An accumulator, `acc[index]`, and the sum of its blocks, `far[index]`."""

    acc: Buffer
    far: Buffer
    index: tuple[Expr, ...]

    @property
    def begin(self) -> Stmts:
        return (Store(self.far, self.index, Const(0.0, DType.F64)),)

    @property
    def flush(self) -> Stmts:
        acc = cast(Load(self.acc, self.index), DType.F64)
        return Store(self.far, self.index, acc, "add"), Store(self.acc, self.index, Const(0.0, DType.F32))

    @property
    def end(self) -> Stmts:
        total = Load(self.far, self.index) + cast(Load(self.acc, self.index), DType.F64)
        return (Store(self.acc, self.index, cast(total, DType.F32)),)


def far_sum(points: Points, name: str, *more: int) -> Buffer:
    """Return the buffer for the sums of blocks; it is in memory, since registers hold the sum of the present block."""
    return dense(name, *points.shape, *more, space=Space.STACK, dtype=DType.F64)


def is_long(reduction: Reduce, terms: Size, longest: int, doubled: bool = True) -> bool:
    """True if a sum has more than `longest` terms, or a dynamic number of them.

    `doubled`: products of matrices whose inner size varies stay one chain, because all their code would be doubled.
    """
    if reduction.fn != "add" or reduction.dtype is not DType.F32 or is_chain_sum(reduction):
        return False
    return terms > longest if isinstance(terms, int) else not (doubled and _is_product(reduction.body))


def count(axes: tuple[Var, ...]) -> Size:
    """Return the number of terms along axes; any expression if one varies."""
    sizes = [size_of(a.extent) for a in axes]
    varying = next((n for n in sizes if not isinstance(n, int)), None)
    return prod(n for n in sizes if isinstance(n, int)) if varying is None else varying


def block_of(axes: tuple[Var, ...], inner: Size) -> tuple[int, int]:
    """Return the index of the axis that is cut into blocks, and their size: a block has about CHAIN terms.

    `inner`: terms of each element, one after the other; a number that varies counts as few.
    """
    terms = max(inner, 1) if isinstance(inner, int) else CHAIN // FEW
    for k in reversed(range(1, len(axes))):
        extent = size_of(axes[k].extent)
        longer = terms * (extent if isinstance(extent, int) else CHAIN + 1)
        if longer > CHAIN:
            return k, max(1, CHAIN // terms)
        terms = longer
    return 0, max(1, CHAIN // terms)


def in_blocks(
    name: str, extent: Size, size: int, flush: Stmts, run: Run, *, begin: Stmts = (), again: bool = False
) -> Stmts:
    """Build `run(start, extent)` for each `size` elements of an axis, with `flush` after it, and for the rest.

    `begin` comes before the first block, if there is one. `again`: all of it runs many times, so that
    `flush` follows the rest, too.
    """
    block, rest = Var(f"{name}.b", extent // size), extent % size
    stmts = if_blocks(extent, size, (*begin, For(block, (*run(block * size, size), *flush))))
    if isinstance(rest, int) and not rest:
        return stmts
    return (*stmts, *run(as_expr(extent - rest, DType.I64), rest), *(flush if again else ()))


def if_blocks(extent: Size, size: int, stmts: Stmts) -> Stmts:
    """Run `stmts` if an axis has at least one whole block."""
    return if_any_blocks(((extent, size),), stmts)


def if_any_blocks(axes: tuple[tuple[Size, int], ...], stmts: Stmts) -> Stmts:
    """Run `stmts` if at least one of some extents holds a whole block. `axes`: extents and sizes of their blocks."""
    if any(isinstance(extent, int) and extent >= size for extent, size in axes):
        return stmts
    fits = [prim("le", Const(size), extent) for extent, size in axes if not isinstance(extent, int)]
    return (If(reduce(partial(prim, "or"), fits), stmts),) if fits else ()


def _is_product(body: Expr) -> bool:
    return isinstance(body, Prim) and body.fn == "mul" and body.args[0] != body.args[1]
