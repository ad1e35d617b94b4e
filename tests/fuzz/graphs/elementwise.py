"""Steps of random graphs that compute element by element, and predicates of their operands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aot.opset.elementwise.unary import Rounding
from aot.runtime.abi import DType
from tests.fuzz.graphs.growing import Growing, Value

F32, F16, F64, BF16, I32, I64, I8, U8, BOOL = (
    DType.F32,
    DType.F16,
    DType.F64,
    DType.BF16,
    DType.I32,
    DType.I64,
    DType.I8,
    DType.U8,
    DType.BOOL,
)


CONVERTED = (F32, F32, F16, BF16, F64, I32, I64, I8, U8, BOOL)


UNARY = (
    "Relu",
    "Sigmoid",
    "Tanh",
    "Exp",
    "Abs",
    "Negative",
    "Floor",
    "Ceiling",
    "Sqrt",
    "Sin",
    "Erf",
    "Gelu",
    "Swish",
    "SoftPlus",
    "HSwish",
    "HSigmoid",
    "Mish",
    "Sign",
    "SoftSign",
    "Cos",
    "Log",
)


BINARY = (
    "Add",
    "Subtract",
    "Multiply",
    "Divide",
    "Maximum",
    "Minimum",
    "Mod",
    "FloorMod",
    "SquaredDifference",
    "Power",
)


COMPARED = ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")


def is_float(v: Value) -> bool:
    return v.dtype.is_float


def ranked(least: int, most: int = 6) -> Callable[[Value], bool]:
    return lambda v: least <= len(v.shape) <= most and v.array.size > 0


def unary(g: Growing) -> Value:
    return g.named(g.d.pick(UNARY), g.tame(g.pick(is_float)))


def rounded(g: Growing) -> Value:
    return g.named("Round", g.pick(is_float), mode=g.d.pick(list(Rounding)))


def _beside(g: Growing, x: Value) -> Value:
    """Something of the same type that broadcasts with `x`: another value, a constant, or part of the shape."""
    d = g.d
    if d.flag():
        return g.pick(lambda v: v.dtype is x.dtype and broadcasts(v.shape, x.shape))
    shape = tuple(1 if d.flag() else n for n in x.shape)[d.integer(0, len(x.shape)) :]
    return g.constant(d.array(x.dtype, shape))


def broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


def binary(g: Growing) -> Value:
    x = g.tame(g.pick(lambda v: v.dtype is not BOOL))
    y = g.tame(_beside(g, x))
    inputs = (x, y) if g.d.integer(0, 2) else (y, x)
    return g.tame(g.named(g.d.pick(BINARY), *inputs))


def compare(g: Growing) -> Value:
    x = g.pick(lambda v: v.dtype is not BOOL)
    return g.named(g.d.pick(COMPARED), x, _beside(g, x))


def choose(g: Growing) -> Value:
    c = g.pick(lambda v: v.dtype is BOOL)
    x = g.pick(lambda v: broadcasts(v.shape, c.shape))
    return g.named("Select", c, x, _beside(g, x))


def logic(g: Growing) -> Value:
    x = g.pick(lambda v: v.dtype is BOOL)
    if not g.d.integer(0, 2):
        return g.named("LogicalNot", x)
    return g.named(g.d.pick(["LogicalAnd", "LogicalOr", "LogicalXor"]), x, _beside(g, x))


def convert(g: Growing) -> Value:
    return g.named("Convert", g.tame(g.pick()), destination_type=g.d.pick(CONVERTED))
