"""Arithmetic, comparisons and booleans, element by element."""

from __future__ import annotations

import math
from functools import reduce

from aot.frontends.conversion.node_context import StaticSequence
from aot.frontends.conversion.table import renames
from aot.frontends.paddle.registry import PaddleNode, paddle
from aot.ir.graph import OutPort
from aot.opset.elementwise.unary import Rounding
from aot.runtime.abi import DType

SAME = renames(
    """
    abs=Abs acos=Acos acosh=Acosh asin=Asin asinh=Asinh atan=Atan atanh=Atanh ceil=Ceiling cos=Cos cosh=Cosh erf=Erf
    exp=Exp floor=Floor isfinite=IsFinite isinf=IsInf isnan=IsNaN log=Log sign=Sign sin=Sin sinh=Sinh sqrt=Sqrt
    tan=Tan tanh=Tanh sigmoid=Sigmoid logical_not=LogicalNot bitwise_not=BitwiseNot
    """
)
SAME_TWO = renames(
    """
    add=Add subtract=Subtract multiply=Multiply maximum=Maximum minimum=Minimum elementwise_pow=Power
    equal=Equal not_equal=NotEqual less_than=Less less_equal=LessEqual greater_than=Greater greater_equal=GreaterEqual
    logical_and=LogicalAnd logical_or=LogicalOr logical_xor=LogicalXor bitwise_and=BitwiseAnd bitwise_or=BitwiseOr
    bitwise_xor=BitwiseXor remainder=FloorMod
    """
)


@paddle(*SAME)
def one(node: PaddleNode, x: OutPort) -> OutPort:
    return getattr(node.build, SAME[node.kind.rstrip("_")])(x)


def aligned(node: PaddleNode, a: OutPort, b: OutPort) -> OutPort:
    """Return `b` with its first axis at the axis of `a` that version 2 names."""
    axis = node.integer("axis", -1)
    if axis == -1 or b.type.rank >= a.type.rank:
        return b
    missing = a.type.rank - b.type.rank - node.axis(axis, a.type.rank)
    return node.build.Unsqueeze(b, node.list(range(b.type.rank, b.type.rank + missing))) if missing > 0 else b


@paddle(*SAME_TWO)
def two(node: PaddleNode, a: OutPort, b: OutPort) -> OutPort:
    return getattr(node.build, SAME_TWO[node.kind.rstrip("_")])(a, aligned(node, a, b))


@paddle("divide")
def divide(node: PaddleNode, a: OutPort, b: OutPort) -> OutPort:
    """Convert to Divide; of integers version 3 makes floats."""
    return node.build.Divide(a, aligned(node, a, b), m_pythondiv=False)


@paddle("floor_divide")
def floor_divide(node: PaddleNode, a: OutPort, b: OutPort) -> OutPort:
    y = aligned(node, a, b)
    return node.build.Floor(node.build.Divide(a, y)) if a.type.dtype.is_float else node.build.Divide(a, y)


@paddle("atan2")
def atan2(node: PaddleNode, y: OutPort, x: OutPort) -> OutPort:
    """Take the arc tangent of y / x in the quadrant of the point."""
    build = node.build
    angle = build.Atan(build.Divide(y, x))
    left = build.Less(x, node.like(0, x))
    below = build.Less(y, node.like(0, y))
    shifted = build.Add(angle, build.Select(below, node.like(-math.pi, y), node.like(math.pi, y)))
    both = build.LogicalAnd(build.Equal(x, node.like(0, x)), build.Equal(y, node.like(0, y)))
    return build.Select(both, node.like(0, y), build.Select(left, shifted, angle))


@paddle("add_n")
def add_n(node: PaddleNode, xs: OutPort | StaticSequence) -> OutPort:
    return reduce(node.build.Add, xs) if isinstance(xs, tuple) else xs


@paddle("scale")
def scale(
    node: PaddleNode, x: OutPort, factor: OutPort | None = None, *, bias: float = 0.0, bias_after_scale: bool = True
) -> OutPort:
    """Return factor x + bias, or factor (x + bias)."""
    build, dtype = node.build, x.type.dtype
    wide = x if dtype.is_float else node.cast(x, DType.F64)

    def scaled(y: OutPort) -> OutPort:
        if factor is None:
            return y
        if factor.value is None:
            return build.Multiply(y, node.cast(node.single(factor), y.type.dtype))
        number = node.one(factor, "scale")
        return y if number == 1 else build.Multiply(y, node.like(number, y))

    def shifted(y: OutPort) -> OutPort:
        return y if bias == 0 else build.Add(y, node.like(bias, y))

    if not dtype.is_float and factor is not None and factor.value is not None:
        number = node.one(factor, "scale")
        if number == int(number) and bias == int(bias):
            wide = x
    return node.cast(shifted(scaled(wide)) if bias_after_scale else scaled(shifted(wide)), dtype)


