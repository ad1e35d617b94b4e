"""Quotients, remainders, and products where 0 wins."""

from __future__ import annotations

from aot.frontends.tf.math.elementwise import log1p
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort


@tf("FloorDiv")
def floor_div(node: TfNode, a: OutPort, b: OutPort) -> OutPort:
    quotient = node.build.Divide(a, b)
    return node.build.Floor(quotient) if a.type.dtype.is_float else quotient


@tf("FloorMod")
def floor_mod(node: TfNode, a: OutPort, b: OutPort) -> OutPort:
    return node.build.FloorMod(a, b)


@tf("TruncateDiv")
def truncate_div(node: TfNode, a: OutPort, b: OutPort) -> OutPort:
    return node.build.Divide(a, b, m_pythondiv=False)


@tf("Mod", "TruncateMod")
def truncate_mod(node: TfNode, a: OutPort, b: OutPort) -> OutPort:
    return node.build.Mod(a, b)


@tf("DivNoNan")
def div_no_nan(node: TfNode, a: OutPort, b: OutPort) -> OutPort:
    """a / b; 0 where b is 0."""
    build, zero = node.build, node.like(0, b)
    return build.Select(build.Equal(b, zero), zero, build.Divide(a, b))


@tf("MulNoNan")
def mul_no_nan(node: TfNode, a: OutPort, b: OutPort) -> OutPort:
    """a b; 0 where b is 0, whatever a is."""
    build, zero = node.build, node.like(0, b)
    return build.Select(build.Equal(b, zero), zero, build.Multiply(a, b))


@tf("Xdivy", "Xlogy", "Xlog1py")
def zero_wins(node: TfNode, x: OutPort, y: OutPort) -> OutPort:
    """x / y, x log(y), x log(1 + y); 0 where x is 0."""
    build, zero = node.build, node.like(0, x)
    if node.kind == "Xdivy":
        port = build.Divide(x, y)
    else:
        port = build.Multiply(x, build.Log(y) if node.kind == "Xlogy" else log1p(node, y))
    return build.Select(build.Equal(x, zero), zero, port)
