"""Special functions, computed in f64."""

from __future__ import annotations

from aot.frontends.conversion.special_functions import digamma, incomplete_gamma, log_gamma, scaled_bessel_i
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.runtime.abi import DType


@tf("Lgamma")
def lgamma(node: TfNode, x: OutPort) -> OutPort:
    return node.cast(log_gamma(node, node.cast(x, DType.F64)), x.type.dtype)


@tf("Digamma")
def psi(node: TfNode, x: OutPort) -> OutPort:
    return node.cast(digamma(node, node.cast(x, DType.F64)), x.type.dtype)


@tf("Igamma", "Igammac")
def igamma(node: TfNode, a: OutPort, x: OutPort) -> OutPort:
    """The regularised incomplete gamma function, lower or upper."""
    port = incomplete_gamma(node, node.cast(a, DType.F64), node.cast(x, DType.F64))
    if node.kind == "Igammac":
        port = node.build.Subtract(node.like(1, port), port)
    return node.cast(port, x.type.dtype)


@tf("BesselI0", "BesselI1", "BesselI0e", "BesselI1e")
def bessel_i(node: TfNode, x: OutPort) -> OutPort:
    """Modified Bessel functions of order 0 and 1; those with e are multiplied by e^-|x|."""
    wide = node.cast(x, DType.F64)
    port = scaled_bessel_i(node, wide, int(node.kind[len("BesselI")]))
    if not node.kind.endswith("e"):
        port = node.build.Multiply(port, node.build.Exp(node.build.Abs(wide)))
    return node.cast(port, x.type.dtype)
