"""Arithmetic, comparisons, booleans and activations, element by element."""

from __future__ import annotations

from functools import reduce

import numpy as np

from aot.frontends.conversion.table import renames
from aot.frontends.conversion.texts import equal_texts
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.opset.elementwise.activation import Approximation
from aot.opset.elementwise.conversion import SMALL_FLOATS
from aot.runtime.abi import DType

SAME = renames(
    """
    Abs Acos Acosh Asin Asinh Atan Atanh Ceil=Ceiling Cos Cosh Erf Exp Floor Log Neg=Negative Sigmoid Sign Sin Sinh
    Sqrt Tan Tanh Relu Softplus=SoftPlus Softsign=SoftSign Round HardSwish=HSwish Mish BitwiseNot Not=LogicalNot
    """
)
SAME_TWO = renames(
    """
    Add Sub=Subtract Mul=Multiply BitwiseAnd BitwiseOr BitwiseXor Greater Less GreaterOrEqual=GreaterEqual
    LessOrEqual=LessEqual And=LogicalAnd Or=LogicalOr Xor=LogicalXor
    """
)


POWER_ERROR = 1e-12  # relative error of powers, so that 2^3 does not become 7


@onnx(*SAME)
def one(node: OnnxNode, x: OutPort) -> OutPort:
    return getattr(node.build, SAME[node.kind])(x)


@onnx("Equal")
def equal(node: OnnxNode, a: OutPort, b: OutPort) -> OutPort:
    if DType.STRING in (a.type.dtype, b.type.dtype):
        return equal_texts(node, a, b)
    return node.build.Equal(a, node.aligned(b, a.type.rank))


@onnx(*SAME_TWO)
def two(node: OnnxNode, a: OutPort, b: OutPort) -> OutPort:
    return getattr(node.build, SAME_TWO[node.kind])(a, node.aligned(b, a.type.rank))


@onnx("Div")
def div(node: OnnxNode, a: OutPort, b: OutPort) -> OutPort:
    """Convert to Divide; integers are truncated."""
    return node.build.Divide(a, node.aligned(b, a.type.rank), m_pythondiv=False)


@onnx("Pow")
def pow(node: OnnxNode, x: OutPort, y: OutPort) -> OutPort:
    """Convert to Power; the result has the type of the base."""
    y = node.aligned(y, x.type.rank)
    dtype, exponent = x.type.dtype, y.type.dtype
    if dtype.is_integer and exponent.is_float:
        power = node.build.Power(node.cast(x, DType.F64), node.cast(y, DType.F64))
        return node.cast(node.build.Multiply(power, 1 + POWER_ERROR), dtype)
    return node.build.Power(x, node.cast(y, dtype))


@onnx("Mod")
def mod(node: OnnxNode, a: OutPort, b: OutPort, *, fmod: bool = False) -> OutPort:
    return node.build.Mod(a, b) if fmod else node.build.FloorMod(a, b)


@onnx("Reciprocal")
def reciprocal(node: OnnxNode, x: OutPort) -> OutPort:
    return node.build.Divide(node.like(1, x), x)


@onnx("Max", "Min", "Sum")
def variadic(node: OnnxNode, *xs: OutPort) -> OutPort:
    step = {"Max": node.build.Maximum, "Min": node.build.Minimum, "Sum": node.build.Add}[node.kind]
    return reduce(step, xs)


@onnx("Mean")
def mean(node: OnnxNode, *xs: OutPort) -> OutPort:
    return node.build.Divide(reduce(node.build.Add, xs), float(len(xs)))


@onnx("Clip")
def clip(node: OnnxNode, x: OutPort, low: OutPort | None = None, high: OutPort | None = None) -> OutPort:
    """min(max(x, low), high); before opset 11 the limits are attributes."""
    if node.opset < 11:
        low = node.like(node.number("min"), x) if node.has("min") else None
        high = node.like(node.number("max"), x) if node.has("max") else None
    limits = [None if p is None else p.value for p in (low, high)]
    if x.type.dtype is DType.F32 and limits[0] is not None and limits[1] is not None:
        least, most = (float(v.reshape(-1)[0]) for v in limits if v is not None)
        if least <= most:
            return node.build.Clamp(x, min=least, max=most)
    x = x if low is None else node.build.Maximum(x, low)
    return x if high is None else node.build.Minimum(x, high)


