"""Sorting, and the largest elements."""

from __future__ import annotations

from aot.frontends.pt2.registry import Call, Size, aten
from aot.ir.graph import OutPort
from aot.opset.reduction.sorting import Mode, Order
from runtime.abi import DType


def ranked(node: Call, x: OutPort, count: OutPort, axis: int, above: bool) -> tuple[OutPort, OutPort]:
    """Return the best elements along an axis and their places; equal ones keep their order."""
    numbers = node.cast(x, DType.U8) if x.type.dtype is DType.BOOL else x
    made = node.build.TopK(
        numbers,
        count,
        axis=axis,
        mode=Mode.MAX if above else Mode.MIN,
        sort=Order.VALUE,
        index_element_type=DType.I64,
        stable=True,
        outputs=2,
    )
    return node.cast(made, x.type.dtype), made.node.out_port(1)


@aten("topk.default")
def topk(
    node: Call, x: OutPort, k: Size, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[OutPort, OutPort]:
    if not x.type.rank:
        return x, node.scalar(0)
    return ranked(node, x, node.port(k), node.axis(dim, x.type.rank), largest)


@aten("sort.default", "sort.stable")
def sort(
    node: Call, x: OutPort, dim: int = -1, descending: bool = False, stable: bool | None = None
) -> tuple[OutPort, OutPort]:
    if not x.type.rank:
        return x, node.scalar(0)
    axis = node.axis(dim, x.type.rank)
    return ranked(node, x, node.size(x, axis), axis, descending)


@aten("argsort.default", "argsort.stable")
def argsort(node: Call, x: OutPort, dim: int = -1, descending: bool = False, stable: bool | None = None) -> OutPort:
    return sort(node, x, dim, descending)[1]


@aten("kthvalue.default")
def kthvalue(node: Call, x: OutPort, k: int, dim: int = -1, keepdim: bool = False) -> tuple[OutPort, OutPort]:
    """The k-th smallest element, counted from 1."""
    if not x.type.rank:
        return x, node.scalar(0)
    axis = node.axis(dim, x.type.rank)
    at = node.list([k - 1]) if keepdim else node.scalar(k - 1)
    values, places = ranked(node, x, node.scalar(k), axis, False)
    return node.build.Gather(values, at, node.scalar(axis)), node.build.Gather(places, at, node.scalar(axis))


@aten("median.dim", "median.default")
def median(node: Call, x: OutPort, dim: int | None = None, keepdim: bool = False) -> tuple[OutPort, ...]:
    """The lower one of the two in the middle."""
    if dim is None:
        x, dim = node.build.Reshape(x, node.list([-1])), 0
    if not x.type.rank:
        return (x, node.scalar(0))[: len(node.outputs)]
    size = node.extent(x, node.axis(dim, x.type.rank), "the number of elements")
    return kthvalue(node, x, (size + 1) // 2, dim, keepdim)[: len(node.outputs)]
