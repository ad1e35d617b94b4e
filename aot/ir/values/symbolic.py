"""Values with symbolic elements: arrays of objects, a mix of integers and expressions over sizes.

[n // 2, 3]: i64          elements are numbers of the tensor's type: integers wrap as that type does
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from aot.codegen.ir.expressions import measure, variables
from aot.codegen.ir.index import bounds, normal
from aot.codegen.ir.loops import Expr
from aot.ir.types import Array, numpy_dtype
from aot.runtime.abi import DType

MAX_PARTS = 1 << 11  # sub-expressions of an element, shared ones counted each time; kernels compute larger values
MAX_NEGATIVE_SIZE = 1 << 30  # a variable that may be below -SIZE_LIMIT is data, not a size


def symbols_in(value: Array) -> NDArray[np.bool_]:
    """Return a mask: True for each element that is an expression."""
    if value.dtype != object:
        return np.zeros(value.shape, bool)
    return np.array([isinstance(v, Expr) for v in value.flat], bool).reshape(value.shape)


def _range(dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest integer of a type."""
    if dtype is DType.BOOL:
        return 0, 1
    bits = dtype.bits - (1 if dtype.is_signed else 0)
    return -(1 << bits) if dtype.is_signed else 0, (1 << bits) - 1


def wrapped(number: int, dtype: DType) -> int:
    """Return an integer wrapped to the range of `dtype`."""
    if dtype is DType.BOOL:
        return int(number != 0)
    low, high = _range(dtype)
    return (number - low) % (high - low + 1) + low


def as_numbers(value: Array, dtype: DType) -> Array:
    """Return an array of objects as an array of numbers if no element is an expression; any other array unchanged."""
    if value.dtype != object or dtype is DType.STRING or symbols_in(value).any():
        return value
    flat = np.array([float(v) if dtype.is_float else wrapped(int(v), dtype) for v in value.flat], object)
    return flat.reshape(value.shape).astype(numpy_dtype(dtype))


def as_stored(value: Array, dtype: DType) -> Array | None:
    """Return a computed value as a tensor of type `dtype` holds it.

    None if an element may not fit the type, or is too large an expression: then kernels compute the value.
    """
    if value.dtype != object or dtype is DType.STRING:
        return value
    if not all(_fits(v, dtype) for v in value.flat if isinstance(v, Expr)):
        return None
    result = np.empty(value.size, object)
    result[:] = [v if isinstance(v, Expr) else wrapped(int(v), dtype) for v in value.flat]
    return as_numbers(result.reshape(value.shape), dtype)


def _fits(element: Expr, dtype: DType) -> bool:
    """True if the element is in the type's range, as far as the ranges of sizes say.

    A data-dependent number has no useful range, and sizes stay far from the limits of i64.
    """
    if measure(element)[1] > MAX_PARTS or dtype.is_float:
        return False
    if dtype is DType.I64:
        return True
    low, high = bounds(normal(element, {}))
    least, most = _range(dtype)
    if dtype.bits < 32:
        return least <= low and high <= most
    data = any(v.low < -MAX_NEGATIVE_SIZE for v in variables(element))
    return (least <= low or (dtype.is_signed and (data or low == -inf))) and (high <= most or data or high == inf)
