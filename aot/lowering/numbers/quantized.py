"""Matching of expressions made of bytes: (byte - zero) scale, as quantised networks compute it.

f32(i32(u8(e)) - z) s       min(max(round(e), 0), 255) s
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from math import inf

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.expressions import variables
from aot.codegen.ir.loops import Const, Expr, Load, Prim, Var, cast, prim
from aot.codegen.ir.numbers.clamps import clamp_of
from aot.runtime.abi import DType

BYTES = (DType.U8, DType.I8)
NONE = Const(0, DType.I32)
NO_AXES = frozenset[Var]()


@dataclass(frozen=True, slots=True)
class Quantized:
    """(byte - zero) * scale, as a number of `dtype`; `zero` is an i32.

    Neither moves with an axis, but for axes along which the match allows scales to differ.
    """

    byte: Expr
    zero: Expr
    scale: Expr | None
    dtype: DType

    def of(self, byte: Expr) -> Expr:
        """Return the number as an expression of the byte in memory."""
        whole = cast(byte, DType.I32)
        number = cast(whole if self.zero == NONE else whole - self.zero, self.dtype)
        return number if self.scale is None else number * self.scale

    @property
    def unsigned(self) -> Quantized:
        """Return the number as an expression of a u8."""
        if self.byte.dtype is not DType.I8:
            return self
        byte = cast(cast(self.byte, DType.I32) + 128, DType.U8)
        return replace(self, byte=byte, zero=_sum(self.zero, Const(128, DType.I32)))

    @property
    def fill(self) -> Expr | None:
        """Return the byte of the number 0; None if the zero point may be outside of bytes."""
        low, high = _bounds(self.zero)
        if low < 0 or high > 255 or self.byte.dtype is DType.I8:
            return None
        return as_byte(self.zero, self.byte.dtype)


def quantized(e: Expr, names: Container[str] = (), rows: frozenset[Var] = NO_AXES) -> Quantized | None:
    """Match `(byte - zero) scale`.

    `names`: i16 values whose elements are known to fit a byte; `rows`: axes along which scales may differ.
    """
    if e.dtype in BYTES or (e.dtype is DType.I16 and _reads(e, names)):
        return Quantized(e, NONE, None, e.dtype)
    match e:
        case Prim("cast", (inner,), dtype) if dtype in (DType.F32, DType.I32):
            inside = quantized(inner, names)
            exact = inside is not None and inside.scale is None and (dtype is DType.F32 or not inside.dtype.is_float)
            return replace(inside, dtype=dtype) if inside is not None and exact else None
        case Prim("min", (Prim("max", (Prim("round_even"), Const())), Const()), DType.F32):
            byte = cast(e, DType.U8)
            return Quantized(byte, NONE, None, DType.F32) if clamp_of(byte) is not None else None
        case Prim("add", (inner, Const(value))):
            return _with_offset(quantized(inner, names), _whole_number(Const(-value, e.dtype)))
        case Prim("sub", (inner, other)):
            return _with_offset(quantized(inner, names), _whole_number(other))
        case Prim("within", (index, bound, inner, *other)) if all(is_zero(x) for x in other):
            return _padded(quantized(inner, names), index, bound)
        case Prim("mul", (inner, factor), DType.F32) if variables(factor) <= rows:
            inside = quantized(inner, names)
            if inside is None or inside.dtype is not DType.F32:
                return None
            return replace(inside, scale=factor if inside.scale is None else inside.scale * factor)
        case _:
            return None


def _reads(e: Expr, names: Container[str]) -> bool:
    """True if the expression loads one of these values, with bounds around it or without."""
    while isinstance(e, Prim) and e.fn == "within":
        e = e.args[2]
    return isinstance(e, Load) and e.buffer.name in names


def _with_offset(x: Quantized | None, by: Expr | None) -> Quantized | None:
    if x is None or by is None or x.scale is not None or x.dtype in (*BYTES, DType.I16):
        return None
    return replace(x, zero=_sum(x.zero, by))


def _padded(x: Quantized | None, index: Expr, bound: Expr) -> Quantized | None:
    """Move a bounds check from the number to the byte, if it has a fill that is a byte."""
    if x is None or x.fill is None:
        return None
    return replace(x, byte=prim("within", index, bound, x.byte, x.fill))


def as_byte(e: Expr, dtype: DType) -> Expr:
    """Return a number that fits `dtype` in that type."""
    match e:
        case Const(value):
            return Const(int(value), dtype)
        case Prim("cast", (inner,)):
            return cast(inner, dtype)
        case _:
            return cast(e, dtype)


def is_zero(e: Expr) -> bool:
    return isinstance(e, Const) and e.value == 0


def _bounds(zero: Expr) -> tuple[float, float]:
    """Return bounds of a zero point: a number, a byte, or a sum of them."""
    match zero:
        case Const(value):
            return value, value
        case Prim("cast", (byte,)) if byte.dtype in BYTES:
            low = -128 if byte.dtype is DType.I8 else 0
            return low, low + 255
        case Prim("add", (a, b)):
            (first, last), (low, high) = _bounds(a), _bounds(b)
            return first + low, last + high
        case _:
            return -inf, inf


def _sum(a: Expr, b: Expr) -> Expr:
    return Const(int(a.value + b.value), DType.I32) if isinstance(a, Const) and isinstance(b, Const) else a + b


def _whole_number(e: Expr) -> Expr | None:
    """Return a number that does not vary as an i32."""
    match e:
        case Const(value) if float(value).is_integer() and abs(value) <= 255:
            return Const(int(value), DType.I32)
        case Prim("cast", (inner,)) if inner.dtype in BYTES and not variables(inner):
            return cast(inner, DType.I32)
        case Load() if e.dtype in BYTES and not variables(e):
            return cast(e, DType.I32)
        case Prim("add", (a, b), DType.I32):  # a signed zero point as an unsigned one
            first, other = _whole_number(a), _whole_number(b)
            return None if first is None or other is None else _sum(first, other)
        case _:
            return None
