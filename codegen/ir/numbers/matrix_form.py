"""Sums of products that tile registers compute: which operand gives the rows, which the columns, and the blocks.

chains[k](x[i, k] * w[k, j])                  bf16: blocks of up to 32 terms
add[k](i32(x[i, k]) * i32(w[k, j]))           u8 and i8: blocks of up to 64 terms
add[g, e](f32(i32(x[i, g, e]) * i32(w[g, e, j])) * s[g, j])     scaled: tiles sum each step of g, vectors scale it
"""

from __future__ import annotations

from math import prod

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.access import unravel
from aot.codegen.ir.expressions import rewrite, variables
from aot.codegen.ir.loops import Load, Reduce, Var
from aot.codegen.ir.numbers.bf16_chains import block_terms, chain_axis, chain_factors, is_chain_sum
from aot.codegen.ir.numbers.dot_forms import PackedField, packed_field, scaled_sum, small_factors
from aot.runtime.abi import DType

ROWS = 16  # rows of a tile register, and its columns of 32 bits
MIN_ROWS = 4  # rows below which memory limits a product, whatever computes it
BYTES = {(DType.U8, DType.I8): "u8i8", (DType.I8, DType.U8): "i8u8"}  # factors of rows and of columns
COLUMN_BYTES = 64  # bytes of a row of the columns and of results
MIN_BYTE_TERMS = 24  # least terms of a block of bytes; estimated


@dataclass(frozen=True, slots=True)
class MatrixForm:
    """Operands of rows and columns, the axis of the blocks, their terms, the terms of a word, the factors' types.

    `field`: part of the elements of `w` that is the factor; the axis of the blocks stands for the axes of the elements.
    """

    x: Load
    w: Load
    axis: Var
    terms: int
    word: int
    kind: str
    field: PackedField | None = None


def even_height(rows: int) -> int:
    """Return the rows of two tiles, up to 32, that divide `rows` without a rest; 0 if none above 16 do."""
    return next((n for n in range(2 * ROWS, ROWS, -1) if rows % n == 0), 0)


def matrix_form(r: Reduce, lane: Var | None, axis: Var | None = None) -> MatrixForm | None:
    """Return the form of a sum with columns along `lane`; None for sums that tile registers do not compute.

    `axis`: the axis of blocks of a sum of bytes, which may run in any order; the axis of steps of a scaled sum.
    """
    if lane is None:
        return None
    if scaled_sum(r) is not None:
        return _scaled_form(r, lane, axis)
    factors, axis = (chain_factors(r), chain_axis(r)) if is_chain_sum(r) else (small_factors(r), axis)
    if factors is None or axis is None:
        return None
    x, w = factors if lane in variables(*factors[1].index) else factors[::-1]
    if lane in variables(*x.index) or lane not in variables(*w.index):
        return None
    if is_chain_sum(r):
        return MatrixForm(x, w, axis, block_terms(axis.extent or 1), 2, "bf16")
    terms = byte_terms(axis.extent) if isinstance(axis.extent, int) else 0
    kind = BYTES.get((x.dtype, w.dtype))
    return MatrixForm(x, w, axis, terms, 4, kind) if terms and kind is not None else None


def _scaled_form(r: Reduce, lane: Var, steps: Var | None) -> MatrixForm | None:
    """Return the form of the integers of a step of a scaled sum. Axes of fields become one, in the order of `r`."""
    reduction, inner = scaled_sum(r), tuple(a for a in r.axes if a != steps)
    if reduction is None or steps is None or steps not in r.axes or not inner:
        return None
    few = packed_field(r)
    if few is None:
        return matrix_form(Reduce("add", inner, reduction.body), lane, inner[0]) if len(inner) == 1 else None
    element = Var(f"{steps.name}.e", prod(a.extent for a in inner if isinstance(a.extent, int)))
    form = matrix_form(Reduce("add", (element,), reduction.body), lane, element)
    if form is None:
        return None
    known = unravel(inner, element)
    x = Load(form.x.buffer, tuple(rewrite(i, known) for i in form.x.index))
    return MatrixForm(x, form.w, element, form.terms, form.word, form.kind, few)


def byte_terms(n: int) -> int:
    """Return the terms of a block of a sum of `n` products of bytes: whole words, three eighths of a row or more.

    0 for none: instructions on short rows take as long as those on full ones.
    """
    return next((t for t in range(COLUMN_BYTES, MIN_BYTE_TERMS - 1, -4) if n > 0 and n % t == 0), 0)
