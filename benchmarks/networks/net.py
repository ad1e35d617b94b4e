"""Layers of the networks that `benchmarks.models` makes, with seeded weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import openvino as ov
from openvino import opset13 as ops

SEED = 0


class Net:
    """Layers with seeded weights, scaled so that values neither grow nor vanish."""

    def __init__(self) -> None:
        self.noise = np.random.default_rng(SEED)

    def weights(self, *shape: int, fan: int) -> ov.Node:
        return ops.constant((self.noise.standard_normal(shape) * (1.5 / fan) ** 0.5).astype(np.float32))

    def conv(self, x: ov.Node, channels: int, size: int = 1, stride: int = 1) -> ov.Node:
        """Convolution and bias."""
        depth, pad = x.get_output_shape(0)[1], size // 2
        w = self.weights(channels, depth, size, size, fan=depth * size * size)
        y = ops.convolution(x, w, [stride, stride], [pad, pad], [pad, pad], [1, 1])
        return ops.add(y, self.weights(1, channels, 1, 1, fan=100))

    def dilated(self, x: ov.Node, channels: int, dilation: int) -> ov.Node:
        depth, pad, steps = x.get_output_shape(0)[1], [dilation] * 2, [dilation] * 2
        w = self.weights(channels, depth, 3, 3, fan=9 * depth)
        return ops.add(ops.convolution(x, w, [1, 1], pad, pad, steps), self.weights(1, channels, 1, 1, fan=100))

    def deep(self, x: ov.Node, channels: int) -> ov.Node:
        """3x3x3, bias and ReLU."""
        depth, ones = x.get_output_shape(0)[1], [1] * 3
        w = self.weights(channels, depth, 3, 3, 3, fan=27 * depth)
        y = ops.convolution(x, w, ones, ones, ones, ones)
        return ops.relu(ops.add(y, self.weights(1, channels, 1, 1, 1, fan=100)))

    def depthwise(self, x: ov.Node, stride: int = 1, size: int = 3) -> ov.Node:
        return ops.clamp(self.windows(x, stride, size), 0.0, 6.0)

    def windows(self, x: ov.Node, stride: int = 1, size: int = 3) -> ov.Node:
        """Windows over channels and bias."""
        channels, pad = x.get_output_shape(0)[1], [size // 2] * 2
        w = self.weights(channels, 1, 1, size, size, fan=size * size)
        y = ops.group_convolution(x, w, [stride, stride], pad, pad, [1, 1])
        return ops.add(y, self.weights(1, channels, 1, 1, fan=100))

    def grouped(self, x: ov.Node, channels: int, size: int, groups: int) -> ov.Node:
        depth, pad = x.get_output_shape(0)[1] // groups, size // 2
        w = self.weights(groups, channels // groups, depth, size, size, fan=depth * size * size)
        y = ops.group_convolution(x, w, [1, 1], [pad, pad], [pad, pad], [1, 1])
        return ops.add(y, self.weights(1, channels, 1, 1, fan=100))

    def linear(self, x: ov.Node, width: int) -> ov.Node:
        depth = x.get_output_shape(0)[-1]
        return ops.add(ops.matmul(x, self.weights(width, depth, fan=depth), False, True), self.weights(width, fan=100))

    def head(self, x: ov.Node, classes: int) -> ov.Node:
        """Global average pooling and a linear layer."""
        pooled = ops.reduce_mean(x, ops.constant(np.array([2, 3], np.int64)), False)
        return self.linear(pooled, classes)

    def group_norm(self, x: ov.Node, groups: int) -> ov.Node:
        """Of channels, as ONNX spells it, with a factor and a term for each."""
        shape = x.get_output_shape(0)
        rows = ops.reshape(x, ops.constant(np.array([0, groups, -1], np.int64)), True)
        rows = ops.mvn(rows, ops.constant(np.array([2], np.int64)), True, 1e-5, "inside_sqrt")
        y = ops.reshape(rows, ops.constant(np.array(shape, np.int64)), False)
        factors = [self.weights(1, shape[1], *[1] * (len(shape) - 2), fan=100) for _ in range(2)]
        return ops.add(ops.multiply(y, ops.add(factors[0], ops.constant(np.float32(1)))), factors[1])

    def timed(self, x: ov.Node, channels: int, taps: int = 1, dilation: int = 1, depthwise: bool = False) -> ov.Node:
        """A convolution over time [N, C, T], with its bias."""
        depth, pad = x.get_output_shape(0)[1], [taps // 2 * dilation]
        shape = (channels, 1, 1, taps) if depthwise else (channels, depth, taps)
        convolve = ops.group_convolution if depthwise else ops.convolution
        y = convolve(x, self.weights(*shape, fan=taps * (1 if depthwise else depth)), [1], pad, pad, [dilation])
        return ops.add(y, self.weights(1, channels, 1, fan=100))

    def norm(self, x: ov.Node) -> ov.Node:
        width = x.get_output_shape(0)[-1]
        y = ops.mvn(x, ops.constant(np.array([-1], np.int64)), True, 1e-5, "inside_sqrt")
        return ops.add(ops.multiply(y, ops.constant(np.ones(width, np.float32))), self.weights(width, fan=100))

    def attention(self, x: ov.Node, heads: int, past: Sequence[ov.Node] = ()) -> tuple[ov.Node, list[ov.Node]]:
        """Attend to the tokens of `x`, and to keys and values of earlier ones.

        `past`: keys and values [1, heads, tokens, width / heads], or nothing. Return the result, and the keys and
        values of all tokens.
        """
        _, length, width = x.get_output_shape(0)
        split = ops.constant(np.array([1, length, heads, width // heads], np.int64))
        swap = ops.constant(np.array([0, 2, 1, 3], np.int64))
        q, k, v = (ops.transpose(ops.reshape(self.linear(x, width), split, False), swap) for _ in range(3))
        if past:
            k, v = (ops.concat([before, now], 2) for before, now in zip(past, (k, v), strict=True))
        scale = ops.constant(np.float32((width // heads) ** -0.5))
        weights = ops.softmax(ops.multiply(ops.matmul(q, k, False, True), scale), -1)
        mixed = ops.transpose(ops.matmul(weights, v, False, False), swap)
        joined = ops.reshape(mixed, ops.constant(np.array([1, length, width], np.int64)), False)
        return self.linear(joined, width), [k, v]