@paddle("increment")
def increment(node: PaddleNode, x: OutPort, *, value: float = 1.0) -> OutPort:
    return node.build.Add(x, node.like(value, x))


@paddle("clip", "hardtanh")
def clip(
    node: PaddleNode,
    x: OutPort,
    low: OutPort | None = None,
    high: OutPort | None = None,
    *,
    t_min: float = 0.0,
    t_max: float = 24.0,
) -> OutPort:
    """Keep elements in a range."""
    if low is None or high is None:
        return node.build.Clamp(x, min=t_min, max=t_max)
    if low.value is None or high.value is None or not x.type.dtype.is_float:
        limits = (node.cast(node.single(v), x.type.dtype) for v in (low, high))
        least, most = limits
        return node.build.Minimum(node.build.Maximum(x, least), most)
    return node.build.Clamp(x, min=float(node.one(low, "min")), max=float(node.one(high, "max")))


@paddle("pow")
def pow(node: PaddleNode, x: OutPort, exponent: OutPort | None = None, *, y: float = 1.0) -> OutPort:
    """Raise to a power, which is an attribute in version 3."""
    if exponent is not None:
        return node.build.Power(x, node.cast(node.single(exponent), x.type.dtype))
    if y == 2:
        return node.build.Multiply(x, x)
    return node.build.Power(x, node.like(y, x))


@paddle("square")
def square(node: PaddleNode, x: OutPort) -> OutPort:
    return node.build.Multiply(x, x)


@paddle("rsqrt")
def rsqrt(node: PaddleNode, x: OutPort) -> OutPort:
    return node.build.Divide(node.like(1, x), node.build.Sqrt(x))


@paddle("reciprocal")
def reciprocal(node: PaddleNode, x: OutPort) -> OutPort:
    return node.build.Divide(node.like(1, x), x)


@paddle("expm1")
def expm1(node: PaddleNode, x: OutPort) -> OutPort:
    return node.build.Subtract(node.build.Exp(x), node.like(1, x))


@paddle("log1p")
def log1p(node: PaddleNode, x: OutPort) -> OutPort:
    return node.build.Log(node.build.Add(x, node.like(1, x)))


@paddle("log2", "log10")
def log_to_a_base(node: PaddleNode, x: OutPort) -> OutPort:
    base = 2 if node.kind.startswith("log2") else 10
    return node.build.Multiply(node.build.Log(x), node.like(1 / math.log(base), x))


@paddle("round")
def round(node: PaddleNode, x: OutPort, *, decimals: int = 0) -> OutPort:
    """Round, halves away from zero."""
    factor = node.like(10.0**decimals, x)
    wide = node.build.Multiply(x, factor) if decimals else x
    y = node.build.Round(wide, mode=Rounding.HALF_AWAY_FROM_ZERO)
    return node.build.Divide(y, factor) if decimals else y


@paddle("trunc")
def trunc(node: PaddleNode, x: OutPort) -> OutPort:
    if not x.type.dtype.is_float:
        return x
    return node.build.Multiply(node.build.Sign(x), node.build.Floor(node.build.Abs(x)))


@paddle("where")
def where(node: PaddleNode, condition: OutPort, x: OutPort, y: OutPort) -> OutPort:
    return node.build.Select(condition, x, y)


@paddle("cast")
def cast(node: PaddleNode, x: OutPort) -> OutPort:
    return node.cast(x, node.dtype())


@paddle("lerp")
def lerp(node: PaddleNode, x: OutPort, y: OutPort, weight: OutPort) -> OutPort:
    return node.build.Add(x, node.build.Multiply(node.build.Subtract(y, x), weight))


@paddle("logit")
def logit(node: PaddleNode, x: OutPort, *, eps: float = 1e-6) -> OutPort:
    """Return ln(x / (1 - x)) of what is at least eps from 0 and 1."""
    inside = node.build.Clamp(x, min=eps, max=1 - eps) if eps else x
    return node.build.Log(node.build.Divide(inside, node.build.Subtract(node.like(1, x), inside)))


@paddle("masked_fill")
def masked_fill(node: PaddleNode, x: OutPort, mask: OutPort, value: OutPort) -> OutPort:
    return node.build.Select(mask, value, x)
