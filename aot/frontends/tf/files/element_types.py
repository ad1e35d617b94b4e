"""TensorFlow's DataType and our element types; written out, so that conversion works without the message package."""

from __future__ import annotations

from aot.frontends.conversion.table import element_types
from aot.runtime.abi import DType
from aot.runtime.errors import UnsupportedError

DTYPES = element_types(
    """
    1=f32 2=f64 3=i32 4=u8 5=i16 6=i8 7=string 9=i64 10=boolean 11=i8 12=u8 13=i32 14=bf16 15=i16 16=u16 17=u16
    19=f16 22=u32 23=u64 24=f8e5m2 25=f8e4m3 26=f8e4m3fnuz 28=f8e5m2fnuz 29=i4 30=u4 31=i2 32=u2
    """
)
OTHERS = {0: "invalid", 8: "complex64", 18: "complex128", 20: "resource", 21: "variant", 27: "float8_e4m3b11fnuz"}
QUANTISED = (11, 12, 13, 15, 16)  # qint8, quint8, qint32, qint16, quint16, which we have other names for
RESOURCE, VARIANT, COMPLEX = 20, 21, (8, 18)
REFERENCE = 100  # is added to a type by operations of TensorFlow 1 that give variables themselves


def type_name(code: int) -> str:
    """Return the name of a type in attributes: ours, or TensorFlow's if we have none."""
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
