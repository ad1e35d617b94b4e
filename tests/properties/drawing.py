"""Random trials of operations: all that is drawn comes from one source of integers, so it can be shrunk and repeated.

def relu(d: Draw) -> Trial:
    return Trial(Relu(), [d.array(d.pick(NUMBERS), d.shape())])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from aot.codegen.ir.loops import Var
from aot.ir.op import Op
from aot.ir.operand import Operand
from aot.ir.types import Array, Shape, TensorType, dtype_of, numpy_dtype
from aot.runtime.abi import DType
from tests.cases import CLOSE, Tolerance

T = TypeVar("T")

FLOATS = (DType.F32, DType.F64, DType.F16, DType.BF16)
SIGNED = (DType.I32, DType.I64, DType.I8, DType.I16)
UNSIGNED = (DType.U8, DType.U16, DType.U32, DType.U64)
INTEGERS = (*SIGNED, *UNSIGNED)
NUMBERS = (*FLOATS, *INTEGERS)
ANY = (*NUMBERS, DType.BOOL)
INDICES = (DType.I64, DType.I32)


@dataclass(frozen=True)
class Trial:
    """An operation and its inputs; those in `fixed` are compile-time constants, None is an absent input.

    `dynamic`: no dimension of the others is known when compiling.
    """

    op: Op
    arrays: Sequence[Array | None]
    fixed: frozenset[int] = frozenset()
    tolerance: Tolerance = CLOSE
    dynamic: bool = False

    def operands(self, prefix: str = "n") -> list[Operand | None]:
        """Return the operands that inference gets."""
        found: list[Operand | None] = []
        for k, array in enumerate(self.arrays):
            if array is None:
                found.append(None)
            elif k in self.fixed:
                found.append(Operand(TensorType(dtype_of(array), array.shape), array))
            else:
                found.append(Operand(TensorType(dtype_of(array), self.shape(k, prefix))))
        return found

    def shape(self, k: int, prefix: str = "n") -> Shape:
        """The shape of input `k` as the compiler sees it."""
        array = self.arrays[k]
        assert array is not None
        return tuple(Var(f"{prefix}{k}_{a}") for a in range(array.ndim)) if self.dynamic else array.shape

    @property
    def given(self) -> list[Array]:
        """Return the arrays to feed."""
        return [a for k, a in enumerate(self.arrays) if a is not None and k not in self.fixed]

    def expected(self) -> tuple[Array, ...]:
        """Return the results of the reference."""
        with np.errstate(all="ignore"):
            return self.op.evaluate(*self.arrays)

    def __str__(self) -> str:
        each = (
            "none" if a is None else f"{a.dtype}{list(a.shape)}" + (f"={a.tolist()}" if k in self.fixed else "")
            for k, a in enumerate(self.arrays)
        )
        return f"{self.op} {'dynamic ' * self.dynamic}{', '.join(each)}"[:600]


class Draw:
    """Choices, all of them made of integers in low..high, both ends included."""

    def __init__(self, integer: Callable[[int, int], int]) -> None:
        self.integer = integer

    def flag(self) -> bool:
        return bool(self.integer(0, 1))

    def pick(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def ints(self, count: int, low: int, high: int) -> tuple[int, ...]:
        return tuple(self.integer(low, high) for _ in range(count))

    def shape(self, ranks: tuple[int, int] = (0, 6), sizes: tuple[int, int] = (0, 4)) -> tuple[int, ...]:
        """Sizes of high ranks are small; 0 is rare."""
        rank = self.integer(*ranks)
        high = sizes[1] if rank < 5 else min(sizes[1], 3)
        return tuple(self.integer(max(sizes[0], 1) if self.integer(0, 15) else sizes[0], high) for _ in range(rank))

    def subset(self, count: int, least: int = 0) -> tuple[int, ...]:
        """Some of 0..count - 1, in any order, each once."""
        rest, found = list(range(count)), list[int]()
        for _ in range(self.integer(min(least, count), count)):
            found.append(rest.pop(self.integer(0, len(rest) - 1)))
        return tuple(found)

    def axis(self, rank: int) -> int:
        return self.integer(-rank, rank - 1)

    def signed(self, axes: Sequence[int], rank: int) -> tuple[int, ...]:
        """The same axes, some counted from the end."""
        return tuple(a - rank if self.flag() else a for a in axes)

    def generator(self) -> np.random.Generator:
        return np.random.default_rng(self.integer(0, 1 << 16))

    def array(self, dtype: DType, shape: Sequence[int], low: float = -4, high: float = 4) -> Array:
        rng = self.generator()
        if dtype is DType.BOOL:
            return rng.integers(0, 2, shape).astype(np.bool_)
        if dtype.is_float:
            return rng.uniform(low, high, shape).astype(numpy_dtype(dtype))
        return self.whole(dtype, shape, int(low), int(high))

    def whole(self, dtype: DType, shape: Sequence[int], low: int, high: int) -> Array:
        """Integers in low..high, of any type."""
        least = low if dtype.is_float or dtype.is_signed else max(low, 0)
        return self.generator().integers(least, max(least, high) + 1, shape).astype(numpy_dtype(dtype))

    def scalar_or_list(self, dtype: DType, values: Sequence[int]) -> Array:
        """One number as a scalar or as a list."""
        array = np.array(values, numpy_dtype(dtype))
        return array.reshape(()) if array.size == 1 and self.flag() else array


def listed(dtype: DType, values: Sequence[int]) -> Array:
    return np.array(values, numpy_dtype(dtype))


def with_run_time_sizes(trial: Trial) -> Trial:
    return replace(trial, dynamic=True)


def random_draw(seed: int) -> Draw:
    """Return a source of random numbers that does not shrink failures."""
    rng = np.random.default_rng(seed)
    return Draw(lambda low, high: int(rng.integers(low, high + 1)))
