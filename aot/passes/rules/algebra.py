"""Arithmetic without effect, or with a simpler equivalent.

Normal forms: powers with small exponents are products; a chain of negations has at most one.
"""

from __future__ import annotations

import numpy as np

from aot.ir.build import Builder
from aot.ir.graph import Node, OutPort
from aot.ir.op import Op
from aot.opset.elementwise.activation import Clamp, Relu, Sigmoid
from aot.opset.elementwise.binary import Add, Binary, Divide, Maximum, Minimum, Multiply, Power, Subtract
from aot.opset.elementwise.conversion import Convert, ConvertLike
from aot.opset.elementwise.unary import Abs, Exp, Negative
from aot.passes.match import broadcasts, can_broadcast_to, constant, has_one_consumer, source, uniform, with_constant
from aot.passes.rewrite import rule

NEUTRAL_OPERANDS: dict[type[Op], float] = {Add: 0.0, Subtract: 0.0, Multiply: 1.0, Divide: 1.0, Power: 1.0}
COMMUTATIVE = (Add, Multiply)


@rule(*NEUTRAL_OPERANDS)
def drop_neutral_operand(node: Node, op: Binary, build: Builder) -> OutPort | None:
    """x + 0, x - 0, x * 1, x / 1, x ^ 1 -> x"""
    operands = (node.source(0), node.source(1))
    if isinstance(op, COMMUTATIVE):
        operands = with_constant(node) or operands
    x, number = operands
    same = broadcasts(op) and can_broadcast_to(number.shape, x.shape)
    return x if same and uniform(number) == NEUTRAL_OPERANDS[type(op)] else None


@rule(Power)
def power_as_product(node: Node, op: Power, build: Builder) -> OutPort | None:
    """x ^ 2 -> x * x;  x ^ -1 -> 1 / x;  x ^ 0.5 -> sqrt x where x >= 0"""
    x, number = node.source(0), node.source(1)
    if not broadcasts(op) or not can_broadcast_to(number.shape, x.shape) or not x.type.dtype.is_float:
        return None
    exponent = uniform(number)
    if exponent == 2.0:
        return build.Multiply(x, x)
    if exponent == -1.0:
        return build.Divide(build.const(1, x.type.dtype), x)
    if exponent == 0.5 and is_never_negative(x):
        return build.Sqrt(x)
    return None


def is_never_negative(port: OutPort, depth: int = 8) -> bool:
    """True if the operations above ensure that no element is below zero. Minus zero counts as below."""
    node = port.node
    value = constant(port)
    if value is not None:
        return bool(np.all(np.greater(value, 0)))
    if isinstance(node.op, Exp | Abs | Sigmoid):
        return True
    if depth == 0:
        return False
    if isinstance(node.op, Multiply) and node.source(0) is node.source(1):
        return True
    if isinstance(node.op, Add | Multiply | Divide | Maximum):
        return all(is_never_negative(node.source(i), depth - 1) for i in (0, 1))
    return node.type in ("ReduceMean", "ReduceSum") and is_never_negative(node.source(0), depth - 1)


@rule(Negative)
def drop_double_negation(node: Node, op: Negative, build: Builder) -> OutPort | None:
    """-(-x) -> x"""
    inner = source(node.source(0), Negative)
    return None if inner is None else inner.source(0)


@rule(Convert)
def drop_convert_to_same(node: Node, op: Convert, build: Builder) -> OutPort | None:
    """Convert(x: T) to T -> x"""
    x = node.source(0)
    return x if x.type.dtype is node.out_port(0).type.dtype else None


@rule(ConvertLike)
def convert_like_known(node: Node, op: ConvertLike, build: Builder) -> OutPort | None:
    """ConvertLike(x, y: T) -> Convert(x) to T"""
    return build(Convert(node.out_port(0).type.dtype), node.source(0))


@rule(Relu)
def drop_repeated_relu(node: Node, op: Relu, build: Builder) -> OutPort | None:
    """Relu(Relu(x)) -> Relu(x);  Relu(Clamp(x, a, b)) -> Clamp(x, a, b) where a >= 0"""
    inner = source(node.source(0), Relu, Clamp)
    if inner is None or (isinstance(inner.op, Clamp) and inner.op.min < 0):
        return None
    return node.source(0)


@rule(Clamp)
def merge_clamps(node: Node, op: Clamp, build: Builder) -> OutPort | None:
    """Clamp(Clamp(x, a, b), c, d) -> Clamp(x, max(a, c), min(b, d));  Clamp(Relu(x), c, d) -> Clamp(x, max(0, c), d)"""
    inner = source(node.source(0), Relu, Clamp)
    if inner is None or not has_one_consumer(node.source(0)) or not node.source(0).type.dtype.is_float:
        return None
    low, high = (inner.op.min, inner.op.max) if isinstance(inner.op, Clamp) else (0.0, float("inf"))
    least, most = max(low, op.min), min(high, op.max)
    return build(Clamp(least, most), inner.source(0)) if least <= most else None


@rule(Maximum)
def maximum_as_relu(node: Node, op: Maximum, build: Builder) -> OutPort | None:
    """max(x, 0) -> Relu(x)"""
    bound = _bound(node)
    return build.Relu(bound[0]) if bound is not None and bound[1] == 0 else None


@rule(Minimum)
def minimum_as_clamp(node: Node, op: Minimum, build: Builder) -> OutPort | None:
    """min(Relu(x), c) -> Clamp(x, 0, c)"""
    bound = _bound(node)
    relu = source(bound[0], Relu) if bound is not None else None
    if bound is None or relu is None or not bound[1] >= 0 or not has_one_consumer(bound[0]):
        return None
    return build(Clamp(0.0, bound[1]), relu.source(0))


def _bound(node: Node) -> tuple[OutPort, float] | None:
    """Match a float Maximum or Minimum with one number: the other operand, and the number."""
    operands = with_constant(node)
    if operands is None or not node.out_port(0).type.dtype.is_float:
        return None
    number = uniform(operands[1])
    fits = number is not None and can_broadcast_to(operands[1].shape, operands[0].shape)
    return (operands[0], number) if fits and number is not None else None


RULES = (
    drop_neutral_operand,
    power_as_product,
    drop_double_negation,
    drop_convert_to_same,
    convert_like_known,
    drop_repeated_relu,
    merge_clamps,
    maximum_as_relu,
    minimum_as_clamp,
)
