"""Arrays in the form that compiled code reads: element types, checks that name the tensor, aligned memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from ctypes import addressof, c_char
from numbers import Number
from typing import Any, cast

import numpy as np

from aot.runtime.abi import ARENA_ALIGN, FLOAT_FORMATS, DType
from aot.runtime.arrays.short_floats import bits_of
from aot.runtime.errors import BudgetError, UnsupportedError, UsageError
from aot.runtime.loading.manifest import Dim, TensorInfo

MALLOC_ALIGN = 16  # alignment, in bytes, of memory from the system's allocator

Array = np.ndarray[Any, np.dtype[Any]]  # numpy.typing.NDArray, whose import is slow
Shape = tuple[int, ...]

# Types of the package ml_dtypes, by name: the package may be absent.
ML_NAMES = {
    DType.BF16: "bfloat16",
    DType.F8E4M3: "float8_e4m3fn",
    DType.F8E5M2: "float8_e5m2",
    DType.F8E8M0: "float8_e8m0fnu",
    DType.F8E4M3FNUZ: "float8_e4m3fnuz",
    DType.F8E5M2FNUZ: "float8_e5m2fnuz",
    DType.F4E2M1: "float4_e2m1fn",
    DType.U4: "uint4",
    DType.I4: "int4",
    DType.U2: "uint2",
    DType.I2: "int2",
}
_SHORT_FLOATS = frozenset((DType.BF16, DType.F8E8M0, *FLOAT_FORMATS))
_RANGES = {DType.U4: (0, 15), DType.I4: (-8, 7), DType.U2: (0, 3), DType.I2: (-2, 1)}
_WHOLE = (DType.F64, DType.F32, DType.F16, *(t for t in DType if t.is_integer and t.bits >= 8))
PLAIN = {DType.BOOL: "?"} | {t: f"{t.value[0]}{t.bits // 8}" for t in _WHOLE}  # types of NumPy itself
_NUMPY = PLAIN | {t: f"{'u' if t in _SHORT_FLOATS else t.value[0]}{-(-t.bits // 8)}" for t in ML_NAMES}
_SHORT = {np.dtype(code).name: t.value for t, code in PLAIN.items()} | {"bfloat16": "bf16"}


def numpy_dtype(info: TensorInfo) -> np.dtype[Any]:
    """Return NumPy's type for a tensor. bf16 and f8 are stored as their bits, types of 4 and 2 bits in a byte each."""
    if info.dtype not in _NUMPY:
        raise UnsupportedError(f"'{info.name}': elements must be whole bytes, got {info.dtype.value}")
    return np.dtype(_NUMPY[info.dtype])


