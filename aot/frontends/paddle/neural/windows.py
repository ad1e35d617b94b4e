"""Convolutions and pooling."""

from __future__ import annotations

from typing import Any

from aot.frontends.conversion.node_context import Value
from aot.frontends.paddle.registry import PaddleNode, paddle
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError


def _fields(node: PaddleNode, rank: int) -> dict[str, Any]:
    """Return strides, dilations and padding as attributes of ONNX."""
    fields: dict[str, Any] = node.pads(rank)
    if "auto_pad" not in fields or fields["auto_pad"] == "VALID":
        fields["dilations"] = node.paired("dilations", rank, (1,) * rank)
    return fields | {"strides": node.paired("strides", rank, (1,) * rank), "group": node.integer("groups", 1)}


@paddle("conv2d", "depthwise_conv2d", "conv3d")
def convolution(node: PaddleNode, x: OutPort, w: OutPort) -> OutPort:
    rank = 3 if node.kind.startswith("conv3d") else 2
    data, last = node.first(x, rank + 2)
    return node.back(node.onnx("Conv", data, w, **_fields(node, rank)), last)


@paddle("conv2d_transpose", "depthwise_conv2d_transpose")
def transposed(node: PaddleNode, x: OutPort, w: OutPort, size: Value = None) -> OutPort:
    """Convolve backwards; `output_size` says how many elements lie beyond the last window."""
    data, last = node.first(x)
    fields = _fields(node, 2)
    extra = node.integers("output_padding", ()) or (0, 0)
    target_sizes = () if size is None else node.ints(node.vector(size), "output_size")
    if target_sizes and "pads" in fields:
        pads, strides, dilations = fields["pads"], fields["strides"], fields["dilations"]
        extents = [node.extent(data, a, "the size of an image with output_size") for a in (2, 3)]
        kernel = [node.extent(w, a, "the size of the windows") for a in (2, 3)]
        own = [
            (extents[a] - 1) * strides[a] - pads[a] - pads[a + 2] + dilations[a] * (kernel[a] - 1) + 1 for a in (0, 1)
        ]
        extra = tuple(n - o for n, o in zip(target_sizes, own, strict=True))
    return node.back(node.onnx("ConvTranspose", data, w, **fields, output_padding=extra), last)


@paddle("pool2d", "pool3d")
def pooling(
    node: PaddleNode,
    x: OutPort,
    kernel: Value = None,
    *,
    pooling_type: str = "max",
    global_pooling: bool = False,
    adaptive: bool = False,
    ceil_mode: bool = False,
    exclusive: bool = True,
) -> OutPort:
    """Pool windows, or the whole image; of adaptive windows the kernel is the size of the result."""
    rank = 3 if node.kind.startswith("pool3d") else 2
    data, last = node.first(x, rank + 2)
    name = "MaxPool" if pooling_type == "max" else "AveragePool"
    sizes = node.integers("kernel_size", ()) if kernel is None else node.ints(node.vector(kernel), "the kernel")
    if global_pooling or (adaptive and all(n == 1 for n in sizes)):
        return node.back(node.onnx(f"Global{name}", data), last)
    if len(sizes) not in (1, rank):
        raise ModelError(f"{node.kind}: windows must have {rank} sizes, got {list(sizes)}")
    sizes = sizes if len(sizes) == rank else sizes * rank
    if adaptive:
        if name == "MaxPool":
            return node.back(node.build.AdaptiveMaxPool(data, node.list(sizes), outputs=2), last)
        return node.back(node.build.AdaptiveAvgPool(data, node.list(sizes)), last)
    fields: dict[str, Any] = {"kernel_shape": sizes, "ceil_mode": int(ceil_mode), **node.pads(rank)}
    fields["strides"] = node.paired("strides", rank, (1,) * rank)
    if name == "AveragePool":
        return node.back(node.onnx(name, data, **fields, count_include_pad=int(not exclusive)), last)
    return node.back(node.onnx(name, data, **fields)[0], last)


@paddle("max_pool2d_with_index")
def max_pool_with_index(
    node: PaddleNode, x: OutPort, *, global_pooling: bool = False, adaptive: bool = False, ceil_mode: bool = False
) -> tuple[OutPort, ...]:
    """Pool windows, and give the place of each maximum in its plane."""
    kernel = node.paired("kernel_size", 2)
    if global_pooling or adaptive:
        sizes = node.list((1, 1) if global_pooling else kernel)
        values = node.build.AdaptiveMaxPool(x, sizes, outputs=2)
        return values, node.cast(values.node.out_port(1), DType.I32)
    fields: dict[str, Any] = {"kernel_shape": kernel, "ceil_mode": int(ceil_mode), **node.pads(2)}
    values, *positions = node.onnx("MaxPool", x, strides=node.paired("strides", 2, (1, 1)), **fields)
    if not positions:
        return (values,)
    plane = node.build.ReduceProd(node.dims(x, (2, 3)), node.list([0]))
    return values, node.cast(node.build.FloorMod(positions[0], plane), DType.I32)


@paddle("deformable_conv")
def deformable_conv(node: PaddleNode, x: OutPort, offset: OutPort, w: OutPort, mask: OutPort | None = None) -> OutPort:
    fields = _fields(node, 2) | {"offset_group": node.integer("deformable_groups", 1)}
    return node.onnx("DeformConv", x, w, offset, None, mask, **fields)
