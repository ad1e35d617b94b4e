"""Element types: in registers, in memory, and from one to the other."""

from __future__ import annotations

from collections.abc import Mapping

from aot.codegen.llvm.emit.arithmetic.small_floats import decode, encode
from aot.codegen.llvm.emit.function_text import Function, Value, integer, lanes_of, number, scalar_of, suffix, vector
from aot.runtime.abi import FLOAT_FORMATS, DType
from aot.runtime.errors import InternalError

PACKED = (DType.U1, DType.U2, DType.U3, DType.U4, DType.U6, DType.I4, DType.I2)  # one element a byte in memory
SMALL = (*FLOAT_FORMATS, DType.F8E8M0)
FLOATS = (DType.F32, DType.F16, DType.BF16, *SMALL)
REGISTER = {
    **{t: f"i{max(t.bits, 8)}" for t in DType if t.is_integer},
    **dict.fromkeys(FLOATS, "float"),
    DType.F64: "double",
    DType.BOOL: "i1",
}
NO_NAMES: Mapping[int, str] = {}
MEMORY = REGISTER | dict.fromkeys(SMALL, "i8") | {DType.F16: "i16", DType.BF16: "i16", DType.BOOL: "i8"}


def constant(value: float, dtype: DType) -> Value:
    """Return a constant of a compute type; integers wrap."""
    if dtype.is_float:
        return number(float(value), REGISTER[dtype])
    if dtype is DType.BOOL:
        return Value("i1", "1" if value else "0")
    return integer(int(value), REGISTER[dtype])


def same(v: Value, value: int) -> Value:
    """Return an integer constant of the type of `v`."""
    return integer(value, v.type)


def cast(f: Function, src: DType, dst: DType, v: Value) -> Value:
    """Convert between compute types."""
    if src is dst:
        return v
    scalar = REGISTER[dst]
    if dst is DType.BOOL:
        return f.compare("fcmp une", v, number(0.0, v.type)) if src.is_float else f.compare("icmp ne", v, same(v, 0))
    if src is DType.BOOL:
        return f.cast("uitofp" if dst.is_float else "zext", v, scalar)
    if src.is_float and dst.is_float:
        return f.cast("fpext" if dst.bits > src.bits else "fptrunc", v, scalar)
    if src.is_float and ((dst.bits <= 32 and dst is not DType.U32) or (dst is DType.I64 and lanes_of(v.type) > 1)):
        return _saturated(f, src, dst, v)
    if src.is_float:
        type_ = vector(scalar, lanes_of(v.type))
        name = "llvm.fptosi.sat" if dst.is_signed else "llvm.fptoui.sat"
        return f.call(f"{name}.{suffix(type_)}.{suffix(v.type)}", type_, v)
    if dst.is_float:
        return f.cast("sitofp" if src.is_signed else "uitofp", v, scalar)
    if dst.bits == src.bits:
        return v
    return f.cast("trunc" if dst.bits < src.bits else "sext" if src.is_signed else "zext", v, scalar)


def _saturated(f: Function, src: DType, dst: DType, v: Value) -> Value:
    """Truncate towards zero and saturate; NaN gives 0: the meaning of the intrinsic, also for vectors."""
    size = dst.bits - dst.is_signed
    low, most = number(-(2.0**size) if dst.is_signed else 0.0, v.type), 2.0**size - 1
    digits = 53 if src is DType.F64 else 24
    exact = size <= digits
    high = number(most if exact else 2.0**size - 2.0 ** (size - digits), v.type)
    inside = f.select(f.compare("fcmp ogt", v, low), v, low)
    int_type = "i64" if dst.bits == 64 else "i32"
    result = f.cast("fptosi", f.select(f.compare("fcmp olt", inside, high), inside, high), int_type)
    if not exact:
        result = f.select(f.compare("fcmp oge", v, number(2.0**size, v.type)), same(result, (1 << size) - 1), result)
    result = f.select(f.compare("fcmp uno", v, v), same(result, 0), result)
    return result if dst.bits >= 32 else f.cast("trunc", result, REGISTER[dst])