def as_array(kind: str, info: TensorInfo, value: object) -> Array:
    """Return `value` as an array of the tensor's type; arrays are never converted, numbers and lists are."""
    dtype = numpy_dtype(info)
    if isinstance(value, np.ndarray):
        array = cast(Array, value)
    elif hasattr(value, "__dlpack__"):
        array = np.from_dlpack(value)  # type: ignore[arg-type]
    elif hasattr(value, "__array__"):
        array = np.asarray(value)
    else:
        try:
            return from_numbers(info.dtype, value, dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise UsageError(f"{kind} '{info.name}': expected {info}, got {type(value).__name__}: {error}") from None
    if array.dtype == dtype and array.dtype.isnative:
        return array
    if array.dtype.name == ML_NAMES.get(info.dtype):
        return array.view(dtype)
    raise mismatch(kind, info, array)


def from_numbers(dtype: DType, value: object, bits: np.dtype[Any]) -> Array:
    """Convert a number, or nested lists of them, to an array of `bits`: floats are rounded, integers must be whole.

    ValueError or OverflowError for a number that the type does not have.
    """
    numbers = np.asarray(value)
    objects = numbers.flat if numbers.dtype.kind == "O" else ()
    if numbers.dtype.kind not in "biufO" or not all(isinstance(x, Number) for x in objects):
        raise ValueError(f"elements must be real numbers, got {numbers.dtype.name}")
    if dtype in _SHORT_FLOATS:
        return bits_of(dtype, np.asarray(value, np.float64)).astype(bits)
    with np.errstate(over="ignore", invalid="ignore"):
        array = np.asarray(value, bits)  # not of `numbers`, where large integers may be f64
    if bits.kind == "f":
        wrong = np.isinf(array) & ~np.isinf(numbers.astype(np.float64))
        rule = f"must be at most {np.finfo(bits).max:g}"
    else:
        low, high = _RANGES.get(dtype, (None, None))
        wrong = array != numbers
        rule = "must be a value of the type"
        if low is not None:
            wrong |= (array < low) | (array > high)
    if wrong.any():
        raise ValueError(f"a number {rule}, got {numbers[wrong][0]}")
    return array


def mismatch(kind: str, info: TensorInfo, array: Array) -> UsageError:
    """Return the error `input 'x': expected f32[1,784], got f64[1,784]`, with the conversion if NumPy has the type."""
    dtype, expected = _SHORT.get(array.dtype.name, array.dtype.name), numpy_dtype(info)
    if not array.dtype.isnative:
        dtype += " of the other byte order"
    convertible = array.dtype != expected and array.dtype.kind in "biuf" and info.dtype not in ML_NAMES
    return UsageError(
        f"{kind} '{info.name}': expected {info}, got {dtype}[{','.join(map(str, array.shape))}]",
        advice=f"convert the array: x.astype('{expected.name}')" if convertible else "",
    )


def fits(info: TensorInfo, shape: Shape) -> bool:
    """True if rank, fixed dimensions and ranges allow `shape`; relations between dimensions are not checked."""
    return len(shape) == len(info.shape) and all(_dim_fits(d, n) for d, n in zip(info.shape, shape, strict=True))


def _dim_fits(dim: int | Dim, extent: int) -> bool:
    if isinstance(dim, int):
        return dim == extent
    return extent >= dim.low and (dim.high is None or extent <= dim.high)


def static_shape(infos: Sequence[TensorInfo]) -> tuple[Shape, ...] | None:
    """Return the shapes of all tensors, or None if one is dynamic."""
    shapes: list[Shape] = []
    for info in infos:
        shape = tuple(d for d in info.shape if isinstance(d, int))
        if len(shape) != len(info.shape):
            return None
        shapes.append(shape)
    return tuple(shapes)


def default_of(info: TensorInfo, weights: int) -> Array:
    """Return the value of an optional input, a read-only view of the weights."""
    shape, dtype = tuple(d for d in info.shape if isinstance(d, int)), numpy_dtype(info)
    size = math.prod(shape) * dtype.itemsize
    memory = (c_char * size).from_address(weights + (info.default or 0))
    array: Array = np.ndarray(shape, dtype, memoryview(memory).toreadonly())
    return array


def address(array: Array) -> int:
    """Return the address of the first element."""
    try:
        return addressof(c_char.from_buffer(array))  # type: ignore[arg-type]  # four times as fast as `array.ctypes`
    except (TypeError, ValueError, BufferError):  # read-only, empty, not dense
        return array.ctypes.data


def aligned_bytes(count: int, zero: bool = False) -> Array:
    """Return `count` uninitialised bytes at a multiple of 64; `zero`: zeros, which take memory once touched."""
    return aligned_empty((count,), np.dtype(np.uint8), ARENA_ALIGN, zero)[0]


def aligned_empty(shape: Shape, dtype: np.dtype[Any], align: int, zero: bool = False) -> tuple[Array, int]:
    """Return an uninitialised array, or zeros, at a multiple of `align`, and its address.

    BudgetError if there is no memory.
    """
    make = np.zeros if zero else np.empty
    try:
        if align <= MALLOC_ALIGN:
            array = make(shape, dtype)
            return array, address(array)
        space = make(math.prod(shape) * dtype.itemsize + align, np.uint8)
    except MemoryError:
        size = math.prod(shape) * dtype.itemsize + align
        raise BudgetError(f"memory: the system has no {size} bytes left") from None
    where = address(space)
    start = -where % align
    return np.ndarray(shape, dtype, space, start), where + start
