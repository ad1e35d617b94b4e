"""Element types by the numbers that archives have for them."""

from __future__ import annotations

from aot.frontends.conversion.table import element_types
from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError, UnsupportedError

ELEMENT_TYPES = element_types(
    """
    1=u8 2=i8 3=i16 4=i32 5=i64 6=f16 7=f32 8=f64 12=boolean 13=bf16 28=u16 29=f8e4m3 30=f8e5m2 31=f8e4m3fnuz
    32=f8e5m2fnuz 33=f8e8m0 34=u32 35=u64
    """
)
COMPLEX = {9: "complex32", 10: "complex64", 11: "complex128"}
PARTS = {9: DType.F16, 10: DType.F32, 11: DType.F64}  # types of the parts of complex numbers


def element_type(code: int) -> DType:
    """Return the element type; UnsupportedError for complex numbers, CorruptError for a number that no type has."""
    if code in COMPLEX:
        raise UnsupportedError(f"element type {COMPLEX[code]} is not supported")
    if code not in ELEMENT_TYPES:
        raise CorruptError(f"element types are {min(ELEMENT_TYPES)} to {max(ELEMENT_TYPES)}, got {code}")
    return ELEMENT_TYPES[code]
