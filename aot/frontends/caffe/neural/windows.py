"""Convolution and pooling."""

from __future__ import annotations

from math import ceil
from typing import Any

from aot.frontends.caffe.registry import CaffeNode, caffe
from aot.ir.graph import OutPort
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

DEPTHWISE = ("ConvolutionDepthwise", "DepthwiseConvolution")  # kinds of other Caffe branches: one group per channel
POOLS = {"MAX": "MaxPool", "AVE": "AveragePool"}


def spatial(node: CaffeNode, name: str, field: str, rank: int, default: int) -> tuple[int, ...]:
    """Return a number for each spatial axis: those of `name_h` and `name_w`, or the one or several of `field`."""
    height, width = (node.attrs.get(f"{name}_{letter}") for letter in "hw")
    if height or width:
        return (int(height or 0), int(width or 0))
    sizes = node.attrs.get(field) or default
    several = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    if len(several) not in (1, rank):
        raise ModelError(f"{node.kind}: {field} must have one number or {rank}, got {list(several)}")
    return several * rank if len(several) == 1 else several


def _windows(node: CaffeNode, x: OutPort) -> dict[str, Any]:
    """Return the windows as attributes of ONNX. ModelError for windows that are empty."""
    rank = x.type.rank - 2
    kernel = spatial(node, "kernel", "kernel_size", rank, 0)
    strides = spatial(node, "stride", "stride", rank, 1)
    if rank < 1 or len(kernel) != rank or min(*kernel, *strides) < 1:
        raise ModelError(
            f"{node.kind}: windows must have {rank} sizes and strides from 1 on, got {kernel} and {strides}"
        )
    return {"kernel_shape": kernel, "strides": strides, "pads": spatial(node, "pad", "pad", rank, 0) * 2}


@caffe("Convolution", "Deconvolution", *DEPTHWISE, param="convolution_param")
def convolution(node: CaffeNode, x: OutPort, w: OutPort, b: OutPort | None = None) -> OutPort:
    """Weights are [outputs, inputs of a group, ..], of a Deconvolution [inputs, outputs of a group, ..]."""
    node.refuse(node.integer("axis") not in (1, 1 - x.type.rank), f"channels are axis 1, got {node.integer('axis')}")
    attrs = _windows(node, x)
    attrs["dilations"] = spatial(node, "dilation", "dilation", x.type.rank - 2, 1)
    attrs["group"] = node.integer("num_output") if node.kind in DEPTHWISE else node.integer("group")
    kind = "ConvTranspose" if node.kind == "Deconvolution" else "Conv"
    return node.onnx(kind, x, w, None if b is None else node.flat(b), **attrs)


@caffe("Pooling", param="pooling_param")
def pooling(node: CaffeNode, x: OutPort, *, global_pooling: bool) -> OutPort | tuple[OutPort, ...]:
    """Sizes are rounded up; a mean counts the padding, but not what is beyond it."""
    kind = node.choice("pool", POOLS)
    if global_pooling:
        return node.onnx(f"Global{kind}", x)
    return _pooled(node, x, kind, _windows(node, x))


def _pooled(node: CaffeNode, x: OutPort, kind: str, attrs: dict[str, Any]) -> OutPort | tuple[OutPort, ...]:
    up = node.flag("ceil_mode", True) and node.text("round_mode", "CEIL") == "CEIL"
    if up and not any(attrs["pads"]):
        for n, k, s in zip(x.shape[2:], attrs["kernel_shape"], attrs["strides"], strict=True):
            beyond = isinstance(n, int) and ceil((n - k) / s) * s >= n
            node.refuse(beyond, f"windows begin in the data, got {k} at distances of {s} in {n}")
    if kind == "AveragePool":
        return node.onnx(kind, x, **attrs, ceil_mode=up, count_include_pad=1)
    values, *positions = node.onnx(kind, x, **attrs, ceil_mode=up)
    if not positions:
        return values
    plane = node.build.ReduceProd(node.dims(x, range(2, x.type.rank)), node.list([0]))
    return values, node.cast(node.build.FloorMod(positions[0], plane), DType.F32)


@caffe("SPP", param="spp_param")
def pyramid(node: CaffeNode, x: OutPort, *, pyramid_height: int) -> OutPort:
    """Pool with 1, 2, 4 .. windows an axis; flatten and concatenate the outputs."""
    kind, levels = node.choice("pool", POOLS), list[OutPort]()
    for bins in (1 << level for level in range(pyramid_height)):
        sizes = [node.extent(x, a, "the size of an image") for a in (2, 3)]
        kernel = [ceil(n / bins) for n in sizes]
        pads = [(k * bins - n + 1) // 2 for n, k in zip(sizes, kernel, strict=True)]
        pooled = _pooled(node, x, kind, {"kernel_shape": kernel, "strides": kernel, "pads": pads * 2})
        levels.append(node.onnx("Flatten", pooled if isinstance(pooled, OutPort) else pooled[0], axis=1))
    return node.build.Concat(*levels, axis=1)
