"""Reductions over axes, and places of extremes."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.conversion.node_context import Value
from aot.frontends.conversion.table import renames
from aot.frontends.paddle.registry import PaddleNode, paddle
from aot.ir.graph import OutPort
from aot.runtime.abi import DType

REDUCED = renames(
    """
    sum=ReduceSum mean=ReduceMean max=ReduceMax min=ReduceMin amax=ReduceMax amin=ReduceMin prod=ReduceProd
    all=ReduceLogicalAnd any=ReduceLogicalOr
    """
)


@paddle(*REDUCED)
def reduced(
    node: PaddleNode,
    x: OutPort,
    axes: Value = None,
    *,
    axis: Sequence[int] = (),
    keepdim: bool = False,
    reduce_all: bool = False,
) -> OutPort:
    """Reduce over axes, which are an input or an attribute; over all of them if there are none."""
    rank = x.type.rank
    axis_numbers = node.axes(axes, rank) if axes is not None else tuple(node.axis(a, rank) for a in axis)
    over = range(rank) if reduce_all or not axis_numbers else axis_numbers
    kind = node.kind.rstrip("_")
    if kind == "sum":
        narrow = x.type.dtype in (DType.BOOL, DType.I32, DType.U8, DType.I8, DType.I16)
        x = node.cast(x, node.dtype(default=DType.I64 if narrow else x.type.dtype))
    return getattr(node.build, REDUCED[kind])(x, node.list(over), keep_dims=keepdim) if rank else x


@paddle("mean_all")
def mean_all(node: PaddleNode, x: OutPort) -> OutPort:
    return node.build.ReduceMean(x, node.list(range(x.type.rank)))


@paddle("logsumexp")
def logsumexp(
    node: PaddleNode, x: OutPort, *, axis: Sequence[int] = (), keepdim: bool = False, reduce_all: bool = False
) -> OutPort:
    axis_numbers = tuple(node.axis(a, x.type.rank) for a in axis)
    over = list(range(x.type.rank) if reduce_all or not axis_numbers else axis_numbers)
    return node.onnx("ReduceLogSumExp", x, node.list(over), keepdims=int(keepdim))


@paddle("squared_l2_norm")
def squared_l2_norm(node: PaddleNode, x: OutPort) -> OutPort:
    flat = node.reshape(x, (-1,))
    return node.build.ReduceSum(node.build.Multiply(flat, flat), node.list([0]), keep_dims=True)


@paddle("p_norm")
def p_norm(
    node: PaddleNode, x: OutPort, *, porder: float = 2.0, axis: int = -1, keepdim: bool = False, asvector: bool = False
) -> OutPort:
    """Take the norm (sum |x|^p)^(1/p) along an axis, or of all elements."""
    build = node.build
    x = node.reshape(x, (-1,)) if asvector else x
    axes = node.list([0 if asvector else node.axis(axis, x.type.rank)])
    if porder in (1, 2):
        return (build.ReduceL1 if porder == 1 else build.ReduceL2)(x, axes, keep_dims=keepdim)
    size = build.Abs(x)
    if porder in (float("inf"), float("-inf")):
        return (build.ReduceMax if porder > 0 else build.ReduceMin)(size, axes, keep_dims=keepdim)
    if porder == 0:
        return build.ReduceSum(node.cast(build.NotEqual(x, node.like(0, x)), x.type.dtype), axes, keep_dims=keepdim)
    total = build.ReduceSum(build.Power(size, node.like(porder, x)), axes, keep_dims=keepdim)
    return build.Power(total, node.like(1 / porder, x))


@paddle("norm")
def norm(node: PaddleNode, x: OutPort, *, axis: int = -1, epsilon: float = 1e-10) -> tuple[OutPort, OutPort]:
    """Return x / sqrt(sum of squares + eps), and this square root."""
    build, axes = node.build, node.list([node.axis(axis, x.type.rank)])
    total = build.ReduceSum(build.Multiply(x, x), axes, keep_dims=True)
    size = build.Sqrt(build.Add(total, node.like(epsilon, x)))
    return build.Divide(x, size), size


@paddle("argmax", "argmin")
def arg_extreme(
    node: PaddleNode, x: OutPort, axis: OutPort | None = None, *, keepdims: bool = False, flatten: bool = False
) -> OutPort:
    """Find the place of the first of the largest or smallest elements."""
    dtype = node.dtype(default=DType.I64)
    kind = "ArgMax" if node.kind.startswith("argmax") else "ArgMin"
    whole = flatten or axis is None
    data = node.reshape(x, (-1,)) if whole else x
    along = 0 if whole or axis is None else node.axis(int(node.one(axis, "axis")), x.type.rank)
    y = node.onnx(kind, data, axis=along, keepdims=int(keepdims and not whole))
    if whole and keepdims:
        y = node.build.Reshape(y, node.list([1] * x.type.rank))
    return node.cast(y, dtype)


@paddle("cumsum")
def cumsum(
    node: PaddleNode,
    x: OutPort,
    axis: OutPort | None = None,
    *,
    flatten: bool = False,
    exclusive: bool = False,
    reverse: bool = False,
) -> OutPort:
    data = node.reshape(x, (-1,)) if flatten or axis is None else x
    along = 0 if flatten or axis is None else node.axis(int(node.one(axis, "axis")), x.type.rank)
    return node.build.CumSum(data, node.scalar(along), exclusive=exclusive, reverse=reverse)


@paddle("cumprod")
def cumprod(node: PaddleNode, x: OutPort, *, dim: int, exclusive: bool = False, reverse: bool = False) -> OutPort:
    axis = node.scalar(node.axis(dim, x.type.rank))
    return node.build.CumProd(x, axis, exclusive=exclusive, reverse=reverse)
