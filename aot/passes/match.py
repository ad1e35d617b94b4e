"""Predicates and matchers that rules share."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from aot.ir.graph import Node, OutPort
from aot.ir.op import Op
from aot.ir.operand import Operand
from aot.ir.types import Array, Shape
from aot.opset.elementwise.binary import AutoBroadcast, Binary, Multiply

T = TypeVar("T", bound=Op)


def constant(port: OutPort | None) -> Array | None:
    """Return the value of a port if it is known at compile time and has no symbolic dimensions."""
    value = None if port is None else port.value
    return None if value is None or value.dtype == object else value


def is_constant(port: OutPort | None) -> bool:
    """True if `constant` has a value; compressed weights are not decompressed for it."""
    return port is not None and (port.node.constant_data is not None or constant(port) is not None)


def uniform(port: OutPort | None) -> float | None:
    """Return the number that all elements of a known value are equal to, or None."""
    value = constant(port)
    if value is None or value.size == 0:
        return None
    flat = value.reshape(-1)
    if flat[0] != flat[-1] or not (flat == flat[0]).all():
        return None
    return float(flat[0])


def is_close(a: float | None, b: float) -> bool:
    """True if two numbers are equal up to the rounding of f32."""
    return a is not None and abs(a - b) <= 1e-6 * abs(b)


def source(port: OutPort | None, *classes: type[Op]) -> Node | None:
    """Return the producer of `port`, if it is of one of these classes."""
    return port.node if port is not None and isinstance(port.node.op, classes) else None


def has_one_consumer(port: OutPort) -> bool:
    return len(port.destinations) == 1


def is_decided(node: Node) -> bool:
    """True if all conditions of the node are decided at compile time, so that its removal drops no run-time check."""
    operands = [None if p is None else Operand(p.type, p.symbolic_value, p) for p in node.sources()]
    conditions = node.op.conditions(*operands)
    return all(a == b or (isinstance(a, int) and isinstance(b, int)) for a, b, _ in conditions)


def broadcasts(op: Op) -> bool:
    """True for a binary operation with operands that are aligned at the end, or have one shape."""
    return isinstance(op, Binary) and op.auto_broadcast is not AutoBroadcast.PDPD


def with_constant(node: Node) -> tuple[OutPort, OutPort] | None:
    """Return the other operand and the constant of a commutative binary node with exactly one constant operand."""
    if not broadcasts(node.op):
        return None
    a, b = node.source(0), node.source(1)
    known = is_constant(a), is_constant(b)
    if known == (False, True):
        return a, b
    return (b, a) if known == (True, False) else None


def can_broadcast_to(shape: Shape, other: Shape) -> bool:
    """True if broadcasting `shape` with `other` gives `other`."""
    if len(shape) > len(other):
        return False
    return all(m in (1, n) for m, n in zip(reversed(shape), reversed(other), strict=False))


def factors(port: OutPort, inner: bool = False) -> tuple[list[OutPort], float]:
    """Return the factors of a product that are not uniform, and the product of those that are.

    Nested products are included if they have no other consumers.
    """
    node = source(port, Multiply)
    if node is None or not broadcasts(node.op) or (inner and not has_one_consumer(port)):
        return [port], 1.0
    ports: list[OutPort] = []
    number = 1.0
    for factor in (node.source(0), node.source(1)):
        value = uniform(factor)
        if value is not None:
            number *= value
            continue
        inside, scale = factors(factor, inner=True)
        ports += inside
        number *= scale
    return ports, number


def has_same_dims(a: Shape, b: Shape) -> bool:
    return len(a) == len(b) and all(m == n for m, n in zip(a, b, strict=True))


def channel_vector(value: Array, rank: int, axis: int, channels: object) -> Array | None:
    """Return a constant that varies along at most one dimension, `axis` of `rank`, as a vector of `channels`."""
    if not isinstance(channels, int) or value.ndim > rank:
        return None
    full = value.reshape((1,) * (rank - value.ndim) + value.shape)
    if any(n != 1 for i, n in enumerate(full.shape) if i != axis) or full.shape[axis] not in (1, channels):
        return None
    return np.broadcast_to(full.reshape(-1), (channels,))
