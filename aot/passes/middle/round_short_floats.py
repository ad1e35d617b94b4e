"""Rounding of f16 and bf16 values before discontinuous operations, as if the values had been in memory.

    Greater(Multiply(a, b), c)  ->  Greater(Rounded(Multiply(a, b)), c)

Lowering keeps f32 between fused operations on short floats. That makes arithmetic more exact, but 65504 * 2 must be
infinite for IsInf, and Equal must compare numbers of f16. This pass rounds the inputs of comparisons, casts to
integers, Floor and the like, and of the elementwise operations between stored values and these.
"""

from __future__ import annotations

from collections.abc import Sequence

from aot.ir.build import Builder
from aot.ir.graph import Graph, InPort, Node, OutPort
from aot.ir.op import RegionOp, Stateful, ViewOp
from aot.opset.base.families import Elementwise
from aot.opset.control.infrastructure import Constant, Parameter
from aot.opset.elementwise.conversion import Rounded
from aot.runtime.abi import DType

SHORT_FLOATS = (DType.F16, DType.BF16)
STORED = (Parameter, Constant, Rounded, RegionOp, Stateful)


def round_short_floats(graph: Graph) -> bool:
    """Insert `Rounded` before discontinuous operations, and between the elementwise operations that lead to them."""
    order = graph.order()
    if not any(p.type.dtype in SHORT_FLOATS for n in order for p in n.out_ports().values()):
        return False
    stored = _stored(order)
    open_ = [n for n in order if _jumps(n)]
    seen = {n.id for n in open_}
    ports: dict[InPort, None] = {}
    while open_:
        node = open_.pop()
        for port in node.in_ports().values():
            source = port.get_source()
            if source is None or source.node.id in stored:
                continue
            if source.type.dtype in SHORT_FLOATS and not _is_inside(source.node, node):
                ports[port] = None
            leads = isinstance(source.node.op, Elementwise | ViewOp)
            if leads and source.node.id not in seen and source.type.dtype.is_float:
                seen.add(source.node.id)
                open_.append(source.node)
    rounded: dict[OutPort, OutPort] = {}
    for port in ports:
        source = port.get_source()
        assert source is not None, "ports that are found have sources"
        if source not in rounded:
            rounded[source] = Builder(graph, source.node.origin).Rounded(source)
        port.connect(rounded[source])
    return bool(ports)


def _jumps(node: Node) -> bool:
    return any(node.op.has_jumps(p.type.dtype) for p in node.out_ports().values())


def _is_inside(producer: Node, consumer: Node) -> bool:
    """True if both belong to one operation of the file, which computes in f32 and rounds once."""
    return bool(producer.origin.layers) and producer.origin == consumer.origin and not _jumps(consumer)


def _stored(order: Sequence[Node]) -> set[int]:
    """Return the nodes with values that are read from memory, or only moved from there."""
    stored: set[int] = set()
    for node in order:
        sources = [s.node.id for s in node.sources() if s is not None and s.type.dtype.is_float]
        if isinstance(node.op, STORED) or (isinstance(node.op, ViewOp) and stored.issuperset(sources)):
            stored.add(node.id)
    return stored


__all__ = ["round_short_floats"]
