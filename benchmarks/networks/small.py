"""Small networks: few channels, wide windows, short products. A call takes as much of their time as a kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino as ov
from openvino import opset1
from openvino import opset13 as ops

from benchmarks.networks.net import Net


def faces() -> ov.Model:
    net = Net()
    x = ops.parameter([1, 3, 256, 256], np.float32, "x")
    y = ops.relu(net.conv(x, 24, 5, 2))
    for width, stride in ((24, 1), (28, 1), (32, 2), (36, 1), (42, 1), (48, 2), (56, 1), (64, 1), (72, 1), (96, 1)):
        beside = y if stride == 1 else opset1.max_pool(y, [2, 2], [0, 0], [0, 0], [2, 2])
        more = width - y.get_output_shape(0)[1]
        if more:
            none, after = (ops.constant(np.array([0, n, 0, 0], np.int64)) for n in (0, more))
            beside = ops.pad(beside, none, after, "constant")
        y = ops.relu(ops.add(net.conv(net.windows(y, stride, 5), width), beside))
    return ov.Model([ops.sigmoid(net.conv(y, 2)), net.conv(y, 32)], [x], "faces")


def _separable(net: Net, x: ov.Node, channels: int, size: int, stride: int = 1) -> ov.Node:
    """Windows over channels and 1x1, each with an h-swish."""
    return ops.hswish(net.conv(ops.hswish(net.windows(x, stride, size)), channels))


def lcnet() -> ov.Model:
    net = Net()
    x = ops.parameter([1, 3, 224, 224], np.float32, "x")
    y = ops.hswish(net.conv(x, 16, 3, 2))
    for width, size, stride in (
        *((32, 3, 1), (64, 3, 2), (64, 3, 1), (128, 3, 2), (128, 3, 1), (256, 3, 2)),
        *((256, 5, 1),) * 3,
    ):
        y = _separable(net, y, width, size, stride)
    scale = ops.reduce_mean(y, ops.constant(np.array([2, 3], np.int64)), True)
    y = ops.multiply(y, ops.hsigmoid(net.conv(ops.relu(net.conv(scale, 64)), 256)))
    return ov.Model([net.head(y, 1000)], [x], "lcnet")


def picodet() -> ov.Model:
    net = Net()
    x = ops.parameter([1, 3, 256, 256], np.float32, "x")
    y = ops.hswish(net.conv(x, 16, 3, 2))
    kept = list[ov.Node]()
    for width, stride, blocks in ((32, 2, 1), (64, 2, 2), (96, 2, 2), (192, 2, 2)):
        for block in range(blocks):
            y = _separable(net, y, width, 3, 1 if block else stride)
        kept.append(y)
    levels = [net.conv(y, 96) for y in kept[1:]]
    for fine in (1, 0):
        levels[fine] = _separable(net, ops.concat([_enlarged(levels[fine + 1]), levels[fine]], 1), 96, 5)
    heads = [net.conv(_separable(net, _separable(net, y, 96, 5), 96, 5), 48) for y in levels]
    flat = [ops.reshape(y, ops.constant(np.array([1, 48, -1], np.int64)), False) for y in heads]
    return ov.Model([ops.concat(flat, 2)], [x], "picodet")


def _enlarged(x: ov.Node) -> ov.Node:
    """Each pixel twice, in both directions."""
    factor, axes = ops.constant(np.array([2.0, 2.0], np.float32)), ops.constant(np.array([2, 3], np.int64))
    return ops.interpolate(x, factor, "nearest", "scales", None, None, "asymmetric", "floor", axes=axes)


def wide() -> ov.Model:
    net = Net()
    x = ops.parameter([1, 8, 172, 264], np.float32, "x")
    w = net.weights(8, 8, 3, 39, fan=8 * 3 * 39)
    y = ops.convolution(x, w, [1, 1], [1, 19], [1, 19], [1, 1])
    return ov.Model([ops.relu(ops.add(y, net.weights(1, 8, 1, 1, fan=100)))], [x], "wide")


def patches(layers: int = 4, width: int = 128, heads: int = 4, size: int = 8) -> ov.Model:
    net = Net()
    x = ops.parameter([1, 3, 96, 96], np.float32, "x")
    depth, tokens = 3 * size * size, (96 // size) ** 2
    y = ops.convolution(x, net.weights(width, 3, size, size, fan=depth), [size] * 2, [0, 0], [0, 0], [1, 1])
    y = ops.reshape(y, ops.constant(np.array([1, width, tokens], np.int64)), False)
    y = ops.transpose(y, ops.constant(np.array([0, 2, 1], np.int64)))
    for _ in range(layers):
        y = ops.add(y, net.attention(net.norm(y), heads)[0])
        y = ops.add(y, net.linear(ops.gelu(net.linear(net.norm(y), 4 * width), "erf"), width))
    return ov.Model([net.linear(ops.reduce_mean(y, ops.constant(np.array([1], np.int64)), False), 100)], [x], "patches")


def prompt(layers: int = 4, width: int = 256, heads: int = 4, length: int = 32) -> ov.Model:
    net = Net()
    x = ops.parameter([1, length, width], np.float32, "x")
    y: ov.Node = x
    for _ in range(layers):
        y = ops.add(y, net.attention(net.norm(y), heads)[0])
        inner = net.norm(y)
        gated = ops.multiply(ops.swish(net.linear(inner, 3 * width)), net.linear(inner, 3 * width))
        y = ops.add(y, net.linear(gated, width))
    return ov.Model([y], [x], "prompt")


SMALL: dict[str, Callable[[], ov.Model]] = {
    "faces": faces,
    "lcnet": lcnet,
    "picodet": picodet,
    "wide": wide,
    "patches": patches,
    "prompt": prompt,
}
