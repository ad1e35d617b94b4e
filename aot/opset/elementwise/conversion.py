"""Conversion of element types."""

from __future__ import annotations

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.codegen.ir.loops import Expr, cast, prim
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.op import DecomposedOp, Element, Elements
from aot.ir.operand import Input, Operand, has_symbols
from aot.ir.registry import op
from aot.ir.types import Array, Shape, TensorType, dtype_of, numpy_dtype
from aot.opset.base.families import Elementwise
from aot.runtime.abi import DType
from aot.runtime.errors import ShapeError, UnsupportedError

# QLoRA, Dettmers et al. 2023, appendix E
NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip

# numbers that the 16 codes of a type stand for
LEVELS = {
    DType.NF4: NF4,
    DType.F4E2M1: tuple(np.arange(16, dtype=np.uint8).view(numpy_dtype(DType.F4E2M1)).astype(np.float64).tolist()),
}

# integers whose dtype NumPy does not treat as an integer
_SHORT_INTEGERS = tuple(numpy_dtype(t) for t in (DType.I4, DType.I2, DType.U4, DType.U2))


def converted(x: Array, dtype: DType) -> Array:
    """Convert: floats to integers truncate and saturate, NaN gives 0; integers wrap; booleans are `x != 0`."""
    to = numpy_dtype(dtype)
    if x.dtype == object:
        return x
    if x.dtype in _SHORT_INTEGERS:
        x = x.astype(np.int8)
    if dtype is DType.BOOL:
        return x.astype(np.float32) != 0 if x.dtype.kind == "V" else x != 0
    if dtype is DType.NF4:
        return np.abs(x.astype(np.float32)[..., None] - np.array(NF4, np.float32)).argmin(-1).astype(np.uint8)
    if x.dtype.kind not in "fV" or not dtype.is_integer:
        with np.errstate(all="ignore"):
            return x.astype(to)
    low, high = _range(dtype)
    with np.errstate(all="ignore"):
        truncated = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=2.0**70, neginf=-(2.0**70)))
    inside = (truncated >= low) & (truncated <= high) & (truncated < 2.0**64)
    exact = np.where(inside & (truncated < 2.0 ** (63 + (low == 0))), truncated, 0.0)
    values = exact.astype(np.uint64 if low == 0 else np.int64).astype(to)
    return np.where(
        truncated < low, np.array(low).astype(to), np.where(truncated >= high, np.array(high).astype(to), values)
    )


def _range(dtype: DType) -> tuple[int, int]:
    if dtype.is_signed:
        return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1
    return 0, 2**dtype.bits - 1


def convert(x: Expr, dtype: DType) -> Expr:
    """Return `x` as a number of the compute type of `dtype`."""
    if dtype is DType.BOOL and x.dtype is not DType.BOOL:
        return prim("ne", x, 0)
    if dtype in SMALL_FLOATS:
        return rounded(cast(x, DType.F32), SMALL_FLOATS[dtype])
    return cast(x, dtype) if dtype.bits >= 8 or not dtype.is_integer else _packed(x, dtype)


def _packed(x: Expr, dtype: DType) -> Expr:
    """Convert to an integer of fewer than 8 bits: floats saturate, integers wrap."""
    if x.dtype.is_float:
        low, high = _range(dtype)
        return prim("max", prim("min", cast(x, dtype), high), low)
    above = 8 - dtype.bits
    return prim("shr", prim("shl", cast(x, dtype), above), above)


@dataclass(frozen=True)
class SmallFloat:
    """A float type: bits of its mantissa, its least normal and greatest number, and the result for larger numbers."""

    mantissa: int
    least: float
    greatest: float
    beyond: float


SMALL_FLOATS = {
    DType.F8E4M3: SmallFloat(3, 2.0**-6, 448.0, np.nan),
    DType.F8E5M2: SmallFloat(2, 2.0**-14, 57344.0, np.inf),
    DType.F8E4M3FNUZ: SmallFloat(3, 2.0**-7, 240.0, np.nan),
    DType.F8E5M2FNUZ: SmallFloat(2, 2.0**-15, 57344.0, np.nan),
    DType.F4E2M1: SmallFloat(1, 1.0, 6.0, 6.0),
}
HALF = SmallFloat(10, 2.0**-14, 65504.0, np.inf)


