"""Sums of products that tile registers compute: which operand gives the rows, which the columns, and the blocks.

chains[k](x[i, k] * w[k, j])                  bf16: blocks of up to 32 terms
add[k](i32(x[i, k]) * i32(w[k, j]))           u8 and i8: blocks of up to 64 terms
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.ir.chains import block_terms, chain_axis, chain_factors, is_chains
from codegen.ir.dot_widths import small_factors
from codegen.ir.expressions import variables
from codegen.ir.loops import Load, Reduce, Var
from runtime.abi import DType

ROWS = 16  # rows of a tile register, and its columns of 32 bits
BYTES = {(DType.U8, DType.I8): "u8i8", (DType.I8, DType.U8): "i8u8"}  # factors of rows and of columns
COLUMN_BYTES = 64  # bytes of a row of the columns and of results
MIN_BYTE_TERMS = 24  # of a block of bytes; estimated


@dataclass(frozen=True, slots=True)
class MatrixForm:
    """Operands of rows and columns, the axis of the blocks, their terms, the terms of a word, the factors' types."""

    x: Load
    w: Load
    axis: Var
    terms: int
    word: int
    kind: str


def matrix_form(r: Reduce, lane: Var | None, axis: Var | None = None) -> MatrixForm | None:
    """Return the form of a sum whose columns are along `lane`; None for sums that tile registers do not compute.

    `axis`: the axis of blocks of a sum of bytes, which may run in any order.
    """
    if lane is None:
        return None
    factors, axis = (chain_factors(r), chain_axis(r)) if is_chains(r) else (small_factors(r), axis)
    if factors is None or axis is None or not isinstance(axis.extent, int):
        return None
    x, w = factors if lane in variables(*factors[1].index) else factors[::-1]
    if lane in variables(*x.index) or lane not in variables(*w.index):
        return None
    if is_chains(r):
        return MatrixForm(x, w, axis, block_terms(axis.extent), 2, "bf16")
    terms = byte_terms(axis.extent)
    kind = BYTES.get((x.dtype, w.dtype))
    return MatrixForm(x, w, axis, terms, 4, kind) if terms and kind is not None else None


def byte_terms(n: int) -> int:
    """Return the terms of a block of a sum of `n` products of bytes: whole words, three eighths of a row or more.

    0 for none: instructions on short rows take as long as those on full ones.
    """
    return next((t for t in range(COLUMN_BYTES, MIN_BYTE_TERMS - 1, -4) if n > 0 and n % t == 0), 0)
