"""Elementwise arithmetic of two or more tensors."""

from __future__ import annotations

from aot.frontends.pt2.math.elementwise import trunc
from aot.frontends.pt2.registry import AtenNode, Number, aten
from aot.ir.graph import OutPort
from aot.runtime.abi import DType

MODES = (None, "floor", "trunc")
OF_BOOLEANS = {"Add": "LogicalOr", "Multiply": "LogicalAnd", "Maximum": "LogicalOr", "Minimum": "LogicalAnd"}


def combined(node: AtenNode, operation: str, a: OutPort, b: OutPort) -> OutPort:
    """Compute an operation of two tensors of one type; booleans have their own."""
    name = OF_BOOLEANS.get(operation, operation) if a.type.dtype is DType.BOOL else operation
    return getattr(node.build, name)(a, b)


def times(node: AtenNode, factor: Number, x: OutPort) -> OutPort:
    return x if factor == 1 else combined(node, "Multiply", x, node.same(factor, x))


@aten("add.Tensor", "add.Scalar")
def add(node: AtenNode, x: OutPort | Number, other: OutPort | Number, alpha: Number = 1) -> OutPort:
    a, b = node.promoted(x, other)
    return combined(node, "Add", a, times(node, alpha, b))


@aten("sub.Tensor", "sub.Scalar", "subtract.Tensor")
def sub(node: AtenNode, x: OutPort | Number, other: OutPort | Number, alpha: Number = 1) -> OutPort:
    a, b = node.promoted(x, other)
    return node.build.Subtract(a, times(node, alpha, b))


@aten("rsub.Tensor", "rsub.Scalar")
def rsub(node: AtenNode, x: OutPort | Number, other: OutPort | Number, alpha: Number = 1) -> OutPort:
    a, b = node.promoted(x, other)
    return node.build.Subtract(b, times(node, alpha, a))


@aten("mul.Tensor", "mul.Scalar", "multiply.Tensor")
def mul(node: AtenNode, x: OutPort | Number, other: OutPort | Number) -> OutPort:
    return combined(node, "Multiply", *node.promoted(x, other))


@aten("div.Tensor", "div.Scalar", "true_divide.Tensor", "divide.Tensor")
def div(node: AtenNode, x: OutPort | Number, other: OutPort | Number) -> OutPort:
    return node.build.Divide(*node.promoted(x, other, floats=True))


@aten("div.Tensor_mode", "div.Scalar_mode", "divide.Tensor_mode")
def div_mode(node: AtenNode, x: OutPort | Number, other: OutPort | Number, rounding_mode: str | None = None) -> OutPort:
    node.refuse(rounding_mode not in MODES, f"rounding_mode is floor or trunc, got {rounding_mode!r}")
    a, b = node.promoted(x, other, floats=rounding_mode is None)
    if not a.type.dtype.is_float:
        return node.build.Divide(a, b, m_pythondiv=rounding_mode == "floor")
    if rounding_mode is None:
        return node.build.Divide(a, b)
    if rounding_mode == "trunc":
        return trunc(node, node.rounded(node.build.Divide(a, b)))
    wide = node.wide(a)  # a number is not rounded to the type of `x`
    return floor_quotient(node, wide, node.wide(b) if isinstance(other, OutPort) else node.same(other, wide))


def floor_quotient(node: AtenNode, a: OutPort, b: OutPort) -> OutPort:
    """Return the whole quotient of floats that the rest of `%` belongs to: 1 // 0.1 is 9, and inf // 1 is NaN."""
    build, zero, one = node.build, node.like(0, a), node.like(1, a)
    rest, ratio = build.Mod(a, b), build.Divide(a, b)
    signs_differ = build.NotEqual(build.Less(b, zero), build.Less(rest, zero))
    below = build.LogicalAnd(build.NotEqual(rest, zero), signs_differ)
    quotient = build.Divide(build.Subtract(a, rest), b)
    quotient = build.Select(below, build.Subtract(quotient, one), quotient)
    floor = build.Floor(quotient)
    is_rounded_up = build.Greater(build.Subtract(quotient, floor), node.like(0.5, a))
    port = build.Select(is_rounded_up, build.Add(floor, one), floor)
    port = build.Select(build.Equal(quotient, zero), build.Multiply(ratio, zero), port)
    return build.Select(build.Equal(b, zero), ratio, port)


@aten("floor_divide.default", "floor_divide.Scalar")
def floor_divide(node: AtenNode, x: OutPort | Number, other: OutPort | Number) -> OutPort:
    return div_mode(node, x, other, "floor")


