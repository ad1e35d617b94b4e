"""Declarations that a script uses: numbers and arrays that change, and kinds of loops."""

from __future__ import annotations

from typing import Any

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Buffer, Const, LoopKind, Operand, Size
from aot.codegen.script.script_values import is_expr, match_integers
from aot.runtime.abi import DType

MAX_LANES = 16  # most lanes of a vector loop; the code generator splits them for shorter vectors


@dataclass(frozen=True)
class Range:
    """The values of a loop's counter: `start`, `start + step`, ... before `stop`."""

    kind: LoopKind
    start: Size
    stop: Size
    step: int


@dataclass(frozen=True)
class NewScalar:
    """A mutable number, which gets a cell when it is bound to a name."""

    value: Operand
    dtype: DType


@dataclass(frozen=True)
class NewArray:
    """A local buffer, which is allocated when it is bound to a name."""

    shape: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True)
class Cell:
    """A buffer of one element: the current value of a name."""

    buffer: Buffer


def var(value: Operand, dtype: DType = DType.F32) -> Any:
    """Declare a mutable number: after `name = var(0.0, F32)`, `name = x` and `name += x` change it at run time."""
    return NewScalar(value, dtype)


def array(*shape: int, dtype: DType = DType.F32) -> Any:
    """Declare a buffer, `name = array(4, 4)`: local to an iteration, uninitialised; on the stack if an index varies."""
    return NewArray(shape, dtype)


def parallel(*bounds: Size) -> Any:
    """Loop with `for i in parallel(n)`: iterations in any order, on several threads."""
    return range_of(LoopKind.PARALLEL, bounds)


def unrolled(*bounds: Size) -> Any:
    """Loop with `for i in unrolled(n)`: one copy of the body for each i."""
    return range_of(LoopKind.UNROLLED, bounds)


def lanes(*bounds: Size) -> Any:
    """Loop with `for i in lanes(n)`: iterations are lanes of vectors; values that differ between them are in arrays."""
    return range_of(LoopKind.VECTOR, bounds)


def range_of(kind: LoopKind, bounds: tuple[Any, ...]) -> Range:
    start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    step = bounds[2] if len(bounds) == 3 else 1
    if not isinstance(step, int) or not step:
        raise TypeError(f"the step of a loop must be a number other than 0, got {step}")
    return Range(kind, start, stop, step)


def trips(over: Range) -> Size:
    length: Any = over.stop - over.start if over.step > 0 else over.start - over.stop
    step = abs(over.step)
    if is_expr(length):
        (length, _) = match_integers(length, Const(0))
    return length if step == 1 else (length + (step - 1)) // step
