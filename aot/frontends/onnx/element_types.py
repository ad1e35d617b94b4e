"""TensorProto.DataType and our element types; written out, so that conversion works without the package onnx."""

from __future__ import annotations

from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

DTYPES = {
    1: DType.F32,
    2: DType.U8,
    3: DType.I8,
    4: DType.U16,
    5: DType.I16,
    6: DType.I32,
    7: DType.I64,
    8: DType.STRING,
    9: DType.BOOL,
    10: DType.F16,
    11: DType.F64,
    12: DType.U32,
    13: DType.U64,
    16: DType.BF16,
    17: DType.F8E4M3,
    18: DType.F8E4M3FNUZ,
    19: DType.F8E5M2,
    20: DType.F8E5M2FNUZ,
    21: DType.U4,
    22: DType.I4,
    23: DType.F4E2M1,
    24: DType.F8E8M0,
    25: DType.U2,
    26: DType.I2,
}
UNSUPPORTED_TYPES = {0: "UNDEFINED", 14: "COMPLEX64", 15: "COMPLEX128", 27: "FLOAT6E2M3", 28: "FLOAT6E3M2"}


def element_type(code: int) -> DType:
    """Return the element type that ONNX numbers `code`; UnsupportedError if there is none."""
    if code not in DTYPES:
        raise UnsupportedError(f"element type {UNSUPPORTED_TYPES.get(code, code)} is not supported")
    return DTYPES[code]
