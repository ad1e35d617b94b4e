"""Compressed weights of f16 models are decompressed in f32, as in OpenVINO: no factor is rounded again."""

from __future__ import annotations

from aot.ir.build import Builder
from aot.ir.graph import Node, OutPort
from aot.ir.values.deferred import WIDEST
from aot.opset.elementwise.binary import Multiply, Subtract
from aot.opset.elementwise.conversion import Convert
from aot.opset.movement.shape import Reshape
from aot.passes.rewrite import Replacement, RuleSet, rule
from aot.runtime.abi import DType

SHORT_FLOATS = (DType.F16, DType.BF16)


@rule(Convert)
def decompress_in_single(node: Node, op: Convert, build: Builder) -> Replacement:
    """f32((f16(n) - f16(z)) s) -> (f32(n) - f32(z)) f32(s), where n, z and s are constants and n has 8 bits or less"""
    weights = node.source(0)
    if op.destination_type is not DType.F32 or weights.type.dtype not in SHORT_FLOATS or not _is_compressed(weights):
        return None
    return _widened(weights, build)


def _is_compressed(port: OutPort) -> bool:
    """True if the port is computed from numbers of few bits and constants alone."""
    node = port.node
    match node.op:
        case Convert():
            small = node.source(0)
            return small.node.constant_data is not None and small.type.dtype.bits <= WIDEST
        case Multiply() | Subtract():
            return _is_compressed(node.source(0)) and (_is_compressed(node.source(1)) or _is_constant(node.source(1)))
        case Reshape():
            return _is_compressed(node.source(0)) and _is_constant(node.source(1))
        case _:
            return False


def _is_constant(port: OutPort) -> bool:
    return port.node.constant_data is not None


def _widened(port: OutPort, build: Builder) -> OutPort:
    node = port.node
    match node.op:
        case Convert():
            return build.Convert(node.source(0), destination_type=DType.F32)
        case Multiply() | Subtract() as op:
            return build(op, _widened(node.source(0), build), _widened(node.source(1), build))
        case Reshape() as op:
            return build(op, _widened(node.source(0), build), node.source(1))
        case _:
            return build.Convert(port, destination_type=DType.F32)


decompress_weights = RuleSet("decompress_weights", (decompress_in_single,))
