"""Values that lie in memory as bytes: however they are read, results are the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from aot.compilation.driver import stages
from aot.compilation.jit import in_memory
from aot.ir.build import Builder
from aot.ir.graph import Graph, OutPort
from aot.ir.interpret import interpret
from aot.opset.control.control_flow import If
from aot.opset.control.port_maps import InputMap, OutputMap
from aot.options import CompileOptions
from aot.runtime.abi import DType
from tests.dynamic.loops import Body
from tests.dynamic.networks import parameter, result
from tests.lowering.check import ints
from tests.lowering.quantized import (
    CLOSE,
    F32,
    I8,
    IMAGE,
    SCALE,
    U8,
    bytes_of,
    check,
    convolution,
    data,
    fake,
    numbers_of,
    quantized,
    weights,
    whole,
)


@pytest.mark.parametrize(("taps", "stride", "zero"), [(2, 2, 0), (3, 2, 121), (4, 2, 0), (2, 2, 121), (3, 1, 121)])
def test_transposed_convolutions(taps: int, stride: int, zero: int) -> None:
    def make(b: Builder, x: OutPort) -> OutPort:
        scale = np.linspace(1e-3, 1e-2, 24).reshape(1, 24, 1, 1)
        w = b.Multiply(b.Convert(b.const(whole(16, 24, taps, taps), I8), destination_type=F32), b.const(scale, F32))
        zeros, ones = (0, 0), (1, 1)
        return b.ConvolutionBackpropData(
            quantized(b, x, zero), w, strides=[stride] * 2, pads_begin=zeros, pads_end=zeros, dilations=ones
        )

    check(make, IMAGE, dots=None, spread=True)


VIEWS: dict[str, Callable[[Builder, OutPort], OutPort]] = {
    "pool": lambda b, y: b.MaxPool(y, strides=(2, 2), pads_begin=(1, 1), pads_end=(1, 1), kernel=(3, 3)),
    "concat": lambda b, y: b.Concat(y, b.Relu(y), axis=1),
    "pad by another number": lambda b, y: b.Pad(y, ints(b, 0, 0, 2, 2), ints(b, 0, 0, 1, 1), b.const(0.5, F32)),
    "slice": lambda b, y: b.Slice(y, ints(b, 1), ints(b, 6), ints(b, 1), ints(b, 2)),
    "transpose": lambda b, y: b.Transpose(y, ints(b, 0, 1, 3, 2)),
    "reverse": lambda b, y: b.Slice(y, ints(b, -1), ints(b, -100), ints(b, -1), ints(b, 3)),
    "select": lambda b, y: b.Select(b.Greater(y, 0.0), y, b.Multiply(y, 0.25)),
}


ZEROS: dict[str, Callable[[Builder, OutPort], OutPort]] = {
    "below": lambda b, x: numbers_of(b, bytes_of(b, x, 0), -5),
    "above": lambda b, x: numbers_of(b, bytes_of(b, x, 0), 250),
    "below, signed": lambda b, x: numbers_of(b, bytes_of(b, x, 0, I8), -200),
    "above, signed": lambda b, x: numbers_of(b, bytes_of(b, x, 0, I8), 200),
    "a range above zero": lambda b, x: fake(b, x, 0.5, 3.0, 16),
    "a range below zero": lambda b, x: fake(b, x, -5.0, -2.5, 16),
    "many levels": lambda b, x: fake(b, x, -1.0, 5.0, 1000),
    "an offset after the scale": lambda b, x: b.Add(b.Multiply(numbers_of(b, bytes_of(b, x, 0), 0, 0.25), 2.0), -30.5),
    "a negative scale": lambda b, x: b.Negative(quantized(b, x)),
    "bytes that wrap": lambda b, x: numbers_of(b, b.Add(bytes_of(b, x), b.const(7, U8))),
    "no bytes in the network": lambda b, x: b.Multiply(b.Clamp(b.Round(b.Divide(x, SCALE)), min=-7.0, max=8.0), 0.3),
}


@pytest.mark.parametrize(("name", "taps"), [*((name, 3) for name in ZEROS), ("below", 1), ("many levels", 1)])
def test_zeros_around_a_picture_that_no_byte_may_be(name: str, taps: int) -> None:
    scale = {"a range above zero": 1 / 6, "a range below zero": 1 / 6, "many levels": 6 / 999}.get(name, SCALE)
    low = {"a range above zero": 0.5, "a range below zero": -5.0, "many levels": -1.0}.get(name, 0.0)
    x = data(*IMAGE, scale=scale) + np.float32(low)
    check(lambda b, x: convolution(b, ZEROS[name](b, x), 24, taps), IMAGE, dots=None, inputs=[x], spread=True)


@pytest.mark.parametrize("zero", [0.0, 99.0])
def test_a_zero_point_of_run_time_around_a_picture(zero: float) -> None:
    def make(b: Builder, x: OutPort, at: OutPort) -> OutPort:
        z = b.Convert(b.Convert(at, destination_type=U8), destination_type=F32)
        number = b.Subtract(b.Convert(bytes_of(b, x), destination_type=F32), z)
        return convolution(b, b.Multiply(number, 0.03), 24)

    check(make, IMAGE, (), dots=None, inputs=[data(*IMAGE), np.array(zero, np.float32)])


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_bytes(name: str) -> None:
    check(lambda b, x: convolution(b, VIEWS[name](b, quantized(b, x)), 24), IMAGE, dots=None, spread=True)


@pytest.mark.parametrize("chosen", [True, False])
def test_bytes_that_a_body_reads(chosen: bool) -> None:
    """The body of a condition is a block of its own, and what it reads of others is theirs."""

    def make() -> Graph:
        graph = Graph("bodies")
        b = Builder(graph)
        c, x = parameter(graph, "c", dtype=DType.BOOL), parameter(graph, "x", 6, 64)
        y = quantized(b, x)
        then, other = Body(), Body()
        inner = quantized(then.build, then.takes(6, 64))
        then.gives(then.build.MatMul(inner, weights(then.build, 40, 64), transpose_b=True))
        other.gives(other.build.MatMul(other.takes(6, 64), weights(other.build, 40, 64, seed=1), transpose_b=True))
        maps = (InputMap(1, 0),), (OutputMap(0, 0),)
        node = graph.add(If(*maps, *maps), c, y)
        node.regions = {"then": then.graph, "else": other.graph}
        result(graph, node.out_port(0))
        result(graph, b.MatMul(y, weights(b, 8, 64, seed=2), transpose_b=True))
        return graph

    given = [np.array(chosen), data(6, 64)]
    expected, found = interpret(make(), given), in_memory(stages(make(), CompileOptions(level=None)).built)(given)
    for n, y in enumerate(expected):
        assert np.abs(found[n] - y).max() <= CLOSE * np.abs(y).max()
