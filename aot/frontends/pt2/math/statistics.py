"""Statistics of elements along axes: quantiles, modes, differences, norms that are bounded."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.pt2.arrays.movement import sliced, transposed
from aot.frontends.pt2.arrays.sorting import ranked
from aot.frontends.pt2.math.reduction import INFINITY, norm
from aot.frontends.pt2.registry import AtenNode, Number, aten
from aot.ir.graph import OutPort
from aot.opset.elementwise.unary import Rounding
from aot.runtime.abi import DType

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")
LAST = (1 << 63) - 1


@aten("quantile.default", "quantile.scalar", "nanquantile.default", "nanquantile.scalar")
def quantile(
    node: AtenNode,
    x: OutPort,
    q: OutPort | float,
    dim: int | None = None,
    keepdim: bool = False,
    interpolation: str = "linear",
) -> OutPort:
    """The elements at q (n - 1) of the sorted axis; `nanquantile` leaves out NaN. Axis 0 is that of a vector q."""
    node.refuse(interpolation not in INTERPOLATIONS, f"interpolation {interpolation!r}")
    build, rank = node.build, x.type.rank
    whole = build.Reshape(x, node.list([-1])) if dim is None or not rank else x
    axis = 0 if dim is None else node.axis(dim, max(rank, 1))
    order = [*(k for k in range(whole.type.rank) if k != axis), axis]
    rows = transposed(node, whole, order)  # [.., n]
    absent, last = build.IsNaN(rows), node.list([-1])
    numbers = build.ReduceSum(node.cast(build.LogicalNot(absent), x.type.dtype), last, keep_dims=True)
    if node.kind.startswith("nan"):
        count, bad = numbers, build.Equal(numbers, node.like(0, x))
    else:
        count, bad = (
            node.cast(node.size(rows, len(order) - 1), x.type.dtype),
            build.ReduceLogicalOr(absent, last, keep_dims=True),
        )
    share = node.port(q, x.type.dtype)
    position = build.Multiply(
        build.Reshape(share, last), build.Subtract(build.Select(bad, node.like(1, x), count), node.like(1, x))
    )
    sorted_rows = ranked(node, rows, node.size(rows, len(order) - 1), len(order) - 1, False)[0]
    values = build.Select(bad, node.like(float("nan"), x), _between(node, sorted_rows, position, interpolation))
    if share.type.rank:
        values = transposed(node, values, [len(order) - 1, *range(len(order) - 1)])
    else:
        values = build.Squeeze(values, last)
    if not keepdim:
        return values
    lead = share.type.rank
    axes: Sequence[int] = range(lead, lead + rank) if dim is None else [lead + axis] if rank else ()
    return build.Unsqueeze(values, node.list(axes))


def _between(node: AtenNode, order: OutPort, position: OutPort, how: str) -> OutPort:
    """Return elements of the sorted last axis at places between them."""
    build = node.build
    low, high = build.Floor(position), build.Ceiling(position)

    def at(where: OutPort) -> OutPort:
        return build.GatherElements(order, node.cast(where, DType.I64), axis=-1)

    if how == "nearest":
        return at(build.Round(position, mode=Rounding.HALF_TO_EVEN))
    if how in ("lower", "higher"):
        return at(low if how == "lower" else high)
    a, b = at(low), at(high)
    weight = node.like(0.5, position) if how == "midpoint" else build.Subtract(position, low)
    return build.Add(a, build.Multiply(build.Subtract(b, a), weight))


@aten("nanmedian.default", "nanmedian.dim")
def nanmedian(node: AtenNode, x: OutPort, dim: int | None = None, keepdim: bool = False) -> tuple[OutPort, ...]:
    """The lower one of the two numbers in the middle, NaN left out."""
    build = node.build
    if not x.type.rank:
        return (x, node.scalar(0))[: len(node.outputs)]
    if dim is None:
        x, dim = build.Reshape(x, node.list([-1])), 0
    axis = node.axis(dim, x.type.rank)
    values, positions = ranked(node, x, node.size(x, axis), axis, False)
    numbers = build.LogicalNot(build.IsNaN(x)) if x.type.dtype.is_float else build.Equal(x, x)
    count = build.ReduceSum(node.cast(numbers, DType.I64), node.list([axis]), keep_dims=True)
    middle = build.Maximum(build.Divide(build.Subtract(count, node.scalar(1)), node.scalar(2)), node.scalar(0))
    ports = [build.GatherElements(p, middle, axis=axis) for p in (values, positions)]
    if not keepdim:
        ports = [build.Squeeze(p, node.list([axis])) for p in ports]
    return tuple(ports[: len(node.outputs)])


@aten("diff.default")
def diff(
    node: AtenNode, x: OutPort, n: int = 1, dim: int = -1, prepend: OutPort | None = None, append: OutPort | None = None
) -> OutPort:
    axis = node.axis(dim, x.type.rank)
    parts = [node.cast(p, x.type.dtype) for p in (prepend, x, append) if p is not None]
    x = parts[0] if len(parts) == 1 else node.build.Concat(*parts, axis=axis)
    for _ in range(n):
        a, b = sliced(node, x, axis, 1, LAST), sliced(node, x, axis, 0, -1)
        x = node.build.NotEqual(a, b) if x.type.dtype is DType.BOOL else node.build.Subtract(a, b)
    return x


@aten("trapezoid.x", "trapezoid.dx", "trapz.x", "trapz.dx")
def trapezoid(node: AtenNode, y: OutPort, x: OutPort | None = None, dx: Number = 1, dim: int = -1) -> OutPort:
    """The sum of (y[i] + y[i + 1]) / 2 times the steps, those between places `x` or all `dx`."""
    build, y = node.build, node.real(y)
    axis = node.axis(dim, y.type.rank)
    pairs = build.Add(sliced(node, y, axis, 1, LAST), sliced(node, y, axis, 0, -1))
    step = node.same(dx, y) if x is None else node.cast(x, y.type.dtype)
    if x is not None:
        line, along = x.type.rank == 1, node.axis(dim, y.type.rank) if x.type.rank == y.type.rank else 0
        step = build.Subtract(sliced(node, step, along, 1, LAST), sliced(node, step, along, 0, -1))
        step = build.Reshape(step, node.list([-1, *[1] * (y.type.rank - 1 - axis)])) if line else step
    pairs = build.Multiply(pairs, step)
    return build.Multiply(build.ReduceSum(pairs, node.list([axis])), node.like(0.5, y))


@aten("cummax.default", "cummin.default")
def running_extreme(node: AtenNode, x: OutPort, dim: int) -> tuple[OutPort, OutPort]:
    """The best element so far and its place, the last one of equals, by a table of all pairs along the axis.

    NaN is better than every number.
    """
    build, rank, above = node.build, x.type.rank, node.kind.startswith("cummax")
    if not rank:
        return x, node.scalar(0)
    axis = node.axis(dim, rank)
    numbers = node.cast(x, DType.U8) if x.type.dtype is DType.BOOL else x
    positions = build.Range(node.scalar(0), node.size(x, axis), node.scalar(1))
    earlier = build.LessEqual(build.Unsqueeze(positions, node.list([0])), build.Unsqueeze(positions, node.list([1])))
    shape = [1] * (rank + 1)
    column = build.Reshape(positions, node.list([*shape[: axis + 1], -1, *shape[axis + 2 :]]))
    mask = build.Unsqueeze(earlier, node.list(range(2, rank - axis + 1)))
    wide = build.Unsqueeze(numbers, node.list([axis]))
    first = build.Unsqueeze(sliced(node, numbers, axis, 0, 1), node.list([axis]))
    reduce = build.ReduceMax if above else build.ReduceMin
    extremes = reduce(build.Select(mask, wide, first), node.list([axis + 1]))
    hits = build.Equal(wide, build.Unsqueeze(extremes, node.list([axis + 1])))
    if x.type.dtype.is_float:
        hits = build.LogicalOr(hits, build.IsNaN(wide))
    hits = build.LogicalAnd(hits, mask)
    index = build.ReduceMax(build.Select(hits, column, node.scalar(0)), node.list([axis + 1]))
    return node.cast(extremes, x.type.dtype), index


@aten("logcumsumexp.default")
def logcumsumexp(node: AtenNode, x: OutPort, dim: int) -> OutPort:
    build = node.build
    if not x.type.rank:
        return x
    axis = node.axis(dim, x.type.rank)
    top = build.ReduceMax(x, node.list([axis]), keep_dims=True)
    top = build.Select(build.IsFinite(top), top, node.like(0, x))
    return build.Add(build.Log(build.CumSum(build.Exp(build.Subtract(x, top)), node.scalar(axis))), top)


@aten("mode.default")
def mode(node: AtenNode, x: OutPort, dim: int = -1, keepdim: bool = False) -> tuple[OutPort, OutPort]:
    """The commonest element along an axis, the first one of several in PyTorch's order, and its last place."""
    build, rank, dtype = node.build, x.type.rank, x.type.dtype
    if not rank:
        return x, node.scalar(0)
    axis = node.axis(dim, rank)
    at, line = node.list([axis]), node.list([-1, *[1] * (rank - 1 - axis)])
    numbers = node.cast(x, DType.U8) if dtype is DType.BOOL else x
    positions = build.Reshape(build.Range(node.scalar(0), node.size(x, axis), node.scalar(1)), line)
    absent = build.IsNaN(x) if dtype.is_float else build.NotEqual(x, x)
    part = _parts_of_order(node, numbers, absent, axis) if dtype.is_float else node.scalar(0)

    def pairs(p: OutPort) -> tuple[OutPort, OutPort]:
        return build.Unsqueeze(p, at), build.Unsqueeze(p, node.list([axis + 1]))

    same = build.Equal(*pairs(numbers))
    if dtype.is_float:
        same = build.LogicalAnd(same, build.Equal(*pairs(part)))
    counts = build.ReduceSum(node.cast(same, DType.I64), node.list([axis + 1]))
    counts = build.Maximum(counts, node.scalar(1))  # of NaN
    chosen = build.Equal(counts, build.ReduceMax(counts, at, keep_dims=True))
    if dtype.is_float:
        first = build.ReduceMin(build.Select(chosen, part, node.scalar(LAST)), at, keep_dims=True)
        chosen = build.LogicalAnd(chosen, build.Equal(part, first))
    worst = node.like(INFINITY, x) if dtype.is_float else build.ReduceMax(numbers, at, keep_dims=True)
    value = build.ReduceMin(build.Select(chosen, numbers, worst), at, keep_dims=True)
    hits = build.LogicalAnd(chosen, build.LogicalOr(absent, build.Equal(numbers, value)))
    index = build.ReduceMax(build.Select(hits, positions, node.scalar(0)), at, keep_dims=True)
    results = [node.cast(value, dtype), index]
    a, b = results if keepdim else [build.Squeeze(p, at) for p in results]
    return a, b


