"""Products near quantised ones that stay sums of floats: sums of integers would differ, or gain nothing."""

from __future__ import annotations

import numpy as np
import pytest

from aot.ir.build import Builder
from aot.ir.graph import OutPort
from tests.lowering.check import conv, ints
from tests.lowering.quantized import (
    F32,
    I8,
    IMAGE,
    bytes_of,
    check,
    convolution,
    data,
    fake,
    quantized,
    weights,
    whole,
)


@pytest.mark.parametrize("case", ["one row", "one column", "few channels", "of channels and pictures"])
def test_windows_that_stay_in_floats(case: str) -> None:
    """Their words would be used once, or weights belong to more than a channel."""

    def make(b: Builder, x: OutPort) -> OutPort:
        channels = 4 if case == "few channels" else 16
        kernel = {"one row": (1, 3), "one column": (3, 1)}.get(case, (3, 3))
        w = b.Convert(b.const(whole(channels, *kernel).reshape(channels, 1, 1, *kernel), I8), destination_type=F32)
        y = quantized(b, x)
        pads = [n // 2 for n in kernel]
        if case == "of channels and pictures":
            y = b.Multiply(y, b.const(np.linspace(1, 2, 16).reshape(1, 16, 1, 1), F32))
        y = b.GroupConvolution(y, w, strides=(1, 1), pads_begin=pads, pads_end=pads, dilations=(1, 1))
        return b.Relu(y)

    shape = (1, 4 if case == "few channels" else 16, 7, 9)
    check(make, shape, dots=None)


def test_sums_that_32_bits_may_not_hold() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        return b.MatMul(b.Abs(quantized(b, x, 0)), b.Abs(weights(b, 8, x.type.static_shape[1])), transpose_b=True)

    check(make, (2, 70000), dots=0)


def test_weights_that_are_no_multiples() -> None:
    check(lambda b, x: conv(b, quantized(b, x), 24), IMAGE, dots=0)


def test_one_output_that_is_no_multiple() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        w = whole(40, 64).astype(np.float32) * np.float32(0.01)
        w[17, 60] *= 1.001
        return b.MatMul(quantized(b, x), b.const(w, F32), transpose_b=True)

    check(make, (6, 64), dots=0)


def test_data_that_nobody_quantized() -> None:
    check(lambda b, x: convolution(b, b.Relu(x), 24), IMAGE, dots=0)


@pytest.mark.parametrize("case", ["few outputs", "few terms", "weights that are made", "both quantised"])
def test_products_that_gain_nothing(case: str) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        y = quantized(b, x)
        match case:
            case "few outputs":
                return b.MatMul(y, weights(b, 2, 64), transpose_b=True)
            case "few terms":
                return b.MatMul(b.Reshape(y, ints(b, 96, 4)), weights(b, 40, 4), transpose_b=True)
            case "weights that are made":
                return b.MatMul(y, b.Exp(b.Multiply(x, 0.01)), transpose_b=True)
            case _:
                return b.MatMul(y, y, transpose_b=True)

    check(make, (6, 64), dots=0)


def test_an_offset_between_two_steps() -> None:
    x = data(*IMAGE, scale=6 / 255) - np.float32(3)
    check(lambda b, x: convolution(b, fake(b, x, -3.0, 3.0, 256), 24), IMAGE, dots=0, inputs=[x])


def test_scales_of_channels_that_are_summed() -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        scales = b.const(np.linspace(0.01, 0.02, 16).reshape(1, 16, 1, 1), F32)
        return convolution(b, b.Multiply(b.Convert(bytes_of(b, x), destination_type=F32), scales), 24)

    check(make, IMAGE, dots=0)
