"""Sizes over a kernel's symbols as JSON: 64 * size0  <->  ["mul", 64, "0"], where "0" is the first symbol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from aot.codegen.ir.loops import Const, Prim, Size, Var, as_expr
from aot.runtime.abi import DType
from aot.runtime.errors import InternalError


def size_json(size: Size, symbols: Sequence[Var]) -> object:
    """Return a size as a value of JSON."""
    match size:
        case int():
            return size
        case Const(value):
            return int(value)
        case Var():
            return str(symbols.index(size))
        case Prim(fn, args, dtype):
            return [fn, dtype.value, *(size_json(arg, symbols) for arg in args)]
        case _:
            raise InternalError(f"size: an expression over symbols, got {size}")


def size_from(tree: object, symbols: Sequence[Var]) -> Size:
    """Return the size that `size_json` has made a value of."""
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return symbols[int(tree)]
    fn, dtype, *args = cast("list[object]", tree)
    exprs = tuple(as_expr(size_from(arg, symbols), DType.I64) for arg in args)
    return Prim(str(fn), exprs, DType(str(dtype)))
