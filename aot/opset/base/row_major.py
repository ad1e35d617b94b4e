"""Number and order of the elements of a shape, row-major, in loop nests."""

from __future__ import annotations

from collections.abc import Sequence

from aot.codegen.ir.loops import Const, Expr, Size
from aot.codegen.script.script import Scripted
from aot.ir.types import Dim, Shape


def volume(shape: Shape) -> Scripted:
    """Return the number of elements of a shape."""
    total: Size = 1
    for n in shape:
        total = n * total
    return total


def ravel(index: Sequence[Expr], shape: Sequence[Dim]) -> Expr:
    """Return the row-major position of the element at `index`."""
    flat: Expr = Const(0)
    for i, n in zip(index, shape, strict=True):
        flat = flat * n + i
    return flat


def unravel(flat: Scripted, shape: Shape) -> tuple[Expr, ...]:
    """Return the index of the element at row-major position `flat`."""
    index: list[Expr] = []
    for n in reversed(shape):
        index.insert(0, flat % n)
        flat = flat // n
    return tuple(index)