@onnx("Elu")
def elu(node: OnnxNode, x: OutPort, *, alpha: float = 1.0) -> OutPort:
    return node.build.Elu(x, alpha=alpha)


@onnx("Celu")
def celu(node: OnnxNode, x: OutPort, *, alpha: float = 1.0) -> OutPort:
    """max(0, x) + min(0, alpha (exp(x / alpha) - 1))"""
    build = node.build
    below = build.Multiply(build.Subtract(build.Exp(build.Divide(x, alpha)), 1.0), alpha)
    return build.Select(build.Greater(x, 0.0), x, below)


@onnx("Selu")
def selu(
    node: OnnxNode, x: OutPort, *, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805
) -> OutPort:
    return node.build.Selu(x, node.like(alpha, x), node.like(gamma, x))


@onnx("LeakyRelu")
def leaky_relu(node: OnnxNode, x: OutPort, *, alpha: float = 0.01) -> OutPort:
    return node.build.PRelu(x, node.like(alpha, x))


@onnx("PRelu")
def prelu(node: OnnxNode, x: OutPort, slope: OutPort) -> OutPort:
    """Convert to PRelu; the slope broadcasts by NumPy's rule, but before opset 7 a vector is one of channels."""
    build = node.build
    if node.opset < 7 and slope.type.rank == 1 and slope.shape[0] != 1:
        slope = node.reshape(slope, (slope.shape[0], *[1] * (x.type.rank - 2)))
    return build.Select(build.Less(x, node.like(0, x)), build.Multiply(slope, x), x)


@onnx("HardSigmoid")
def hard_sigmoid(node: OnnxNode, x: OutPort, *, alpha: float = 0.2, beta: float = 0.5) -> OutPort:
    return node.build.HardSigmoid(x, node.like(alpha, x), node.like(beta, x))


@onnx("ThresholdedRelu")
def thresholded_relu(node: OnnxNode, x: OutPort, *, alpha: float = 1.0) -> OutPort:
    build = node.build
    return build.Select(build.Greater(x, alpha), x, node.like(0, x))


@onnx("Shrink")
def shrink(node: OnnxNode, x: OutPort, *, bias: float = 0.0, lambd: float = 0.5) -> OutPort:
    """x + bias below -lambd, x - bias above lambd, 0 between."""
    build = node.build
    above = build.Select(build.Greater(x, node.like(lambd, x)), build.Subtract(x, node.like(bias, x)), node.like(0, x))
    return build.Select(build.Less(x, node.like(-lambd, x)), build.Add(x, node.like(bias, x)), above)


@onnx("Gelu")
def gelu(node: OnnxNode, x: OutPort) -> OutPort:
    mode = node.choice("approximate", {"none": Approximation.ERF, "tanh": Approximation.TANH}, "none")
    return node.build.Gelu(x, approximation_mode=mode)


@onnx("Swish")
def swish(node: OnnxNode, x: OutPort, *, alpha: float = 1.0) -> OutPort:
    return node.build.Swish(x) if alpha == 1 else node.build.Swish(x, node.like(alpha, x))


@onnx("BitShift")
def bit_shift(node: OnnxNode, x: OutPort, by: OutPort) -> OutPort:
    """Convert to shifts; shifts by less than 0 or by all bits and more give 0, or all sign bits."""
    build, dtype = node.build, x.type.dtype
    zero, inside = node.like(0, by), build.Less(by, node.like(dtype.bits, by))
    if dtype.is_signed:
        inside = build.LogicalAnd(inside, build.GreaterEqual(by, zero))
        if node.text("direction", "") == "RIGHT":
            return build.BitwiseRightShift(x, build.Select(inside, by, node.like(dtype.bits - 1, by)))
    shift = {"LEFT": build.BitwiseLeftShift, "RIGHT": build.BitwiseRightShift}
    shifted = node.choice("direction", shift, "")(x, build.Select(inside, by, zero))
    return build.Select(inside, shifted, node.like(0, x))


@onnx("Cast")
def cast(node: OnnxNode, x: OutPort) -> OutPort:
    return converted(node, x, node.dtype("to"))


