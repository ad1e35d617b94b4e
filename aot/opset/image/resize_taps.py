"""Resizing by weighted neighbours, one axis after another: for dynamic sizes, and for forms that Interpolate lacks.

y[o] = sum over k of weight[k, o] x[place[k, o]]        vectors of f64, constant if the sizes are
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.types import numpy_dtype
from aot.opset.base.decomposition import narrowed, numbers
from aot.runtime.abi import DType

Steepness = Callable[[OutPort], OutPort] | None


@dataclass(frozen=True, slots=True)
class Sampling:
    """Attributes that place an element in the input and weight its neighbours.

    `inside`: OpenVINO's rules: an axis of unchanged size maps to itself, and with `antialias` elements outside of the
    input have no weight. `steep`: slope of antialiased triangles, computed from the scale; None: the scale, at most 1.
    """

    mode: str
    places: str
    nearest: str
    cubic: float
    antialias: bool
    exclude_outside: bool
    extrapolation: float
    inside: bool = False
    steep: Steepness = None


@dataclass(frozen=True, slots=True)
class Axis:
    """Scalars of one axis, in f64: input extent, output extent, scale, and start and end of the region of interest."""

    axis: int
    extent: OutPort
    made: OutPort
    scale: OutPort
    start: OutPort
    end: OutPort


def axes_of(
    build: Builder,
    x: OutPort,
    axes: Sequence[int],
    wanted: OutPort,
    by_size: bool,
    roi: OutPort | None,
    single: bool = False,
    common: OutPort | None = None,
) -> list[Axis]:
    """Return the axes that may change.

    `wanted` holds their sizes or their scales; `common` [1]: the scale of all axes, if sizes were rounded after
    scaling; otherwise a scale is a size divided by its extent.
    `single`: sizes are rounded down from products that are only as exact as f32, so that 10 times 0.7 is 7.
    """
    changed = list[Axis]()
    for i, a in enumerate(axes):
        extent, value = (_scalar(build, p, k) for p, k in ((_dims(build, x, [a]), 0), (wanted, i)))
        start, end = (build.const(v, DType.F64) for v in (0.0, 1.0))
        if roi is not None:
            start, end = _scalar(build, roi, i), _scalar(build, roi, i + len(axes))
        if by_size:
            target, scale = value, build.Divide(value, extent) if common is None else _scalar(build, common, 0)
        else:
            part = build.Multiply(build.Multiply(value, extent), build.Subtract(end, start))
            target = build.Floor(build.Multiply(part, 1 + 2.0**-23) if single else build.Add(part, 1e-9))
            scale = value
        if roi is None and _is_equal(target, extent) and _is_equal(scale, 1.0):
            continue
        changed.append(Axis(a, extent, target, scale, start, end))
    return changed


def _is_equal(p: OutPort, other: OutPort | float) -> bool:
    value = other.value if isinstance(other, OutPort) else other
    return p.value is not None and value is not None and float(p.value) == float(value)


def _scalar(build: Builder, p: OutPort, i: int) -> OutPort:
    return narrowed(build, build.Gather(p, build.const(i, DType.I64), build.const(0, DType.I64)), DType.F64)


def resampled(build: Builder, x: OutPort, axes: Sequence[Axis], how: Sampling) -> OutPort:
    dtype, rank = x.type.dtype, x.type.rank
    y = narrowed(build, x, dtype if dtype in (DType.F32, DType.F64) else DType.F32)
    outside: OutPort | None = None
    for a in axes:
        behind = numbers(build, range(1, rank - a.axis))
        where = _where(build, a, how)
        if how.places == "tf_crop_and_resize":
            low, high = build.Less(where, 0.0), build.Greater(where, build.Subtract(a.extent, 1.0))
            out = build.Unsqueeze(build.LogicalOr(low, high), behind)
            outside = out if outside is None else build.LogicalOr(outside, out)
        if how.antialias and how.inside:
            y = _by_inner(build, y, a, where, how)
            continue
        if how.antialias and a.scale.value is None:
            y = _by_matrix(build, y, a, where, how)
            continue
        total: OutPort | None = None
        for position, weight in _taps(build, a, where, how):
            part = build.Gather(y, position, build.const(a.axis, DType.I64))
            if weight is not None:
                part = build.Multiply(part, build.Unsqueeze(narrowed(build, weight, y.type.dtype), behind))
            total = part if total is None else build.Add(total, part)
        y = total or y
    if outside is not None:
        y = build.Select(outside, _like(build, how.extrapolation, y), y)
    return y if how.inside else narrowed(build, y, dtype)


def _where(build: Builder, a: Axis, how: Sampling) -> OutPort:
    """Return the position of each output element in the input."""
    at = narrowed(build, _indices(build, narrowed(build, a.made, DType.I64)), DType.F64)
    coordinates = _moved(build, a, at, how)
    return build.Select(build.Equal(a.made, a.extent), at, coordinates) if how.inside else coordinates


def _moved(build: Builder, a: Axis, at: OutPort, how: Sampling) -> OutPort:
    last, one = build.Subtract(a.extent, 1.0), build.Equal(a.made, 1.0)
    centred = build.Subtract(build.Divide(build.Add(at, 0.5), a.scale), 0.5)
    match how.places:
        case "asymmetric":
            return build.Divide(at, a.scale)
        case "tf_half_pixel_for_nn":
            return build.Divide(build.Add(at, 0.5), a.scale)
        case "align_corners":
            stretched = build.Divide(build.Multiply(at, last), build.Subtract(a.made, 1.0))
            return build.Select(one, _like(build, 0, at), stretched)
        case "tf_crop_and_resize":
            span = build.Multiply(build.Subtract(a.end, a.start), last)
            stretched = build.Divide(build.Multiply(at, span), build.Subtract(a.made, 1.0))
            return build.Add(build.Select(one, build.Multiply(span, 0.5), stretched), build.Multiply(a.start, last))
        case "half_pixel_symmetric":
            rest = build.Negative(build.Subtract(build.Divide(a.made, build.Multiply(a.scale, a.extent)), 1.0))
            return build.Add(centred, build.Multiply(build.Multiply(a.extent, 0.5), rest))
        case "pytorch_half_pixel":
            return build.Select(one, _like(build, 0, at), centred)
        case _:
            return centred


def _taps(build: Builder, a: Axis, where: OutPort, how: Sampling) -> Iterator[tuple[OutPort, OutPort | None]]:
    """Yield positions inside of the input, and weights with sum 1 (None: 1)."""
    last = build.Subtract(a.extent, 1.0)

    def inside(coordinate: OutPort) -> OutPort:
        return narrowed(build, build.Minimum(build.Maximum(coordinate, 0.0), last), DType.I64)

    if how.mode == "nearest":
        yield inside(_nearest(build, where, how.nearest, a.scale)), None
        return
    reach, scale = 1 if how.mode == "linear" else 2, 1.0
    if how.antialias:
        assert a.scale.value is not None, "others are weighed by matrices"
        scale = min(float(a.scale.value), 1.0)
    floor = build.Floor(where)
    fraction = build.Subtract(where, floor)
    neighbours: list[tuple[OutPort, OutPort]] = []
    first = int(np.floor(-reach / scale)) + 1
    for step in range(first, 2 - first):
        distance = build.Multiply(build.Abs(build.Subtract(fraction, float(step))), scale)
        weight = _weight(build, distance, how)
        position = build.Add(floor, float(step))
        if how.exclude_outside:
            is_inside = build.LogicalAnd(build.GreaterEqual(position, 0.0), build.LessEqual(position, last))
            weight = build.Select(is_inside, weight, _like(build, 0, weight))
        neighbours.append((position, weight))
    total = neighbours[0][1]
    for _, weight in neighbours[1:]:
        total = build.Add(total, weight)
    for position, weight in neighbours:
        yield inside(position), build.Divide(weight, total)


def _by_matrix(build: Builder, x: OutPort, a: Axis, where: OutPort, how: Sampling) -> OutPort:
    """Weight all elements, most of them by 0, because the number of neighbours is dynamic."""
    reach = 1.0 if how.mode == "linear" else 2.0
    scale = build.Minimum(a.scale, 1.0)
    margin = build.Ceiling(build.Divide(_like(build, reach, scale), scale))
    ends = [narrowed(build, p, DType.I64) for p in (build.Negative(margin), build.Add(a.extent, margin))]
    positions = narrowed(build, build.Range(*ends, build.const(1, DType.I64), output_type=DType.I64), DType.F64)
    last = build.Subtract(a.extent, 1.0)
    inside = build.Minimum(build.Maximum(positions, 0.0), last)
    distance = build.Abs(build.Subtract(positions, build.Unsqueeze(where, numbers(build, [1]))))
    weight = _weight(build, build.Multiply(distance, scale), how)
    if how.exclude_outside:
        weight = build.Select(build.Equal(positions, inside), weight, _like(build, 0, weight))
    weight = build.Divide(weight, build.ReduceSum(weight, numbers(build, [1]), keep_dims=True))
    x = build.Gather(x, narrowed(build, inside, DType.I64), build.const(a.axis, DType.I64))
    return _product(build, x, a, weight)


def _by_inner(build: Builder, x: OutPort, a: Axis, where: OutPort, how: Sampling) -> OutPort:
    """Weight all elements of the input, and no positions outside."""
    steep = build.Minimum(a.scale, 1.0) if how.steep is None else how.steep(a.scale)
    positions = narrowed(build, _indices(build, narrowed(build, a.extent, DType.I64)), DType.F64)
    if how.steep is not None:  # triangles one element wide are cut off at the border
        clamped = build.Minimum(build.Maximum(where, 0.0), build.Subtract(a.extent, 1.0))
        where = build.Select(build.Equal(steep, 1.0), clamped, where)
    distance = build.Abs(build.Subtract(positions, build.Unsqueeze(where, numbers(build, [1]))))
    weight = _weight(build, build.Multiply(distance, steep), how)
    total = build.ReduceSum(weight, numbers(build, [1]), keep_dims=True)
    weight = build.Divide(weight, build.Select(build.Equal(total, 0.0), _like(build, 1, total), total))
    return _product(build, x, a, weight)


def _product(build: Builder, x: OutPort, a: Axis, weight: OutPort) -> OutPort:
    """Build the sum over the axis of weight[o, k] x[.., k, ..]."""
    rank = x.type.rank
    order = [*(i for i in range(rank) if i != a.axis), a.axis]
    rows = build.Transpose(x, numbers(build, order))
    product = build.MatMul(rows, narrowed(build, weight, x.type.dtype), transpose_b=True)
    return build.Transpose(product, numbers(build, np.argsort(order).tolist()))


def _indices(build: Builder, count: OutPort) -> OutPort:
    """Build 0, 1, 2, .. below an i64 scalar."""
    return build.Range(build.const(0, DType.I64), count, build.const(1, DType.I64), output_type=DType.I64)


def _dims(build: Builder, x: OutPort, axes: Sequence[int]) -> OutPort:
    """Return some dimensions of `x` as an i64 vector."""
    known = [n for n in (x.shape[a] for a in axes) if isinstance(n, int)]
    if len(known) == len(axes):
        return numbers(build, known)
    return build.Gather(build.ShapeOf(x), numbers(build, axes), build.const(0, DType.I64))


def _like(build: Builder, value: float, x: OutPort) -> OutPort:
    """Return a scalar of the type of `x`."""
    return build.const(np.asarray(value).astype(numpy_dtype(x.type.dtype)), x.type.dtype)


def _weight(build: Builder, distance: OutPort, how: Sampling) -> OutPort:
    return _linear(build, distance) if how.mode == "linear" else _cubic(build, distance, how.cubic)


def _linear(build: Builder, d: OutPort) -> OutPort:
    return build.Maximum(build.Add(build.Negative(d), 1.0), 0.0)


def _cubic(build: Builder, d: OutPort, a: float) -> OutPort:
    """Build the cubic kernel of Keys 1981, with coefficient `a`."""

    def polynomial(*factors: float) -> OutPort:
        value = _like(build, factors[0], d)
        for factor in factors[1:]:
            value = build.Add(build.Multiply(value, d), factor)
        return value

    outer = build.Select(build.Less(d, 2.0), polynomial(a, -5 * a, 8 * a, -4 * a), _like(build, 0, d))
    return build.Select(build.LessEqual(d, 1.0), polynomial(a + 2, -(a + 3), 0.0, 1.0), outer)


def _nearest(build: Builder, where: OutPort, how: str, scale: OutPort) -> OutPort:
    match how:
        case "simple":
            return build.Select(build.Less(scale, 1.0), build.Ceiling(where), build.Floor(where))
        case "floor":
            return build.Floor(where)
        case "ceil":
            return build.Ceiling(where)
        case "round_prefer_ceil":
            return build.Floor(build.Add(where, 0.5))
        case _:
            return build.Ceiling(build.Subtract(where, 0.5))
