"""Zero points of products of bytes: constants, of run time, and those that the data decide."""

from __future__ import annotations

import numpy as np
import pytest

from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import OutPort
from aot.ir.interpret import interpret
from aot.lowering.numbers.use_integer_dots import middle_of
from aot.runtime.abi import DType
from tests.lowering.check import ints
from tests.lowering.quantized import (
    F32,
    I8,
    I32,
    IMAGE,
    U8,
    bytes_of,
    check,
    data,
    quantized,
    weights,
    whole,
)
from tests.passes.check import graph_of


@pytest.mark.parametrize(("zero", "dots"), [(0, 1), (255, 1), (300, 0)])
def test_long_sums_less_a_zero_that_is_no_byte(zero: int, dots: int) -> None:
    """Differences up to 300 times 127, 60000 of them, are more than 32 bits hold."""

    def make(b: Builder, x: OutPort) -> OutPort:
        w = b.Abs(weights(b, 8, x.type.static_shape[1]))
        number = b.Convert(bytes_of(b, x, 0), destination_type=F32)
        return b.MatMul(b.Subtract(b.Subtract(number, 200.0), float(zero - 200)), w, transpose_b=True)

    check(make, (2, 60000), dots=dots, inputs=[-np.ones((2, 60000), np.float32)])


@pytest.mark.parametrize("zero", [0, 100, 255])
@pytest.mark.parametrize("taps", [0, 3])
def test_weights_of_unsigned_bytes_with_any_zero_point(taps: int, zero: int) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        w = np.random.default_rng(zero).integers(0, 256, (24, 16, taps, taps) if taps else (24, 16))
        w.reshape(24, -1)[:, :3] = 0, 255, zero + 1 if zero < 255 else 254
        number = b.Subtract(b.Convert(b.const(w.astype(np.uint8), U8), destination_type=F32), float(zero))
        scaled, y = b.Multiply(number, b.const(0.003, F32)), quantized(b, x)
        if not taps:
            return b.MatMul(y, scaled, transpose_b=True)
        return b.Convolution(y, scaled, strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1))

    check(make, IMAGE if taps else (9, 16), dots=1, spread=True)


@pytest.mark.parametrize("zero", [0.0, 3.0, 255.0])
def test_a_zero_point_of_run_time(zero: float) -> None:
    """Dynamic quantisation: scale and zero point are found when the network runs."""

    def make(b: Builder, x: OutPort, scale: OutPort, at: OutPort) -> OutPort:
        z = b.Convert(at, destination_type=U8)
        level = b.Add(b.Round(b.Divide(x, scale)), b.Convert(z, destination_type=F32))
        q = b.Convert(b.Clamp(level, min=0.0, max=255.0), destination_type=U8)
        number = b.Subtract(b.Convert(q, destination_type=F32), b.Convert(z, destination_type=F32))
        return b.MatMul(b.Multiply(number, scale), weights(b, 40, 64), transpose_b=True)

    inputs = [data(6, 64, scale=0.25), np.array(0.25, np.float32), np.array(zero, np.float32)]
    check(make, (6, 64), (), (), dots=1, inputs=inputs)


def dynamic(b: Builder, x: OutPort, scale: OutPort, at: OutPort, dtype: DType = U8) -> OutPort:
    """Quantise by a scale and a zero point of run time, and subtract the zero point again, in i32."""
    low, high = (0.0, 255.0) if dtype is U8 else (-128.0, 127.0)
    z = b.Convert(at, destination_type=dtype)
    level = b.Add(b.Round(b.Divide(x, scale)), b.Convert(z, destination_type=F32))
    q = b.Convert(b.Clamp(level, min=low, max=high), destination_type=dtype)
    return b.Subtract(b.Convert(q, destination_type=I32), b.Convert(z, destination_type=I32))


@pytest.mark.parametrize(
    ("taps", "stride", "channels", "dtype"), [(3, 1, 16, U8), (3, 1, 16, I8), (5, 2, 16, U8), (3, 1, 3, I8)]
)
def test_padded_windows_with_a_zero_point_of_run_time(taps: int, stride: int, channels: int, dtype: DType) -> None:
    """ConvInteger as it is read: the padding is the zero point, and sums are exact."""

    def make(b: Builder, x: OutPort, scale: OutPort, at: OutPort) -> OutPort:
        w = b.Convert(b.const(whole(24, channels, taps, taps), I8), destination_type=I32)
        pads, strides = [taps // 2] * 2, [stride] * 2
        return b.Convolution(
            dynamic(b, x, scale, at, dtype), w, strides=strides, pads_begin=pads, pads_end=pads, dilations=(1, 1)
        )

    shape = (1, channels, 7, 9)
    inputs = [data(*shape, scale=0.25), np.array(0.25, np.float32), np.array(5, np.float32)]
    model = in_memory(check(make, shape, (), (), dots=1, inputs=inputs, spread=True).built)
    for zero in (5, 0, 77, 255) if dtype is U8 else (5, -128):
        inputs[2] = np.array(zero, np.float32)
        expected = interpret(graph_of(make, shape, (), ()), inputs)[0]
        np.testing.assert_array_equal(model(*inputs)[0], expected, err_msg=str(zero))


@pytest.mark.parametrize("size", [3, 40])
def test_a_zero_point_that_the_data_decide(size: int) -> None:
    """DynamicQuantizeLinear: small pictures find the range and the bytes in one kernel, large ones in several."""

    def make(b: Builder, x: OutPort) -> OutPort:
        axes = ints(b, 0, 1, 2, 3)
        low, high = b.Minimum(b.ReduceMin(x, axes), 0.0), b.Maximum(b.ReduceMax(x, axes), 0.0)
        scale = b.Divide(b.Subtract(high, low), 255.0)
        at = b.Round(b.Clamp(b.Divide(b.Negative(low), scale), min=0.0, max=255.0))
        w = b.Convert(b.const(whole(24, 16, 3, 3), I8), destination_type=I32)
        q = dynamic(b, x, scale, at)
        return b.Convolution(q, w, strides=(1, 1), pads_begin=(1, 1), pads_end=(1, 1), dilations=(1, 1))

    x = np.random.default_rng(size).integers(-100, 156, (1, 16, size, size)).astype(np.float32)
    x[0, 0, 0, :2] = -100, 155  # so that the scale is 1
    made = check(make, x.shape, dots=1, inputs=[x])
    np.testing.assert_array_equal(in_memory(made.built)(x)[0], interpret(graph_of(make, x.shape), [x])[0])


@pytest.mark.parametrize(
    ("dtype", "low", "high", "middle"),
    [
        (U8, 0, 255, 0),
        (U8, -3, 252, -3),
        (U8, 1, 256, 1),
        (DType.I8, -128, 100, 0),
        (DType.I8, -129, 100, -27),
        (DType.I8, -100, 128, 1),
        (DType.I8, -128, 128, None),
    ],
)
def test_weights_that_fit_a_byte_have_no_middle(dtype: DType, low: int, high: int, middle: int | None) -> None:
    found = middle_of(np.array([[low, high]], np.int16), (1,), dtype)
    assert (found if found is None else found.tolist()) == (middle if middle is None else [[middle]])
