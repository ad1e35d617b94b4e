"""Shapes: views with the same elements in the same order."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.pt2.registry import Call, Size, aten
from aot.ir.graph import OutPort


@aten("view.default", "_unsafe_view.default", "reshape.default")
def view(node: Call, x: OutPort, size: Sequence[Size] = (), shape: Sequence[Size] = ()) -> OutPort:
    return node.build.Reshape(x, node.vector(size or shape))


@aten("view_as.default", "reshape_as.default")
def view_as(node: Call, x: OutPort, other: OutPort) -> OutPort:
    return node.build.Reshape(x, node.dims(other, range(other.type.rank)))


@aten("flatten.using_ints")
def flatten(node: Call, x: OutPort, start_dim: int = 0, end_dim: int = -1) -> OutPort:
    rank = x.type.rank
    if not rank:
        return node.build.Reshape(x, node.list([1]))
    start, end = node.axis(start_dim, rank), node.axis(end_dim, rank)
    parts = [node.dims(x, range(start)), node.list([-1]), node.dims(x, range(end + 1, rank))]
    return node.build.Reshape(x, node.build.Concat(*parts, axis=0))


@aten("unflatten.int")
def unflatten(node: Call, x: OutPort, dim: int, sizes: Sequence[Size]) -> OutPort:
    rank = x.type.rank
    axis = node.axis(dim, rank)
    parts = [node.dims(x, range(axis)), node.vector(sizes), node.dims(x, range(axis + 1, rank))]
    return node.build.Reshape(x, node.build.Concat(*parts, axis=0))


@aten("unsqueeze.default")
def unsqueeze(node: Call, x: OutPort, dim: int) -> OutPort:
    return node.build.Unsqueeze(x, node.list([node.axis(dim, x.type.rank + 1)]))


@aten("alias.default", "clone.default", "contiguous.default", "detach.default", "lift_fresh_copy.default")
def alias(node: Call, x: OutPort, memory_format: str | None = None) -> OutPort:
    return x


@aten("squeeze.default", "squeeze.dim", "squeeze.dims")
def squeeze(node: Call, x: OutPort, dim: int | Sequence[int] | None = None) -> OutPort:
    """Axes of size 1 are dropped; a size that varies counts as another one."""
    axes = [a for a in node.axes(dim, x.type.rank) if x.shape[a] == 1]
    return node.build.Squeeze(x, node.list(axes)) if axes else x
