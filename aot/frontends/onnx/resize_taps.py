"""Resizing by weighted neighbours along one axis after another: for sizes that only run time knows, and for forms that
Interpolate does not have.

    y[o] = sum over k of weight[k, o] x[place[k, o]]        vectors of f64, constants where the sizes are known
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from aot.frontends.onnx.registry import Call
from aot.ir.graph import OutPort
from runtime.abi import DType


@dataclass(frozen=True, slots=True)
class Sampling:
    """The attributes that say where an element lies and how its neighbours are weighed."""

    mode: str
    places: str
    nearest: str
    cubic: float
    antialias: bool
    exclude_outside: bool
    extrapolation: float


@dataclass(frozen=True, slots=True)
class Axis:
    """Scalars of one axis, in f64: its extent, that of the output, the scale, and where the part that is meant lies."""

    axis: int
    extent: OutPort
    made: OutPort
    scale: OutPort
    start: OutPort
    end: OutPort


def axes_of(
    node: Call, x: OutPort, axes: Sequence[int], wanted: OutPort, by_size: bool, roi: OutPort | None,
    common: OutPort | None = None,
) -> list[Axis]:  # fmt: skip
    """The axes that may change. `wanted` has their sizes or their scales; `common` [1]: the scale of all axes if
    sizes were rounded after scaling, otherwise a size divided by its extent.
    """
    build, found = node.build, list[Axis]()
    for i, a in enumerate(axes):
        extent, value = (_scalar(node, p, k) for p, k in ((node.dims(x, [a]), 0), (wanted, i)))
        start, end = (node.build.const(v, DType.F64) for v in (0.0, 1.0))
        if roi is not None:
            start, end = _scalar(node, roi, i), _scalar(node, roi, i + len(axes))
        if by_size:
            made, scale = value, build.Divide(value, extent) if common is None else _scalar(node, common, 0)
        else:
            part = build.Multiply(build.Multiply(value, extent), build.Subtract(end, start))
            made, scale = build.Floor(build.Add(part, 1e-9)), value
        if roi is None and _is(made, extent) and _is(scale, 1.0):
            continue
        found.append(Axis(a, extent, made, scale, start, end))
    return found


def _is(p: OutPort, other: OutPort | float) -> bool:
    value = other.value if isinstance(other, OutPort) else other
    return p.value is not None and value is not None and float(p.value) == float(value)


def _scalar(node: Call, p: OutPort, i: int) -> OutPort:
    return node.cast(node.build.Gather(p, node.scalar(i), node.scalar(0)), DType.F64)


def resampled(node: Call, x: OutPort, axes: Sequence[Axis], how: Sampling) -> OutPort:
    build, dtype, rank = node.build, x.type.dtype, x.type.rank
    y = node.cast(x, dtype if dtype in (DType.F32, DType.F64) else DType.F32)
    outside: OutPort | None = None
    for a in axes:
        behind = node.list(range(1, rank - a.axis))
        where = _where(node, a, how.places)
        if how.places == "tf_crop_and_resize":
            low, high = build.Less(where, 0.0), build.Greater(where, build.Subtract(a.extent, 1.0))
            out = build.Unsqueeze(build.LogicalOr(low, high), behind)
            outside = out if outside is None else build.LogicalOr(outside, out)
        if how.antialias and a.scale.value is None:
            y = _by_matrix(node, y, a, where, how)
            continue
        total: OutPort | None = None
        for place, weight in _taps(node, a, where, how):
            part = build.Gather(y, place, node.scalar(a.axis))
            if weight is not None:
                part = build.Multiply(part, build.Unsqueeze(node.cast(weight, y.type.dtype), behind))
            total = part if total is None else build.Add(total, part)
        y = total or y
    if outside is not None:
        y = build.Select(outside, node.like(how.extrapolation, y), y)
    return node.cast(y, dtype)


def _where(node: Call, a: Axis, places: str) -> OutPort:
    """Where each output element lies in the input."""
    build = node.build
    count = node.cast(a.made, DType.I64)
    at = node.cast(build.Range(node.scalar(0), count, node.scalar(1), output_type=DType.I64), DType.F64)
    last, one = build.Subtract(a.extent, 1.0), build.Equal(a.made, 1.0)
    centred = build.Subtract(build.Divide(build.Add(at, 0.5), a.scale), 0.5)
    match places:
        case "asymmetric":
            return build.Divide(at, a.scale)
        case "align_corners":
            wide = build.Multiply(a.scale, a.extent)
            moved = build.Divide(build.Multiply(at, last), build.Subtract(wide, 1.0))
            return build.Select(build.Equal(wide, 1.0), node.like(0, at), moved)
        case "tf_crop_and_resize":
            span = build.Multiply(build.Subtract(a.end, a.start), last)
            moved = build.Divide(build.Multiply(at, span), build.Subtract(a.made, 1.0))
            return build.Add(build.Select(one, build.Multiply(span, 0.5), moved), build.Multiply(a.start, last))
        case "half_pixel_symmetric":
            rest = build.Negative(build.Subtract(build.Divide(a.made, build.Multiply(a.scale, a.extent)), 1.0))
            return build.Add(centred, build.Multiply(build.Multiply(a.extent, 0.5), rest))
        case "pytorch_half_pixel":
            return build.Select(one, node.like(0, at), centred)
        case _:
            return centred


def _taps(node: Call, a: Axis, where: OutPort, how: Sampling) -> Iterator[tuple[OutPort, OutPort | None]]:
    """Places inside of the input, and weights whose sum is 1 (None: 1)."""
    build = node.build
    last = build.Subtract(a.extent, 1.0)

    def inside(place: OutPort) -> OutPort:
        return node.cast(build.Minimum(build.Maximum(place, 0.0), last), DType.I64)

    if how.mode == "nearest":
        yield inside(_nearest(node, where, how.nearest)), None
        return
    reach, scale = 1 if how.mode == "linear" else 2, 1.0
    if how.antialias:
        scale = min(float(node.known(a.scale, "scales")), 1.0)
    floor = build.Floor(where)
    rest = build.Subtract(where, floor)
    found: list[tuple[OutPort, OutPort]] = []
    first = int(np.floor(-reach / scale)) + 1
    for step in range(first, 2 - first):
        distance = build.Multiply(build.Abs(build.Subtract(rest, float(step))), scale)
        weight = _weight(node, distance, how)
        place = build.Add(floor, float(step))
        if how.exclude_outside:
            held = build.LogicalAnd(build.GreaterEqual(place, 0.0), build.LessEqual(place, last))
            weight = build.Select(held, weight, node.like(0, weight))
        found.append((place, weight))
    total = found[0][1]
    for _, weight in found[1:]:
        total = build.Add(total, weight)
    for place, weight in found:
        yield inside(place), build.Divide(weight, total)


def _by_matrix(node: Call, x: OutPort, a: Axis, where: OutPort, how: Sampling) -> OutPort:
    """Where only run time knows how many neighbours there are, all elements are weighed, most of them by 0."""
    build, reach = node.build, 1.0 if how.mode == "linear" else 2.0
    scale = build.Minimum(a.scale, 1.0)
    far = build.Ceiling(build.Divide(node.like(reach, scale), scale))
    ends = [node.cast(p, DType.I64) for p in (build.Negative(far), build.Add(a.extent, far))]
    places = node.cast(build.Range(*ends, node.scalar(1), output_type=DType.I64), DType.F64)
    last = build.Subtract(a.extent, 1.0)
    inside = build.Minimum(build.Maximum(places, 0.0), last)
    distance = build.Abs(build.Subtract(places, build.Unsqueeze(where, node.list([1]))))
    weight = _weight(node, build.Multiply(distance, scale), how)
    if how.exclude_outside:
        weight = build.Select(build.Equal(places, inside), weight, node.like(0, weight))
    weight = build.Divide(weight, build.ReduceSum(weight, node.list([1]), keep_dims=True))
    rank = x.type.rank
    order = [*(i for i in range(rank) if i != a.axis), a.axis]
    rows = build.Transpose(build.Gather(x, node.cast(inside, DType.I64), node.scalar(a.axis)), node.list(order))
    found = build.MatMul(rows, node.cast(weight, x.type.dtype), transpose_b=True)
    return build.Transpose(found, node.list(np.argsort(order).tolist()))


def _weight(node: Call, distance: OutPort, how: Sampling) -> OutPort:
    return _linear(node, distance) if how.mode == "linear" else _cubic(node, distance, how.cubic)


def _linear(node: Call, d: OutPort) -> OutPort:
    return node.build.Maximum(node.build.Add(node.build.Negative(d), 1.0), 0.0)


def _cubic(node: Call, d: OutPort, a: float) -> OutPort:
    """Keys 1981, with the slope `a`."""
    build = node.build

    def polynomial(*factors: float) -> OutPort:
        value = node.like(factors[0], d)
        for factor in factors[1:]:
            value = build.Add(build.Multiply(value, d), factor)
        return value

    far = build.Select(build.Less(d, 2.0), polynomial(a, -5 * a, 8 * a, -4 * a), node.like(0, d))
    return build.Select(build.LessEqual(d, 1.0), polynomial(a + 2, -(a + 3), 0.0, 1.0), far)


def _nearest(node: Call, where: OutPort, how: str) -> OutPort:
    build = node.build
    match how:
        case "floor":
            return build.Floor(where)
        case "ceil":
            return build.Ceiling(where)
        case "round_prefer_ceil":
            return build.Floor(build.Add(where, 0.5))
        case _:
            return build.Ceiling(build.Subtract(where, 0.5))
