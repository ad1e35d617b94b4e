"""Arithmetic, comparisons, booleans and activations, element by element."""

from __future__ import annotations

from functools import reduce

import numpy as np

from aot.frontends.conversion.table import renames
from aot.frontends.tf.math.complex_numbers import Number, by_parts, parts_of
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.runtime.abi import DType

SAME = renames(
    """
    Abs Acos Acosh Asin Asinh Atan Atanh Ceil=Ceiling Cos Cosh Elu Erf Erfinv=ErfInv Floor Invert=BitwiseNot
    IsFinite IsInf IsNan=IsNaN Log LogicalNot Relu Rint=Round Round Sigmoid Sign Sin Sinh Softplus=SoftPlus
    Softsign=SoftSign Sqrt Tan Tanh
    """
)
SAME_TWO = renames(
    """
    BitwiseAnd BitwiseOr BitwiseXor Greater GreaterEqual Less LessEqual LogicalAnd LogicalOr Maximum Minimum
    Pow=Power SquaredDifference
    """
)
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805  # Klambauer et al. 2017
SERIES_BOUND = 0.5  # below, log(1 + x) and exp(x) - 1 are computed without the sum, which would round x


@tf(*SAME)
def one(node: TfNode, x: OutPort) -> OutPort:
    return getattr(node.build, SAME[node.kind])(x)


@tf(*SAME_TWO)
def two(node: TfNode, a: OutPort, b: OutPort) -> OutPort:
    return getattr(node.build, SAME_TWO[node.kind])(a, b)


@tf("ToBool")
def to_bool(node: TfNode, x: OutPort) -> OutPort:
    """True for a number that is not 0, and for a tensor that has elements."""
    build = node.build
    if not x.type.rank:
        return build.NotEqual(x, node.like(0, x))
    count = build.ReduceProd(node.dims(x, range(x.type.rank)), node.list([0]))
    return build.NotEqual(count, node.scalar(0))


@tf("AddN", "AccumulateNV2")
@by_parts
def add_all(node: TfNode, *xs: OutPort) -> OutPort:
    return reduce(node.build.Add, xs)


@tf("Reciprocal", "Inv")
def reciprocal(node: TfNode, x: OutPort) -> OutPort:
    return node.build.Divide(node.like(1, x), x)


@tf("Rsqrt")
def rsqrt(node: TfNode, x: OutPort) -> OutPort:
    return node.build.Divide(node.like(1, x), node.build.Sqrt(x))


@tf("Square")
def square(node: TfNode, x: OutPort) -> OutPort:
    return node.build.Multiply(x, x)


@tf("Relu6")
def relu6(node: TfNode, x: OutPort) -> OutPort:
    return node.build.Clamp(x, min=0.0, max=6.0)


@tf("LeakyRelu")
def leaky_relu(node: TfNode, x: OutPort) -> OutPort:
    return node.build.PRelu(x, node.like(node.number("alpha"), x))


@tf("Selu")
def selu(node: TfNode, x: OutPort) -> OutPort:
    return node.build.Selu(x, node.like(SELU_ALPHA, x), node.like(SELU_SCALE, x))


@tf("Log1p")
def log1p(node: TfNode, x: OutPort) -> OutPort:
    """2 atanh(x / (2 + x)) near 0, else log(1 + x)."""
    build = node.build
    near = build.Multiply(build.Atanh(build.Divide(x, build.Add(x, 2.0))), 2.0)
    return build.Select(build.Less(build.Abs(x), SERIES_BOUND), near, build.Log(build.Add(x, 1.0)))


@tf("Expm1")
def expm1(node: TfNode, x: OutPort) -> OutPort:
    """2 t / (1 - t) for t = tanh(x / 2) near 0, else exp(x) - 1."""
    build = node.build
    half = build.Tanh(build.Multiply(x, 0.5))
    near = build.Divide(build.Add(half, half), build.Subtract(node.like(1, x), half))
    return build.Select(build.Less(build.Abs(x), SERIES_BOUND), near, build.Subtract(build.Exp(x), 1.0))


@tf("Erfc")
def erfc(node: TfNode, x: OutPort) -> OutPort:
    return node.build.Erfc(x)


@tf("Ndtri")
def ndtri(node: TfNode, x: OutPort) -> OutPort:
    """The quantile of the normal distribution."""
    build = node.build
    return build.Multiply(build.ErfInv(build.Subtract(build.Multiply(x, 2.0), 1.0)), float(np.sqrt(2)))


