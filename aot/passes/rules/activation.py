"""Activation functions written out with simpler operations become one operation.

All rules are anchored on the outermost operation. Products are compared as sets of factors, in any order.
"""

from __future__ import annotations

import math

from aot.ir.build import Builder
from aot.ir.graph import Node, OutPort
from aot.ir.op import Op
from aot.opset.elementwise.activation import Approximation, Clamp, Gelu, HardSigmoid, HSigmoid, Sigmoid, SoftPlus
from aot.opset.elementwise.binary import Add, Divide, Multiply, Power
from aot.opset.elementwise.error_function import Erfc
from aot.opset.elementwise.unary import Erf, Exp, Log, Negative, Tanh
from aot.passes.match import factors, has_one_consumer, has_same_dims, is_close, source, uniform, with_constant
from aot.passes.rewrite import rule


def _plus(port: OutPort, number: float) -> OutPort | None:
    """Match x + number; returns x."""
    node = source(port, Add)
    operands = with_constant(node) if node is not None else None
    return operands[0] if operands is not None and is_close(uniform(operands[1]), number) else None


def _one_plus(port: OutPort, function: type[Op]) -> tuple[Node | None, float]:
    """Match (1 + f) s, which may be written f s + s; returns the node f and the number s."""
    add = source(port, Add)
    operands = with_constant(add) if add is not None else None
    number = uniform(operands[1]) if operands is not None else None
    product = _times(operands[0]) if operands is not None else None
    if number is None or product is None or not is_close(product[1], number):
        return None, 0.0
    return source(product[0], function), number


def _times(port: OutPort) -> tuple[OutPort, float] | None:
    """Match x * number or x / number; returns x and the factor."""
    node = source(port, Divide)
    if node is not None:
        divisor = uniform(node.source(1))
        return (node.source(0), 1 / divisor) if divisor else None
    ports, number = factors(port)
    return (ports[0], number) if len(ports) == 1 else None


def _two_factors(node: Node) -> tuple[tuple[tuple[OutPort, OutPort], ...], float]:
    """Match a product of two tensors and a number: the two in either order, and the number; no pairs otherwise."""
    ports, number = factors(node.out_port(0))
    if len(ports) != 2 or not node.out_port(0).type.dtype.is_float:
        return (), number
    first, second = ports
    return ((first, second), (second, first)), number


def _scaled(port: OutPort, number: float, build: Builder) -> OutPort:
    return port if number == 1.0 else build.Multiply(port, number)


@rule(Multiply)
def gelu_with_erf(node: Node, op: Multiply, build: Builder) -> OutPort | None:
    """x (1 + erf(x / sqrt 2)) / 2 -> Gelu(x)"""
    pairs, number = _two_factors(node)
    for x, other in pairs:
        erf, scale = _one_plus(other, Erf)
        argument = _times(erf.source(0)) if erf is not None and is_close(number * scale, 0.5) else None
        if argument is not None and argument[0] is x and is_close(argument[1], math.sqrt(0.5)):
            return build(Gelu(Approximation.ERF), x)
    return None


@rule(Multiply)
def gelu_with_erfc(node: Node, op: Multiply, build: Builder) -> OutPort | None:
    """x erfc(-x / sqrt 2) / 2 -> Gelu(x)"""
    pairs, number = _two_factors(node)
    for x, other in pairs:
        complement = source(other, Erfc)
        ports, scale = factors(complement.source(0)) if complement is not None else ((), 0.0)
        negated = source(ports[0], Negative) if len(ports) == 1 else None
        if negated is not None:
            ports, scale = (negated.source(0),), -scale
        if is_close(number, 0.5) and list(ports) == [x] and is_close(scale, -math.sqrt(0.5)):
            return build(Gelu(Approximation.ERF), x)
    return None


@rule(Multiply)
def gelu_with_tanh(node: Node, op: Multiply, build: Builder) -> OutPort | None:
    """x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 -> Gelu(x), approximated"""
    pairs, number = _two_factors(node)
    for x, other in pairs:
        tanh, scale = _one_plus(other, Tanh)
        argument = _times(tanh.source(0)) if tanh is not None and is_close(number * scale, 0.5) else None
        if argument is not None and is_close(argument[1], math.sqrt(2 / math.pi)) and _is_cubic(argument[0], x):
            return build(Gelu(Approximation.TANH), x)
    return None


def _is_cubic(port: OutPort, x: OutPort) -> bool:
    """True for x + 0.044715 x^3."""
    node = source(port, Add)
    if node is None or x not in node.sources():
        return False
    cubic = node.source(1) if node.source(0) is x else node.source(0)
    ports, number = factors(cubic)
    exponents = [_power_of(f, x) for f in ports]
    return is_close(number, 0.044715) and all(exponents) and sum(exponents) == 3