def clamped(f: Function, v: Value, low: float, high: float) -> Value:
    """Clamp a float and convert it to i32; NaN gives 0. Each bound takes one instruction."""
    result = f.cast("fptosi", _between(f, v, low, high), "i32")
    return result if low == 0 else f.select(f.compare("fcmp uno", v, v), same(result, 0), result)


def rounded(
    f: Function, v: Value, zero: int, low: int, high: int, in_one: bool = True, names: Mapping[int, str] = NO_NAMES
) -> Value:
    """Round a float to the nearest number, the even one of two, add `zero`, clamp, as i32; NaN gives 0.

    The conversion rounds, if an instruction does so `in_one`, so that the bounds are tested before. `names`: those of
    instructions that do so in any mode of rounding, by lanes.
    """
    type_ = vector("i32", lanes_of(v.type))
    inside = _between(f, v, low - zero, high - zero)
    if (name := names.get(lanes_of(v.type))) is not None:
        result = f.call(name, type_, inside)
    elif in_one:
        result = f.call(f"llvm.lrint.{suffix(type_)}.{suffix(v.type)}", type_, inside)
    else:
        result = f.cast("fptosi", f.intrinsic("rint", inside), "i32")
    result = f.binary("add", result, same(result, zero)) if zero else result
    return result if low == 0 else f.select(f.compare("fcmp uno", v, v), same(result, 0), result)


def rounded_to_pack(f: Function, name: str, v: Value, zero: int, low: int, high: int) -> Value:
    """Round 16 floats as `rounded`, where packing saturates at `low`: only the upper bound is tested.

    The instruction `name` converts a number that no i32 holds, or NaN, to the least i32. `zero` is not negative.
    """
    most = number(float(high - zero), v.type)
    inside = f.select(f.compare("fcmp ogt", v, most), most, v)
    type_ = vector("i32", lanes_of(v.type))
    rest = (Value(type_, "zeroinitializer"), Value("i16", "-1"), Value("i32", "4"))  # all lanes, in the thread's mode
    result = f.call(name, type_, inside, *rest)
    result = f.binary("add", result, same(result, zero)) if zero else result
    return result if low == 0 else f.select(f.compare("fcmp uno", v, v), same(result, 0), result)


def _between(f: Function, v: Value, low: float, high: float) -> Value:
    """Return `v` between bounds, the lower one for NaN."""
    bounds = number(float(low), v.type), number(float(high), v.type)
    if f.keeps_nan:
        return f.intrinsic("minnum", f.intrinsic("maxnum", v, bounds[0]), bounds[1])
    inside = f.select(f.compare("fcmp ogt", v, bounds[0]), v, bounds[0])
    return f.select(f.compare("fcmp olt", inside, bounds[1]), inside, bounds[1])


def bits(f: Function, src: DType, dst: DType, v: Value) -> Value:
    """Reinterpret the bits as another type of equal size."""
    if src.bits != dst.bits:
        raise InternalError(f"bits: types of equal size, got {src.value} and {dst.value}")
    return v if scalar_of(v.type) == REGISTER[dst] else f.cast("bitcast", v, REGISTER[dst])


def from_memory(f: Function, dtype: DType, v: Value, native: frozenset[DType]) -> Value:
    """Convert a stored element to its compute type. `native`: the short types that the target converts itself."""
    match dtype:
        case DType.BOOL:
            return f.compare("icmp ne", v, same(v, 0))
        case DType.BF16:
            wide = f.cast("zext", v, "i32")
            return f.cast("bitcast", f.binary("shl", wide, same(wide, 16)), "float")
        case DType.F16:
            return f.cast("fpext", f.cast("bitcast", v, "half"), "float") if dtype in native else _from_half(f, v)
        case _ if dtype in SMALL:
            return decode(f, dtype, v)
        case _ if dtype in PACKED:
            return _low_bits(f, dtype, v)
        case _:
            return v


