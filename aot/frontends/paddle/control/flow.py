"""If and while: resolved while they are converted, as far as compile time knows."""

from __future__ import annotations

from aot.frontends.conversion.node_context import Outputs, Value
from aot.frontends.paddle.registry import PaddleNode, paddle
from aot.ir.graph import OutPort


@paddle("if")
def if_(node: PaddleNode, condition: OutPort) -> Outputs:
    return node.onnx("If", condition)


@paddle("builtin.scalar")
def scalar(node: PaddleNode, x: OutPort) -> OutPort:
    """Return the condition of a loop without axes."""
    return node.single(x)


@paddle("while")
def while_(node: PaddleNode, condition: OutPort, *states: Value) -> Outputs:
    """Repeat a block, which gives the condition and the states of the next step."""
    return node.onnx("Loop", None, condition, *states)
