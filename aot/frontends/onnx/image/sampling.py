"""Images sampled at given coordinates: GridSample, AffineGrid."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from aot.frontends.onnx.arrays.generators import counted
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.opset.image.grid import Outside, SampleMode
from aot.runtime.abi import DType

MODES = {
    "bilinear": SampleMode.BILINEAR,
    "linear": SampleMode.BILINEAR,
    "nearest": SampleMode.NEAREST,
    "bicubic": SampleMode.BICUBIC,
    "cubic": SampleMode.BICUBIC,
}
PADDING_MODES = {"zeros": Outside.ZEROS, "border": Outside.BORDER, "reflection": Outside.REFLECTION}


@onnx("GridSample")
def grid_sample(node: OnnxNode, x: OutPort, grid: OutPort) -> OutPort:
    mode, outside = node.choice("mode", MODES, "linear"), node.choice("padding_mode", PADDING_MODES, "zeros")
    if x.type.rank == 4:
        aligned = node.flag("align_corners")
        return node.build.GridSample(x, grid, align_corners=aligned, mode=mode, padding_mode=outside)
    node.refuse(mode is SampleMode.BICUBIC, f"cubic samples of two axes are supported, got rank {x.type.rank}")
    return _sampled(node, x, grid, mode, outside)


def _sampled(node: OnnxNode, x: OutPort, grid: OutPort, mode: SampleMode, outside: Outside) -> OutPort:
    """Return [N, C, ..] at [N, points, axes]: the weighted sum of the corners around each coordinate."""
    build, sizes = node.build, x.type.static_shape
    batch, channels, *extents = sizes
    flat = node.reshape(x, (batch, channels, int(np.prod(extents))))
    shape = grid.type.static_shape
    points = node.reshape(grid, (batch, int(np.prod(shape[1:-1])), len(extents)))
    coordinates = [_place(node, points, k, n, outside) for k, n in enumerate(reversed(extents))][::-1]
    total: OutPort | None = None
    for index, weight in _corners(node, coordinates, extents, mode):
        values = build.Gather(flat, index, node.scalar(2), batch_dims=1)
        part = build.Multiply(values, build.Unsqueeze(weight, node.list([1])))
        total = part if total is None else build.Add(total, part)
    assert total is not None
    return node.reshape(total, (batch, channels, *shape[1:-1]))


def _place(node: OnnxNode, points: OutPort, k: int, extent: int, outside: Outside) -> OutPort:
    """Return coordinate `k`, mapped from -1..1 to elements; the grid has the last axis first."""
    build, aligned = node.build, node.flag("align_corners")
    value = build.Squeeze(build.Gather(points, node.list([k]), node.scalar(2)), node.list([2]))
    if aligned:
        coordinate = build.Multiply(build.Add(value, 1.0), (extent - 1) / 2)
    else:
        coordinate = build.Divide(build.Subtract(build.Multiply(build.Add(value, 1.0), float(extent)), 1.0), 2.0)
    if outside is Outside.BORDER:
        return build.Clamp(coordinate, min=0.0, max=float(extent - 1))
    if outside is Outside.ZEROS:
        return coordinate
    low, span = (0.0, extent - 1.0) if aligned else (-0.5, float(extent))
    if span == 0:
        return build.Multiply(coordinate, 0.0)
    gap = build.FloorMod(build.Subtract(coordinate, low), 2 * span)
    folded = build.Add(build.Minimum(gap, build.Subtract(build.const(2 * span, gap.type.dtype), gap)), low)
    return build.Clamp(folded, min=0.0, max=float(extent - 1))


def _corners(
    node: OnnxNode, coordinates: list[OutPort], extents: list[int], mode: SampleMode
) -> Iterator[tuple[OutPort, OutPort]]:
    """Yield flat indices and weights of the corners; a corner outside of the image has weight 0."""
    build = node.build
    near = mode is SampleMode.NEAREST
    lows = [build.Round(p) if near else build.Floor(p) for p in coordinates]
    for corner in product(range(1 if near else 2), repeat=len(coordinates)):
        index: OutPort | None = None
        weight: OutPort | None = None
        for step, coordinate, low, n in zip(corner, coordinates, lows, extents, strict=True):
            at = build.Add(low, float(step))
            inside = build.LogicalAnd(build.GreaterEqual(at, 0.0), build.LessEqual(at, float(n - 1)))
            gap = build.Abs(build.Subtract(build.Subtract(coordinate, low), float(1 - step)))
            part = build.Select(inside, node.like(1, coordinate) if near else gap, node.like(0, coordinate))
            clamped = node.cast(build.Clamp(at, min=0.0, max=float(n - 1)), DType.I64)
            index = clamped if index is None else build.Add(build.Multiply(index, n), clamped)
            weight = part if weight is None else build.Multiply(weight, part)
        assert index is not None and weight is not None
        yield index, weight


@onnx("AffineGrid")
def affine_grid(node: OnnxNode, theta: OutPort, size: OutPort) -> OutPort:
    """Coordinates in -1..1 of each output element, times the matrices."""
    build, rank = node.build, size.type.static_shape[0]
    axes = rank - 2
    total: OutPort | None = None
    for k in range(axes + 1):  # the last axis comes first
        part = build.Unsqueeze(build.Gather(theta, node.list([k]), node.scalar(2)), node.list(range(1, axes)))
        product = build.Transpose(part, node.list([*range(axes), axes + 1, axes]))
        if k < axes:
            coordinates = build.Unsqueeze(_steps(node, size, rank - 1 - k, theta), node.list(range(1, k + 2)))
            product = build.Multiply(product, coordinates)
        total = product if total is None else build.Add(total, product)
    assert total is not None
    return total


def _steps(node: OnnxNode, size: OutPort, axis: int, like: OutPort) -> OutPort:
    """Return the coordinates in -1..1 along an axis: from the first element to the last, or the elements' centres."""
    build = node.build
    count = build.Gather(node.cast(size, DType.I64), node.scalar(axis), node.scalar(0))
    span, coordinates = node.cast(count, DType.F64), counted(node, count)
    if node.flag("align_corners"):
        coordinates, span = build.Multiply(coordinates, 2.0), build.Maximum(build.Subtract(span, 1.0), 1.0)
    else:
        coordinates = build.Add(build.Multiply(coordinates, 2.0), 1.0)
    return node.cast(build.Subtract(build.Divide(coordinates, span), 1.0), like.type.dtype)
