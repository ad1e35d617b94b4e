"""Operations over data-dependent axes: the number of axes, hence each rank, is known; sizes are computed as tensors.

ReduceSum(x[a, b], axes)     x as [a or 1, 1 or a, b or 1, 1 or b], summed over axes 1 and 3
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from aot.frontends.conversion.node_context import NodeContext
from aot.ir.graph import OutPort
from aot.opset.reduction.sorting import Mode, Order
from aot.runtime.abi import DType

OPEN_END = 2**63 - 1  # end of a slice: above any size


def count_of(node: NodeContext, axes: OutPort) -> int:
    """Return the number of axes."""
    count = 1 if axes.type.rank == 0 else axes.shape[0]
    node.refuse(not isinstance(count, int), "the number of axes must be known at compile time")
    return count if isinstance(count, int) else 0


def _chosen(node: NodeContext, axes: OutPort, rank: int) -> OutPort:
    """Return a mask [rank] of booleans: true for each of the axes."""
    build = node.build
    axes = node.axes_within(axes, rank)
    axis_column = build.FloorMod(build.Reshape(node.cast(axes, DType.I64), node.list([-1, 1])), rank)
    return build.ReduceLogicalOr(build.Equal(axis_column, node.list(range(rank))), node.list([0]))


def spread(node: NodeContext, values: OutPort, axes: OutPort, rest: OutPort, rank: int) -> OutPort:
    """Return a number for each of `rank` axes: from `values` for the axes in `axes`, else from `rest`."""
    build = node.build
    if axes.value is not None:  # sizes stay symbolic expressions
        known = [node.axis(a, rank) for a in node.ints(axes, "axes")]
        order = [known.index(a) if a in known else len(known) + a for a in range(rank)]
        return build.Gather(build.Concat(node.cast(values, DType.I64), rest, axis=0), node.list(order), node.scalar(0))
    column, axes = node.list([-1, 1]), node.axes_within(axes, rank)
    axis_column = build.FloorMod(build.Reshape(node.cast(axes, DType.I64), column), rank)
    here = build.Equal(axis_column, node.list(range(rank)))
    numbers = build.Select(here, build.Reshape(node.cast(values, DType.I64), column), node.scalar(0))
    is_reduced = build.ReduceLogicalOr(here, node.list([0]))
    return build.Select(is_reduced, build.ReduceSum(numbers, node.list([0])), rest)


def _others(node: NodeContext, x: OutPort, is_reduced: OutPort, count: int) -> OutPort:
    """Return the sizes of the `count` axes that are not chosen."""
    build, rank = node.build, x.type.rank
    keys = build.Add(build.Multiply(node.cast(is_reduced, DType.I64), rank), node.list(range(rank)))
    first = build.TopK(
        keys, node.scalar(count), axis=0, mode=Mode.MIN, sort=Order.VALUE, index_element_type=DType.I64, outputs=2
    )
    return bounded(node, x, build.Gather(node.dims(x, range(rank)), first.node.out_port(1), node.scalar(0)))


def bounded(node: NodeContext, x: OutPort, sizes: OutPort) -> OutPort:
    """Clamp sizes to bound memory: at least 0, at most the number of elements of `x` or its largest dimension."""
    sizes = node.build.Maximum(sizes, 0)
    if not x.type.is_static:
        return sizes
    return node.build.Minimum(sizes, max((prod(x.type.static_shape), *x.type.static_shape)))


def reduced_at(
    node: NodeContext, x: OutPort, axes: OutPort, keep: bool, reduce: Callable[[OutPort, OutPort], OutPort]
) -> OutPort:
    """Reduce over data-dependent axes: `reduce(y, axes)` drops the axes that it is given, which are constants."""
    build, rank, one = node.build, x.type.rank, node.list([1])
    is_reduced, sizes = _chosen(node, axes, rank), node.dims(x, range(rank))
    outer, inner = build.Select(is_reduced, one, sizes), build.Select(is_reduced, sizes, one)
    pairs = build.Concat(build.Unsqueeze(outer, one), build.Unsqueeze(inner, one), axis=1)
    split = build.Reshape(x, bounded(node, x, build.Reshape(pairs, node.list([2 * rank]))))
    y = reduce(split, node.list(range(1, 2 * rank, 2)))
    return y if keep else build.Reshape(y, _others(node, x, is_reduced, rank - count_of(node, axes)))


def squeezed_at(node: NodeContext, x: OutPort, axes: OutPort) -> OutPort:
    rank, count = x.type.rank, count_of(node, axes)
    is_reduced, ones = _chosen(node, axes, rank), [i for i, n in enumerate(x.shape) if n == 1]
    if len(ones) == count and x.type.is_static:
        named = node.build.Gather(is_reduced, node.list(ones), node.scalar(0))
        return node.build.Squeeze(node.demand(named, "axes are dimensions of size 1", x), node.list(ones))
    return node.build.Reshape(x, _others(node, x, is_reduced, rank - count))


def unsqueezed_at(node: NodeContext, x: OutPort, axes: OutPort) -> OutPort:
    build, rank, count = node.build, x.type.rank, count_of(node, axes)
    is_reduced = _chosen(node, axes, rank + count)
    if rank == 0:
        return build.Reshape(x, build.Select(is_reduced, node.list([1]), node.list([0])))
    before = build.CumSum(build.Select(is_reduced, node.list([0]), node.list([1])), node.scalar(0))
    positions = build.Clamp(build.Subtract(before, 1), min=0, max=rank - 1)
    sizes = build.Gather(node.dims(x, range(rank)), positions, node.scalar(0))
    return build.Reshape(x, bounded(node, x, build.Select(is_reduced, node.list([1]), sizes)))
