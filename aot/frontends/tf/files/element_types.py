"""TensorFlow's DataType and our element types; written out, so that conversion works without the message package."""

from __future__ import annotations

from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

DTYPES = {
    1: DType.F32,
    2: DType.F64,
    3: DType.I32,
    4: DType.U8,
    5: DType.I16,
    6: DType.I8,
    7: DType.STRING,
    9: DType.I64,
    10: DType.BOOL,
    11: DType.I8,  # qint8
    12: DType.U8,  # quint8
    13: DType.I32,  # qint32
    14: DType.BF16,
    15: DType.I16,  # qint16
    16: DType.U16,  # quint16
    17: DType.U16,
    19: DType.F16,
    22: DType.U32,
    23: DType.U64,
    24: DType.F8E5M2,
    25: DType.F8E4M3,
    26: DType.F8E4M3FNUZ,
    28: DType.F8E5M2FNUZ,
    29: DType.I4,
    30: DType.U4,
    31: DType.I2,
    32: DType.U2,
}
OTHERS = {0: "invalid", 8: "complex64", 18: "complex128", 20: "resource", 21: "variant", 27: "float8_e4m3b11fnuz"}
QUANTISED = (11, 12, 13, 15, 16)  # types whose elements we have another name for
RESOURCE, VARIANT, COMPLEX = 20, 21, (8, 18)
REFERENCE = 100  # is added to a type by operations of TensorFlow 1 that give variables themselves


def type_name(code: int) -> str:
    """Return the name of a type in attributes: ours, or TensorFlow's where we have none."""
    code -= REFERENCE if code > REFERENCE else 0
    return DTYPES[code].value if code in DTYPES else OTHERS.get(code, f"type {code}")


def code_of(name: str) -> int:
    """Return TensorFlow's number of a type that `type_name` names; 0 for another name."""
    known = {name: code for code, name in OTHERS.items()}
    known |= {dtype.value: code for code, dtype in DTYPES.items() if code not in QUANTISED}
    return known.get(name, 0)


def element_type(code: int) -> DType:
    """Return the element type that TensorFlow numbers `code`; UnsupportedError if we have none."""
    code -= REFERENCE if code > REFERENCE else 0
    if code not in DTYPES:
        raise UnsupportedError(f"element type {OTHERS.get(code, code)} is not supported")
    return DTYPES[code]