@onnx("CastLike")
def cast_like(node: OnnxNode, x: OutPort, like: OutPort) -> OutPort:
    return converted(node, x, like.type.dtype)


def converted(node: OnnxNode, x: OutPort, to: DType) -> OutPort:
    """Convert the element type: floats of 8 bits saturate if `saturate` is set, infinities too.

    Floats become integers of fewer than 8 bits by rounding, halves to even, of which the low bits stay; NaN gives 0.
    """
    own, build = x.type.dtype, node.build
    if own is to:
        return node.rounded(x)
    node.refuse(DType.STRING in (own, to), "strings cannot be converted")
    if to is DType.F8E8M0:
        return _power_of_two(node, x)
    if to in SMALL_FLOATS and node.flag("saturate", True):
        limit, wide = SMALL_FLOATS[to].greatest, node.cast(x, DType.F32)
        inside = build.Minimum(build.Maximum(wide, -limit), limit)
        return node.cast(build.Select(build.Equal(wide, wide), inside, wide), to)
    if own.is_float and to.is_integer and to.bits < 8:
        return node.cast(node.cast(build.Round(x if own.bits > 8 else node.cast(x, DType.F32)), DType.I32), to)
    return node.cast(x, to)


def _for_inference(node: OnnxNode, x: OutPort, ratio: OutPort | None, training: OutPort) -> OutPort:
    """Return `x`; training mode with a ratio that is not 0 is refused, where inputs decide by each inference."""
    build, rule = node.build, "training mode is not supported: export the model for inference"
    rate = node.like(0.5, x) if ratio is None else ratio
    drops = build.LogicalAnd(training, build.NotEqual(rate, node.like(0, rate)))
    if drops.value is None:
        return node.demand(build.LogicalNot(drops), rule, x)
    node.refuse(bool(drops.value.any()), rule)
    return x


ROUNDING_BITS = {"up": 0x7FFFFF, "down": 0, "nearest": 0x400000}  # added to the mantissa before it is cut off


def _power_of_two(node: OnnxNode, x: OutPort) -> OutPort:
    """Return the power of two above, below or nearest to |x|, from the exponent's bits."""
    build, wide = node.build, node.cast(x, DType.F32)
    bits = build.BitCast(wide, destination_type=DType.I32)
    size = build.BitwiseAnd(build.Add(bits, node.choice("round_mode", ROUNDING_BITS, "up")), 0x7F800000)
    size = build.Select(build.Equal(wide, 0.0), build.const(0, DType.I32), size)
    power = build.BitCast(size, destination_type=DType.F32)
    return node.cast(build.Select(build.IsFinite(wide), power, build.const(np.nan, DType.F32)), DType.F8E8M0)


@onnx("BitCast")
def bit_cast(node: OnnxNode, x: OutPort) -> OutPort:
    to = node.dtype("to")
    node.refuse(x.type.dtype.bits != to.bits, f"types must have equal sizes, got {x.type.dtype.value} and {to.value}")
    return node.build.BitCast(x, destination_type=to)


@onnx("IsNaN")
def is_nan(node: OnnxNode, x: OutPort) -> OutPort:
    return node.build.IsNaN(x)


@onnx("IsInf")
def is_inf(node: OnnxNode, x: OutPort, *, detect_negative: bool = True, detect_positive: bool = True) -> OutPort:
    return node.build.IsInf(x, detect_negative=detect_negative, detect_positive=detect_positive)


@onnx("Where")
def where(node: OnnxNode, condition: OutPort, a: OutPort, b: OutPort) -> OutPort:
    return node.build.Select(condition, a, b)


@onnx("Dropout")
def dropout(
    node: OnnxNode, x: OutPort, ratio: OutPort | None = None, training: OutPort | None = None
) -> tuple[OutPort, ...]:
    """At inference: the identity, and a mask of ones, which has the data's type before opset 10."""
    if training is not None:
        x = _for_inference(node, x, ratio, training)
    if len(node.outputs) < 2 or not node.outputs[1]:
        return (x,)
    ones = node.like(1, x) if node.opset < 10 else node.build.const(np.ones((), np.bool_), DType.BOOL)
    return x, node.build.Broadcast(ones, node.dims(x, range(x.type.rank)))
