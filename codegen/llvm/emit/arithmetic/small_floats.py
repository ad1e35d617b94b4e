"""Floats of 8 and 4 bits (`FLOAT_FORMATS` of `runtime/abi.py`), one a byte in memory; f32 in registers."""

from __future__ import annotations

from aot.codegen.llvm.emit.function_text import Function, Value, integer, number
from aot.runtime.abi import FLOAT_FORMATS, DType


def decode(f: Function, dtype: DType, v: Value) -> Value:
    """Convert a code to f32; the exponent is rebiased by a product, which also converts subnormals."""
    wide = f.cast("zext", v, "i32")
    if dtype is DType.F8E8M0:
        return _power(f, wide)
    form = FLOAT_FORMATS[dtype]
    magnitude = f.binary("and", wide, _like(wide, form.sign - 1))
    shifted = f.cast("bitcast", f.binary("shl", magnitude, _like(wide, 23 - form.mantissa)), "float")
    scaled = f.cast("bitcast", f.binary("fmul", shifted, number(2.0 ** (127 - form.bias), shifted.type)), "i32")
    if form.infinite is not None:
        special = f.binary("shl", magnitude, _like(wide, 23 - form.mantissa))
        special = f.binary("or", special, _like(wide, 0x7F800000))
        scaled = f.select(f.compare("icmp uge", magnitude, _like(wide, form.infinite)), special, scaled)
    elif form.nan is not None:
        code = wide if form.unsigned_zero else magnitude
        scaled = f.select(f.compare("icmp eq", code, _like(wide, form.nan)), _like(wide, 0x7FC00000), scaled)
    sign = f.binary("shl", f.binary("and", wide, _like(wide, form.sign)), _like(wide, 32 - form.sign.bit_length()))
    return f.cast("bitcast", f.binary("or", scaled, sign), "float")


def encode(f: Function, dtype: DType, v: Value) -> Value:
    """Return the code of a number that the type can represent: conversions have rounded and saturated it before."""
    bits = f.cast("bitcast", v, "i32")
    if dtype is DType.F8E8M0:
        code = f.binary("lshr", f.binary("and", bits, _like(bits, 0x7FFFFFFF)), _like(bits, 23))
        return f.cast("trunc", code, "i8")
    form = FLOAT_FORMATS[dtype]
    magnitude = f.cast("bitcast", f.binary("and", bits, _like(bits, 0x7FFFFFFF)), "float")
    scaled = f.binary("fmul", magnitude, number(2.0 ** (form.bias - 127), v.type))
    code = f.binary("lshr", f.cast("bitcast", scaled, "i32"), _like(bits, 23 - form.mantissa))
    infinite = number(float("inf"), v.type)
    if form.infinite is not None:
        code = f.select(f.compare("fcmp oeq", magnitude, infinite), _like(bits, form.infinite), code)
    if form.nan is not None and not form.unsigned_zero:
        code = f.select(f.compare("fcmp uno", v, v), _like(bits, form.nan), code)
    sign = f.binary("lshr", bits, _like(bits, 32 - form.sign.bit_length()))
    sign = f.binary("and", sign, _like(bits, form.sign))
    if form.unsigned_zero:
        sign = f.select(f.compare("icmp eq", code, _like(bits, 0)), _like(bits, 0), sign)
    code = f.binary("or", f.binary("and", code, _like(bits, form.sign - 1)), sign)
    if form.unsigned_zero:
        code = f.select(f.compare("fcmp uno", v, v), _like(bits, form.nan or 0), code)
    return f.cast("trunc", code, "i8")


def _power(f: Function, code: Value) -> Value:
    """2^(code - 127); 255 is NaN."""
    bits = f.binary("shl", code, _like(code, 23))
    bits = f.select(f.compare("icmp eq", code, _like(code, 0)), _like(code, 1 << 22), bits)
    bits = f.select(f.compare("icmp eq", code, _like(code, 255)), _like(code, 0x7FC00000), bits)
    return f.cast("bitcast", bits, "float")


def _like(v: Value, value: int) -> Value:
    return integer(value, v.type)
