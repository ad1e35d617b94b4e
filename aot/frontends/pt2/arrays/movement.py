"""Movement of elements: transposition, parts, concatenation."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.pt2.registry import Call, Size, aten
from aot.ir.graph import OutPort
from aot.opset.movement.movement import VariadicSplit


@aten("permute.default")
def permute(node: Call, x: OutPort, dims: Sequence[int]) -> OutPort:
    return node.build.Transpose(x, node.list(node.axes(dims, x.type.rank)))


@aten("transpose.int")
def transpose(node: Call, x: OutPort, dim0: int, dim1: int) -> OutPort:
    rank = x.type.rank
    order = list(range(rank))
    if rank:
        a, b = node.axis(dim0, rank), node.axis(dim1, rank)
        order[a], order[b] = order[b], order[a]
    return node.build.Transpose(x, node.list(order))


@aten("select.int")
def select(node: Call, x: OutPort, dim: int, index: Size) -> OutPort:
    axis = node.axis(dim, x.type.rank)
    return node.build.Gather(x, node.port(index), node.scalar(axis))


@aten("chunk.default")
def chunk(node: Call, x: OutPort, chunks: int, dim: int = 0) -> tuple[OutPort, ...]:
    """Parts of equal size, but the last one."""
    axis = node.axis(dim, x.type.rank)
    size = node.extent(x, axis, "the size that is cut")
    step = -(-size // chunks)
    sizes = [min(step, size - i) for i in range(0, size, step)] if size else [0] * chunks
    made = node.build.node(VariadicSplit(), x, node.scalar(axis), node.list(sizes), outputs=len(sizes))
    return tuple(made.out_ports().values())
