"""Orders of dimensions: dimension i of Transpose(x, order) is dimension order[i] of x."""

from __future__ import annotations

from aot.ir.build import Builder
from aot.ir.conditions import axis_of
from aot.ir.graph import Node, OutPort
from aot.ir.types import Shape
from aot.opset.movement.movement import Transpose
from aot.runtime.abi import DType

Order = tuple[int, ...]


def order_of(node: Node) -> Order | None:
    """Return the order of a Transpose if it is known at compile time; None for every other node."""
    if not isinstance(node.op, Transpose):
        return None
    order = node.constant(1)
    if order is None:
        return None
    rank = node.source(0).type.rank
    return tuple(int(a) for a in order.reshape(-1)) if order.size else tuple(reversed(range(rank)))


def inverse(q: Order) -> Order:
    """Return the inverse of `q`: Transpose by `q`, then by its inverse, changes nothing."""
    return tuple(q.index(i) for i in range(len(q)))


def compose(first: Order, then: Order) -> Order:
    """Return the order that equals Transpose by `first` and then by `then`."""
    return tuple(first[i] for i in then)


def is_identity(q: Order) -> bool:
    return q == tuple(range(len(q)))


def only_moves_ones(q: Order, shape: Shape) -> bool:
    """True if elements stay in sequence: dimensions other than 1 keep their order."""
    order = [d for d in q if shape[d] != 1]
    return order == sorted(order)


def axis_after(axis: int, q: Order) -> int:
    """Return the position of dimension `axis` after Transpose by `q`."""
    return q.index(axis_of(axis, len(q), "Transpose"))


def transposed(port: OutPort, q: Order, build: Builder) -> OutPort:
    """Return `port` in order `q`; itself if that changes nothing."""
    return port if is_identity(q) else build.Transpose(port, build.const(q, DType.I64))
