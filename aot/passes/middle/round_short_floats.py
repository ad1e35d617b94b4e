"""Operations that jump see f16 and bf16 values as memory would hold them.

    Greater(Multiply(a, b), c)  ->  Greater(Rounded(Multiply(a, b)), c)

Lowering keeps f32 between fused operations on short floats. That makes arithmetic more exact, but 65504 * 2 must be
infinite for IsInf, and Equal must compare what f16 holds. This pass rounds what a comparison, a cast to integers, Floor
and the like read, and each elementwise operation on the way to it, back to a value that lies in memory.
"""

from __future__ import annotations

from aot.ir.build import Builder
from aot.ir.graph import Graph, InPort, Node, OutPort
from aot.ir.op import RegionOp, Stateful, ViewOp
from aot.opset.conversion import Rounded
from aot.opset.families import Elementwise
from aot.opset.infrastructure import Constant, Parameter
from runtime.abi import DType

SHORT = (DType.F16, DType.BF16)
STORED = (Parameter, Constant, Rounded, RegionOp, Stateful)


def round_short_floats(graph: Graph) -> bool:
    """Insert `Rounded` before operations that jump, and between the elementwise operations that lead to them."""
    open_ = [n for n in graph.order() if _jumps(n)]
    seen = {n.id for n in open_}
    found: dict[InPort, None] = {}
    while open_:
        node = open_.pop()
        for port in node.in_ports().values():
            source = port.get_source()
            if source is None or isinstance(source.node.op, STORED):
                continue
            if _is_short(source) and not _is_inside(source.node, node) and not _is_stored(source):
                found[port] = None
            leads = isinstance(source.node.op, Elementwise | ViewOp)
            if leads and source.node.id not in seen and source.type.dtype.is_float:
                seen.add(source.node.id)
                open_.append(source.node)
    rounded: dict[OutPort, OutPort] = {}
    for port in found:
        source = port.get_source()
        assert source is not None, "ports that are found have sources"
        if source not in rounded:
            rounded[source] = Builder(graph, source.node.origin).Rounded(source)
        port.connect(rounded[source])
    return bool(found)


def _jumps(node: Node) -> bool:
    return any(node.op.has_jumps(p.type.dtype) for p in node.out_ports().values())


def _is_short(port: OutPort) -> bool:
    return port.type.dtype in SHORT


def _is_inside(maker: Node, reader: Node) -> bool:
    """True if both are parts of one operation of the file, which computes in f32 and rounds once."""
    return bool(maker.origin.layers) and maker.origin == reader.origin and not _jumps(reader)


def _is_stored(port: OutPort) -> bool:
    """True if a value is only moved out of memory."""
    if isinstance(port.node.op, STORED):
        return True
    sources = [s for s in port.node.sources() if s is not None and s.type.dtype is port.type.dtype]
    return isinstance(port.node.op, ViewOp) and all(map(_is_stored, sources))


__all__ = ["round_short_floats"]
