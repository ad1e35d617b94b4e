"""Sizes of tensors, and arithmetic of them."""

from __future__ import annotations

from aot.frontends.pt2.registry import Call, Number, aten
from aot.ir.graph import OutPort


@aten("sym_size.int")
def sym_size(node: Call, x: OutPort, dim: int) -> OutPort:
    return node.size(x, node.axis(dim, x.type.rank))


@aten("_operator.mul")
def mul(node: Call, a: Number, b: Number) -> OutPort:
    return node.build.Multiply(node.port(a, node.dtype()), node.port(b, node.dtype()))