def _power_of(port: OutPort, x: OutPort) -> int:
    """Return n if the node is x^n, else 0."""
    if port is x:
        return 1
    node = source(port, Power)
    if node is not None and node.source(0) is x:
        exponent = uniform(node.source(1))
        return int(exponent) if exponent is not None and exponent in (2.0, 3.0) else 0
    square = source(port, Multiply)
    return 2 if square is not None and square.source(0) is x and square.source(1) is x else 0


@rule(Multiply)
def swish(node: Node, op: Multiply, build: Builder) -> OutPort | None:
    """x Sigmoid(x) -> Swish(x);  x Sigmoid(beta x) -> Swish(x, beta)"""
    pairs, number = _two_factors(node)
    for x, other in pairs:
        sigmoid = source(other, Sigmoid)
        if sigmoid is None:
            continue
        if sigmoid.source(0) is x:
            return _scaled(build.Swish(x), number, build)
        inner = _times(sigmoid.source(0))
        if inner is not None and inner[0] is x and source(sigmoid.source(0), Multiply) is not None:
            return _scaled(build.Swish(x, build.const(inner[1], x.type.dtype)), number, build)
    return None


@rule(Divide)
def swish_as_quotient(node: Node, op: Divide, build: Builder) -> OutPort | None:
    """x / (1 + e^-x) -> Swish(x);  1 / (1 + e^-x) -> Sigmoid(x)"""
    exp = source(_plus(node.source(1), 1.0), Exp)
    negative = source(exp.source(0), Negative) if exp is not None else None
    if negative is None:
        return None
    x, top = negative.source(0), node.source(0)
    if top is x:
        return build.Swish(x)
    return build.Sigmoid(x) if uniform(top) == 1.0 and has_same_dims(node.out_port(0).shape, x.shape) else None


@rule(Multiply, Divide)
def hard_sigmoid_written_out(node: Node, op: Multiply | Divide, build: Builder) -> OutPort | None:
    """Clamp(x + 3, 0, 6) / 6 -> HSigmoid(x)"""
    product = _times(node.out_port(0))
    x = _clamped(product[0]) if product is not None and is_close(product[1], 1 / 6) else None
    return build.HSigmoid(x) if x is not None else None


def _clamped(port: OutPort) -> OutPort | None:
    """Match Clamp(x + 3, 0, 6); returns x."""
    clamp = source(port, Clamp)
    return _plus(clamp.source(0), 3.0) if clamp is not None and clamp.op == Clamp(0.0, 6.0) else None


@rule(Multiply, Divide)
def hard_swish(node: Node, op: Multiply | Divide, build: Builder) -> OutPort | None:
    """x HSigmoid(x), x Clamp(x + 3, 0, 6) / 6 -> HSwish(x)"""
    scale = 1.0
    product = node
    if isinstance(op, Divide):
        divisor = uniform(node.source(1))
        inner = source(node.source(0), Multiply)
        if not divisor or inner is None:
            return None
        product, scale = inner, 1 / divisor
    if product is not node and not has_one_consumer(product.out_port(0)):
        return None
    pairs, number = _two_factors(product)
    for x, other in pairs:
        gate = source(other, HSigmoid)
        if gate is not None and gate.source(0) is x:
            return _scaled(build.HSwish(x), number * scale, build)
        if _clamped(other) is x and is_close(number * scale, 1 / 6):
            return build.HSwish(x)
    return None


@rule(HardSigmoid)
def hard_sigmoid(node: Node, op: HardSigmoid, build: Builder) -> OutPort | None:
    """HardSigmoid(x, 1/6, 1/2) -> HSigmoid(x)"""
    if is_close(uniform(node.source(1)), 1 / 6) and uniform(node.source(2)) == 0.5:
        return build.HSigmoid(node.source(0))
    return None


@rule(Log)
def soft_plus(node: Node, op: Log, build: Builder) -> OutPort | None:
    """ln(1 + e^x) -> SoftPlus(x), which does not overflow"""
    exp = source(_plus(node.source(0), 1.0), Exp)
    return build.SoftPlus(exp.source(0)) if exp is not None and exp.source(0).type.dtype.is_float else None


@rule(Multiply)
def mish(node: Node, op: Multiply, build: Builder) -> OutPort | None:
    """x tanh(SoftPlus(x)) -> Mish(x)"""
    pairs, number = _two_factors(node)
    for x, other in pairs:
        tanh = source(other, Tanh)
        inner = source(tanh.source(0), SoftPlus) if tanh is not None else None
        if inner is not None and inner.source(0) is x:
            return _scaled(build.Mish(x), number, build)
    return None


RULES = (
    gelu_with_erf,
    gelu_with_erfc,
    gelu_with_tanh,
    swish,
    swish_as_quotient,
    hard_swish,
    hard_sigmoid_written_out,
    hard_sigmoid,
    soft_plus,
    mish,
)
