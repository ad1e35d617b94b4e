"""MediaPipe's custom operations of segmenters: pooling with places, its inverse, transposed convolution with a bias.

Their options are structures of C: padding (1: SAME, 2: VALID), strides x and y, sizes of windows x and y, activation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from aot.frontends.tflite.custom_options import numbers
from aot.frontends.tflite.neural.pooling import windows
from aot.frontends.tflite.registry import TfliteNode, tflite
from aot.ir.graph import OutPort
from aot.opset.products.pool_windows import AutoPad
from aot.runtime.abi import DType
from aot.runtime.errors import ModelError

SAME, VALID = 1, 2
MAX_PIXELS = 1 << 16  # elements of a stride or a window
POOLING = ("stride_w", "stride_h", "filter_width", "filter_height")


def padding(node: TfliteNode, kind: int) -> int:
    """Return the padding of the options as the schema counts."""
    node.refuse(kind not in (SAME, VALID), f"padding {kind} is not supported")
    return kind - SAME


def pooling(node: TfliteNode) -> TfliteNode:
    """Return the call with the options of pooling as attributes of MAX_POOL_2D."""
    kind, *sizes, activation = numbers(node, 6)
    if not all(0 < size < MAX_PIXELS for size in sizes):
        raise ModelError(f"{node.kind}: strides and windows must be 1 to {MAX_PIXELS - 1}, got {sizes}")
    read: dict[str, Any] = dict(zip(POOLING, sizes, strict=True))
    read |= {"padding": padding(node, kind), "fused_activation_function": activation}
    return replace(node, attrs={**node.attrs, **read})


@tflite("CUSTOM.MaxPoolingWithArgmax2D")
def max_pool_with_places(node: TfliteNode, x: OutPort) -> tuple[OutPort, OutPort]:
    """Maxima, and the place of each in its window: row * width + column + 0.1, in f32."""
    build, call = node.build, pooling(node)
    fields = windows(call)
    sizes = [node.extent(node.image(x), axis, "the size of images") for axis in (1, 2)]
    port = build.MaxPool_8(
        node.to_channels_first(x), axis=2, dilations=(1, 1), index_element_type=DType.I64, outputs=2, **fields
    )
    maxima, positions = (node.to_channels_last(p) for p in port.node.out_ports().values())
    kernel, strides = fields["kernel"], fields["strides"]
    firsts = [_firsts(*facts, fields["auto_pad"]) for facts in zip(sizes, kernel, strides, strict=True)]
    start = firsts[0][:, None, None] * kernel[1] + firsts[1][None, :, None]  # of the windows, as a place
    row, column = build.Divide(positions, sizes[1]), build.FloorMod(positions, sizes[1])
    within = build.Subtract(build.Add(build.Multiply(row, kernel[1]), column), build.const(start, DType.I64))
    return call.activated(maxima), build.Add(node.cast(within, DType.F32), 0.1)


def _firsts(size: int, kernel: int, stride: int, pad: AutoPad) -> np.ndarray:
    """Return where the windows of an axis begin, in padding, too."""
    if pad is AutoPad.VALID:
        return np.arange(max(0, (size - kernel) // stride + 1), dtype=np.int64) * stride
    count = -(-size // stride)
    return np.arange(count, dtype=np.int64) * stride - max(0, (count - 1) * stride + kernel - size) // 2


@tflite("CUSTOM.MaxUnpooling2D")
def max_unpool(node: TfliteNode, x: OutPort, positions: OutPort) -> OutPort:
    """Windows of 0 with each number at its place, as MaxPoolingWithArgmax2D gives it; windows do not overlap."""
    build, fields = node.build, windows(pooling(node))
    down, across = fields["kernel"]
    node.refuse(fields["strides"] != (down, across), "strides other than the size of windows are not supported")
    axes = node.list([2, 4])
    wide = build.Unsqueeze(node.image(x), axes)
    own = build.Unsqueeze(node.cast(node.image(positions), DType.I32), axes)
    all_places = build.const(np.arange(down * across, dtype=np.int32).reshape(down, 1, across, 1), DType.I32)
    spread = build.Select(build.Equal(own, all_places), wide, node.like(0, x))
    rows = build.Multiply(node.dims(x, [1, 2]), node.list([down, across]))
    return build.Reshape(spread, build.Concat(node.dims(x, [0]), rows, node.dims(x, [3]), axis=0))


@tflite("CUSTOM.Convolution2DTransposeBias")
def transpose_conv_with_bias(node: TfliteNode, x: OutPort, w: OutPort, bias: OutPort) -> OutPort:
    """TRANSPOSE_CONV with a bias, weights [outputs, .., inputs]; with SAME, a result that strides x makes of it."""
    kind, across, down = numbers(node, 3)
    name = ("SAME", "VALID")[padding(node, kind)]
    if not 0 < across < MAX_PIXELS or not 0 < down < MAX_PIXELS:
        raise ModelError(f"{node.kind}: strides must be 1 to {MAX_PIXELS - 1}, got {down} and {across}")
    build, strides = node.build, (down, across)
    extents = [node.extent(node.image(x), a, "the size of images") for a in (1, 2)]
    kernel = [node.extent(node.image(w), a, "the size of windows") for a in (1, 2)]
    wide = [
        (n - 1) * s + (min(k, (n - 1) % s + 1) if kind == SAME else k)
        for n, s, k in zip(extents, strides, kernel, strict=True)
    ]
    sizes = build.Concat(node.dims(x, [0]), node.list(wide), node.dims(w, [0]), axis=0)
    transposed_w = build.Transpose(w, node.list([1, 2, 0, 3]))
    attrs = {"strides": (1, *strides, 1), "dilations": (1,) * 4, "padding": name}
    return build.Add(node.tf("Conv2DBackpropInput", sizes, transposed_w, x, **attrs), bias)
