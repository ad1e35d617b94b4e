"""TensorFlow Lite's TensorType and our element types; written out, so that conversion works without its package."""

from __future__ import annotations

from aot.runtime.abi import DType

DTYPES = {
    0: DType.F32,
    1: DType.F16,
    2: DType.I32,
    3: DType.U8,
    4: DType.I64,
    5: DType.STRING,
    6: DType.BOOL,
    7: DType.I16,
    9: DType.I8,
    10: DType.F64,
    12: DType.U64,
    15: DType.U32,
    16: DType.U16,
    17: DType.I4,
    18: DType.BF16,
    19: DType.I2,
    20: DType.U4,
}
OTHERS = {8: "complex64", 11: "complex128", 13: "resource", 14: "variant"}


def type_name(code: int) -> str:
    """Return the name of a type in attributes: ours, or TensorFlow Lite's where we have none."""
    return DTYPES[code].value if code in DTYPES else OTHERS.get(code, f"type {code}")