@aten("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(node: AtenNode, x: OutPort | Number, other: OutPort | Number) -> OutPort:
    """The remainder has the sign of the divisor."""
    return node.build.FloorMod(*node.promoted(x, other))


@aten("fmod.Tensor", "fmod.Scalar")
def fmod(node: AtenNode, x: OutPort | Number, other: OutPort | Number) -> OutPort:
    """The remainder has the sign of `x`."""
    return node.build.Mod(*node.promoted(x, other))


@aten("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar", "float_power.Tensor_Scalar")
def pow_(node: AtenNode, x: OutPort | Number, exponent: OutPort | Number) -> OutPort:
    a, b = node.promoted(x, exponent)
    return node.build.Power(a, b) if exponent != 2 else node.build.Multiply(a, a)


@aten("maximum.default", "max.other", "minimum.default", "min.other")
def extreme(node: AtenNode, x: OutPort | Number, other: OutPort) -> OutPort:
    return combined(node, "Maximum" if node.kind.startswith("max") else "Minimum", *node.promoted(x, other))


@aten("fmax.default", "fmin.default")
def extreme_number(node: AtenNode, x: OutPort | Number, other: OutPort) -> OutPort:
    """NaN counts for nothing where the other one is a number."""
    a, b = node.promoted(x, other)
    build, port = node.build, combined(node, "Maximum" if node.kind == "fmax.default" else "Minimum", a, b)
    if not a.type.dtype.is_float:
        return port
    return build.Select(build.IsNaN(a), b, build.Select(build.IsNaN(b), a, port))


@aten("atan2.default", "arctan2.default")
def atan2(node: AtenNode, x: OutPort | Number, other: OutPort) -> OutPort:
    return node.tf("Atan2", *node.promoted(x, other, floats=True))


def hypotenuse(node: AtenNode, a: OutPort, b: OutPort) -> OutPort:
    """Return the root of a^2 + b^2 without overflow of the squares; infinite if a or b is, even beside NaN."""
    build = node.build
    a, b = build.Abs(a), build.Abs(b)
    large, small = build.Maximum(a, b), build.Minimum(a, b)
    part = build.Divide(small, build.Select(build.Equal(large, node.like(0, a)), node.like(1, a), large))
    port = build.Multiply(large, build.Sqrt(build.Add(build.Multiply(part, part), node.like(1, a))))
    infinite = node.like(float("inf"), a)
    return build.Select(build.LogicalOr(build.Equal(a, infinite), build.Equal(b, infinite)), infinite, port)


@aten("hypot.default")
def hypot(node: AtenNode, x: OutPort | Number, other: OutPort) -> OutPort:
    a, b = node.promoted(x, other, floats=True)
    return hypotenuse(node, a, b)


@aten("copysign.Tensor", "copysign.Scalar")
def copysign(node: AtenNode, x: OutPort | Number, other: OutPort | Number) -> OutPort:
    build = node.build
    a, b = node.promoted(x, other, floats=True)
    size = build.Abs(a)
    return build.Select(build.Less(b, node.like(0, b)), build.Negative(size), size)


@aten("xlogy.Tensor", "xlogy.Scalar_Other", "xlogy.Scalar_Self", "special_xlogy.default")
def xlogy(node: AtenNode, x: OutPort | Number, other: OutPort | Number) -> OutPort:
    """x log(other); 0 where x is 0 and `other` is a number."""
    a, b = node.promoted(x, other, floats=True)
    return node.build.Select(node.build.IsNaN(b), b, node.tf("Xlogy", a, b))


@aten("logaddexp.default", "logaddexp2.default")
def logaddexp(node: AtenNode, x: OutPort | Number, other: OutPort) -> OutPort:
    """The larger one + log(1 + e^-difference), of base 2 in `logaddexp2`."""
    build = node.build
    a, b = node.promoted(x, other, floats=True)
    base = node.like(0.6931471805599453 if node.kind.startswith("logaddexp2") else 1.0, a)
    gap = build.Multiply(build.Negative(build.Abs(build.Subtract(a, b))), base)
    rest = build.Divide(node.tf("Log1p", build.Exp(gap)), base)
    larger = build.Maximum(a, b)
    return build.Select(build.IsFinite(gap), build.Add(larger, rest), larger)


@aten("lerp.Tensor", "lerp.Scalar")
def lerp(node: AtenNode, x: OutPort, end: OutPort, weight: OutPort | Number) -> OutPort:
    build = node.build
    return build.Add(x, build.Multiply(node.same(weight, x), build.Subtract(end, x)))


@aten("addcmul.default", "addcdiv.default")
def addc(node: AtenNode, x: OutPort, tensor1: OutPort, tensor2: OutPort, value: Number = 1) -> OutPort:
    """x + value tensor1 tensor2, or their quotient."""
    a, b, c = node.promoted(x, tensor1, tensor2)
    name = "Multiply" if node.kind.startswith("addcmul") else "Divide"
    return node.build.Add(a, times(node, value, getattr(node.build, name)(b, c)))


@aten("copy.default")
def copy(node: AtenNode, x: OutPort, src: OutPort) -> OutPort:
    """`src` in the shape and type of `x`."""
    return node.build.Broadcast(node.cast(src, x.type.dtype), node.dims(x, range(x.type.rank)))


@aten("gcd.default", "lcm.default")
def gcd(node: AtenNode, x: OutPort, other: OutPort) -> OutPort:
    """The greatest common divisor; the least common multiple, 0 beside a 0."""
    build = node.build
    a, b = node.promoted(x, other)
    both = build.ShapeOf(build.Add(a, b))
    port = build.GreatestDivisor(*(build.Broadcast(v, both) for v in (a, b)))
    if node.kind.startswith("gcd"):
        return port
    parts = build.Divide(a, build.Maximum(port, node.like(1, port)), m_pythondiv=False)
    return build.Abs(build.Multiply(parts, b))
