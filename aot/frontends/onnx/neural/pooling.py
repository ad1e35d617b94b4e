"""Pooling."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from aot.frontends.onnx.neural.convolution import spatial_rank, windowing
from aot.frontends.onnx.registry import OnnxNode, onnx
from aot.ir.graph import OutPort
from aot.opset.detection.roi_align import Aligned
from aot.opset.products.pool_windows import Rounding
from aot.opset.products.pooling import Counted
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError


def _rounding(node: OnnxNode) -> Rounding:
    """Return the rounding of the number of windows; no window starts in the padding at the end."""
    return Rounding.CEIL_TORCH if node.flag("ceil_mode") else Rounding.FLOOR


@onnx("MaxPool")
def max_pool(node: OnnxNode, x: OutPort) -> tuple[OutPort, ...]:
    fields = windowing(node, spatial_rank(node, x)).fields()
    indexed = len(node.outputs) > 1 and node.outputs[1]
    kernel, rounding = node.integers("kernel_shape"), _rounding(node)
    pool = node.build.MaxPool_8(x, kernel=kernel, rounding_type=rounding, **fields, outputs=2)
    if not indexed:
        return (pool,)
    positions = pool.node.out_port(1)
    return pool, _columns_first(node, positions, x) if node.flag("storage_order") else positions


def _columns_first(node: OnnxNode, positions: OutPort, x: OutPort) -> OutPort:
    """Transpose flat indices to a tensor that stores the last axes in reverse order."""
    build, sizes = node.build, x.type.static_shape[2:]
    outside = build.Multiply(build.Divide(positions, prod(sizes)), prod(sizes))
    rest, total, step = positions, outside, prod(sizes)
    for n in reversed(sizes):
        step //= n
        total = build.Add(total, build.Multiply(build.FloorMod(rest, n), step))
        rest = build.Divide(rest, n)
    return total


@onnx("AveragePool")
def average_pool(node: OnnxNode, x: OutPort, *, count_include_pad: bool = False) -> OutPort:
    return _averaged(node, x, not count_include_pad)


def _averaged(node: OnnxNode, x: OutPort, exclude_pad: bool) -> OutPort:
    fields = windowing(node, spatial_rank(node, x)).fields()
    fields |= {"kernel": node.integers("kernel_shape"), "rounding_type": _rounding(node)}
    if not exclude_pad and fields["rounding_type"] is not Rounding.FLOOR:
        return node.build.CountedAvgPool(x, **fields)  # counts padding, but not the overhang of rounding up
    is_undilated = all(d == 1 for d in fields["dilations"])
    if is_undilated:
        del fields["dilations"]
    pool = node.build.AvgPool if is_undilated else node.build.AvgPool_16
    return pool(x, exclude_pad=exclude_pad, **fields)


@onnx("GlobalAveragePool")
def global_average_pool(node: OnnxNode, x: OutPort) -> OutPort:
    return node.build.ReduceMean(x, node.list(range(2, x.type.rank)), keep_dims=True)


@onnx("GlobalMaxPool")
def global_max_pool(node: OnnxNode, x: OutPort) -> OutPort:
    return node.build.ReduceMax(x, node.list(range(2, x.type.rank)), keep_dims=True)


@onnx("LpPool")
def lp_pool(node: OnnxNode, x: OutPort) -> OutPort:
    """(sum |x|^p)^(1/p): the mean that counts padding, times the size of the kernel."""
    build, p = node.build, float(node.integer("p", 2))
    powers = build.Multiply(x, x) if p == 2 else build.Power(build.Abs(x), p)
    kernel, rounding = node.integers("kernel_shape"), _rounding(node)
    if rounding is Rounding.FLOOR:
        mean = _averaged(node, powers, False)
    else:
        fields = windowing(node, spatial_rank(node, x)).fields() | {"kernel": kernel, "rounding_type": rounding}
        mean = build.CountedAvgPool(powers, **fields, counting=Counted.KERNEL)
    total = build.Multiply(mean, float(prod(kernel)))
    return build.Sqrt(total) if p == 2 else build.Power(total, 1 / p)


@onnx("GlobalLpPool")
def global_lp_pool(node: OnnxNode, x: OutPort, *, p: int = 2) -> OutPort:
    build = node.build
    total = build.ReduceSum(build.Power(build.Abs(x), float(p)), node.list(range(2, x.type.rank)), keep_dims=True)
    return build.Power(total, 1 / p)


@onnx("MaxUnpool")
def max_unpool(node: OnnxNode, x: OutPort, indices: OutPort, size: OutPort | None = None) -> OutPort:
    """Write elements back to their indices in the flat tensor."""
    build, rank = node.build, x.type.rank - 2
    windows, kernel = windowing(node, rank), node.integers("kernel_shape")
    small = x.type.static_shape
    if len(kernel) != rank:
        raise ModelError(f"MaxUnpool: {rank} spatial axes need as many kernel sizes, got {len(kernel)}")
    counts = zip(small[2:], windows.strides, kernel, windows.begins, windows.ends, strict=True)
    natural = (*small[:2], *((n - 1) * s + k - b - e for n, s, k, b, e in counts))
    shape = node.list(natural) if size is None else size
    flat = node.reshape(indices, (-1,))
    if size is not None:
        count = node.extent(size, 0, "the length of output_shape")
        node.refuse(count != len(natural), f"output_shape must have {len(natural)} numbers, got {count}")
        flat = _moved(node, flat, natural, size)
    zeros = build.Broadcast(node.like(0, x), build.ReduceProd(shape, node.list([0]), keep_dims=True))
    out = build.ScatterElementsUpdate(zeros, flat, node.reshape(x, (-1,)), node.scalar(0))
    return build.Reshape(out, shape)


def _moved(node: OnnxNode, rest: OutPort, old: tuple[int, ...], new: OutPort) -> OutPort:
    """Convert flat indices into shape `old` to flat indices into shape `new`."""
    build, total, step = node.build, node.list([0]), node.scalar(1)
    for a in reversed(range(len(old))):
        total = build.Add(total, build.Multiply(build.FloorMod(rest, node.list([old[a]])), step))
        rest = build.Divide(rest, node.list([old[a]]))
        step = build.Multiply(step, build.Gather(new, node.scalar(a), node.scalar(0)))
    return total


@onnx("MaxRoiPool")
def max_roi_pool(
    node: OnnxNode, x: OutPort, rois: OutPort, *, pooled_shape: Sequence[int], spatial_scale: float = 1.0
) -> OutPort:
    height, width = pooled_shape
    return node.build.ROIPooling(x, rois, pooled_h=height, pooled_w=width, spatial_scale=spatial_scale)


@onnx("RoiAlign")
def roi_align(node: OnnxNode, x: OutPort, rois: OutPort, batches: OutPort) -> OutPort:
    default = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    table = {"half_pixel": Aligned.HALF_PIXEL_FOR_NN, "output_half_pixel": Aligned.ASYMMETRIC}
    is_mean = node.choice("mode", {"avg": True, "max": False}, "avg")
    return (node.build.ROIAlign if is_mean else node.build.CornerMaxAlign)(
        x,
        rois,
        node.cast(batches, DType.I32),
        pooled_h=node.integer("output_height", 1),
        pooled_w=node.integer("output_width", 1),
        sampling_ratio=node.integer("sampling_ratio", 0),
        spatial_scale=node.number("spatial_scale", 1.0),
        aligned_mode=node.choice("coordinate_transformation_mode", table, default),
    )
