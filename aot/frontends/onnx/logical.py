"""Comparisons and booleans."""

from __future__ import annotations

from aot.frontends.onnx.registry import Call, onnx
from aot.ir.graph import OutPort

SAME = {
    "Equal": "Equal", "Greater": "Greater", "Less": "Less", "GreaterOrEqual": "GreaterEqual",
    "LessOrEqual": "LessEqual",
    "And": "LogicalAnd", "Or": "LogicalOr", "Xor": "LogicalXor",
}  # fmt: skip


@onnx(*SAME)
def two(node: Call, a: OutPort, b: OutPort) -> OutPort:
    return getattr(node.build, SAME[node.kind])(a, node.aligned(b, a.type.rank))


@onnx("Not")
def logical_not(node: Call, x: OutPort) -> OutPort:
    return node.build.LogicalNot(x)
