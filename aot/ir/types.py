"""Tensor types: an element type and a shape. Dimensions are numbers or expressions over named symbols.

f32[1,3,224,224]      f32[batch,seq*2+1]      i64[...] (rank not known yet)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Const, Expr
from aot.codegen.ir.printer import expr_text
from aot.ir.dims import shortest
from aot.runtime.abi import DType
from aot.runtime.arrays.tensors import ML_NAMES, PLAIN
from aot.runtime.errors import ShapeError, UnsupportedError

Dim = int | Expr
INTS = {int}
Shape = tuple[Dim, ...]
Array = NDArray[Any]

_NUMPY: dict[DType, np.dtype[np.generic]] = {
    **{t: np.dtype(code) for t, code in PLAIN.items()},
    **{t: np.dtype(getattr(ml_dtypes, name)) for t, name in ML_NAMES.items()},
    **dict.fromkeys((DType.U1, DType.U3, DType.U6, DType.NF4), np.dtype(np.uint8)),  # unpacked when they are read
    DType.STRING: np.dtype(object),
}
_FROM_NUMPY = {v: k for k, v in reversed(_NUMPY.items())}


def numpy_dtype(dtype: DType) -> np.dtype[np.generic]:
    return _NUMPY[dtype]


def dtype_of(array: Array) -> DType:
    """Return the element type of an array; UnsupportedError for types that no operation has."""
    if array.dtype.kind in "US":
        return DType.STRING
    try:
        return _FROM_NUMPY[array.dtype]
    except KeyError:
        raise UnsupportedError(f"element type {array.dtype} is not supported: OpenVINO has none") from None


def simplify(dim: Dim) -> Dim:
    """Return the normal form: equal dimensions become equal values, constants become ints."""
    if isinstance(dim, int | np.integer):
        return int(dim)
    shortest_form = shortest(dim)
    return int(shortest_form.value) if isinstance(shortest_form, Const) else shortest_form


def differs(dim: Dim, expected: int) -> bool:
    """True if two dimensions are known to differ."""
    return isinstance(dim, int) and dim != expected


def dim_text(dim: Dim) -> str:
    return str(dim) if isinstance(dim, int) else expr_text(dim).replace(" ", "")


@dataclass(frozen=True, slots=True)
class TensorType:
    """An element type and a shape; `dims` is None while the rank is unknown, which it is never after inference."""

    dtype: DType
    dims: Shape | None

    def __post_init__(self) -> None:
        if self.dims is None:
            return
        numbers: Any = self.dims
        dims = tuple(self.dims)
        if not self.is_static:
            dims = tuple(map(simplify, self.dims))
            numbers = [d for d in dims if isinstance(d, int)]
        if min(numbers, default=0) < 0:
            raise ShapeError(f"dimensions must not be negative, got {[dim_text(d) for d in dims]}")
        object.__setattr__(self, "dims", dims)

    @property
    def shape(self) -> Shape:
        if self.dims is None:
            raise UnsupportedError("rank is not known: give the shape of the model's inputs")
        return self.dims

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        return self.dims is not None and set(map(type, self.dims)) <= INTS

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape as numbers; UnsupportedError if a dimension is dynamic."""
        shape: Any = self.dims
        if shape is None or not set(map(type, shape)) <= INTS:
            _ = self.shape
            raise UnsupportedError(f"{self}: dimensions must be known at compile time here")
        return shape

    def __str__(self) -> str:
        dims = "..." if self.dims is None else ",".join(map(dim_text, self.dims))
        return f"{self.dtype.value}[{dims}]"


def tensor(dtype: DType, shape: Sequence[Dim]) -> TensorType:
    return TensorType(dtype, tuple(shape))
