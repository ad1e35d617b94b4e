"""Activations."""

from __future__ import annotations

from aot.frontends.pt2.registry import Call, aten
from aot.ir.graph import OutPort
from runtime.abi import DType


@aten("relu.default")
def relu(node: Call, x: OutPort) -> OutPort:
    return node.build.Relu(x)


@aten("softmax.int", "_softmax.default")
def softmax(node: Call, x: OutPort, dim: int, dtype: DType | None = None, half_to_float: bool = False) -> OutPort:
    x = node.cast(x, dtype or node.dtype())
    return node.build.Softmax(x, axis=node.axis(dim, x.type.rank)) if x.type.rank else node.like(1, x)
