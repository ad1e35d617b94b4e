"""Reductions over axes, running sums, and positions of extremes."""

from __future__ import annotations

import math

from aot.frontends.conversion.table import renames
from aot.frontends.onnx.arrays.axes import count_of, reduced_at
from aot.frontends.tf.math.complex_numbers import by_parts
from aot.frontends.tf.registry import TfNode, tf
from aot.ir.graph import OutPort
from aot.opset.reduction.sorting import Mode
from aot.runtime.abi import DType

SAME = renames(
    """
    All=ReduceLogicalAnd Any=ReduceLogicalOr EuclideanNorm=ReduceL2 Max=ReduceMax Mean=ReduceMean Min=ReduceMin
    Prod=ReduceProd Sum=ReduceSum
    """
)


@tf("Mean", "Sum")
@by_parts
def linear(node: TfNode, x: OutPort, axes: OutPort) -> OutPort:
    return reduced(node, x, axes)


@tf(*(kind for kind in SAME if kind not in ("Mean", "Sum")))
def reduced(node: TfNode, x: OutPort, axes: OutPort) -> OutPort:
    """The axes are an input, a vector or one axis; they may be known at run time only."""
    reduce, keep, rank = getattr(node.build, SAME[node.kind]), node.flag("keep_dims"), x.type.rank
    if axes.value is not None:
        dims = sorted({node.axis(a, rank) for a in node.ints(axes, "axis")})
        return reduce(x, node.list(dims), keep_dims=keep) if dims else x
    if count_of(node, axes) == rank:
        return reduce(x, node.list(range(rank)), keep_dims=keep)
    return reduced_at(node, x, axes, keep, lambda y, inner: reduce(y, inner, keep_dims=False))


@tf("L2Loss")
def l2_loss(node: TfNode, x: OutPort) -> OutPort:
    build = node.build
    return build.Multiply(build.ReduceSum(build.Multiply(x, x), node.list(range(x.type.rank))), 0.5)


@tf("ArgMax", "ArgMin")
def arg_extreme(node: TfNode, x: OutPort, axis: OutPort) -> OutPort:
    """The first position of the extreme, NaN left out."""
    along = node.axis(node.ints(axis, "dimension")[0], x.type.rank)
    x = node.without_nan(x, -math.inf if node.kind == "ArgMax" else math.inf)
    mode, dtype = Mode.MAX if node.kind == "ArgMax" else Mode.MIN, node.dtype("output_type")
    x = node.cast(x, DType.U8) if x.type.dtype is DType.BOOL else x
    wide = dtype if dtype in (DType.I32, DType.I64) else DType.I64
    top = node.build.TopK(x, node.scalar(1), axis=along, mode=mode, stable=True, index_element_type=wide, outputs=2)
    return node.cast(node.build.Squeeze(top.node.out_port(1), node.list([along])), dtype)


@tf("Cumsum", "Cumprod")
def cumulate(node: TfNode, x: OutPort, axis: OutPort) -> OutPort:
    along = node.axis(node.ints(axis, "axis")[0], x.type.rank)
    run = node.build.CumSum if node.kind == "Cumsum" else node.build.CumProd
    return run(x, node.scalar(along), exclusive=node.flag("exclusive"), reverse=node.flag("reverse"))


@tf("CumulativeLogsumexp")
def cumulative_logsumexp(node: TfNode, x: OutPort, axis: OutPort) -> OutPort:
    """top + log(running sum of exp(x - top)) for the greatest element along the axis."""
    build, along = node.build, node.axis(node.ints(axis, "axis")[0], x.type.rank)
    top = build.ReduceMax(x, node.list([along]), keep_dims=True)
    flags = {"exclusive": node.flag("exclusive"), "reverse": node.flag("reverse")}
    total = build.CumSum(build.Exp(build.Subtract(x, top)), node.scalar(along), **flags)
    return build.Add(build.Log(total), top)