@tf("ApproximateEqual")
def approximate_equal(node: TfNode, a: OutPort, b: OutPort) -> OutPort:
    build = node.build
    return build.Less(build.Abs(build.Subtract(a, b)), node.like(node.number("tolerance"), a))


@tf("Atan2")
def atan2(node: TfNode, y: OutPort, x: OutPort) -> OutPort:
    """The angle of the point (x, y) in -pi..pi; 0 at the origin."""
    build, pi = node.build, float(np.pi)
    zero = node.like(0, x)
    half_turn = build.Select(build.Less(y, zero), node.like(-pi, x), node.like(pi, x))
    beside = build.Atan(build.Divide(y, x))
    upright = build.Multiply(build.Sign(y), pi / 2)
    left = build.Select(build.Less(x, zero), build.Add(beside, half_turn), beside)
    return build.Select(build.Equal(x, zero), upright, left)


@tf("Angle", takes_complex=True)
def angle(node: TfNode, x: Number) -> OutPort:
    """The angle of a complex number: 0 or pi for a real one."""
    parts = parts_of(node, x)
    return atan2(node, parts.imag, parts.real)


@tf("LeftShift", "RightShift")
def shift(node: TfNode, x: OutPort, by: OutPort) -> OutPort:
    """Shifts by less than 0 or more than all bits are clamped, as TensorFlow does it."""
    build, most = node.build, x.type.dtype.bits - 1
    clamped = build.Minimum(build.Maximum(by, node.like(0, by)), node.like(most, by))
    return (build.BitwiseLeftShift if node.kind == "LeftShift" else build.BitwiseRightShift)(x, clamped)


@tf("Select")
@by_parts
def select(node: TfNode, condition: OutPort, a: OutPort, b: OutPort) -> OutPort:
    """The condition has the shape of the values, or is a vector that selects rows, or a scalar."""
    if condition.type.rank == 1 and a.type.rank > 1:
        condition = node.build.Unsqueeze(condition, node.list(range(1, a.type.rank)))
    return node.build.Select(condition, a, b)


@tf("SelectV2")
@by_parts
def select_v2(node: TfNode, condition: OutPort, a: OutPort, b: OutPort) -> OutPort:
    return node.build.Select(condition, a, b)


@tf("ClipByValue")
def clip_by_value(node: TfNode, x: OutPort, low: OutPort, high: OutPort) -> OutPort:
    """min(max(x, low), high); constant limits make a Clamp."""
    limits = [p.value for p in (low, high)]
    if x.type.dtype is DType.F32 and all(v is not None and v.dtype != object and v.size == 1 for v in limits):
        least, most = (float(np.asarray(v).reshape(-1)[0]) for v in limits)
        if least <= most:
            return node.build.Clamp(x, min=least, max=most)
    return node.build.Minimum(node.build.Maximum(x, low), high)


@tf("Bitcast")
def bitcast(node: TfNode, x: OutPort) -> OutPort:
    to = node.dtype("type")
    node.refuse(x.type.dtype.bits != to.bits, f"types must have equal sizes, got {x.type.dtype.value} and {to.value}")
    return node.build.BitCast(x, destination_type=to)


@tf("ReluGrad", "Relu6Grad", "EluGrad", "SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad")
def gradient(node: TfNode, a: OutPort, b: OutPort) -> OutPort:
    """Gradients: of ReLU by (gradient, feature), of others by (result, gradient)."""
    build = node.build
    match node.kind:
        case "ReluGrad":
            return build.Select(build.Greater(b, node.like(0, b)), a, node.like(0, a))
        case "Relu6Grad":
            inside = build.LogicalAnd(build.Greater(b, node.like(0, b)), build.Less(b, node.like(6, b)))
            return build.Select(inside, a, node.like(0, a))
        case "EluGrad":
            return build.Select(build.Less(b, node.like(0, b)), build.Multiply(build.Add(b, 1.0), a), a)
        case "SigmoidGrad":
            return build.Multiply(b, build.Multiply(a, build.Subtract(node.like(1, a), a)))
        case "TanhGrad":
            return build.Multiply(b, build.Subtract(node.like(1, a), build.Multiply(a, a)))
        case "SqrtGrad":
            return build.Divide(build.Multiply(b, 0.5), a)
        case "RsqrtGrad":
            return build.Multiply(build.Multiply(b, -0.5), build.Multiply(a, build.Multiply(a, a)))
        case _:
            return build.Multiply(build.Negative(b), build.Multiply(a, a))
