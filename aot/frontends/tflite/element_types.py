"""TensorFlow Lite's TensorType and our element types; written out, so that conversion works without its package."""

from __future__ import annotations

from aot.frontends.conversion.table import element_types

DTYPES = element_types(
    """
    0=f32 1=f16 2=i32 3=u8 4=i64 5=string 6=boolean 7=i16 9=i8 10=f64 12=u64 15=u32 16=u16 17=i4 18=bf16 19=i2 20=u4
    """
)
OTHERS = {8: "complex64", 11: "complex128", 13: "resource", 14: "variant"}


def type_name(code: int) -> str:
    """Return the name of a type in attributes: ours, or TensorFlow Lite's if we have none."""
    return DTYPES[code].value if code in DTYPES else OTHERS.get(code, f"type {code}")