def _parts_of_order(node: AtenNode, x: OutPort, absent: OutPort, axis: int) -> OutPort:
    """Return the part of each element in PyTorch's order: a NaN keeps its place and separates the elements beside it.

    Only an element that is less than all before it comes to the front, unless that is NaN. Even parts are those of
    numbers, odd ones of one NaN each.
    """
    build, rank = node.build, x.type.rank
    marks = node.cast(absent, DType.I64)
    part = build.Subtract(build.Multiply(build.CumSum(marks, node.scalar(axis)), node.scalar(2)), marks)
    positions = build.Range(node.scalar(0), node.size(x, axis), node.scalar(1))
    earlier = build.Less(build.Unsqueeze(positions, node.list([0])), build.Unsqueeze(positions, node.list([1])))
    earlier = build.Unsqueeze(earlier, node.list(range(2, rank - axis + 1)))  # [.., of this one, that one, ..]
    less = build.Less(build.Unsqueeze(x, node.list([axis + 1])), build.Unsqueeze(x, node.list([axis])))
    start = build.Unsqueeze(sliced(node, absent, axis, 0, 1), node.list([axis]))
    known = build.LogicalAnd(build.LogicalNot(start), build.Unsqueeze(absent, node.list([axis])))
    front = build.LogicalOr(build.LogicalNot(earlier), build.LogicalOr(less, known))
    return build.Select(build.ReduceLogicalAnd(front, node.list([axis + 1])), node.scalar(0), part)


