"""Col2Im: an image summed from its patches."""

from __future__ import annotations

from aot.frontends.conversion.windowing import Windowing
from aot.frontends.onnx.arrays.axes import OPEN_END
from aot.frontends.onnx.arrays.generators import indices
from aot.frontends.onnx.neural.convolution import windowing
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.opset.movement.scatter import Combination
from aot.runtime.abi import DType


@onnx("Col2Im")
def col2im(node: OnnxNode, x: OutPort, size: OutPort, block: OutPort) -> OutPort:
    """[batch, channels * block, patches] -> [batch, channels, *size]; overlapping elements are summed."""
    rank = node.extent(size, 0, "the number of spatial axes")
    windows = windowing(node, rank)
    if rank == 2 and all(p.value is not None and p.value.dtype != object for p in (size, block)):
        return node.build.Col2Im(x, size, block, **windows.fields("auto_pad"))
    size = node.within(node.cast(size, DType.I64), 0, OPEN_END, "image sizes must not be negative")
    block = node.within(node.cast(block, DType.I64), 1, OPEN_END, "block sizes must be positive")
    return _added(node, x, size, block, windows)


def _added(node: OnnxNode, x: OutPort, size: OutPort, block: OutPort, windows: Windowing) -> OutPort:
    """Sum over any number of axes, also of dynamic size. The last element collects cut off elements."""
    build, rank, zero, first = node.build, len(windows.strides), node.scalar(0), node.list([0])
    positions, inside = _places(node, size, block, windows)
    room = build.ReduceProd(size, first, keep_dims=True)
    positions = build.Reshape(build.Select(inside, positions, room), node.list([-1]))
    channels = build.Divide(node.dims(x, [1]), build.ReduceProd(block, first, keep_dims=True))
    lead = build.Concat(node.dims(x, [0]), channels, axis=0)
    parts = build.Reshape(x, build.Concat(lead, build.ShapeOf(positions), axis=0))
    blank = build.Broadcast(node.like(0, x), build.Concat(lead, build.Add(room, 1), axis=0))
    where = build.Broadcast(positions, build.ShapeOf(parts))
    total = build.ScatterElementsUpdate(blank, where, parts, node.scalar(2), reduction=Combination.SUM)
    whole = build.Slice(total, first, room, node.list([1]), node.list([2]))
    sizes = [build.Gather(size, node.list([a]), zero) for a in range(rank)]
    return build.Reshape(whole, build.Concat(lead, *sizes, axis=0))


def _places(node: OnnxNode, size: OutPort, block: OutPort, windows: Windowing) -> tuple[OutPort, OutPort]:
    """Return the flat indices of [*block, *patches] in the image, and the mask of those inside of it."""
    build, rank = node.build, len(windows.strides)
    positions: OutPort | None = None
    inside: OutPort | None = None
    for a in range(rank):
        extent, kernel = (build.Gather(p, node.scalar(a), node.scalar(0)) for p in (size, block))
        step, gap = windows.strides[a], windows.dilations[a]
        room = build.Subtract(build.Add(extent, windows.begins[a] + windows.ends[a] - 1), build.Multiply(kernel, gap))
        count = build.Add(build.Divide(build.Add(room, gap), step), 1)
        rows, columns = indices(node, kernel), indices(node, count)
        at = build.Add(build.Unsqueeze(build.Multiply(rows, gap), node.list([1])), build.Multiply(columns, step))
        at = build.Subtract(at, windows.begins[a])
        at = build.Unsqueeze(at, node.list([i for i in range(2 * rank) if i not in (a, rank + a)]))
        here = build.LogicalAnd(build.GreaterEqual(at, node.scalar(0)), build.Less(at, extent))
        positions = at if positions is None else build.Add(build.Multiply(positions, extent), at)
        inside = here if inside is None else build.LogicalAnd(inside, here)
    assert positions is not None and inside is not None
    return positions, inside
