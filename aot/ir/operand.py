"""Inputs of operations: the facts that inference knows of them, and how definitions read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Protocol

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.index import bounds, normal
from aot.codegen.ir.loops import Buffer, Expr, Load, Var, as_expr, prim
from aot.codegen.ir.loops import Operand as ExprLike
from aot.ir.types import Array, Dim, Shape, TensorType
from aot.ir.values.symbolic import as_numbers
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError


class Source(Protocol):
    """Origin of an operand: it names data-dependent numbers."""

    @property
    def label(self) -> str: ...

    def symbols(self) -> Array: ...


@dataclass(frozen=True, slots=True)
class Operand:
    """Inferred facts about an input: its type, and its value if it is known at compile time.

    A value of integers that holds symbolic dimensions is an array of objects. Where an operation needs a value that is
    not known, `source` gives symbols for its elements.
    """

    type: TensorType
    value: Array | None = None
    source: Source | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.value is not None and self.value.dtype == object:
            object.__setattr__(self, "value", as_numbers(self.value, self.type.dtype))

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def rank(self) -> int:
        return self.type.rank

    def ints(self, what: str) -> tuple[int, ...]:
        """Return the value as numbers; UnsupportedError if it is not known at compile time."""
        value = self.known(what)
        if value.dtype == object and any(isinstance(v, Expr) for v in value.flat):
            raise UnsupportedError(f"{what} must be known at compile time")
        return tuple(map(int, value.reshape(-1).tolist()))

    def dims(self, what: str) -> Shape:
        """Return the value as dimensions, which may be symbolic."""
        value = self.known(what) if self.source is None or self.value is not None else self.source.symbols()
        if value.dtype.kind in "iu":
            return tuple(value.reshape(-1).tolist())
        return tuple(v if isinstance(v, Expr) else int(v) for v in value.reshape(-1).tolist())

    def is_same(self, other: Operand) -> bool:
        """True if the same facts are known of the other operand."""
        a, b = self.value, other.value
        equal = a is b or (a is not None and b is not None and a.dtype == b.dtype and np.array_equal(a, b))
        return self.type == other.type and equal

    def known(self, what: str) -> Array:
        if self.value is None:
            raise UnsupportedError(f"{what} must be known at compile time")
        return self.value


def has_symbols(*operands: Operand | None) -> bool:
    """True if a known value holds symbolic dimensions."""
    for o in operands:
        if o is not None and o.value is not None and o.value.dtype == object and o.dtype is not DType.STRING:
            return True
    return False


@dataclass(frozen=True, slots=True)
class Input:
    """An input as `compute` and `nest` read it: `x(i, j)` is element [i, j]."""

    buffer: Buffer
    type: TensorType
    value: Array | None = None

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def rank(self) -> int:
        return self.type.rank

    def __call__(self, *index: ExprLike) -> Expr:
        return Load(self.buffer, tuple(as_expr(i, DType.I64) for i in index))

    def padded(self, *index: ExprLike, fill: float = 0.0) -> Expr:
        """Return element [index], or `fill` where an index that is not a plain axis is outside the shape."""
        value = self(*index)
        for i, n in zip(index, self.shape, strict=True):
            if isinstance(i, Expr) and not _is_inside(i, n):
                value = prim("within", i, as_expr(n, DType.I64), value, fill)
        return value

    def operand(self) -> Operand:
        return Operand(self.type, self.value)


def _is_inside(index: Expr, extent: Dim) -> bool:
    if isinstance(index, Var) and index.extent == extent:
        return True
    low, high = bounds(normal(index, {}))
    return low >= 0 and isinstance(extent, int) and high < extent


@dataclass(frozen=True, slots=True)
class Piece:
    """Box `start`, `start + extent` of output `output`: element [start + i] is element [index(i)] of input `source`."""

    source: int
    start: Shape
    extent: Shape
    index: Callable[..., tuple[Expr, ...]]
    output: int = 0