def to_memory(f: Function, dtype: DType, v: Value, native: frozenset[DType]) -> Value:
    """Convert a number to its storage type, rounded to nearest even."""
    match dtype:
        case DType.BOOL:
            return f.cast("zext", v, "i8")
        case DType.BF16:
            return f.cast("bitcast", f.cast("fptrunc", v, "bfloat"), "i16") if dtype in native else _to_bfloat(f, v)
        case DType.F16:
            return f.cast("bitcast", f.cast("fptrunc", v, "half"), "i16") if dtype in native else _to_half(f, v)
        case _ if dtype in SMALL:
            return encode(f, dtype, v)
        case _:
            return v


def _low_bits(f: Function, dtype: DType, v: Value) -> Value:
    """Extract the number in the low bits of a byte; the caller may leave anything in the bits above."""
    above = same(v, 8 - dtype.bits)
    return f.binary("ashr" if dtype.is_signed else "lshr", f.binary("shl", v, above), above)


def _to_bfloat(f: Function, v: Value) -> Value:
    x = f.cast("bitcast", v, "i32")
    high = f.binary("lshr", x, same(x, 16))
    odd = f.binary("and", high, same(x, 1))
    rounded = f.binary("lshr", f.binary("add", f.binary("add", x, same(x, 0x7FFF)), odd), same(x, 16))
    quiet = f.binary("or", high, same(x, 0x40))
    return f.cast("trunc", f.select(f.compare("fcmp uno", v, v), quiet, rounded), "i16")


def _from_half(f: Function, v: Value) -> Value:
    """Convert f16 to f32: the exponent is rebiased by a product, which also converts subnormals."""
    x = f.cast("zext", v, "i32")
    magnitude = f.binary("and", x, same(x, 0x7FFF))
    shifted = f.binary("shl", magnitude, same(x, 13))
    scaled = f.cast("bitcast", shifted, "float")
    finite = f.cast("bitcast", f.binary("fmul", scaled, number(2.0**112, scaled.type)), "i32")
    special = f.binary("or", shifted, same(x, 0x7F800000))
    sign = f.binary("shl", f.binary("and", x, same(x, 0x8000)), same(x, 16))
    both = f.select(f.compare("icmp uge", magnitude, same(x, 0x7C00)), special, finite)
    return f.cast("bitcast", f.binary("or", both, sign), "float")


def _to_half(f: Function, v: Value) -> Value:
    x = f.cast("bitcast", v, "i32")
    sign = f.binary("and", f.binary("lshr", x, same(x, 16)), same(x, 0x8000))
    magnitude = f.binary("and", x, same(x, 0x7FFFFFFF))
    odd = f.binary("and", f.binary("lshr", magnitude, same(x, 13)), same(x, 1))
    biased = f.binary("add", f.binary("add", magnitude, same(x, 0xFFF - (112 << 23))), odd)
    normal = f.binary("lshr", biased, same(x, 13))
    # Adding 0.5 aligns a subnormal's last bit with the last bit of the sum, which rounds.
    sum_ = f.binary("fadd", f.cast("bitcast", magnitude, "float"), number(0.5, v.type))
    small = f.binary("sub", f.cast("bitcast", sum_, "i32"), same(x, 0x3F000000))
    result = f.select(f.compare("icmp ult", magnitude, same(x, 113 << 23)), small, normal)
    result = f.select(f.compare("icmp uge", magnitude, same(x, 0x477FF000)), same(x, 0x7C00), result)
    payload = f.binary("or", f.binary("and", f.binary("lshr", magnitude, same(x, 13)), same(x, 0x3FF)), same(x, 0x7E00))
    result = f.select(f.compare("icmp ugt", magnitude, same(x, 0x7F800000)), payload, result)
    return f.cast("trunc", f.binary("or", result, sign), "i16")