@aten("renorm.default")
def renorm(node: AtenNode, x: OutPort, p: Number, dim: int, maxnorm: Number) -> OutPort:
    """Slices along an axis; those with a norm larger than `maxnorm` are scaled down to it."""
    build, axis = node.build, node.axis(dim, x.type.rank)
    others = tuple(k for k in range(x.type.rank) if k != axis)
    size = norm(node, x, p, None, others, True)
    most = node.same(maxnorm, size)
    factor = build.Divide(most, build.Add(size, node.like(1e-7, size)))
    return build.Multiply(x, build.Select(build.Greater(size, most), factor, node.like(1, size)))


@aten("histc.default")
def histc(node: AtenNode, x: OutPort, bins: int = 100, min: Number = 0, max: Number = 0) -> OutPort:
    """The number of elements in each of equal parts of min..max; of all elements if both are equal."""
    build, dtype = node.build, x.type.dtype
    flat = build.Reshape(node.real(x), node.list([-1]))
    low, high = node.same(min, flat), node.same(max, flat)
    if min == max:
        low, high = (getattr(build, r)(flat, node.list([0])) for r in ("ReduceMin", "ReduceMax"))
        alike = build.Equal(low, high)
        low, high = (build.Select(alike, build.Add(v, node.like(d, v)), v) for v, d in ((low, -1), (high, 1)))
    position = build.Multiply(build.Subtract(flat, low), node.like(bins, flat))
    position = build.Floor(build.Divide(position, build.Subtract(high, low)))
    position = build.Minimum(position, node.like(bins - 1, flat))
    inside = build.LogicalAnd(build.GreaterEqual(flat, low), build.LessEqual(flat, high))
    each = build.Unsqueeze(build.Select(inside, position, node.like(-1, flat)), node.list([0]))
    numbers = node.cast(node.list(range(bins)), flat.type.dtype)
    hits = build.Equal(build.Unsqueeze(numbers, node.list([1])), each)
    return build.ReduceSum(node.cast(hits, dtype), node.list([1]))


@aten("bincount.default")
def bincount(node: AtenNode, x: OutPort, weights: OutPort | None = None, minlength: int = 0) -> OutPort:
    """The number of times that each number occurs, or the sums of its weights."""
    build = node.build
    numbers = node.cast(x, DType.I64)
    top = build.ReduceMax(build.Concat(numbers, node.list([minlength - 1]), axis=0), node.list([0]))
    values = build.Range(node.scalar(0), build.Add(top, node.scalar(1)), node.scalar(1))
    hits = build.Equal(build.Unsqueeze(values, node.list([1])), build.Unsqueeze(numbers, node.list([0])))
    if weights is None:
        return build.ReduceSum(node.cast(hits, DType.I64), node.list([1]))
    chosen = build.Select(hits, build.Unsqueeze(weights, node.list([0])), node.like(0, weights))
    return build.ReduceSum(chosen, node.list([1]))
