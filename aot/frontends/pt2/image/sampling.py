"""Images at computed places: sampling grids, and the inverse of pooling."""

from __future__ import annotations

from collections.abc import Sequence

from aot.frontends.pt2.registry import AtenNode, Size, aten
from aot.ir.graph import OutPort

MODES = ("linear", "nearest", "cubic")  # modes by PyTorch's numbers
OUTSIDE = ("zeros", "border", "reflection")


@aten("grid_sampler.default", "grid_sampler_2d.default", "grid_sampler_3d.default")
def grid_sampler(
    node: AtenNode, x: OutPort, grid: OutPort, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> OutPort:
    node.refuse(interpolation_mode not in range(3), f"interpolation_mode is 0 to 2, got {interpolation_mode}")
    node.refuse(padding_mode not in range(3), f"padding_mode is 0 to 2, got {padding_mode}")
    mode, outside = MODES[interpolation_mode], OUTSIDE[padding_mode]
    return node.onnx("GridSample", x, grid, mode=mode, padding_mode=outside, align_corners=int(align_corners))


@aten("affine_grid_generator.default")
def affine_grid(node: AtenNode, theta: OutPort, size: Sequence[Size], align_corners: bool) -> OutPort:
    return node.onnx("AffineGrid", theta, node.vector(size), align_corners=int(align_corners))


@aten("max_unpool2d.default", "max_unpool3d.default")
def max_unpool(
    node: AtenNode,
    x: OutPort,
    indices: OutPort,
    output_size: Sequence[Size],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (),
) -> OutPort:
    """Elements at the places that pooling took them from, 0 elsewhere."""
    build = node.build
    lead = node.dims(x, range(x.type.rank - len(output_size)))
    sizes = node.vector(output_size)
    room = build.ReduceProd(sizes, node.list([0]), keep_dims=True)
    blank = build.Broadcast(node.like(0, x), build.Concat(lead, room, axis=0))
    flat = build.Concat(lead, node.list([-1]), axis=0)
    parts = [build.Reshape(p, flat) for p in (indices, x)]
    port = build.ScatterElementsUpdate(blank, *parts, node.scalar(-1))
    return build.Reshape(port, build.Concat(lead, sizes, axis=0))
