"""Kernels of quantised numbers: products and sums in them are computed as they are written, on all targets.

u8(round_even((f32(a) * 0.3 + f32(b) * 0.5) / 0.2))      near the middle of two levels: one level or the other

A multiply-add rounds once where a product and a sum round twice, so that targets with and without it would give
different levels. Sums of products over an axis are not concerned: they are fused where the target can.
"""

from __future__ import annotations

from aot.codegen.ir.loops import Expr, Prim, Stmt, Store
from aot.codegen.ir.traverse import statements
from aot.runtime.abi import DType

ROUNDING_FNS = frozenset({"floor", "ceil", "trunc", "round_even", "round_away"})
PRODUCT_FNS = frozenset({"mul", "dot"})
LEVEL_BITS = 32  # most bits of quantised integers and of their sums; indices are wider


def is_quantized(stmts: tuple[Stmt, ...]) -> bool:
    """True if a stored value is made of whole numbers, or of a float that was rounded to one."""
    stores = (s for s in statements(stmts) if isinstance(s, Store))
    return any(_is_quantized(s.value, set()) for s in stores if not adds_product(s))


def adds_product(stmt: Store) -> bool:
    """True for a term of a convolution or of a product of matrices."""
    return stmt.accumulate == "add" and isinstance(stmt.value, Prim) and stmt.value.fn in PRODUCT_FNS


def _is_quantized(e: Expr, seen: set[int]) -> bool:
    """True if an expression converts between floats and whole numbers; indices of loads do not count."""
    if not isinstance(e, Prim) or id(e) in seen:
        return False
    seen.add(id(e))
    match e:
        case Prim("cast", (x,)):
            converts = x.dtype.is_float != e.dtype.is_float and all(
                t.is_float or _is_level(t) for t in (x.dtype, e.dtype)
            )
        case _:
            converts = e.fn in ROUNDING_FNS and e.dtype.is_float
    return converts or any(_is_quantized(a, seen) for a in e.args)


def _is_level(dtype: DType) -> bool:
    return dtype.is_integer and dtype.bits <= LEVEL_BITS
