"""Images read at given positions; patches of images as columns."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.pt2.neural.convolution import batched, per_axis, unbatched
from aot.frontends.pt2.registry import Call, Size, aten
from aot.ir.graph import OutPort
from aot.opset.image.grid import Outside, SampleMode

MODES = (SampleMode.BILINEAR, SampleMode.NEAREST, SampleMode.BICUBIC)
OUTSIDE = (Outside.ZEROS, Outside.BORDER, Outside.REFLECTION)


@aten("grid_sampler.default", "grid_sampler_2d.default")
def grid_sampler(
    node: Call, x: OutPort, grid: OutPort, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> OutPort:
    node.refuse(x.type.rank != 4, "volumes are not supported")
    node.refuse(not 0 <= interpolation_mode < len(MODES), f"interpolation_mode is 0 to 2, got {interpolation_mode}")
    node.refuse(not 0 <= padding_mode < len(OUTSIDE), f"padding_mode is 0 to 2, got {padding_mode}")
    return node.build.GridSample(
        x, grid, align_corners=align_corners, mode=MODES[interpolation_mode], padding_mode=OUTSIDE[padding_mode]
    )


@aten("affine_grid_generator.default")
def affine_grid(node: Call, theta: OutPort, size: Sequence[Size], align_corners: bool) -> OutPort:
    """Positions [N, H, W, 2] of an affine map [N, 2, 3]."""
    build, dtype = node.build, theta.type.dtype
    node.refuse(len(size) != 4, "volumes are not supported")
    lines: list[OutPort] = []
    for n in size[2:]:
        count = node.port(n)
        steps = node.cast(build.Range(node.scalar(0), count, node.scalar(1)), dtype)
        whole = node.cast(count, dtype)
        if align_corners:
            last = build.Maximum(build.Subtract(whole, node.like(1, theta)), node.like(1, theta))
            place = build.Divide(build.Multiply(steps, node.like(2, theta)), last)
        else:
            place = build.Divide(build.Add(build.Multiply(steps, node.like(2, theta)), node.like(1, theta)), whole)
        lines.append(build.Subtract(place, node.like(1, theta)))
    shape = node.vector(list(size[2:]))
    rows = build.Broadcast(build.Unsqueeze(lines[0], node.list([1])), shape)
    columns = build.Broadcast(lines[1], shape)
    ones = build.Broadcast(node.like(1, theta), shape)
    last = node.list([2])
    points = build.Concat(*(build.Unsqueeze(p, last) for p in (columns, rows, ones)), axis=2)
    flat = build.Reshape(points, node.list([-1, 3]))
    found = build.MatMul(flat, theta, transpose_b=True)
    return build.Reshape(found, build.Concat(node.list([-1]), shape, node.list([2]), axis=0))


@aten("im2col.default")
def im2col(
    node: Call,
    x: OutPort,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int],
    padding: int | Sequence[int],
    stride: int | Sequence[int],
) -> OutPort:
    """[N, C KH KW, L]: the windows of an image as columns."""
    build = node.build
    kernel, gaps, pads, steps = (
        per_axis(node, v, 2, name)
        for v, name in ((kernel_size, "kernel_size"), (dilation, "dilation"), (padding, "padding"), (stride, "stride"))
    )
    whole, alone = batched(node, x, 2)
    around = node.list([0, 0, *pads])
    whole = build.Pad(whole, around, around, node.like(0, x))
    for axis, k, gap, step in zip((2, 4), kernel, gaps, steps, strict=True):
        span = gap * (k - 1) + 1
        count = build.Divide(build.Subtract(node.size(whole, axis), node.scalar(span - step)), node.scalar(step))
        starts = build.Multiply(build.Range(node.scalar(0), count, node.scalar(1)), node.scalar(step))
        whole = build.Gather(whole, _places(node, k, gap, starts), node.scalar(axis))
    order = build.Transpose(whole, node.list([0, 1, 2, 4, 3, 5]))
    rows = node.list([-1])
    sizes = [node.dims(order, [0]), build.ReduceProd(node.dims(order, [1, 2, 3]), node.list([0]), keep_dims=True), rows]
    return unbatched(node, build.Reshape(order, build.Concat(*sizes, axis=0)), alone)


def _places(node: Call, kernel: int, gap: int, starts: OutPort) -> OutPort:
    """Places [kernel, windows] along an axis."""
    within = node.build.Unsqueeze(node.list([gap * i for i in range(kernel)]), node.list([1]))
    return node.build.Add(within, starts)


@aten("col2im.default")
def col2im(
    node: Call,
    x: OutPort,
    output_size: Sequence[Size],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int],
    padding: int | Sequence[int],
    stride: int | Sequence[int],
) -> OutPort:
    """The sums of columns where windows overlap."""
    kernel, gaps, pads, steps = (
        per_axis(node, v, 2, name)
        for v, name in ((kernel_size, "kernel_size"), (dilation, "dilation"), (padding, "padding"), (stride, "stride"))
    )
    fields = {"strides": steps, "dilations": gaps, "pads_begin": pads, "pads_end": pads}
    return node.build.Col2Im(x, node.vector(output_size), node.list(kernel), **fields)
