"""Movement of elements: transposition, parts, concatenation."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.pt2.registry import Call, Size, aten
from aot.ir.graph import OutPort
from aot.ir.types import simplify
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
    """Parts of equal size, but the last one; the export has fixed how many there are."""
    axis, count = node.axis(dim, x.type.rank), len(node.outputs)
    step = simplify((x.shape[axis] + chunks - 1) // chunks)
    if isinstance(step, int):
        lengths = node.list([*[step] * (count - 1), -1])
    else:
        size = node.dims(x, [axis])
        whole = node.build.Divide(node.build.Add(size, node.list([chunks - 1])), node.list([chunks]))
        lengths = node.build.Concat(*[whole] * (count - 1), node.list([-1]), axis=0)
    made = node.build.node(VariadicSplit(), x, node.scalar(axis), lengths, outputs=count)
    return tuple(made.out_ports().values())
