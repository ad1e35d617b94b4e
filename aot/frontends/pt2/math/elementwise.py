"""Elementwise operations."""

from __future__ import annotations

from aot.frontends.pt2.registry import Call, Number, aten
from aot.ir.graph import OutPort

UNARY = {
    "abs": "Abs",
    "neg": "Negative",
    "sign": "Sign",
    "floor": "Floor",
    "ceil": "Ceiling",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "sin": "Sin",
    "cos": "Cos",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "erf": "Erf",
}
KEEPING = ("abs", "neg", "sign", "floor", "ceil")  # integers stay integers


@aten(*(f"{name}.default" for name in UNARY))
def unary(node: Call, x: OutPort) -> OutPort:
    name = node.kind.partition(".")[0]
    return getattr(node.build, UNARY[name])(x if name in KEEPING else node.real(x))


@aten("add.Tensor", "add.Scalar")
def add(node: Call, x: OutPort, other: OutPort | Number, alpha: Number = 1) -> OutPort:
    a, b = node.promoted(x, other)
    return node.build.Add(a, b if alpha == 1 else node.build.Multiply(b, node.same(alpha, b)))


@aten("sub.Tensor", "sub.Scalar")
def sub(node: Call, x: OutPort, other: OutPort | Number, alpha: Number = 1) -> OutPort:
    a, b = node.promoted(x, other)
    return node.build.Subtract(a, b if alpha == 1 else node.build.Multiply(b, node.same(alpha, b)))


@aten("mul.Tensor", "mul.Scalar")
def mul(node: Call, x: OutPort, other: OutPort | Number) -> OutPort:
    return node.build.Multiply(*node.promoted(x, other))


@aten("div.Tensor", "div.Scalar")
def div(node: Call, x: OutPort, other: OutPort | Number) -> OutPort:
    return node.build.Divide(*node.promoted(x, other, floats=True))


@aten("copy.default")
def copy(node: Call, x: OutPort, src: OutPort, non_blocking: bool = False) -> OutPort:
    """`src` in the shape and type of `x`."""
    return node.build.Broadcast(node.cast(src, x.type.dtype), node.dims(x, range(x.type.rank)))
