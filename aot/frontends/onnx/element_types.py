"""TensorProto.DataType and our element types; written out, so that conversion works without the package onnx."""

from __future__ import annotations

from aot.frontends.conversion.table import element_types
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

DTYPES = element_types(
    """
    1=f32 2=u8 3=i8 4=u16 5=i16 6=i32 7=i64 8=string 9=boolean 10=f16 11=f64 12=u32 13=u64 16=bf16 17=f8e4m3
    18=f8e4m3fnuz 19=f8e5m2 20=f8e5m2fnuz 21=u4 22=i4 23=f4e2m1 24=f8e8m0 25=u2 26=i2
    """
)
UNSUPPORTED_TYPES = {0: "UNDEFINED", 14: "COMPLEX64", 15: "COMPLEX128", 27: "FLOAT6E2M3", 28: "FLOAT6E3M2"}


def element_type(code: int) -> DType:
    """Return the element type that ONNX numbers `code`; UnsupportedError if there is none."""
    if code not in DTYPES:
        raise UnsupportedError(f"element type {UNSUPPORTED_TYPES.get(code, code)} is not supported")
    return DTYPES[code]
