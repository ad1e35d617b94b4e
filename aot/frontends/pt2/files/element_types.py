"""Element types by the numbers that archives have for them."""

from __future__ import annotations

from aot.runtime.abi import DType
from aot.runtime.errors import CorruptError, UnsupportedError

ELEMENT_TYPES = {
    1: DType.U8,
    2: DType.I8,
    3: DType.I16,
    4: DType.I32,
    5: DType.I64,
    6: DType.F16,
    7: DType.F32,
    8: DType.F64,
    12: DType.BOOL,
    13: DType.BF16,
    28: DType.U16,
    29: DType.F8E4M3,
    30: DType.F8E5M2,
    31: DType.F8E4M3FNUZ,
    32: DType.F8E5M2FNUZ,
    33: DType.F8E8M0,
    34: DType.U32,
    35: DType.U64,
}
COMPLEX = {9: "complex32", 10: "complex64", 11: "complex128"}
PARTS = {9: DType.F16, 10: DType.F32, 11: DType.F64}  # types of the parts of complex numbers


def element_type(code: int) -> DType:
    """Return the element type; UnsupportedError for complex numbers, CorruptError for a number that no type has."""
    if code in COMPLEX:
        raise UnsupportedError(f"element type {COMPLEX[code]} is not supported")
    if code not in ELEMENT_TYPES:
        raise CorruptError(f"element types are {min(ELEMENT_TYPES)} to {max(ELEMENT_TYPES)}, got {code}")
    return ELEMENT_TYPES[code]
