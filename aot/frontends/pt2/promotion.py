"""PyTorch's type promotion: the element type for computing with values of several types.

    f16[3] + f32[] -> f16      i32[3] + 1.5 -> f32      u8[3] + i8[3] -> i16      i32[3] + i64[] -> i32

Tensors with axes count most, then tensors without axes, then numbers; the others matter only if they are of a
higher category: boolean, integer, float.
"""

from __future__ import annotations

from collections.abc import Sequence

from aot.codegen.dataclass import dataclass
from aot.runtime.abi import DType

SIGNED = (DType.I8, DType.I16, DType.I32, DType.I64)
UNSIGNED = (DType.U8, DType.U16, DType.U32, DType.U64)
FLOATS = (DType.F16, DType.BF16, DType.F32, DType.F64)
NUMBER, SCALAR, ARRAY = -1, 0, 1  # the last one counts most


@dataclass(frozen=True, slots=True)
class Kind:
    """The element type of a value, and its rank class: NUMBER, SCALAR or ARRAY."""

    dtype: DType
    level: int


def category(dtype: DType) -> int:
    """0 for booleans, 1 for integers, 2 for floats."""
    return 2 if dtype.is_float else 0 if dtype is DType.BOOL else 1


def wider(a: DType, b: DType) -> DType:
    """Return the smallest type that has the values of two types, by PyTorch's table."""
    if a is b:
        return a
    low, high = sorted((a, b), key=category)
    if category(low) < category(high):
        return high
    if category(a) == 2:
        return DType.F32 if {a, b} == {DType.F16, DType.BF16} else max(a, b, key=_rank)
    if a in SIGNED and b in SIGNED:
        return max(a, b, key=SIGNED.index)
    if a in UNSIGNED and b in UNSIGNED:
        return max(a, b, key=UNSIGNED.index)
    signed, unsigned = (a, b) if a in SIGNED else (b, a)
    needed = UNSIGNED.index(unsigned) + 1
    return SIGNED[min(max(SIGNED.index(signed), needed), len(SIGNED) - 1)]


def _rank(dtype: DType) -> int:
    return FLOATS.index(dtype) if dtype in FLOATS else -1


def promoted_type(values: Sequence[Kind]) -> DType:
    """Return the common element type of values. A float number alone is f32."""
    result: DType | None = None
    for level in (ARRAY, SCALAR, NUMBER):
        dtype: DType | None = None
        for value in values:
            if value.level == level:
                dtype = value.dtype if dtype is None else wider(dtype, value.dtype)
        if dtype is not None and (result is None or category(dtype) > category(result)):
            result = dtype
    return result or DType.F32
