"""Comparisons, logic, bits, and choices by a condition."""

from __future__ import annotations

from aot.frontends.conversion.table import renames
from aot.frontends.pt2.registry import AtenNode, Number, aten
from aot.ir.graph import OutPort
from aot.runtime.abi import DType

COMPARISONS = renames(
    """
    eq=Equal ne=NotEqual lt=Less le=LessEqual gt=Greater ge=GreaterEqual not_equal=NotEqual less=Less
    less_equal=LessEqual greater=Greater greater_equal=GreaterEqual
    """
)
LOGIC = {"and": "And", "or": "Or", "xor": "Xor"}
OPERANDS = ("Tensor", "Tensor_Scalar", "Scalar_Tensor")


@aten(*(f"{name}.{overload}" for name in COMPARISONS for overload in ("Tensor", "Scalar")))
def comparison(node: AtenNode, x: OutPort, other: OutPort | Number) -> OutPort:
    name = COMPARISONS[node.kind.partition(".")[0]]
    return getattr(node.build, name)(*node.promoted(x, other))


@aten(*(f"logical_{name}.default" for name in LOGIC))
def logical(node: AtenNode, x: OutPort, other: OutPort) -> OutPort:
    name = LOGIC[node.kind.partition(".")[0].removeprefix("logical_")]
    return getattr(node.build, f"Logical{name}")(*(node.cast(v, DType.BOOL) for v in (x, other)))


@aten("logical_not.default")
def logical_not(node: AtenNode, x: OutPort) -> OutPort:
    return node.build.LogicalNot(node.cast(x, DType.BOOL))


@aten(*(f"bitwise_{name}.{overload}" for name in LOGIC for overload in ("Tensor", "Scalar", "Scalar_Tensor")))
@aten(*(f"__{name}__.{overload}" for name in LOGIC for overload in ("Tensor", "Scalar")))
def bitwise(node: AtenNode, x: OutPort | Number, other: OutPort | Number) -> OutPort:
    name = LOGIC[node.kind.partition(".")[0].removeprefix("bitwise_").strip("_")]
    a, b = node.promoted(x, other)
    return getattr(node.build, f"{'Logical' if a.type.dtype is DType.BOOL else 'Bitwise'}{name}")(a, b)


@aten("bitwise_not.default")
def bitwise_not(node: AtenNode, x: OutPort) -> OutPort:
    return node.build.LogicalNot(x) if x.type.dtype is DType.BOOL else node.build.BitwiseNot(x)


@aten(*(f"bitwise_{side}_shift.{overload}" for side in ("left", "right") for overload in OPERANDS))
@aten(*(f"__{side}shift__.{overload}" for side in "lr" for overload in ("Tensor", "Scalar")))
def shift(node: AtenNode, x: OutPort | Number, other: OutPort | Number) -> OutPort:
    left = "left" in node.kind or "lshift" in node.kind
    return node.onnx("BitShift", *node.promoted(x, other), direction="LEFT" if left else "RIGHT")


@aten("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def where(node: AtenNode, condition: OutPort, self: OutPort | Number, other: OutPort | Number) -> OutPort:
    return node.build.Select(node.cast(condition, DType.BOOL), *node.promoted(self, other))


@aten("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(node: AtenNode, x: OutPort, mask: OutPort, value: OutPort | Number) -> OutPort:
    return node.build.Select(node.cast(mask, DType.BOOL), node.same(value, x), x)


@aten("isclose.default")
def isclose(
    node: AtenNode, x: OutPort, other: OutPort, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> OutPort:
    """|x - other| <= atol + rtol |other|, or equal."""
    build = node.build
    a, b = node.promoted(x, other, floats=True)
    allowed = build.Add(build.Multiply(build.Abs(b), node.like(rtol, a)), node.like(atol, a))
    finite = build.LogicalAnd(build.IsFinite(a), build.IsFinite(b))
    near = build.LogicalAnd(finite, build.LessEqual(build.Abs(build.Subtract(a, b)), allowed))
    port = build.LogicalOr(build.Equal(a, b), near)
    return build.LogicalOr(port, build.LogicalAnd(build.IsNaN(a), build.IsNaN(b))) if equal_nan else port
