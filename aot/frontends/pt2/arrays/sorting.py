"""Sorting, and the largest elements."""

from __future__ import annotations

from aot.frontends.pt2.math.reduction import best
from aot.frontends.pt2.registry import AtenNode, Size, aten
from aot.ir.graph import OutPort
from aot.opset.reduction.sorting import Mode, Order
from aot.runtime.abi import DType


def ranked(node: AtenNode, x: OutPort, count: OutPort, axis: int, above: bool) -> tuple[OutPort, OutPort]:
    """Return the best elements along an axis and their places; equal ones keep their order."""
    numbers = node.cast(x, DType.U8) if x.type.dtype is DType.BOOL else x
    port = node.build.TopK(
        numbers,
        count,
        axis=axis,
        mode=Mode.MAX if above else Mode.MIN,
        sort=Order.VALUE,
        index_element_type=DType.I64,
        stable=True,
        outputs=2,
    )
    return node.cast(port, x.type.dtype), port.node.out_port(1)


@aten("topk.default")
def topk(
    node: AtenNode, x: OutPort, k: Size, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[OutPort, OutPort]:
    if not x.type.rank:
        return x, node.scalar(0)
    return ranked(node, x, node.port(k), node.axis(dim, x.type.rank), largest)


@aten("sort.default", "sort.stable")
def sort(
    node: AtenNode, x: OutPort, dim: int = -1, descending: bool = False, stable: bool | None = None
) -> tuple[OutPort, OutPort]:
    if not x.type.rank:
        return x, node.scalar(0)
    axis = node.axis(dim, x.type.rank)
    return ranked(node, x, node.size(x, axis), axis, descending)


@aten("argsort.default", "argsort.stable")
def argsort(node: AtenNode, x: OutPort, dim: int = -1, descending: bool = False, stable: bool | None = None) -> OutPort:
    return sort(node, x, dim, descending)[1]


@aten("kthvalue.default")
def kthvalue(node: AtenNode, x: OutPort, k: int, dim: int = -1, keepdim: bool = False) -> tuple[OutPort, OutPort]:
    """The k-th smallest element, counted from 1."""
    if not x.type.rank:
        return x, node.scalar(0)
    axis = node.axis(dim, x.type.rank)
    at = node.list([k - 1]) if keepdim else node.scalar(k - 1)
    values, positions = ranked(node, x, node.scalar(k), axis, False)
    return node.build.Gather(values, at, node.scalar(axis)), node.build.Gather(positions, at, node.scalar(axis))


@aten("median.dim", "median.default")
def median(node: AtenNode, x: OutPort, dim: int | None = None, keepdim: bool = False) -> tuple[OutPort, ...]:
    """The lower one of the two in the middle; the first NaN if there is one."""
    build = node.build
    if dim is None:
        x, dim = build.Reshape(x, node.list([-1])), 0
    if not x.type.rank:
        return (x, node.scalar(0))[: len(node.outputs)]
    axis = node.axis(dim, x.type.rank)
    count = build.Divide(build.Add(node.size(x, axis), node.scalar(1)), node.scalar(2))
    at = build.Subtract(count, node.scalar(1))
    medians = [
        build.Gather(p, build.Reshape(at, node.list([1])), node.scalar(axis))
        for p in ranked(node, x, count, axis, False)
    ]
    if x.type.dtype.is_float:
        top = best(node, x, axis, True)
        medians = [build.Select(build.IsNaN(top[0]), p, q) for p, q in zip(top, medians, strict=True)]
    if not keepdim:
        medians = [build.Squeeze(p, node.list([axis])) for p in medians]
    return tuple(medians[: len(node.outputs)])
