"""Reductions over axes."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.pt2.registry import AtenNode, Number, aten
from aot.ir.graph import OutPort
from aot.opset.reduction.sorting import Mode, Order
from aot.runtime.abi import DType

INFINITY = float("inf")


def axes_of(node: AtenNode, x: OutPort, dim: int | Sequence[int] | None) -> OutPort:
    """Return the axes of a reduction; no axes, `[]`, are all of them."""
    return node.list(node.axes(None if dim == () else dim, x.type.rank))


@aten("sum.default", "sum.dim_IntList", "mean.default", "mean.dim", "prod.default", "prod.dim_int")
def reduced(
    node: AtenNode,
    x: OutPort,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> OutPort:
    """Elements are converted first; integers are summed in i64."""
    kind = {"sum": "ReduceSum", "mean": "ReduceMean", "prod": "ReduceProd"}[node.kind.partition(".")[0]]
    x = node.cast(x, dtype or node.dtype())
    return getattr(node.build, kind)(x, axes_of(node, x, dim), keep_dims=keepdim)


@aten("nansum.default")
def nansum(
    node: AtenNode,
    x: OutPort,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> OutPort:
    if x.type.dtype.is_float:
        x = node.build.Select(node.build.IsNaN(x), node.like(0, x), x)
    x = node.cast(x, dtype or node.dtype())
    return node.build.ReduceSum(x, axes_of(node, x, dim), keep_dims=keepdim)


@aten("amax.default", "max.default", "amin.default", "min.default")
def extreme(node: AtenNode, x: OutPort, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> OutPort:
    above, axes = "max" in node.kind, axes_of(node, x, dim)
    if x.type.dtype is DType.BOOL:
        name = "ReduceLogicalOr" if above else "ReduceLogicalAnd"
        return getattr(node.build, name)(x, axes, keep_dims=keepdim)
    return getattr(node.build, "ReduceMax" if above else "ReduceMin")(x, axes, keep_dims=keepdim)


@aten("aminmax.default")
def aminmax(node: AtenNode, x: OutPort, dim: int | None = None, keepdim: bool = False) -> tuple[OutPort, OutPort]:
    axes, x = axes_of(node, x, dim), node.cast(x, DType.U8) if x.type.dtype is DType.BOOL else x
    return node.build.ReduceMin(x, axes, keep_dims=keepdim), node.build.ReduceMax(x, axes, keep_dims=keepdim)


def best(node: AtenNode, x: OutPort, axis: int, above: bool) -> tuple[OutPort, OutPort]:
    """Return the largest or smallest element along an axis, and its place, with the axis; the first one of equals.

    The first NaN is both: it is the largest one in TopK, so the smallest number is the largest one of the opposites.
    """
    if x.type.dtype.is_float and not above:
        value, position = best(node, node.build.Negative(x), axis, True)
        return node.build.Negative(value), position
    mode = Mode.MAX if above else Mode.MIN
    numbers = node.cast(x, DType.U8) if x.type.dtype is DType.BOOL else x
    largest = node.build.TopK(
        numbers,
        node.scalar(1),
        axis=axis,
        mode=mode,
        sort=Order.VALUE,
        index_element_type=DType.I64,
        stable=True,
        outputs=2,
    )
    return largest, largest.node.out_port(1)


@aten("max.dim", "min.dim")
def extreme_along(node: AtenNode, x: OutPort, dim: int, keepdim: bool = False) -> tuple[OutPort, OutPort]:
    if not x.type.rank:
        return x, node.scalar(0)
    axis = node.axis(dim, x.type.rank)
    result = best(node, x, axis, node.kind.startswith("max"))
    if keepdim:
        return result
    at = node.list([axis])
    return node.build.Squeeze(result[0], at), node.build.Squeeze(result[1], at)


@aten("argmax.default", "argmin.default")
def arg_extreme(node: AtenNode, x: OutPort, dim: int | None = None, keepdim: bool = False) -> OutPort:
    """The place of an extreme; in the flattened tensor if there is no axis."""
    build, rank = node.build, x.type.rank
    if not rank:
        return node.scalar(0)
    above = node.kind.startswith("argmax")
    if dim is None:
        position = best(node, build.Reshape(x, node.list([-1])), 0, above)[1]
        return build.Reshape(position, node.list([1] * rank if keepdim else []))
    axis = node.axis(dim, rank)
    position = best(node, x, axis, above)[1]
    return position if keepdim else build.Squeeze(position, node.list([axis]))


@aten("any.default", "any.dim", "any.dims", "_is_any_true.default")
@aten("all.default", "all.dim", "all.dims", "_is_all_true.default")
def logical(node: AtenNode, x: OutPort, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> OutPort:
    name = "ReduceLogicalOr" if "any" in node.kind else "ReduceLogicalAnd"
    return getattr(node.build, name)(node.cast(x, DType.BOOL), axes_of(node, x, dim), keep_dims=keepdim)


@aten("count_nonzero.default", "count_nonzero.dim_IntList")
def count_nonzero(node: AtenNode, x: OutPort, dim: int | Sequence[int] | None = None) -> OutPort:
    marks = node.cast(node.cast(x, DType.BOOL), DType.I64)
    return node.build.ReduceSum(marks, axes_of(node, x, dim))


# ---- spread


def spread(
    node: AtenNode, x: OutPort, dim: int | Sequence[int] | None, correction: Number | None, keepdim: bool
) -> tuple[OutPort, OutPort]:
    """Variance and mean; the variance divides by the count less `correction`, 1 if there is none."""
    build, wide = node.build, node.wide(x)
    axes = node.axes(None if dim == () else dim, x.type.rank)
    at = node.list(axes)
    mean = build.ReduceMean(wide, at, keep_dims=True)
    gap = build.Subtract(wide, mean)
    total = build.ReduceSum(build.Multiply(gap, gap), at, keep_dims=keepdim)
    count = build.ReduceProd(node.dims(x, axes), node.list([0])) if axes else node.scalar(1)
    rest = build.Subtract(node.cast(count, wide.type.dtype), node.same(1 if correction is None else correction, wide))
    variance = build.Divide(total, build.Maximum(rest, node.like(0, wide)))
    return variance, mean if keepdim else build.Squeeze(mean, at) if axes else mean


@aten("var.correction", "std.correction", "var_mean.correction", "std_mean.correction")
def var_correction(
    node: AtenNode,
    x: OutPort,
    dim: int | Sequence[int] | None = None,
    correction: Number | None = None,
    keepdim: bool = False,
) -> tuple[OutPort, ...]:
    variance, mean = spread(node, x, dim, correction, keepdim)
    variance = node.build.Sqrt(variance) if node.kind.startswith("std") else variance
    return (variance, mean)[: len(node.outputs)]


@aten("var.dim", "std.dim", "var_mean.dim", "std_mean.dim")
@aten("var.default", "std.default", "var_mean.default", "std_mean.default")
def var(
    node: AtenNode, x: OutPort, dim: int | Sequence[int] | None = None, unbiased: bool = True, keepdim: bool = False
) -> tuple[OutPort, ...]:
    return var_correction(node, x, dim, int(unbiased), keepdim)


# ---- norms and sums of exponentials


@aten("logsumexp.default", "special_logsumexp.default")
def logsumexp(node: AtenNode, x: OutPort, dim: int | Sequence[int], keepdim: bool = False) -> OutPort:
    build, x = node.build, node.real(x)
    axes = axes_of(node, x, dim)
    top = build.ReduceMax(x, axes, keep_dims=True)
    top = build.Select(build.IsFinite(top), top, node.like(0, x))
    total = build.Log(build.ReduceSum(build.Exp(build.Subtract(x, top)), axes, keep_dims=keepdim))
    return build.Add(total, top if keepdim else build.Squeeze(top, axes))


@aten("linalg_vector_norm.default", "norm.ScalarOpt_dim", "norm.Scalar", "norm.ScalarOpt_dim_dtype")
def norm(
    node: AtenNode,
    x: OutPort,
    ord: Number | None = None,
    p: Number | None = None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> OutPort:
    """(sum |x|^p)^(1/p): 2 unless `ord` or `p` says otherwise."""
    power = ord if ord is not None else p if p is not None else 2
    build, x = node.build, node.cast(node.real(x), dtype) if dtype is not None else node.real(x)
    if not x.type.rank:
        return build.Squeeze(norm(node, build.Reshape(x, node.list([1])), ord, p, 0, True), node.list([0]))
    axes = axes_of(node, x, dim)
    if power == 2:
        return build.ReduceL2(x, axes, keep_dims=keepdim)
    size = build.Abs(x)
    if power in (INFINITY, -INFINITY):
        return getattr(build, "ReduceMax" if power == INFINITY else "ReduceMin")(size, axes, keep_dims=keepdim)
    if power == 0:
        marks = node.cast(build.NotEqual(x, node.like(0, x)), x.type.dtype)
        return build.ReduceSum(marks, axes, keep_dims=keepdim)
    if power == 1:
        return build.ReduceSum(size, axes, keep_dims=keepdim)
    node.refuse(not isinstance(power, int | float), "the power of a norm must be known at compile time")
    total = build.ReduceSum(build.Power(size, node.same(power, x)), axes, keep_dims=keepdim)
    return build.Power(total, build.Divide(node.like(1, x), node.same(power, x)))


# ---- running sums


@aten("cumsum.default", "cumprod.default")
def running(node: AtenNode, x: OutPort, dim: int, dtype: DType | None = None) -> OutPort:
    x = node.cast(x, dtype or node.dtype())
    if not x.type.rank:
        return x
    name = "CumSum" if node.kind.startswith("cumsum") else "CumProd"
    return getattr(node.build, name)(x, node.scalar(node.axis(dim, x.type.rank)))


@aten("trace.default")
def trace(node: AtenNode, x: OutPort) -> OutPort:
    build = node.build
    rows, columns = (node.size(x, k) for k in (0, 1))
    eye = build.Eye(rows, columns, node.scalar(0), output_type=DType.BOOL)
    return build.ReduceSum(node.cast(build.Select(eye, x, node.like(0, x)), node.dtype()), node.list([0, 1]))