def rounded(x: Expr, form: SmallFloat) -> Expr:
    """Round to the nearest number of a small type, half to even; a type without NaN has 0 for it."""
    size = prim("abs", x)
    size = prim("select", prim("eq", size, np.inf), 2 * form.greatest, size)
    exponent = prim("and", prim("bits", size, dtype=DType.I32), 0x7F800000)
    step = prim("max", prim("bits", exponent, dtype=DType.F32), form.least) * 2.0**-form.mantissa
    near = prim("round_even", size / step) * step
    near = prim("select", prim("gt", near, form.greatest), form.beyond, near)
    if form.beyond == form.greatest:
        near = prim("select", prim("eq", x, x), near, 0.0)
    return prim("select", prim("lt", x, 0.0), -near, near)


@op("opset1")
class Convert(Elementwise):
    """x as `destination_type`."""

    symbolic = True
    destination_type: DType = DType.F32

    def infer(self, x: Operand) -> TensorType:
        return TensorType(self.destination_type, x.shape)

    def has_jumps(self, result: DType) -> bool:
        return not result.is_float or result.bits < 16

    def scalar(self, x: Expr) -> Expr:
        return convert(x, self.destination_type)

    def fold(self, *operands: Operand | None) -> tuple[Array, ...] | None:
        (x,) = operands
        if x is None or x.value is None:
            return None
        if has_symbols(x):
            return (x.value,) if self.destination_type in (DType.I32, DType.I64, DType.U32, DType.U64) else None
        # the codes of nf4 are bytes, so the array alone does not tell its type
        value = np.array(NF4, np.float32)[x.value] if x.dtype is DType.NF4 else x.value
        return (self.reference(value),)

    def reference(self, x: Array) -> Array:
        return converted(x, self.destination_type)


@op()
class BitCast(Elementwise):
    """The bits of x as a type of equal size."""

    destination_type: DType = DType.I32

    def infer(self, x: Operand) -> TensorType:
        to = self.destination_type
        short = x.dtype is not to and any(t.is_float and t.bits < 32 for t in (x.dtype, to))
        if x.dtype.bits != to.bits or short:
            rule = "types of equal size, floats of 32 or 64 bits"
            raise UnsupportedError(f"BitCast: {rule}, got {x.dtype.value} and {to.value}")
        return TensorType(to, x.shape)

    def scalar(self, x: Expr) -> Expr:
        to = self.destination_type
        if DType.BOOL in (x.dtype, to):
            return convert(x, to)
        return x if x.dtype is to else prim("bits", x, dtype=to)

    def reference(self, x: Array) -> Array:
        return x.view(numpy_dtype(self.destination_type))


@op()
class Rounded(Elementwise):
    """x rounded to its short float type at this point; without it, fused values stay f32 until they are stored."""

    elements = Elements.FLOAT

    def compute(self, out: TensorType, x: Input) -> Element:
        match out.dtype:
            case DType.BF16:
                return lambda *index: _to_bfloat(x(*index))
            case DType.F16:
                return lambda *index: rounded(x(*index), HALF)
            case _:
                return x

    def reference(self, x: Array) -> Array:
        return x


def _to_bfloat(x: Expr) -> Expr:
    """Round to the upper half of the bits, to nearest even."""
    bits = prim("bits", x, dtype=DType.I32)
    odd = prim("and", prim("shr", bits, 16), 1)
    near = prim("bits", prim("and", bits + odd + 0x7FFF, -0x10000), dtype=DType.F32)
    return prim("select", prim("eq", x, x), near, x)


