"""An operation of one's own, the conversion of files' nodes to it, and a rewrite; the rest of aot does as usual."""

from __future__ import annotations

from typing import Any

import aot


@aot.operation
def scaled_tanh(build: Any, x: Any, *, scale: float = 1.0) -> Any:
    """scale * tanh(x)"""
    return build.Multiply(build.Tanh(x), scale)


@aot.conversion("onnx", "me.ScaledTanh")
@aot.conversion("tf", "ScaledTanh")
def converted(node: Any, x: Any) -> Any:
    return node.build.ScaledTanh(x, scale=node.number("scale", 1.0))


@aot.rewrite(lambda p, x: p.Add(p.Relu(x), p.Relu(x)))
def doubled_relu(build: Any, x: Any) -> Any:
    """Relu(x) + Relu(x) -> 2 * Relu(x)"""
    return build.Multiply(build.Relu(x), 2.0)
