"""Products of bf16 numbers in the order of tile registers' sums, so that all processors give the same bits.

    chains[k](x[i, k] * w[k, j])     for each block of terms of the last axis:
                                       even = odd = 0
                                       even = fma(x[i, k], w[k, j], even)               for k = 0, 2, 4, .. of the block
                                       odd = fma(x[i, k + 1], w[k + 1, j], odd)
                                       sum += even + odd

The last block of a dynamic number of terms may be shorter: zeros after it would change nothing. Sums run over the
other axes from the outside in. Denormal numbers count as zero, in operands and in results. That is the order of Intel's
TDPBF16PS; its VDPBF16PS rounds in another order.
"""

from __future__ import annotations

from aot.codegen.ir.access import coefficient, offset
from aot.codegen.ir.expressions import rewrite
from aot.codegen.ir.loops import Const, Expr, Load, Prim, Reduce, Size, Var
from aot.codegen.ir.primitives import CHAINS
from aot.codegen.ir.schedule import Tail, Tile

MAX_BLOCK_TERMS = 32  # most terms of a block: one instruction adds as many
MIN_BLOCK_TERMS = 16  # with fewer, half of a tile register would be empty


def block_terms(n: Size) -> int:
    """Return the terms of a block of a sum of `n`: the greatest even divisor within bounds; 0 if there is none.

    Of a dynamic number all blocks but the last one are full.
    """
    if not isinstance(n, int):
        return MAX_BLOCK_TERMS
    divisor = next((t for t in range(MAX_BLOCK_TERMS, MIN_BLOCK_TERMS - 1, -2) if n % t == 0), 0)
    return divisor if n > 0 else 0


def padded_terms(n: int) -> int:
    """Return the terms of a sum of `n` padded with zeros to whole, equal blocks; 0 if `n` is too short for one."""
    if block_terms(n) or n < MIN_BLOCK_TERMS:
        return n if block_terms(n) else 0
    blocks = -(-n // MAX_BLOCK_TERMS)
    return 2 * blocks * -(-n // (2 * blocks))


def block_tile(axis: Var) -> Tile:
    """Return the tile of the axis that forms blocks of terms."""
    n = axis.extent or 1
    return Tile(axis.name, block_terms(n), Tail.CUT if isinstance(n, int) else Tail.SHORT)


def is_chain_sum(r: Reduce | None) -> bool:
    """True for a sum in the order of this module."""
    return r is not None and r.fn == CHAINS


def chain_axis(r: Reduce) -> Var:
    """Return the axis that forms blocks of terms."""
    return r.axes[-1]


def chain_factors(r: Reduce) -> tuple[Load, Load] | None:
    """Return the loads of the two factors, without the guards of padding."""
    body = _inside(r.body)
    if not isinstance(body, Prim) or body.fn != "mul":
        return None
    first, second = map(_inside, body.args)
    return (first, second) if isinstance(first, Load) and isinstance(second, Load) else None


def _inside(e: Expr) -> Expr:
    while isinstance(e, Prim) and e.fn == "within" and (len(e.args) == 3 or e.args[3] == Const(0.0, e.dtype)):
        e = e.args[2]
    return e


def is_contiguous(x: Load, axis: Var, terms: int) -> bool:
    """True if aligned runs of `terms` elements along `axis` are contiguous in memory."""
    step, extent = Var(f"{axis.name}.run"), axis.extent
    part = Var(f"{axis.name}.part", terms)
    if isinstance(extent, int):
        step = Var(step.name, -(-extent // terms))
    index = tuple(rewrite(i, {axis: step * terms + part}) for i in x.index)
    step_of_part = coefficient(offset(x.buffer, index), part)
    return step_of_part is not None and step_of_part.is_const and step_of_part.const == 1