@op("opset1")
class ConvertLike(Elementwise):
    """x as the second input's type."""

    def infer(self, x: Operand, like: Operand) -> TensorType:
        return TensorType(like.dtype, x.shape)

    def has_jumps(self, result: DType) -> bool:
        return not result.is_float or result.bits < 16

    def compute(self, out: TensorType, x: Input, like: Input) -> Element:
        return lambda *index: convert(x(*index), out.dtype)

    def fold(self, *operands: Operand | None) -> tuple[Array, ...] | None:
        x, like = operands
        return None if like is None else Convert(destination_type=like.dtype).fold(x)

    def reference(self, x: Array, like: Array) -> Array:
        return converted(x, dtype_of(like))


@op("opset14")
class ConvertPromoteTypes(DecomposedOp):
    """Both inputs as the smallest type that holds the values of both types."""

    promote_unsafe: bool = False
    pytorch_scalar_promotion: bool = False
    u64_integer_promotion_target: DType = DType.F32

    def infer(self, a: Operand, b: Operand) -> tuple[TensorType, TensorType]:
        dtype = self.promoted(a.dtype, a.shape, b.dtype, b.shape)
        return TensorType(dtype, a.shape), TensorType(dtype, b.shape)

    def promoted(self, a: DType, a_shape: Shape, b: DType, b_shape: Shape) -> DType:
        """Return the common type; raise ShapeError if it may lose values and `promote_unsafe` does not allow that."""
        if a is b:
            return a
        low, high = sorted((a, b), key=_priority)
        if _priority(low) < _priority(high):
            loses = low.is_integer and high.is_float and high.bits < 2 * low.bits
            return self._checked(high, loses, a, b)
        if self.pytorch_scalar_promotion and (len(a_shape) == 0) != (len(b_shape) == 0):
            dimensioned, single = (b, a) if len(a_shape) == 0 else (a, b)
            return self._checked(dimensioned, _common(a, b) is not dimensioned, single, dimensioned)
        common = _common(a, b)
        if common is None:
            return self._checked(self.u64_integer_promotion_target, True, a, b)
        return self._checked(common, common not in (a, b), a, b)

    def _checked(self, common: DType, loses: bool, a: DType, b: DType) -> DType:
        if loses and not self.promote_unsafe:
            kinds = f"{a.value} and {b.value}"
            raise ShapeError(f"ConvertPromoteTypes: promote_unsafe is needed for {common.value}, got {kinds}")
        return common

    def decompose(self, build: Builder, a: OutPort, b: OutPort) -> tuple[OutPort, OutPort]:
        dtype = self.promoted(a.type.dtype, a.shape, b.type.dtype, b.shape)
        return build.Convert(a, destination_type=dtype), build.Convert(b, destination_type=dtype)

    def reference(self, a: Array, b: Array) -> tuple[Array, Array]:
        dtype = self.promoted(dtype_of(a), a.shape, dtype_of(b), b.shape)
        return converted(a, dtype), converted(b, dtype)


def _priority(dtype: DType) -> int:
    return 2 if dtype.is_float else 1 if dtype.is_integer else 0


@dataclass(frozen=True)
class _Parts:
    exponent: int
    mantissa: int


_FLOATS = {
    DType.F8E4M3: _Parts(4, 3),
    DType.F8E5M2: _Parts(5, 2),
    DType.F16: _Parts(5, 10),
    DType.BF16: _Parts(8, 7),
    DType.F32: _Parts(8, 23),
    DType.F64: _Parts(11, 52),
}


def _common(a: DType, b: DType) -> DType | None:
    """Return the smallest type of the same kind that holds both; None for u64 with a signed integer."""
    if a.is_float:
        x, y = _FLOATS[a], _FLOATS[b]
        exponent, mantissa = max(x.exponent, y.exponent), max(x.mantissa, y.mantissa)
        return next(t for t, p in _FLOATS.items() if p.exponent >= exponent and p.mantissa >= mantissa)
    if a.is_signed == b.is_signed:
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.is_signed else (b, a)
    bits = max(signed.bits, 2 * unsigned.bits)
    return {8: DType.I8, 16: DType.I16, 32: DType.I32, 64: DType.I64}.get(max(bits, 8))
