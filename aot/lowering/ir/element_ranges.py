"""Ranges of the integers in constants and tables, and in cells that such integers alone are stored to.

at[] = root; while ..: at[] = links[at[], 1] + i64(x < y)    at[] is at most the greatest of root and links[:, 1] + 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aot.codegen.ir.loops import Buffer, Const, Expr, Load, Prim, Space
from aot.codegen.ir.program import MemoryRegion
from aot.lowering.ir.steps import Value
from aot.runtime.abi import DType

Range = tuple[int, int]  # the least and the greatest
Stored = Mapping[str, Sequence[Expr | None]]  # what works store to a buffer; None: what is no expression


class ElementRanges:
    """Ranges of loads of the buffers of some values."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values
        self._of_constants: dict[tuple[str, int | None], Range | None] = {}

    def of(self, x: Load, stored: Stored, inside: frozenset[str] = frozenset()) -> Range | None:
        """Return the range of a load's value; None if constants do not bound it. `inside`: cells that ask for it."""
        name = x.buffer.name
        if name in stored and name not in self._values:
            if name in inside or not x.dtype.is_integer:
                return None
            return _union([self._of(e, stored, inside | {name}) for e in stored[name]])
        last = x.index[-1] if x.index else None
        column = last.value if isinstance(last, Const) and isinstance(last.value, int) else None
        if (name, column) not in self._of_constants:
            self._of_constants[name, column] = self._of_constant(x.buffer, column)
        return self._of_constants[name, column]

    def _of(self, e: Expr | None, stored: Stored, inside: frozenset[str]) -> Range | None:
        """Return the range of an expression that is stored."""
        match e:
            case Const(int(n)):
                return n, n
            case Load():
                return self.of(e, stored, inside)
            case Prim("cast", (x,), DType.I64):
                return (0, 1) if x.dtype is DType.BOOL else self._of(x, stored, inside) if x.dtype.is_integer else None
            case Prim("and", (_, Const(int(n)))) if n >= 0:
                return 0, n
            case Prim("select", (_, x, y)):
                return _union([self._of(x, stored, inside), self._of(y, stored, inside)])
            case Prim("add", (x, y), DType.I64):
                a, b = self._of(x, stored, inside), self._of(y, stored, inside)
                return None if a is None or b is None else (a[0] + b[0], a[1] + b[1])
            case _:
                return None

    def _of_constant(self, buffer: Buffer, column: int | None) -> Range | None:
        """Return the range of a table, of a constant, or of one of its columns."""
        if buffer.space is Space.TABLE:
            return (int(min(buffer.values)), int(max(buffer.values))) if buffer.values else None
        value = self._values.get(buffer.name)
        if value is None or value.region is not MemoryRegion.CONSTANT or not buffer.dtype.is_integer:
            return None
        array = value.array
        if array is None or not array.size:
            return None
        if column is not None and array.shape == buffer.shape == value.buffer.shape and column < array.shape[-1]:
            array = array[..., column]
        return int(array.min()), int(array.max())


def _union(ranges: Sequence[Range | None]) -> Range | None:
    known = [r for r in ranges if r is not None]
    if len(known) < len(ranges) or not known:
        return None
    return min(low for low, _ in known), max(high for _, high in known)
